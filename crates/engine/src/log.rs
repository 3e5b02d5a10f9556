//! A task's log: numbered entries, packed into one segment per commit.
//!
//! An [`Entry`] is one v1 frame, shared by everyone who reads it; a user's message rides on the status it
//! causes. A segment is the entries of one commit as bytes: a format byte, then records of kind, length and
//! body. The entries of a fresh segment are slices of its buffer, so each frame is encoded once and copied
//! never. Numbers are not in the bytes: the writer gives them when it commits.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use protocol::{Event, Message, TaskState, Timestamp, dialect::v1, json::write::Writer};

/// The place of an event in its task's log, from 1, without gaps.
pub type Seq = u64;

/// What kind of frame an entry is: enough to end a stream without decoding it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A status update, and its state.
    Status(TaskState),
    /// An artifact update.
    Artifact,
    /// A bare answer; the task stays hidden.
    Message,
}

/// One numbered event.
#[derive(Debug)]
pub struct Entry {
    kind: Kind,
    frame: Bytes,
    event: OnceLock<Event>,
    /// Boxed, because few entries have one.
    rider: Option<Box<Rider>>,
}

#[derive(Debug)]
struct Rider {
    bytes: Bytes,
    message: OnceLock<Arc<Message>>,
}

/// The log holds bytes this program did not write.
#[derive(Debug, thiserror::Error)]
#[error("the task's log cannot be read: {0}")]
pub struct Corrupt(String);

impl Entry {
    /// What kind of frame this is.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The frame in the v1 wire form.
    pub fn v1(&self) -> &Bytes {
        &self.frame
    }

    /// The frame as a value, decoded at most once.
    pub fn event(&self) -> Result<&Event, Corrupt> {
        if let Some(event) = self.event.get() {
            return Ok(event);
        }
        let event = v1::event::decode_bytes(&self.frame).map_err(|error| Corrupt(error.message))?;
        Ok(self.event.get_or_init(|| event))
    }

    /// The user's message that caused this status.
    pub fn rider(&self) -> Result<Option<&Message>, Corrupt> {
        let Some(rider) = &self.rider else { return Ok(None) };
        if let Some(message) = rider.message.get() {
            return Ok(Some(message));
        }
        match v1::event::decode_bytes(&rider.bytes) {
            Ok(Event::Message(message)) => Ok(Some(rider.message.get_or_init(|| Arc::new(message)))),
            Ok(_) => Err(Corrupt("a rider is not a message".into())),
            Err(error) => Err(Corrupt(error.message)),
        }
    }

    /// Memory this entry holds, for budgets.
    pub fn size(&self) -> usize {
        self.frame.len() + self.rider.as_ref().map_or(0, |rider| rider.bytes.len())
    }
}

/// An event to record, and the user's message that rides on it.
pub type Line = (Event, Option<Arc<Message>>);

/// The entries of one commit and the segment that holds them.
#[derive(Clone, Debug, Default)]
pub struct Log {
    entries: Vec<Arc<Entry>>,
    segment: Bytes,
    status: Option<(TaskState, Timestamp)>,
}

impl Log {
    /// Packs events, each with the message that rides on it.
    pub fn pack(events: impl IntoIterator<Item = Line>) -> Self {
        let events: Vec<_> = events.into_iter().collect();
        if events.is_empty() {
            return Self::default();
        }
        let mut buffer = Vec::with_capacity(256 * events.len());
        buffer.push(FORMAT);
        let mut status = None;
        let mut places = Vec::with_capacity(events.len());
        for (event, rider) in &events {
            if let Event::Status(update) = event {
                status = update.status.timestamp.map(|at| (update.status.state, at));
            }
            let encode_rider = |message: &Arc<Message>| {
                push(&mut buffer, RIDER, |writer| v1::event::encode_message(writer, message))
            };
            let rider = rider.as_ref().map(encode_rider);
            let tag = tag(kind_of(event));
            places.push((rider, push(&mut buffer, tag, |writer| v1::event::encode(writer, event))));
        }
        let segment = Bytes::from(buffer);
        let entry = |((event, message), (rider, place)): (Line, (Option<Place>, Place))| {
            let rider = message.zip(rider).map(|(message, place)| {
                Box::new(Rider { bytes: segment.slice(place), message: OnceLock::from(message) })
            });
            let kind = kind_of(&event);
            Arc::new(Entry { kind, frame: segment.slice(place), event: OnceLock::from(event), rider })
        };
        Self {
            entries: events.into_iter().zip(places).map(entry).collect(),
            segment: segment.clone(),
            status,
        }
    }

