//! The output streams of a command.

use std::io;

use bytes::BytesMut;
use engine::{AgentError, AgentResult};
use tokio::{
    io::AsyncReadExt as _,
    process::{ChildStderr, ChildStdout},
};

use super::failure;
use crate::backend::Reply;

/// Maximum size of one read, in bytes.
const READ: usize = 64 << 10;
/// How much of standard error is kept, in bytes.
const TAIL: usize = 2 << 10;

/// Why a command that runs must be stopped.
pub(super) enum Interrupted {
    /// The call ends with this reply.
    Reply(Reply),
    /// The call ends with this error.
    Error(AgentError),
}

impl<E: Into<AgentError>> From<E> for Interrupted {
    fn from(error: E) -> Self {
        Self::Error(error.into())
    }
}

impl From<Interrupted> for AgentResult<Reply> {
    fn from(interrupted: Interrupted) -> Self {
        match interrupted {
            Interrupted::Reply(reply) => Ok(reply),
            Interrupted::Error(error) => Err(error),
        }
    }
}

/// Standard output, up to the maximum size.
pub(super) struct Output {
    stdout: ChildStdout,
    left: u64,
    max: u64,
}

impl Output {
    pub(super) fn new(stdout: ChildStdout, max: u64) -> Self {
        Self { stdout, left: max, max }
    }

    /// Appends what is available, at least one byte; `false` at the end. Cancel safe.
    pub(super) async fn read(&mut self, buffer: &mut BytesMut) -> Result<bool, Interrupted> {
        buffer.reserve(READ);
        let read = self.stdout.read_buf(buffer).await.map_err(Unreadable)?;
        match self.left.checked_sub(read as u64) {
            Some(left) => self.left = left,
            None => return Err(Interrupted::Reply(failure::too_much_output(self.max))),
        }
        Ok(read > 0)
    }
}

#[derive(Debug, thiserror::Error)]
#[error("the output of the command cannot be read")]
struct Unreadable(#[source] io::Error);

/// The end of standard error, as text.
pub(super) struct Tail(String);

impl Tail {
    /// Reads until the end of the stream.
    pub(super) async fn read(mut stderr: ChildStderr) -> Self {
        let mut kept = BytesMut::new();
        loop {
            kept.reserve(READ);
            // What was read before an error is all there is.
            match stderr.read_buf(&mut kept).await {
                Ok(1..) => {}
                Ok(0) | Err(_) => break,
            }
            if kept.len() > TAIL {
                let _ = kept.split_to(kept.len() - TAIL);
            }
        }
        Self(String::from_utf8_lossy(&kept).trim().to_owned())
    }

    pub(super) fn text(&self) -> &str {
        &self.0
    }
}
