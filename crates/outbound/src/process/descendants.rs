//! The descendants of this process.

use rustix::process::Pid;

/// A process that this one, or a descendant of it, has started.
#[derive(Clone, Copy, Debug)]
pub(super) struct Descendant {
    pub(super) pid: Pid,
    pub(super) group: i32,
}

/// All descendants, from one pass over `/proc`: a process that is started meanwhile may be missing. `None` where the
/// system does not list processes there.
#[cfg(target_os = "linux")]
pub(super) fn list() -> Option<Vec<Descendant>> {
    let entries = std::fs::read_dir("/proc").ok()?;
    let mut others: Vec<Stat> = entries
        .filter_map(|entry| {
            let name = entry.ok()?.file_name().into_string().ok()?;
            name.parse::<i32>().ok()?;
            // A process that has ended meanwhile has no file any more.
            Stat::parse(&std::fs::read_to_string(format!("/proc/{name}/stat")).ok()?)
        })
        .collect();
    let mut found = Vec::new();
    let mut parents = vec![rustix::process::getpid().as_raw_pid()];
    while let Some(parent) = parents.pop() {
        let (children, rest) = others.into_iter().partition(|stat| stat.parent == parent);
        others = rest;
        let children: Vec<Stat> = children;
        for child in children {
            parents.push(child.pid);
            found.extend(Pid::from_raw(child.pid).map(|pid| Descendant { pid, group: child.group }));
        }
    }
    Some(found)
}

#[cfg(not(target_os = "linux"))]
pub(super) fn list() -> Option<Vec<Descendant>> {
    None
}

/// The part of `/proc/PID/stat` that is needed here.
#[cfg(target_os = "linux")]
#[derive(Debug, PartialEq)]
struct Stat {
    pid: i32,
    parent: i32,
    group: i32,
}

#[cfg(target_os = "linux")]
impl Stat {
    /// `PID (NAME) STATE PARENT GROUP …`. The name may contain anything, also parentheses and spaces.
    fn parse(text: &str) -> Option<Self> {
        let (pid, rest) = text.split_once(' ')?;
        let (_, rest) = rest.rsplit_once(')')?;
        let mut fields = rest.split_whitespace().skip(1);
        let mut number = || fields.next()?.parse().ok();
        Some(Self { pid: pid.parse().ok()?, parent: number()?, group: number()? })
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn stat_of_a_process_with_any_name_is_read() {
        let stat = Stat::parse("42 (a) S 1 (b\n) R 7 8 9 0 -1\n");
        assert_eq!(stat, Some(Stat { pid: 42, parent: 7, group: 8 }));
        assert_eq!(Stat::parse("42 (a"), None);
    }
}
