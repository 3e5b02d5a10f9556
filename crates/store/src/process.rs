//! Other processes of this machine, found by the files they have open: for errors that name who holds a file or a port.
//!
//! The source is `/proc`. Where it does not exist, or belongs to another user, nothing is found. The search is bounded
//! in time.

use std::{
    fmt, fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

/// How long `/proc` is searched.
const SEARCH_TIME: Duration = Duration::from_millis(500);
/// The kernel counts the start of a process in these units per second, on every machine that Linux runs on today.
const TICKS: u64 = 100;

/// A running process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// Its process id.
    pub pid: u32,
    /// The name of its program.
    pub name: String,
    /// How long it has been running, where that is known.
    pub up: Option<Duration>,
}

impl fmt::Display for Process {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} (PID {}", self.name, self.pid)?;
        if let Some(time) = self.up {
            write!(out, ", up {}", up(time))?;
        }
        out.write_str(")")
    }
}

impl Process {
    /// A process, other than this one, that has one of these files open. A socket is named `socket:[INODE]`.
    pub fn with_open_file(files: &[PathBuf]) -> Option<Self> {
        let deadline = Instant::now() + SEARCH_TIME;
        let is_other = |pid: &u32| *pid != std::process::id();
        fs::read_dir("/proc")
            .ok()?
            .flatten()
            .take_while(|_| Instant::now() <= deadline)
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .filter(is_other)
            .find(|pid| has_open(*pid, files, deadline).unwrap_or(false))
            .map(Self::of)
    }

    /// This process.
    pub(crate) fn current() -> Self {
        Self::of(std::process::id())
    }

    fn of(pid: u32) -> Self {
        let read = |name: &str| fs::read_to_string(format!("/proc/{pid}/{name}")).unwrap_or_default();
        let name = read("comm").trim().to_owned();
        let machine = fs::read_to_string("/proc/uptime").unwrap_or_default();
        Self {
            pid,
            name: if name.is_empty() { "a process".into() } else { name },
            up: age(&read("stat"), &machine),
        }
    }
}

/// Whether a process has a file open; `None` where that cannot be read.
pub(crate) fn has_file_open(pid: u32, file: &Path) -> Option<bool> {
    has_open(pid, &[file.to_owned()], Instant::now() + SEARCH_TIME)
}

fn has_open(pid: u32, files: &[PathBuf], deadline: Instant) -> Option<bool> {
    let open = fs::read_dir(format!("/proc/{pid}/fd")).ok()?;
    let is_one = |target: PathBuf| files.contains(&target);
    Some(
        open.flatten()
            .take_while(|_| Instant::now() <= deadline)
            .any(|file| fs::read_link(file.path()).is_ok_and(is_one)),
    )
}

/// The age of a process by its `stat` and the machine's `uptime`.
fn age(stat: &str, uptime: &str) -> Option<Duration> {
    // The program's name comes before, and may contain anything, also brackets.
    let (_, fields) = stat.rsplit_once(')')?;
    let started: u64 = fields.split_whitespace().nth(19)?.parse().ok()?;
    let up: f64 = uptime.split_whitespace().next()?.parse().ok()?;
    Some(Duration::from_secs_f64(up.max(0.0)).saturating_sub(Duration::from_millis(started * 1_000 / TICKS)))
}

/// A span of time in its two largest units.
pub fn up(span: Duration) -> String {
    let seconds = span.as_secs();
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, _) => format!("{minutes} min {} s", seconds % 60),
        (0, _, _) => format!("{hours} h {minutes} min"),
        _ => format!("{days} d {hours} h"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_has_two_units() {
        for (seconds, expected) in
            [(0, "0 s"), (59, "59 s"), (61, "1 min 1 s"), (3_660, "1 h 1 min"), (90_000, "1 d 1 h")]
        {
            assert_eq!(up(Duration::from_secs(seconds)), expected);
        }
    }

    #[test]
    fn age_is_uptime_minus_start() {
        let stat = "12 (a) b) S 1 12 12 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 5000 1 1";
        assert_eq!(age(stat, "60.50 1.0"), Some(Duration::from_millis(10_500)));
        assert_eq!((age("", "1"), age(stat, "")), (None, None));
    }
}
