//! A disk that can be made to fail: where the store lies, how it is broken, and how it is mended.

use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Result;

use crate::server::{Launch, Server};
use crate::verify::random::Random;

/// How far the harness may go.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Means {
    /// Mounts, where the system lets us.
    All,
    /// Nothing that takes privileges.
    WithoutMounts,
}

/// A disk of one kind. Dropping it takes away whatever it needed.
pub(crate) trait Disk: Send {
    /// How it fails, in words for the result.
    fn means(&self) -> &'static str;

    fn store(&self) -> &Path;

    /// Where the server's log goes, when not beside the store: it must be able to say what happened.
    fn log(&self) -> Option<&Path> {
        None
    }

    /// How the server that will meet the next failure is started.
    fn launch(&mut self, random: &mut Random) -> Launch;

    /// Breaks the disk, unless it breaks by itself.
    fn strike(&mut self, server: &Server, random: &mut Random) -> Result<()>;

    /// The moment after which no write succeeded, where it is known: a call begun later must not be acknowledged.
    fn dead_since(&self) -> Option<Moment>;

    /// Whether a start on the broken disk must be refused.
    fn refuses_starts(&self) -> bool {
        false
    }

    /// Makes the disk whole again, for the next start.
    fn mend(&mut self) -> Result<()>;
}

/// A moment on the clock of the machine, which other programs tell the time by too.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub(crate) struct Moment(Duration);

impl Moment {
    #[expect(clippy::disallowed_methods, reason = "compared with what strace writes by the same clock")]
    pub(crate) fn now() -> Self {
        Self(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
    }

    /// How long ago it was.
    pub(crate) fn elapsed(self) -> Duration {
        Self::now().0.saturating_sub(self.0)
    }

    /// From seconds since 1970, as strace writes them.
    pub(crate) fn from_seconds(seconds: f64) -> Self {
        Self(Duration::from_secs_f64(seconds))
    }
}
