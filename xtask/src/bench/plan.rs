//! What is measured and how long, from the command line.

use std::str::FromStr;

use anyhow::{Context, Result, bail, ensure};

/// A part of the document that can be measured alone.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Section {
    Beside,
    Bindings,
    FullStore,
    Streams,
    Push,
    Keys,
    Backends,
    Credentials,
}

pub(super) struct Plan {
    pub(super) rounds: usize,
    pub(super) seconds: f64,
    /// Number of tasks in the fullest store.
    pub(super) tasks: u64,
    /// Number of idle subscriptions.
    pub(super) streams: u64,
    /// Events of the fan-out task; `subscribers` read them.
    pub(super) events: u64,
    pub(super) subscribers: u64,
    /// The only section to measure; `None` measures all.
    only: Option<Section>,
    /// Whether the result is written to `BENCHMARKS.md`.
    pub(super) recorded: bool,
    /// The command line of this plan, for the document.
    pub(super) command: String,
}

impl Plan {
    pub(super) fn from_args(args: Vec<String>) -> Result<Self> {
        let command = ["cargo xtask bench"].into_iter().chain(args.iter().map(String::as_str));
        let command = command.collect::<Vec<_>>().join(" ");
        let mut plan = Self {
            rounds: 5,
            seconds: 3.0,
            tasks: 1_000_000,
            streams: 5_000,
            events: 10_000,
            subscribers: 100,
            only: None,
            recorded: true,
            command,
        };
        if args.iter().any(|arg| arg == "--quick") {
            plan = Self {
                rounds: 2,
                seconds: 0.5,
                tasks: 20_000,
                streams: 500,
                events: 1_000,
                subscribers: 20,
                recorded: false,
                ..plan
            };
        }
        let mut args = args.into_iter().filter(|arg| arg != "--quick");
        while let Some(flag) = args.next() {
            let value = args.next().with_context(|| format!("{flag} needs a value"))?;
            match flag.as_str() {
                "--rounds" => plan.rounds = value.parse().context("--rounds takes a whole number")?,
                "--seconds" => plan.seconds = value.parse().context("--seconds takes a number")?,
                "--tasks" => plan.tasks = value.parse().context("--tasks takes a whole number")?,
                "--only" => {
                    plan.only = Some(value.parse()?);
                    plan.recorded = false;
                }
                _ => bail!(
                    "unknown argument {flag}; known are --rounds N, --seconds S, --tasks N, --only SECTION and --quick"
                ),
            }
        }
        ensure!(plan.rounds > 0 && plan.seconds > 0.0, "--rounds and --seconds must be greater than 0");
        ensure!(plan.tasks >= 10_000, "--tasks must be at least 10000");
        Ok(plan)
    }

    pub(super) fn includes(&self, section: Section) -> bool {
        self.only.is_none_or(|only| only == section)
    }
}

impl FromStr for Section {
    type Err = anyhow::Error;

    fn from_str(name: &str) -> Result<Self> {
        match name {
            "beside" => Ok(Self::Beside),
            "bindings" => Ok(Self::Bindings),
            "full-store" => Ok(Self::FullStore),
            "streams" => Ok(Self::Streams),
            "push" => Ok(Self::Push),
            "keys" => Ok(Self::Keys),
            "backends" => Ok(Self::Backends),
            "credentials" => Ok(Self::Credentials),
            _ => bail!(
                "--only takes beside, bindings, full-store, streams, push, keys, backends or credentials, not {name}"
            ),
        }
    }
}
