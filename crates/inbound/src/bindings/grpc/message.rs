//! Length-prefixed messages: a flag, a length of four bytes, and that many bytes.
//!
//! Every call here has exactly one request message, so the body is read as a whole, limited in size before anything is
//! kept, and in time. Compressed messages are not supported.

use std::cmp::Ordering;

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use engine::Reservation;
use hyper::body::Body as _;
use protocol::{
    Error, ErrorKind, Event, Reply, TaskId,
    error::{GrpcStatus, excerpt},
};

use super::status::Refusal;
use crate::request::body::BodyTimer;

/// Bytes of the flag and the length.
const PREFIX: usize = 5;

/// Reads the only message of a request.
pub(super) async fn read(mut incoming: Body, limit: usize, memory: &Reservation) -> Result<Bytes, Refusal> {
    let mut received = ReceivedBytes::default();
    let timer = BodyTimer::begin();
    loop {
        let expected = received.length(limit)?.map(|length| PREFIX + length);
        match expected.map(|expected| received.len().cmp(&expected)) {
            Some(Ordering::Greater) => return Err(wrong_message_count("more than one message")),
            Some(Ordering::Equal) if incoming.is_end_stream() => return Ok(received.message()),
            _ => {}
        }
        match timer.next(&mut incoming, received.len()).await? {
            Some(frame) => {
                if let Ok(data) = frame.into_data() {
                    memory.reserve_body(data.len() as u64)?;
                    received.push(data, expected.unwrap_or_default());
                }
            }
            None if received.len() == 0 => return Err(wrong_message_count("no message")),
            None if Some(received.len()) == expected => return Ok(received.message()),
            None => return Err(incomplete_message().into()),
        }
    }
}

/// Appends one message with its prefix; `write` appends the message itself.
pub(super) fn append(out: &mut Vec<u8>, limit: usize, write: impl FnOnce(&mut Vec<u8>)) -> Result<(), Error> {
    let start = out.len();
    out.extend_from_slice(&[0; PREFIX]);
    write(out);
    let length = out.len() - start - PREFIX;
    match u32::try_from(length) {
        Ok(prefix) if length <= limit => {
            out[start + 1..start + PREFIX].copy_from_slice(&prefix.to_be_bytes());
            Ok(())
        }
        _ => {
            out.truncate(start);
            let text = format!("the reply has {length} bytes, more than the limit of {limit}");
            Err(Error::new(ErrorKind::BodyTooLarge, text).with("maxBodyBytes", limit))
        }
    }
}

/// Adds to the error about a too large reply how to get the data. The task is recorded, so a client that sends its
/// message again would create another one.
pub(super) fn add_retrieval_hint(error: Error, subject: ReplySubject<'_>) -> Error {
    if error.kind != ErrorKind::BodyTooLarge {
        return error;
    }
    let advice = match subject {
        ReplySubject::Task(id) => {
            let id = excerpt(id.as_str());
            format!(
                "task {id} is recorded, do not send its message again: get it with GetTask, with historyLength 0 or over \
                 HTTP+JSON or JSON-RPC, or raise limits.max_body"
            )
        }
        ReplySubject::Tasks => {
            "ask for fewer tasks with pageSize, with historyLength 0 or over HTTP+JSON or JSON-RPC, or \
                         raise limits.max_body"
                .to_owned()
        }
        ReplySubject::Other => "ask over HTTP+JSON or JSON-RPC, or raise limits.max_body".to_owned(),
    };
    let error = Error { message: format!("{}; {advice}", error.message), ..error };
    match subject {
        ReplySubject::Task(id) => error.with("taskId", id),
        ReplySubject::Tasks | ReplySubject::Other => error,
    }
}

/// What a reply contains, as far as the hint depends on it.
#[derive(Clone, Copy)]
pub(super) enum ReplySubject<'a> {
    Task(&'a TaskId),
    Tasks,
    Other,
}

