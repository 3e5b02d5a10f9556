//! Lines that leave together: a line of a call waits a moment for those of the next ones.
//!
//! Under load a write for each line is half of what a line costs, and the workers would queue for stderr. So a line of
//! a call is put into a list, and one thread empties the list fifty times a second. Everything else that is said leaves
//! at once, behind what waits: order is kept, and what a dying program says last is seen. A list that is full is
//! emptied by whoever finds it so: it stays small, and nothing is lost when nobody reads.

use std::{
    io::{self, Write},
    mem,
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use tracing::Metadata;
use tracing_subscriber::fmt::MakeWriter;

/// How long a line waits for others.
const PAUSE: Duration = Duration::from_millis(20);
/// More bytes than this do not wait.
const FULL: usize = 256 * 1024;

/// What waits to be written to stderr.
pub(super) struct Lines {
    waiting: Mutex<Vec<u8>>,
    /// Something waits that did not before.
    filled: Condvar,
    /// Held by who writes, so that lines leave in the order in which they came.
    leaving: Mutex<()>,
}

impl Lines {
    pub(super) const fn new() -> Self {
        Self { waiting: Mutex::new(Vec::new()), filled: Condvar::new(), leaving: Mutex::new(()) }
    }

    /// Empties the list from now on.
    pub(super) fn start(&'static self) -> io::Result<()> {
        thread::Builder::new().name("a2ad-log".into()).spawn(|| {
            loop {
                let some = self.filled.wait_while(held(&self.waiting), |waiting| waiting.is_empty());
                let some = some.unwrap_or_else(PoisonError::into_inner);
                // Others join them meanwhile.
                drop(self.filled.wait_timeout(some, PAUSE));
                self.flush();
            }
        })?;
        Ok(())
    }

    /// Writes what waits. Whoever closes our stderr loses the lines and nothing else.
    pub(super) fn flush(&self) {
        let _leaving = held(&self.leaving);
        let lines = mem::take(&mut *held(&self.waiting));
        let _ = io::stderr().write_all(&lines);
    }

    fn add(&self, line: &[u8], waits: bool) {
        let mut waiting = held(&self.waiting);
        let first = waiting.is_empty();
        waiting.extend_from_slice(line);
        let full = waiting.len() > FULL;
        drop(waiting);
        if full || !waits {
            self.flush();
        } else if first {
            self.filled.notify_one();
        }
    }
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The writer of one line, which comes in one piece.
pub(super) struct Line {
    lines: &'static Lines,
    waits: bool,
}

impl<'a> MakeWriter<'a> for &'static Lines {
    type Writer = Line;

    fn make_writer(&'a self) -> Line {
        Line { lines: self, waits: false }
    }

    fn make_writer_for(&'a self, about: &Metadata<'_>) -> Line {
        Line { lines: self, waits: about.target() == super::CALLS }
    }
}

impl Write for Line {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.lines.add(line, self.waits);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
