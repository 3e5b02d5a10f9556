//! A task's event log: numbered entries, packed into one segment per commit.
//!
//! An [`Entry`] is one v1 frame, shared by all its readers; a user message is stored with the status update
//! it causes. A segment holds the entries of one commit as bytes: a format byte, then records of kind, length
//! and body. The entries of a new segment are slices of its buffer, so each frame is encoded once and never
//! copied. Sequence numbers are not part of the bytes: the writer assigns them at commit.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use protocol::{Event, Message, TaskState, Timestamp, dialect::v1, json::write::Writer};

/// Sequence number of an event in its task's log, from 1, without gaps.
pub type Seq = u64;

/// The kind of an entry's frame: enough to detect the end of a stream without decoding the frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A status update with its state.
    Status(TaskState),
    /// An artifact update.
    Artifact,
    /// A reply by bare message; the task stays hidden.
    Message,
}

/// One numbered event of the log.
#[derive(Debug)]
pub struct Entry {
    kind: Kind,
    frame: Bytes,
    event: OnceLock<Event>,
    /// Boxed because few entries have one.
    user_message: Option<Box<UserMessage>>,
}

#[derive(Debug)]
struct UserMessage {
    bytes: Bytes,
    message: OnceLock<Arc<Message>>,
}

/// The log cannot be decoded: it holds bytes this program did not write.
#[derive(Debug, thiserror::Error)]
#[error("cannot decode the task's log: {0}")]
pub struct Corrupt(String);

impl Entry {
    /// Kind of the frame, without decoding it.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The frame in the v1 wire form.
    pub fn v1(&self) -> &Bytes {
        &self.frame
    }

    /// The decoded frame; decoded at most once.
    pub fn event(&self) -> Result<&Event, Corrupt> {
        if let Some(event) = self.event.get() {
            return Ok(event);
        }
        let event = v1::event::decode_bytes(&self.frame).map_err(|error| Corrupt(error.message))?;
        Ok(self.event.get_or_init(|| event))
    }

    /// The user message that caused this status update; decoded at most once.
    pub fn user_message(&self) -> Result<Option<&Message>, Corrupt> {
        let Some(user_message) = &self.user_message else { return Ok(None) };
        if let Some(message) = user_message.message.get() {
            return Ok(Some(message));
        }
        match v1::event::decode_bytes(&user_message.bytes) {
            Ok(Event::Message(message)) => Ok(Some(user_message.message.get_or_init(|| Arc::new(message)))),
            Ok(_) => Err(Corrupt("a user message record does not hold a message".into())),
            Err(error) => Err(Corrupt(error.message)),
        }
    }

    /// Bytes in memory, for cache limits.
    pub fn size(&self) -> usize {
        self.frame.len() + self.user_message.as_ref().map_or(0, |user_message| user_message.bytes.len())
    }
}

/// An event to record, with the user message that caused it.
pub type NewEntry = (Event, Option<Arc<Message>>);

/// The entries of one commit and the segment they are stored in.
#[derive(Clone, Debug, Default)]
pub struct Log {
    entries: Vec<Arc<Entry>>,
    segment: Bytes,
    status: Option<(TaskState, Timestamp)>,
}

impl Log {
    /// Encodes events, each with the user message that caused it.
    pub fn pack(events: impl IntoIterator<Item = NewEntry>) -> Self {
        let events: Vec<_> = events.into_iter().collect();
        if events.is_empty() {
            return Self::default();
        }
        let mut buffer = Vec::with_capacity(256 * events.len());
        buffer.push(FORMAT);
        let mut status = None;
        let mut ranges = Vec::with_capacity(events.len());
        for (event, user_message) in &events {
            if let Event::Status(update) = event {
                status = update.status.timestamp.map(|at| (update.status.state, at));
            }
            let encode_rider = |message: &Arc<Message>| {
                push(&mut buffer, USER_MESSAGE, |writer| v1::event::encode_message(writer, message))
            };
            let user_message = user_message.as_ref().map(encode_rider);
            let tag = tag(kind_of(event));
            ranges.push((user_message, push(&mut buffer, tag, |writer| v1::event::encode(writer, event))));
        }
        let segment = Bytes::from(buffer);
        let entry =
            |((event, message), (user_message, range)): (NewEntry, (Option<ByteRange>, ByteRange))| {
                let user_message = message.zip(user_message).map(|(message, range)| {
                    Box::new(UserMessage { bytes: segment.slice(range), message: OnceLock::from(message) })
                });
                let kind = kind_of(&event);
                Arc::new(Entry {
                    kind,
                    frame: segment.slice(range),
                    event: OnceLock::from(event),
                    user_message,
                })
            };
        Self {
            entries: events.into_iter().zip(ranges).map(entry).collect(),
            segment: segment.clone(),
            status,
        }
    }

