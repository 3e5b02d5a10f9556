//! A disk that can be made to fail: where the store is, how the disk is broken, and how it is repaired.

use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Result;

use crate::random::Random;
use crate::server::{Launch, Server};

/// What the tests may use on this machine.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Privileges {
    /// Mounts, where the system allows them.
    All,
    /// Nothing that needs privileges.
    WithoutMounts,
}

/// A disk with one kind of failure. Dropping it releases its resources.
pub(crate) trait Disk: Send {
    /// How it fails, for the result.
    fn fault_method(&self) -> &'static str;

    fn store(&self) -> &Path;

    /// File for the server's log, if not next to the store: it must stay writable.
    fn log(&self) -> Option<&Path> {
        None
    }

    /// How the server that will meet the next failure is started.
    fn launch(&mut self, random: &mut Random) -> Launch;

    /// Breaks the disk, unless it fails by itself.
    fn break_disk(&mut self, server: &Server, random: &mut Random) -> Result<()>;

    /// The time after which no write succeeded, if known: a call sent later must not be acknowledged.
    fn failed_since(&self) -> Option<Moment>;

    /// Whether a start on the broken disk must fail.
    fn refuses_starts(&self) -> bool {
        false
    }

    /// Repairs the disk for the next start.
    fn repair(&mut self) -> Result<()>;
}

/// A point in time on the system clock, which strace also uses.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub(crate) struct Moment(Duration);

impl Moment {
    #[expect(clippy::disallowed_methods, reason = "compared with strace's output, which uses the same clock")]
    pub(crate) fn now() -> Self {
        Self(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
    }

    pub(crate) fn elapsed(self) -> Duration {
        Self::now().0.saturating_sub(self.0)
    }

    /// From seconds since 1970, as strace prints them.
    pub(crate) fn from_seconds(seconds: f64) -> Self {
        Self(Duration::from_secs_f64(seconds))
    }
}
