//! The stored form of a folded task: its parts one after the other, with their lengths in front, so that a reader
//! loads only the parts it shows.
//!
//! A format byte; the numbers of messages and artifacts; the length of the head (the task without both) and of each
//! message and artifact; then the parts in that order, each as JSON. Numbers are four bytes, least significant first.
//! Docs written by earlier versions are the whole task as JSON.

use engine::{ids::TaskNo, store::StoreError};
use protocol::{
    Task,
    dialect::v1,
    json::{
        Raw,
        read::{Node, Path, Read},
        write::Writer,
    },
};
use rusqlite::{Connection, MAIN_DB, blob::Blob};

use crate::sqlite::reads::readers::Failure;

const FORMAT: u8 = 2;
const NUMBER: usize = 4;

/// Encodes a task; `None` if it is too large to be stored.
pub(crate) fn encode(mut task: Task) -> Option<Vec<u8>> {
    let history = std::mem::take(&mut task.history);
    let artifacts = std::mem::take(&mut task.artifacts);
    let mut lengths = vec![history.len(), artifacts.len()];
    let header = 1 + NUMBER * (3 + history.len() + artifacts.len());
    let mut out = vec![0; header];
    let mut part = |encode: &dyn Fn(&mut Writer)| {
        let start = out.len();
        let mut writer = Writer::append_to(std::mem::take(&mut out));
        encode(&mut writer);
        out = writer.finish();
        lengths.push(out.len() - start);
    };
    part(&|writer| v1::task::encode(writer, &task));
    for message in &history {
        part(&|writer| v1::message::encode(writer, message));
    }
    for artifact in &artifacts {
        part(&|writer| v1::task::encode_artifact(writer, artifact));
    }
    out[0] = FORMAT;
    for (length, place) in lengths.iter().zip(out[1..header].chunks_exact_mut(NUMBER)) {
        place.copy_from_slice(&u32::try_from(*length).ok()?.to_le_bytes());
    }
    (out.len() <= MAX_BYTES).then_some(out)
}

/// Far below the largest value that a database row can have.
const MAX_BYTES: usize = 512 << 20;

/// A stored doc of which nothing but the lengths has been read.
pub(crate) struct StoredDoc<'c> {
    task: TaskNo,
    blob: Blob<'c>,
    /// `None` in the form of earlier versions.
    lengths: Option<Lengths>,
}

struct Lengths {
    /// Where the head begins.
    start: usize,
    head: usize,
    messages: Vec<usize>,
    artifacts: Vec<usize>,
}

impl<'c> StoredDoc<'c> {
    pub(crate) fn open(tx: &'c Connection, task: TaskNo) -> Result<Self, Failure> {
        let blob = tx.blob_open(MAIN_DB, c"docs", c"bytes", task.0, true)?;
        let lengths = match read_bytes(&blob, 0, 1)?[0] {
            b'{' => None,
            FORMAT => Some(Lengths::read(&blob).map_err(|failure| match failure {
                Failure::Sql(rusqlite::Error::BlobSizeError) => damaged(task, "the document is truncated"),
                failure => failure,
            })?),
            other => return Err(damaged(task, format_args!("unknown document format {other}"))),
        };
        Ok(Self { task, blob, lengths })
    }

    /// Whether it can be read in parts.
    pub(crate) fn has_lengths(&self) -> bool {
        self.lengths.is_some()
    }

    /// Length of each message in bytes, oldest first.
    pub(crate) fn messages(&self) -> &[usize] {
        self.lengths.as_ref().map_or(&[], |lengths| &lengths.messages)
    }

    /// Bytes that [`Self::read`] reads.
    pub(crate) fn size_of(&self, messages: usize, artifacts: bool) -> usize {
        let Some(lengths) = &self.lengths else { return self.blob.len() };
        let shown = lengths.messages.iter().rev().take(messages);
        lengths.head + shown.chain(lengths.artifacts.iter().filter(|_| artifacts)).sum::<usize>()
    }

    /// Reads the whole task.
    pub(crate) fn read_all(&self) -> Result<Task, Failure> {
        self.read(self.messages().len(), true)
    }

    /// Reads the task with this many messages, the newest ones, and its artifacts, if they are wanted.
    pub(crate) fn read(&self, messages: usize, artifacts: bool) -> Result<Task, Failure> {
        let Some(lengths) = &self.lengths else {
            return self.decode(0, self.blob.len(), v1::task::decode);
        };
        let mut task = self.decode(lengths.start, lengths.head, v1::task::decode)?;
        let (skipped, shown) = lengths.messages.split_at(lengths.messages.len().saturating_sub(messages));
        let mut at = lengths.start + lengths.head + skipped.iter().sum::<usize>();
        for length in shown {
            task.history.push(self.decode(at, *length, v1::message::decode)?);
            at += length;
        }
        for length in lengths.artifacts.iter().filter(|_| artifacts) {
            task.artifacts.push(self.decode(at, *length, v1::task::decode_folded_artifact)?);
            at += length;
        }
        Ok(task)
    }