    /// Decodes a stored segment.
    pub fn unpack(segment: Bytes) -> Result<Self, Corrupt> {
        let mut entries = Vec::new();
        let mut user_message = None;
        if segment.first() != Some(&FORMAT) {
            return Err(Corrupt("unknown segment format".into()));
        }
        let mut at = 1;
        while at < segment.len() {
            let header = segment.get(at..at + HEADER).ok_or_else(truncated)?;
            let length = u32::from_le_bytes([header[1], header[2], header[3], header[4]]) as usize;
            let (start, end) = (at + HEADER, at + HEADER + length);
            if end > segment.len() {
                return Err(truncated());
            }
            let bytes = segment.slice(start..end);
            match header[0] {
                USER_MESSAGE => {
                    user_message = Some(Box::new(UserMessage { bytes, message: OnceLock::new() }))
                }
                other => {
                    let kind =
                        kind_of_tag(other).ok_or_else(|| Corrupt(format!("unknown record kind {other}")))?;
                    let user_message = user_message.take();
                    entries.push(Arc::new(Entry {
                        kind,
                        frame: bytes,
                        event: OnceLock::new(),
                        user_message,
                    }));
                }
            }
            at = end;
        }
        Ok(Self { entries, segment, status: None })
    }

    /// The last packed status, so that the task row agrees with its log. `None` for a segment read from the
    /// store.
    pub fn status(&self) -> Option<(TaskState, Timestamp)> {
        self.status
    }

    /// The entries in log order.
    pub fn entries(&self) -> &[Arc<Entry>] {
        &self.entries
    }

    /// The encoded segment.
    pub fn segment(&self) -> &Bytes {
        &self.segment
    }

    /// Number of entries, which is how many sequence numbers they need.
    pub fn len(&self) -> u64 {
        self.entries.len() as u64
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

type ByteRange = std::ops::Range<usize>;

const FORMAT: u8 = 1;
const HEADER: usize = 5;
const USER_MESSAGE: u8 = 0x01;
const STATUS: u8 = 0x10;
const ARTIFACT: u8 = 0x20;
const MESSAGE: u8 = 0x21;

fn push(buffer: &mut Vec<u8>, kind: u8, encode: impl FnOnce(&mut Writer)) -> ByteRange {
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

fn truncated() -> Corrupt {
    Corrupt("truncated segment".into())
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
    fn segment_round_trips() {
        let message = Message::new("m", Role::User, vec![Part::text("hi")]);
        let log = Log::pack([
            (status(TaskState::Submitted), Some(Arc::new(message.clone()))),
            (status(TaskState::Working), None),
        ]);
        let read = Log::unpack(log.segment().clone()).unwrap();
        assert_eq!(read.len(), 2);
        assert_eq!(read.entries()[0].kind(), Kind::Status(TaskState::Submitted));
        assert_eq!(read.entries()[0].user_message().unwrap(), Some(&message));
        assert_eq!(read.entries()[1].user_message().unwrap(), None);
        for (read, packed) in read.entries().iter().zip(log.entries()) {
            assert_eq!(read.v1(), packed.v1());
            assert_eq!(read.event().unwrap(), packed.event().unwrap());
        }
    }

    #[test]
    fn damaged_segment_is_an_error_and_never_panics() {
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