    /// Unpacks a stored segment.
    pub fn unpack(segment: Bytes) -> Result<Self, Corrupt> {
        let mut entries = Vec::new();
        let mut rider = None;
        if segment.first() != Some(&FORMAT) {
            return Err(Corrupt("a segment of an unknown format".into()));
        }
        let mut at = 1;
        while at < segment.len() {
            let header = segment.get(at..at + HEADER).ok_or_else(cut_short)?;
            let length = u32::from_le_bytes([header[1], header[2], header[3], header[4]]) as usize;
            let (start, end) = (at + HEADER, at + HEADER + length);
            if end > segment.len() {
                return Err(cut_short());
            }
            let bytes = segment.slice(start..end);
            match header[0] {
                RIDER => rider = Some(Box::new(Rider { bytes, message: OnceLock::new() })),
                other => {
                    let kind =
                        kind_of_tag(other).ok_or_else(|| Corrupt(format!("a record of kind {other}")))?;
                    let rider = rider.take();
                    entries.push(Arc::new(Entry { kind, frame: bytes, event: OnceLock::new(), rider }));
                }
            }
            at = end;
        }
        Ok(Self { entries, segment, status: None })
    }

    /// The last status that was packed, so that a row says what its log says. Unknown of a stored segment.
    pub fn status(&self) -> Option<(TaskState, Timestamp)> {
        self.status
    }

    /// The entries in order.
    pub fn entries(&self) -> &[Arc<Entry>] {
        &self.entries
    }

    /// The bytes to store.
    pub fn segment(&self) -> &Bytes {
        &self.segment
    }

    /// How many numbers the entries take.
    pub fn len(&self) -> u64 {
        self.entries.len() as u64
    }

    /// Whether there is nothing to record.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

type Place = std::ops::Range<usize>;

const FORMAT: u8 = 1;
const HEADER: usize = 5;
const RIDER: u8 = 0x01;
const STATUS: u8 = 0x10;
const ARTIFACT: u8 = 0x20;
const MESSAGE: u8 = 0x21;

fn push(buffer: &mut Vec<u8>, kind: u8, encode: impl FnOnce(&mut Writer)) -> Place {
    buffer.push(kind);
    buffer.extend_from_slice(&[0; 4]);
    let start = buffer.len();
    let mut writer = Writer::append_to(std::mem::take(buffer));
    encode(&mut writer);
    *buffer = writer.finish();
    let length = u32::try_from(buffer.len() - start).expect("a frame is bounded by the body limit");
    buffer[start - 4..start].copy_from_slice(&length.to_le_bytes());
    start..buffer.len()
}

fn kind_of(event: &Event) -> Kind {
    match event {
        Event::Status(update) => Kind::Status(update.status.state),
        Event::Artifact(_) => Kind::Artifact,
        Event::Message(_) | Event::Task(_) => Kind::Message,
    }
}

fn tag(kind: Kind) -> u8 {
    match kind {
        Kind::Status(state) => STATUS | state.number(),
        Kind::Artifact => ARTIFACT,
        Kind::Message => MESSAGE,
    }
}

fn kind_of_tag(tag: u8) -> Option<Kind> {
    match tag {
        ARTIFACT => Some(Kind::Artifact),
        MESSAGE => Some(Kind::Message),
        _ if tag & 0xf0 == STATUS => TaskState::from_number(tag & 0x0f).map(Kind::Status),
        _ => None,
    }
}

fn cut_short() -> Corrupt {
    Corrupt("a segment that is cut short".into())
}

#[cfg(test)]
mod tests {
    use protocol::{Part, Role, TaskStatus, Timestamp, model::StatusUpdate};

    use super::*;

    fn status(state: TaskState) -> Event {
        Event::Status(StatusUpdate {
            task_id: "t".into(),
            context_id: "c".into(),
            status: TaskStatus { state, message: None, timestamp: Some(Timestamp::from_millis(0)) },
            metadata: None,
        })
    }

    #[test]
    fn a_segment_unpacks_to_what_was_packed() {
        let message = Message::new("m", Role::User, vec![Part::text("hi")]);
        let log = Log::pack([
            (status(TaskState::Submitted), Some(Arc::new(message.clone()))),
            (status(TaskState::Working), None),
        ]);
        let read = Log::unpack(log.segment().clone()).unwrap();
        assert_eq!(read.len(), 2);
        assert_eq!(read.entries()[0].kind(), Kind::Status(TaskState::Submitted));
        assert_eq!(read.entries()[0].rider().unwrap(), Some(&message));
        assert_eq!(read.entries()[1].rider().unwrap(), None);
        for (read, packed) in read.entries().iter().zip(log.entries()) {
            assert_eq!(read.v1(), packed.v1());
            assert_eq!(read.event().unwrap(), packed.event().unwrap());
        }
    }

    #[test]
    fn damage_is_told_and_never_panics() {
        let log = Log::pack([(status(TaskState::Submitted), None)]);
        for length in 0..log.segment().len() {
            let cut = log.segment().slice(..length);
            let read = Log::unpack(cut);
            assert!(read.is_err() || read.is_ok_and(|log| log.is_empty()), "{length}");
        }
        assert!(Log::unpack(Bytes::from_static(&[9])).is_err());
        assert!(Log::unpack(Bytes::from_static(&[1, 0x7f, 0, 0, 0, 0])).is_err());
    }
}
