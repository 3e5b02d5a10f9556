//! What the processes of a server write to standard error: the last of it is kept, all of it is logged at debug. It may
//! contain anything, so clients never see it.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
};

use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, BufReader};
use tokio_util::sync::CancellationToken;

/// Maximum size of what is kept of all processes, in bytes.
const MAX_TAIL: usize = 8 << 10;
/// Maximum length of a line, in bytes; a longer one is split.
const MAX_LINE: u64 = 4 << 10;

/// The last output of all processes of a server.
#[derive(Default)]
pub(super) struct Tail(Mutex<VecDeque<u8>>);

/// The last line of one process.
#[derive(Default)]
pub(super) struct LastLine {
    text: Mutex<String>,
    complete: CancellationToken,
}

impl Tail {
    pub(super) fn text(&self) -> String {
        let kept: Vec<u8> = lock(&self.0).iter().copied().collect();
        String::from_utf8_lossy(&kept).into_owned()
    }

    fn add(&self, line: &str) {
        let mut kept = lock(&self.0);
        kept.extend(line.bytes().chain([b'\n']));
        let excess = kept.len().saturating_sub(MAX_TAIL);
        kept.drain(..excess);
    }
}

impl LastLine {
    pub(super) fn text(&self) -> String {
        lock(&self.text).clone()
    }

    /// Resolves when the process writes no more.
    pub(super) async fn complete(&self) {
        self.complete.cancelled().await;
    }
}

/// Reads until the end.
pub(super) async fn read(server: &str, stderr: impl AsyncRead + Unpin, tail: &Tail, last: &LastLine) {
    let mut reader = BufReader::new(stderr);
    let mut line = Vec::new();
    loop {
        line.clear();
        match (&mut reader).take(MAX_LINE).read_until(b'\n', &mut line).await {
            Ok(1..) => {}
            _ => return last.complete.cancel(),
        }
        let text = String::from_utf8_lossy(&line);
        let text = text.trim_end();
        if !text.is_empty() {
            tracing::debug!(server, "stderr of an MCP server: {text}");
            tail.add(text);
            *lock(&last.text) = text.to_owned();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn tail_is_bounded_and_the_last_line_is_kept() {
        let text = format!("{}\n\nlast line\n", "x".repeat(20_000));
        let (tail, last) = (Tail::default(), LastLine::default());
        read("s", text.as_bytes(), &tail, &last).await;
        assert_eq!(last.text(), "last line");
        assert!(tail.text().ends_with("x\nlast line\n") && tail.text().len() <= MAX_TAIL);
    }
}
