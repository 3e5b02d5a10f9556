//! How much one principal may use of a server at a time, counted over all its agents and end users within its tenant.
//!
//! The store decides, in the commit that would exceed a cap, so that concurrent messages cannot pass it together. Only
//! what a client sends is refused: whatever running work records is kept.

use protocol::{Error, ErrorKind};

/// The most that one principal may have at a time. 0 is no limit, which is the default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PrincipalCaps {
    /// Tasks that are not terminal.
    pub tasks: u64,
    /// Streams that are open. Counted where they are served, not in the store.
    pub streams: u64,
    /// Tasks that wait for their client, and turns of agents that may ask it
    /// ([`ExecutionPolicy::may_ask`](crate::ExecutionPolicy::may_ask)). With as many, new tasks are refused; tasks that
    /// run already may still ask.
    pub interrupted: u64,
    /// Bytes of the logs of stored tasks.
    pub stored: u64,
}

/// What a principal uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Used {
    /// Tasks that are not terminal.
    pub tasks: u64,
    /// Tasks that wait for their client.
    pub interrupted: u64,
    /// Bytes of the logs of stored tasks.
    pub stored: u64,
}

/// What a message needs, which decides the caps that apply to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Demand {
    /// One more open task.
    Task,
    /// Only the bytes of the message: its task is open already.
    Message,
}

/// A cap that a message would exceed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CapReached {
    /// Open tasks; the cap.
    Tasks(u64),
    /// Open streams; the cap.
    Streams(u64),
    /// Tasks that wait for their client; the cap.
    Interrupted(u64),
    /// Bytes of stored tasks; the cap.
    Stored(u64),
}

impl Used {
    /// With turns that may ask their client, each of which may become a task that waits for it.
    pub fn with_asking_turns(self, turns: u64) -> Self {
        Self { interrupted: self.interrupted + turns, ..self }
    }
}

impl PrincipalCaps {
    /// Whether the store has anything to decide.
    pub fn limits_tasks(&self) -> bool {
        (self.tasks, self.interrupted, self.stored) != (0, 0, 0)
    }

    /// Decides whether a principal that uses this much may have more.
    pub fn check(&self, demand: Demand, used: Used) -> Result<(), CapReached> {
        let is_reached = |used: u64, cap: u64| cap > 0 && used >= cap;
        let one_more = demand == Demand::Task;
        if one_more && is_reached(used.tasks, self.tasks) {
            return Err(CapReached::Tasks(self.tasks));
        }
        if one_more && is_reached(used.interrupted, self.interrupted) {
            return Err(CapReached::Interrupted(self.interrupted));
        }
        if is_reached(used.stored, self.stored) {
            return Err(CapReached::Stored(self.stored));
        }
        Ok(())
    }
}

impl From<CapReached> for Error {
    /// `Retry-After` is short where tasks of the caller end by themselves.
    fn from(reached: CapReached) -> Self {
        let (name, cap, text, seconds) = match reached {
            CapReached::Tasks(cap) => (
                "tasks",
                cap,
                format!(
                    "you have {cap} open tasks, the most for one caller; wait until one has ended, or cancel some"
                ),
                5,
            ),
            CapReached::Streams(cap) => (
                "streams",
                cap,
                format!("you have {cap} open streams, the most for one caller; close some"),
                5,
            ),
            CapReached::Interrupted(cap) => (
                "interrupted",
                cap,
                format!(
                    "{cap} of your tasks wait for an answer or may ask for one, the most for one caller; answer or cancel \
                     some before you start another"
                ),
                60,
            ),
            CapReached::Stored(cap) => (
                "stored",
                cap,
                format!(
                    "your stored tasks have {cap} bytes or more, the most for one caller; finish or cancel tasks, and \
                     wait until finished ones are purged"
                ),
                60,
            ),
        };
        Self::new(ErrorKind::RateLimited, text).with("cap", name).with("limit", cap).with_retry_after(seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caps_of_zero_limit_nothing() {
        let used = Used { tasks: 9, interrupted: 9, stored: 9 };
        assert_eq!(PrincipalCaps::default().check(Demand::Task, used), Ok(()));
        assert!(!PrincipalCaps { streams: 5, ..PrincipalCaps::default() }.limits_tasks());
    }

    #[test]
    fn messages_to_open_tasks_are_limited_by_their_bytes_only() {
        let caps = PrincipalCaps { tasks: 3, streams: 0, interrupted: 2, stored: 10 };
        let full = Used { tasks: 3, interrupted: 2, stored: 9 };
        assert_eq!(caps.check(Demand::Task, full), Err(CapReached::Tasks(3)));
        assert_eq!(caps.check(Demand::Task, Used { tasks: 2, ..full }), Err(CapReached::Interrupted(2)));
        assert_eq!(caps.check(Demand::Task, Used { tasks: 2, interrupted: 1, stored: 9 }), Ok(()));
        assert_eq!(caps.check(Demand::Message, full), Ok(()));
        let stored = Used { stored: 10, ..full };
        assert_eq!(caps.check(Demand::Message, stored), Err(CapReached::Stored(10)));
    }
}