    fn decode<T>(
        &self,
        at: usize,
        length: usize,
        decode: impl FnOnce(Node<'_, '_>) -> Read<T>,
    ) -> Result<T, Failure> {
        let bytes = read_bytes(&self.blob, at, length)?;
        let raw = Raw::parse(&bytes).map_err(|fault| damaged(self.task, fault))?;
        let invalid = |violation: protocol::Violation| damaged(self.task, violation.problem);
        decode(Node::new(raw, &Path::Root)).map_err(invalid)
    }
}

impl Lengths {
    fn read(blob: &Blob<'_>) -> Result<Self, Failure> {
        let counts = numbers(&read_bytes(blob, 1, 2 * NUMBER)?);
        let (messages, artifacts) = (counts[0], counts[1]);
        let parts = 1 + messages.saturating_add(artifacts);
        let table = 1 + 2 * NUMBER;
        let mut lengths = numbers(&read_bytes(blob, table, parts.saturating_mul(NUMBER))?);
        let artifacts = lengths.split_off(1 + messages);
        let messages = lengths.split_off(1);
        let lengths = Self { start: table + parts * NUMBER, head: lengths[0], messages, artifacts };
        let end =
            lengths.start + lengths.head + lengths.messages.iter().chain(&lengths.artifacts).sum::<usize>();
        if end == blob.len() { Ok(lengths) } else { Err(rusqlite::Error::BlobSizeError.into()) }
    }
}

fn numbers(bytes: &[u8]) -> Vec<usize> {
    let number = |bytes: &[u8; NUMBER]| u32::from_le_bytes(*bytes) as usize;
    bytes.as_chunks().0.iter().map(number).collect()
}

fn read_bytes(blob: &Blob<'_>, at: usize, length: usize) -> Result<Vec<u8>, Failure> {
    if at.saturating_add(length) > blob.len() {
        return Err(rusqlite::Error::BlobSizeError.into());
    }
    let mut bytes = vec![0; length];
    blob.read_at_exact(&mut bytes, at)?;
    Ok(bytes)
}

fn damaged(task: TaskNo, problem: impl std::fmt::Display) -> Failure {
    Failure::Store(StoreError::Broken(format!("task {}: {problem}", task.0)))
}

#[cfg(test)]
mod tests {
    use protocol::{Artifact, Message, Part, Role, TaskState, TaskStatus};
    use rusqlite::params;

    use super::*;

    fn task() -> Task {
        let message = |text: &str| Message::new(text, Role::User, vec![Part::text(text)]);
        Task {
            id: "t".into(),
            context_id: "c".into(),
            status: TaskStatus {
                state: TaskState::Completed,
                message: Some(message("done")),
                timestamp: None,
            },
            artifacts: ["a", "b"].map(|id| Artifact::new(id, vec![Part::text(id); 3])).into(),
            history: ["one", "two", "three"].map(message).into(),
            metadata: None,
            created_at: None,
        }
    }

    fn stored(bytes: &[u8]) -> Connection {
        let connection = Connection::open_in_memory().unwrap();
        connection.execute_batch("CREATE TABLE docs (n INTEGER PRIMARY KEY, bytes BLOB)").unwrap();
        connection.execute("INSERT INTO docs VALUES (7, ?1)", params![bytes]).unwrap();
        connection
    }

    fn opened(connection: &Connection) -> Result<StoredDoc<'_>, StoreError> {
        StoredDoc::open(connection, TaskNo(7)).map_err(StoreError::from)
    }

    #[test]
    fn any_part_of_a_doc_can_be_read() {
        let connection = stored(&encode(task()).unwrap());
        let doc = opened(&connection).unwrap();
        assert!(doc.has_lengths() && doc.messages().len() == 3);
        assert_eq!(doc.read_all().map_err(StoreError::from).unwrap(), task());
        for messages in 0..=4 {
            for artifacts in [false, true] {
                let mut expected = task();
                expected.history.drain(..3_usize.saturating_sub(messages));
                if !artifacts {
                    expected.artifacts.clear();
                }
                let read = doc.read(messages, artifacts).map_err(StoreError::from).unwrap();
                assert_eq!(read, expected, "{messages}, {artifacts}");
            }
        }
        assert!(doc.size_of(0, false) < doc.size_of(1, false));
    }

    #[test]
    fn doc_of_an_earlier_version_is_read_as_a_whole() {
        let mut writer = Writer::new();
        v1::task::encode(&mut writer, &task());
        let connection = stored(&writer.finish());
        let doc = opened(&connection).unwrap();
        assert!(!doc.has_lengths());
        assert_eq!(doc.read_all().map_err(StoreError::from).unwrap(), task());
    }

    #[test]
    fn damaged_doc_is_an_error_and_never_panics() {
        let whole = encode(task()).unwrap();
        for length in 0..whole.len() {
            let connection = stored(&whole[..length]);
            assert!(opened(&connection).is_err(), "{length}");
        }
        for at in 0..whole.len() {
            let mut changed = whole.clone();
            changed[at] ^= 0xff;
            let connection = stored(&changed);
            // Some changes give another valid task; none may panic.
            let _ = opened(&connection).and_then(|doc| doc.read_all().map_err(StoreError::from));
        }
    }
}
