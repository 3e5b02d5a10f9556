//! overload: more work than slots. Work that waits starts in order and before new messages ([`order`]), slow runs of
//! one agent leave slots for another ([`neighbour`]), three times as many messages as the slots can run leave what is
//! done in a second ([`goodput`]), and tasks that hang do not stop those that survived crashes with
//! them ([`survivors`]).
//!
//! Deliberately not here: a full queue and the limit of one agent, which are tests of the engine.

mod goodput;
mod neighbour;
mod order;
mod survivors;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use serde_json::{Value, json};

use super::extra_options::ExtraOptions;
use super::random::Random;
use super::trial::{ProofResult, Setup, Trial};
use crate::server::{Launch, Server};

pub(crate) const OPTIONS: &str = "[--seconds N] [--seed S] [--binary PATH] [--relaxed]";

/// What one part measured and found.
struct Part {
    figures: Value,
    findings: Vec<String>,
}

pub(crate) fn run(args: &[String]) -> Result<()> {
    let mut extras = ExtraOptions::of(args);
    let limits = extras.time_limits();
    let trial = Trial::parse("overload", "--seconds", 60, &extras.rest())?;
    trial.run(async |setup| {
        let time = Duration::from_secs(trial.size);
        let mut random = Random::new(trial.seed);
        let order = order::run(setup, time, limits, &mut random).await?;
        let neighbour = neighbour::run(setup, time / 6, limits, &mut random).await?;
        let goodput = goodput::run(setup, time, limits, &mut random).await?;
        let survivors = survivors::run(setup, limits, &mut random).await?;
        let figures = json!({
            "order": order.figures,
            "neighbour": neighbour.figures,
            "goodput": goodput.figures,
            "survivors": survivors.figures,
        });
        let findings = [order.findings, neighbour.findings, goodput.findings, survivors.findings].concat();
        Ok(ProofResult { figures, findings })
    })
}

/// A store for one part.
fn store(setup: &Setup, part: &str) -> PathBuf {
    setup.store.with_file_name(format!("{part}.db"))
}

/// Starts a server with this many slots for one part.
async fn start(setup: &Setup, part: &str, slots: usize) -> Result<Server> {
    let variable = ("A2AD_LIMITS__CONCURRENT".into(), slots.to_string().into());
    let launch = Launch { variables: vec![variable], ..Launch::default() };
    Ok(Server::start_with(&launch, &setup.program, &store(setup, part)).await?)
}

fn millis(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e4).round() / 10.0
}
