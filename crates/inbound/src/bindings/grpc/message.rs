//! Messages on the wire: a flag, a length of four bytes, and that many bytes.
//!
//! Every call here has one message, so a request is read as a whole: bounded in size before anything is kept, and in
//! patience. Nothing is unpacked.

use std::cmp::Ordering;

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use engine::Reservation;
use hyper::body::Body as _;
use protocol::{
    Error, ErrorKind, Event, Reply, TaskId,
    error::{Grpc, in_short},
};

use super::status::Refusal;
use crate::body::Pace;

/// Flag and length.
const PREFIX: usize = 5;

/// The only message of a request.
pub(super) async fn read(mut incoming: Body, limit: usize, memory: &Reservation) -> Result<Bytes, Refusal> {
    let mut received = Received::default();
    let pace = Pace::begin();
    loop {
        let expected = received.length(limit)?.map(|length| PREFIX + length);
        match expected.map(|expected| received.len().cmp(&expected)) {
            Some(Ordering::Greater) => return Err(not_one("more than one message")),
            Some(Ordering::Equal) if incoming.is_end_stream() => return Ok(received.message()),
            _ => {}
        }
        match pace.next(&mut incoming, received.len()).await? {
            Some(frame) => {
                if let Ok(data) = frame.into_data() {
                    memory.reserve_body(data.len() as u64)?;
                    received.push(data, expected.unwrap_or_default());
                }
            }
            None if received.len() == 0 => return Err(not_one("no message")),
            None if Some(received.len()) == expected => return Ok(received.message()),
            None => return Err(cut_short().into()),
        }
    }
}

/// Writes one message behind its prefix; `write` appends it.
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
            let text = format!("the answer has {length} bytes and may have {limit}");
            Err(Error::new(ErrorKind::BodyTooLarge, text).with("maxBodyBytes", limit))
        }
    }
}

/// Adds to the refusal of an answer how to get what it was about. The task is recorded all the same, so a client that sends
/// its message again would make another.
pub(super) fn advise(error: Error, about: About<'_>) -> Error {
    if error.kind != ErrorKind::BodyTooLarge {
        return error;
    }
    let advice = match about {
        About::Task(id) => {
            let id = in_short(id.as_str());
            format!(
                "task {id} is recorded, do not send its message again: get it with GetTask, with historyLength 0 or over \
                 HTTP+JSON or JSON-RPC, or raise limits.max_body"
            )
        }
        About::Tasks => {
            "ask for fewer tasks with pageSize, with historyLength 0 or over HTTP+JSON or JSON-RPC, or \
                         raise limits.max_body"
                .to_owned()
        }
        About::Other => "ask over HTTP+JSON or JSON-RPC, or raise limits.max_body".to_owned(),
    };
    let error = Error { message: format!("{}; {advice}", error.message), ..error };
    match about {
        About::Task(id) => error.with("taskId", id),
        About::Tasks | About::Other => error,
    }
}

/// What an answer is about.
#[derive(Clone, Copy)]
pub(super) enum About<'a> {
    Task(&'a TaskId),
    Tasks,
    Other,
}

impl<'a> About<'a> {
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

/// What has come of a request's body.
#[derive(Default)]
struct Received {
    /// Most requests are one frame, and then nothing is copied.
    first: Bytes,
    whole: BytesMut,
}

impl Received {
    fn len(&self) -> usize {
        self.first.len() + self.whole.len()
    }

    fn bytes(&self) -> &[u8] {
        if self.whole.is_empty() { &self.first } else { &self.whole }
    }

