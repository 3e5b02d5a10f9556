//! The frames of one stream.
//!
//! In most dialects an event is a frame. `draft` has no frame for a task as a whole or for a bare message, and it
//! knows an artifact by its index, so there a stream must remember which artifacts it has seen.

use std::collections::HashMap;

use crate::{ArtifactId, Event, json::write::Writer};

use super::{Dialect, Style, draft, v1, v03, v03_proto};

/// What a stream remembers between its frames: the order in which the task's artifacts appeared.
#[derive(Debug)]
pub struct Frames {
    dialect: Dialect,
    style: Style,
    places: HashMap<ArtifactId, usize>,
}

impl Frames {
    /// A stream that has not begun.
    pub fn new(dialect: Dialect, style: Style) -> Self {
        Self { dialect, style, places: HashMap::new() }
    }

    /// The artifacts the task had when the stream began, in order of first appearance. Needed where the
    /// snapshot shown does not carry them.
    pub fn know(&mut self, artifacts: impl IntoIterator<Item = ArtifactId>) {
        for artifact in artifacts {
            place(&mut self.places, &artifact);
        }
    }

    /// Writes the frames of one event, in order; each is one JSON document on one line, handed to `each`.
    pub fn encode(&mut self, event: &Event, each: &mut dyn FnMut(&[u8])) {
        let mut one = |write: &dyn Fn(&mut Writer)| {
            let mut writer = Writer::new();
            write(&mut writer);
            each(&writer.finish());
        };
        match self.dialect {
            Dialect::Draft => {
                draft::event::encode(event, self.style, &mut |id| place(&mut self.places, id), each);
            }
            Dialect::V03 => one(&|writer| v03::event::encode(writer, event, self.style)),
            Dialect::V03Proto => one(&|writer| v03_proto::event::encode(writer, event)),
            Dialect::V1 => one(&|writer| v1::event::encode(writer, event)),
        }
    }
}

/// The index of an artifact: the next one where it is new.
fn place(places: &mut HashMap<ArtifactId, usize>, artifact: &ArtifactId) -> usize {
    if let Some(place) = places.get(artifact) {
        return *place;
    }
    let next = places.len();
    places.insert(artifact.clone(), next);
    next
}