impl<'a> ReplySubject<'a> {
    pub(super) fn reply(reply: &'a Reply) -> Self {
        match reply {
            Reply::SentTask(task) | Reply::Task(task) => Self::Task(&task.id),
            Reply::SentMessage(message) => message.task_id.as_ref().map_or(Self::Other, Self::Task),
            Reply::Tasks(_) => Self::Tasks,
            Reply::PushConfig(_) | Reply::PushConfigs(_) | Reply::Deleted | Reply::Card(_) => Self::Other,
        }
    }

    pub(super) fn event(event: &'a Event) -> Self {
        match event {
            Event::Task(task) => Self::Task(&task.id),
            Event::Status(update) => Self::Task(&update.task_id),
            Event::Artifact(update) => Self::Task(&update.task_id),
            Event::Message(message) => message.task_id.as_ref().map_or(Self::Other, Self::Task),
        }
    }
}

/// The bytes of a request's body received so far.
#[derive(Default)]
struct ReceivedBytes {
    /// Most requests are one frame, which is then not copied.
    first: Bytes,
    whole: BytesMut,
}

impl ReceivedBytes {
    fn len(&self) -> usize {
        self.first.len() + self.whole.len()
    }

    fn bytes(&self) -> &[u8] {
        if self.whole.is_empty() { &self.first } else { &self.whole }
    }

    /// The message's length; `None` until the prefix has been received.
    fn length(&self, limit: usize) -> Result<Option<usize>, Refusal> {
        let Some((flag, length)) = self.bytes().get(..PREFIX).and_then(<[u8]>::split_first) else {
            return Ok(None);
        };
        if *flag != 0 {
            return Err(unknown_flag(*flag));
        }
        let length = length.iter().fold(0, |length, byte| length << 8 | usize::from(*byte));
        if length > limit {
            return Err(too_large(length, limit));
        }
        Ok(Some(length))
    }

    fn push(&mut self, data: Bytes, expected: usize) {
        if self.len() == 0 {
            self.first = data;
            return;
        }
        if self.whole.is_empty() {
            // Reserve the whole length where it is known: a buffer that grows in steps leaves smaller ones behind.
            self.whole.reserve(expected.max(self.first.len() + data.len()));
            self.whole.extend_from_slice(&std::mem::take(&mut self.first));
        }
        self.whole.extend_from_slice(&data);
    }

    fn message(self) -> Bytes {
        let mut bytes = if self.whole.is_empty() { self.first } else { self.whole.freeze() };
        bytes.split_off(PREFIX)
    }
}

/// The gRPC specification requires this status for a request that has not exactly one message.
fn wrong_message_count(found: &str) -> Refusal {
    let text = format!("the request holds {found}; send exactly one");
    Refusal { error: Error::new(ErrorKind::InvalidRequest, text), code: Some(GrpcStatus::Unimplemented) }
}

/// The gRPC specification requires INTERNAL for a message flagged as compressed without `grpc-encoding`. Other flags
/// are undefined and the caller's error.
fn unknown_flag(flag: u8) -> Refusal {
    let (text, code) = match flag {
        1 => {
            let text =
                "the message is flagged as compressed, but grpc-encoding is missing; send it uncompressed";
            (text.to_owned(), Some(GrpcStatus::Internal))
        }
        other => (format!("the message begins with the flag {other}; expected 0 (uncompressed)"), None),
    };
    Refusal { error: Error::new(ErrorKind::InvalidRequest, text), code }
}

fn incomplete_message() -> Error {
    let text =
        "the request ended before its message was complete; send as many bytes as its length prefix declares";
    Error::new(ErrorKind::InvalidRequest, text)
}

fn too_large(length: usize, limit: usize) -> Refusal {
    let text =
        format!("the message has {length} bytes, more than the limit of {limit}; send files by url instead");
    Error::new(ErrorKind::BodyTooLarge, text).with("maxBodyBytes", limit).into()
}
