//! How the runs of a task are limited and recovered: what can be set for a skill or an agent, and what applies then.

use std::time::Duration;

use protocol::Timestamp;

use crate::{
    agent::{ExecutionPolicy, OnCrash},
    runner::Limits,
};

/// Execution settings of a skill, or of an agent for those of its skills that do not have their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunSettings {
    /// What to do with a turn whose process crashed; default: what the agent declares.
    pub on_crash: Option<OnCrash>,
    /// Timeout of one attempt at a turn; default: [`Limits::run_time`].
    pub run_time: Option<Duration>,
    /// Maximum attempts per turn, the first included; default: [`Limits::attempts`].
    pub attempts: Option<u32>,
    /// How long the whole task may take, from the message that starts or reopens it, waiting included; default: no
    /// limit.
    pub deadline: Option<Duration>,
    /// How long an interrupted task waits for its client before it fails; default: [`Limits::interrupted_ttl`].
    pub interrupted_ttl: Option<Duration>,
}

impl RunSettings {
    /// The first setting without a useful value, and what is expected: zero would let no run end.
    pub fn invalid(&self) -> Option<(&'static str, &'static str)> {
        let durations = [
            ("run_time", self.run_time),
            ("deadline", self.deadline),
            ("interrupted_ttl", self.interrupted_ttl),
        ];
        let zero = durations.into_iter().find(|(_, span)| *span == Some(Duration::ZERO));
        if let Some((name, _)) = zero {
            return Some((name, "must be more than zero"));
        }
        (self.attempts == Some(0)).then_some(("attempts", "must be at least 1"))
    }

    /// These settings, and `others` where they are not set.
    pub(crate) fn or(self, others: Self) -> Self {
        Self {
            on_crash: self.on_crash.or(others.on_crash),
            run_time: self.run_time.or(others.run_time),
            attempts: self.attempts.or(others.attempts),
            deadline: self.deadline.or(others.deadline),
            interrupted_ttl: self.interrupted_ttl.or(others.interrupted_ttl),
        }
    }
}

/// What applies to the runs of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunPolicy {
    /// The agent may run before its task is committed.
    pub overlap: bool,
    /// What to do with a turn whose process crashed.
    pub on_crash: OnCrash,
    /// A turn counts as a task that waits for its client while it runs.
    pub may_ask: bool,
    /// Timeout of one attempt at a turn.
    pub run_time: Duration,
    /// Maximum attempts per turn, the first included.
    pub attempts: u32,
    /// How long the whole task may take.
    pub deadline: Option<Duration>,
    /// How long an interrupted task waits for its client before it fails.
    pub interrupted_ttl: Duration,
}

impl RunPolicy {
    /// The deadline of a task that starts, or is reopened, now.
    pub(crate) fn deadline_from(&self, now: Timestamp) -> Option<Timestamp> {
        let millis = |span: Duration| i64::try_from(span.as_millis()).unwrap_or(i64::MAX);
        self.deadline.map(|span| Timestamp::from_millis(now.as_millis().saturating_add(millis(span))))
    }

    /// What the settings leave open is as the agent declares it, or as the limits of the server are.
    pub(crate) fn new(settings: RunSettings, agent: ExecutionPolicy, limits: &Limits) -> Self {
        Self {
            overlap: agent.overlap,
            on_crash: settings.on_crash.unwrap_or(agent.on_crash),
            may_ask: agent.may_ask,
            run_time: settings.run_time.unwrap_or(limits.run_time),
            attempts: settings.attempts.unwrap_or(limits.attempts),
            deadline: settings.deadline,
            interrupted_ttl: settings.interrupted_ttl.unwrap_or(limits.interrupted_ttl),
        }
    }
}
