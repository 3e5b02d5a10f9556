//! The output streams of a command.

use std::{
    io,
    sync::{Mutex, PoisonError},
};

use bytes::BytesMut;
use engine::AgentError;
use tokio::{
    io::AsyncReadExt as _,
    process::{ChildStderr, ChildStdout},
};

use super::failure;

/// Maximum size of one read, in bytes.
const READ: usize = 64 << 10;
/// How much of standard error is kept, in bytes.
const TAIL: usize = 2 << 10;

/// Why a command that runs must be stopped.
pub(super) enum Interrupted {
    /// The call fails with this text.
    Failed(String),
    /// The call ends with this error.
    Error(AgentError),
}

impl<E: Into<AgentError>> From<E> for Interrupted {
    fn from(error: E) -> Self {
        Self::Error(error.into())
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
            None => return Err(Interrupted::Failed(failure::too_much_output(self.max))),
        }
        Ok(read > 0)
    }
}

#[derive(Debug, thiserror::Error)]
#[error("the output of the command cannot be read")]
struct Unreadable(#[source] io::Error);

/// The end of standard error.
#[derive(Default)]
pub(super) struct Tail(Mutex<BytesMut>);

impl Tail {
    /// Reads until the end of the stream.
    pub(super) async fn read(&self, mut stderr: ChildStderr) {
        let mut read = BytesMut::with_capacity(READ);
        // What was read before an error is all there is.
        while let Ok(1..) = stderr.read_buf(&mut read).await {
            let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            kept.extend_from_slice(&read);
            let surplus = kept.len().saturating_sub(TAIL);
            let _ = kept.split_to(surplus);
            read.clear();
        }
    }

    /// A text, with the end of standard error if there is any.
    pub(super) fn appended_to(&self, text: String) -> String {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // It may begin within a character.
        let is_start = |byte: &u8| !(0x80..0xc0).contains(byte);
        let start = kept.iter().take(4).position(is_start).unwrap_or_default();
        match String::from_utf8_lossy(&kept[start..]).trim() {
            "" => text,
            end => format!("{text}: {end}"),
        }
    }
}
