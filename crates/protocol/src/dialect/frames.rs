//! The frames of one stream.
//!
//! In most dialects one event is one frame. The draft has no frame for a whole task or a direct message, and
//! it identifies an artifact by its index, so the encoder keeps the artifacts a stream has shown.

use std::collections::HashMap;

use crate::{ArtifactId, Event, Task, TaskStatus, json::write::Writer};

use super::{Dialect, Style, draft, projection::StreamedText, v1, v03, v03_proto};

/// Encoder state of one stream: the order in which the task's artifacts appeared.
#[derive(Debug)]
pub struct Frames {
    dialect: Dialect,
    style: Style,
    places: HashMap<ArtifactId, usize>,
    /// What the stream has shown, for clients that expect it again. Boxed, because most streams have none.
    text: Option<Box<StreamedText>>,
}

impl Frames {
    /// The state at the start of a stream.
    pub fn new(dialect: Dialect, style: Style) -> Self {
        let text = StreamedText::of_stream(dialect, style).map(Box::new);
        Self { dialect, style, places: HashMap::new(), text }
    }

    /// Registers the artifacts the task had when the stream started, in order of first appearance. Needed if
    /// the snapshot sent does not contain them.
    pub fn know(&mut self, artifacts: impl IntoIterator<Item = ArtifactId>) {
        for artifact in artifacts {
            place(&mut self.places, &artifact);
            if let Some(text) = &mut self.text {
                text.know(&artifact);
            }
        }
    }

    /// Encodes the task that a stream begins with.
    pub fn encode_task(&mut self, mut task: Task, each: &mut dyn FnMut(&[u8])) {
        if let Some(text) = &mut self.text {
            text.begin(&mut task);
        }
        self.encode_with(&Event::Task(task), None, each);
    }

    /// Encodes one event. Each frame is one JSON document on one line and is passed to `each` in order.
    pub fn encode(&mut self, event: &Event, each: &mut dyn FnMut(&[u8])) {
        let Some(text) = &mut self.text else { return self.encode_with(event, None, each) };
        let (event, beside) = text.project(event);
        self.encode_with(&event, beside.as_ref(), each);
    }

    fn encode_with(&mut self, event: &Event, beside: Option<&TaskStatus>, each: &mut dyn FnMut(&[u8])) {
        let mut one = |write: &dyn Fn(&mut Writer)| {
            let mut writer = Writer::new();
            write(&mut writer);
            each(&writer.finish());
        };
        match self.dialect {
            Dialect::Draft => {
                let place = &mut |id: &ArtifactId| place(&mut self.places, id);
                draft::event::encode(event, beside, self.style, place, each);
            }
            Dialect::V03 => one(&|writer| v03::event::encode(writer, event, beside, self.style)),
            Dialect::V03Proto => one(&|writer| v03_proto::event::encode(writer, event)),
            Dialect::V1 => one(&|writer| v1::event::encode(writer, event)),
        }
    }
}

/// The index of an artifact; a new artifact gets the next one.
fn place(places: &mut HashMap<ArtifactId, usize>, artifact: &ArtifactId) -> usize {
    if let Some(place) = places.get(artifact) {
        return *place;
    }
    let next = places.len();
    places.insert(artifact.clone(), next);
    next
}