    /// How long the message is, when that much has come.
    fn length(&self, limit: usize) -> Result<Option<usize>, Refusal> {
        let Some((flag, length)) = self.bytes().get(..PREFIX).and_then(<[u8]>::split_first) else {
            return Ok(None);
        };
        if *flag != 0 {
            return Err(flagged(*flag));
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
            // All at once where the length is known: a buffer that grows leaves smaller ones behind.
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

/// gRPC wants exactly this status for a request of another number of messages.
fn not_one(found: &str) -> Refusal {
    let text = format!("the request holds {found}; send exactly one");
    Refusal { error: Error::new(ErrorKind::InvalidRequest, text), code: Some(Grpc::Unimplemented) }
}

/// gRPC wants INTERNAL for a message that says it is packed where nothing says how. Other flags mean nothing,
/// and are the caller's fault.
fn flagged(flag: u8) -> Refusal {
    let (text, code) = match flag {
        1 => {
            let text =
                "the message is flagged as compressed, and no grpc-encoding says how; send it as it is";
            (text.to_owned(), Some(Grpc::Internal))
        }
        other => {
            (format!("the message begins with the flag {other}; 0 is expected, a message as it is"), None)
        }
    };
    Refusal { error: Error::new(ErrorKind::InvalidRequest, text), code }
}

fn cut_short() -> Error {
    let text = "the request ends before its message does; send as many bytes as its prefix says";
    Error::new(ErrorKind::InvalidRequest, text)
}

fn too_large(length: usize, limit: usize) -> Refusal {
    let text = format!("the message has {length} bytes and may have {limit}; send files by url instead");
    Error::new(ErrorKind::BodyTooLarge, text).with("maxBodyBytes", limit).into()
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use engine::MemoryBudget;
    use futures_util::stream;

    use super::*;

    async fn read_pieces(pieces: &[&'static [u8]]) -> Result<Bytes, (ErrorKind, Option<Grpc>)> {
        let pieces: Vec<_> =
            pieces.iter().map(|piece| Ok::<_, Infallible>(Bytes::from_static(piece))).collect();
        let memory = MemoryBudget::new(1 << 20).begin();
        let read = read(Body::from_stream(stream::iter(pieces)), 8, &memory).await;
        read.map_err(|refusal| (refusal.error.kind, refusal.code))
    }

    #[tokio::test]
    async fn a_message_may_come_in_any_pieces() {
        for pieces in [
            &[&b"\0\0\0\0\x03abc"[..]][..],
            &[b"\0", b"\0\0\0", b"\x03a", b"", b"bc"],
            &[b"\0\0\0\0\x03", b"abc"],
        ] {
            assert_eq!(read_pieces(pieces).await, Ok(Bytes::from_static(b"abc")));
        }
        assert_eq!(read_pieces(&[b"\0\0\0\0\0"]).await, Ok(Bytes::new()));
        let memory = MemoryBudget::new(1 << 20).begin();
        assert_eq!(read(Body::from(&b"\0\0\0\0\x01x"[..]), 8, &memory).await.unwrap(), "x");
    }

    #[tokio::test]
    async fn what_is_no_single_message_is_told_apart() {
        let invalid = |code| Err((ErrorKind::InvalidRequest, Some(code)));
        assert_eq!(read_pieces(&[]).await, invalid(Grpc::Unimplemented));
        assert_eq!(read_pieces(&[b"\0\0\0\0\0\0\0\0\0\0"]).await, invalid(Grpc::Unimplemented));
        assert_eq!(read_pieces(&[b"\x01\0\0\0\x01x"]).await, invalid(Grpc::Internal));
        assert_eq!(read_pieces(&[b"\x09\0\0\0\x01x"]).await, Err((ErrorKind::InvalidRequest, None)));
        for cut in [&b"\0"[..], b"\0\0\0\0\x03", b"\0\0\0\0\x03ab"] {
            assert_eq!(read_pieces(&[cut]).await, Err((ErrorKind::InvalidRequest, None)));
        }
        // What is too large is refused by its length alone.
        for large in [&b"\0\0\0\0\x09"[..], b"\0\xff\xff\xff\xff"] {
            assert_eq!(read_pieces(&[large]).await, Err((ErrorKind::BodyTooLarge, None)));
        }
    }

    #[test]
    fn a_message_that_is_too_large_leaves_nothing_behind() {
        let mut out = b"before".to_vec();
        append(&mut out, 3, |out| out.extend_from_slice(b"abc")).unwrap();
        let refused = append(&mut out, 3, |out| out.extend_from_slice(b"abcd")).unwrap_err();
        assert_eq!(refused.kind, ErrorKind::BodyTooLarge);
        assert_eq!(out, b"before\0\0\0\0\x03abc");
    }
}
