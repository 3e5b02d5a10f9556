//! A task's event log: numbered entries, packed into one segment per commit.
//!
//! An [`Entry`] is one v1 frame, shared by all its readers; a user message is stored with the status update
//! it causes. A segment holds the entries of one commit as bytes: a format byte, then records of kind, length
//! and body. The entries of a new segment are slices of its buffer, so each frame is encoded once and never
//! copied. Sequence numbers are not part of the bytes: the writer assigns them at commit.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use protocol::{
    Event, Message, TaskState, Timestamp,
    dialect::v1::{self, event::ChunkHeader},
    json::write::Writer,
};

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
    /// `None` if the reader left it out.
    bytes: Option<Bytes>,
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

    /// The artifact a chunk belongs to and its flags; `None` for other events. The content of the chunk is not
    /// decoded for it.
    pub fn chunk(&self) -> Result<Option<ChunkHeader>, Corrupt> {
        if self.kind != Kind::Artifact {
            return Ok(None);
        }
        if let Some(Event::Artifact(update)) = self.event.get() {
            return Ok(Some(ChunkHeader::of(update)));
        }
        v1::event::decode_chunk_header(&self.frame).map(Some).map_err(|error| Corrupt(error.message))
    }

    /// Whether a user message caused this status update, also if the reader left the message out.
    pub fn has_user_message(&self) -> bool {
        self.user_message.is_some()
    }

    /// The user message that caused this status update; decoded at most once. `None` also if the reader left
    /// it out.
    pub fn user_message(&self) -> Result<Option<&Message>, Corrupt> {
        let Some(user_message) = &self.user_message else { return Ok(None) };
        if let Some(message) = user_message.message.get() {
            return Ok(Some(message));
        }
        let Some(bytes) = &user_message.bytes else { return Ok(None) };
        match v1::event::decode_bytes(bytes) {
            Ok(Event::Message(message)) => Ok(Some(user_message.message.get_or_init(|| Arc::new(message)))),
            Ok(_) => Err(Corrupt("a user message record does not hold a message".into())),
            Err(error) => Err(Corrupt(error.message)),
        }
    }

    /// Bytes in memory, for cache limits.
    pub fn size(&self) -> usize {
        let user_message = self.user_message.as_ref().and_then(|user_message| user_message.bytes.as_ref());
        self.frame.len() + user_message.map_or(0, Bytes::len)
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
    progress_size: u64,
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
        let (mut status, mut progress_size) = (None, 0);
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
            let frame = push(&mut buffer, tag, |writer| v1::event::encode(writer, event));
            if user_message.is_none() && is_progress(event) {
                progress_size += (HEADER + frame.len()) as u64;
            }
            ranges.push((user_message, frame));
        }
        let segment = Bytes::from(buffer);
        let entry =
            |((event, message), (user_message, range)): (NewEntry, (Option<ByteRange>, ByteRange))| {
                let user_message = message.zip(user_message).map(|(message, range)| {
                    let bytes = Some(segment.slice(range));
                    Box::new(UserMessage { bytes, message: OnceLock::from(message) })
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
            progress_size,
        }
    }

    /// Decodes a stored segment.
    pub fn unpack(segment: Bytes) -> Result<Self, Corrupt> {
        let located = locate(segment.len(), |at, header: &mut [u8]| {
            header.copy_from_slice(&segment[at..at + header.len()]);
            Ok::<_, Corrupt>(())
        })?;
        let entry = |located: &LocatedEntry| {
            let user_message = located.user_message.clone().map(|range| segment.slice(range));
            Arc::new(located.entry(segment.slice(located.frame.clone()), user_message))
        };
        let entries = located.iter().map(entry).collect();
        Ok(Self { entries, segment, status: None, progress_size: 0 })
    }

    /// The last packed status, so that the task row agrees with its log. `None` for a segment read from the
    /// store.
    pub fn status(&self) -> Option<(TaskState, Timestamp)> {
        self.status
    }

    /// How many bytes of the packed segment are progress messages, which do not count towards the size limit of a task.
    /// 0 for a segment read from the store.
    pub fn progress_size(&self) -> u64 {
        self.progress_size
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

/// An entry of a stored segment as its headers describe it: a reader can skip it or read a part of it.
#[derive(Clone, Debug)]
pub struct LocatedEntry {
    /// Kind of the frame.
    pub kind: Kind,
    /// Where the frame is in the segment.
    pub frame: ByteRange,
    /// Where the user message is that caused it.
    pub user_message: Option<ByteRange>,
}

impl LocatedEntry {
    /// Bytes of the frame and the user message.
    pub fn size(&self) -> usize {
        self.frame.len() + self.user_message.as_ref().map_or(0, ByteRange::len)
    }

    /// The entry with these bytes. Without a user message although there is one, the entry leaves it out.
    pub fn entry(&self, frame: Bytes, user_message: Option<Bytes>) -> Entry {
        let user_message = self
            .user_message
            .as_ref()
            .map(|_| Box::new(UserMessage { bytes: user_message, message: OnceLock::new() }));
        Entry { kind: self.kind, frame, event: OnceLock::new(), user_message }
    }
}

/// Locates the entries of a stored segment of `length` bytes. `read` fills a buffer with the segment's bytes
/// from an offset on; only headers are read.
pub fn locate<E: From<Corrupt>>(
    length: usize,
    mut read: impl FnMut(usize, &mut [u8]) -> Result<(), E>,
) -> Result<Vec<LocatedEntry>, E> {
    let mut format = [0];
    if length > 0 {
        read(0, &mut format)?;
    }
    if format != [FORMAT] {
        return Err(Corrupt("unknown segment format".into()).into());
    }
    let (mut entries, mut user_message, mut at) = (Vec::new(), None, 1);
    while at < length {
        let mut header = [0; HEADER];
        if at + HEADER > length {
            return Err(truncated().into());
        }
        read(at, &mut header)?;
        let [kind, size @ ..] = header;
        let start = at + HEADER;
        at = start + u32::from_le_bytes(size) as usize;
        if at > length {
            return Err(truncated().into());
        }
        if kind == USER_MESSAGE {
            user_message = Some(start..at);
            continue;
        }
        let kind = kind_of_tag(kind).ok_or_else(|| Corrupt(format!("unknown record kind {kind}")))?;
        entries.push(LocatedEntry { kind, frame: start..at, user_message: user_message.take() });
    }
    Ok(entries)
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

/// Whether the event is the status `working` with a message.
fn is_progress(event: &Event) -> bool {
    matches!(event, Event::Status(update) if update.status.state == TaskState::Working && update.status.message.is_some())
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
    use protocol::{
        Artifact, Part, Role, TaskStatus, Timestamp,
        model::{ArtifactUpdate, StatusUpdate},
    };

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
    fn located_entries_are_those_of_the_segment_and_can_leave_out_a_message() {
        let message = Message::new("m", Role::User, vec![Part::text("hi")]);
        let log = Log::pack([
            (status(TaskState::Submitted), Some(Arc::new(message))),
            (status(TaskState::Working), None),
        ]);
        let segment = log.segment();
        let mut bytes_read = 0;
        let located = locate(segment.len(), |at, buffer: &mut [u8]| {
            bytes_read += buffer.len();
            buffer.copy_from_slice(&segment[at..at + buffer.len()]);
            Ok::<_, Corrupt>(())
        })
        .unwrap();
        assert_eq!(bytes_read, 1 + 3 * HEADER, "only headers are read");
        for (located, packed) in located.iter().zip(log.entries()) {
            assert_eq!((located.kind, located.size()), (packed.kind(), packed.size()));
            assert_eq!(&segment[located.frame.clone()], packed.v1());
        }
        let without = located[0].entry(segment.slice(located[0].frame.clone()), None);
        assert!(without.has_user_message() && without.user_message().unwrap().is_none());
        assert!(!log.entries()[1].has_user_message());
    }

    #[test]
    fn chunk_header_is_read_without_the_event() {
        let update = ArtifactUpdate {
            task_id: "t".into(),
            context_id: "c".into(),
            artifact: Artifact::new("a", vec![Part::text("x")]),
            append: true,
            last_chunk: true,
            metadata: None,
        };
        let log = Log::pack([(Event::Artifact(update.clone()), None), (status(TaskState::Working), None)]);
        let read = Log::unpack(log.segment().clone()).unwrap();
        for log in [log, read] {
            assert_eq!(log.entries()[0].chunk().unwrap(), Some(ChunkHeader::of(&update)));
            assert_eq!(log.entries()[1].chunk().unwrap(), None);
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
