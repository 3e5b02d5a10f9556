//! key_timing: the time to reject an API key does not depend on where it differs from a valid one.
//!
//! Keys are looked up in process, because the noise of a connection would hide any difference. Samples of the classes
//! are interleaved at random, the slowest hundredth is dropped, and the means of two classes are compared by Welch's t-test
//! with the limit of dudect, 4.5. With `--control` an equality of texts that stops at the first difference is measured
//! instead, and the proof succeeds only if the test finds that.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use engine::{ApiKeys, Clock, Feed, NewApiKey};
use serde_json::json;
use store::{Sqlite, SqliteOptions};

use super::extra_options::ExtraOptions;
use super::random::Random;
use super::trial::{ProofResult, Setup, Trial};

pub(crate) const OPTIONS: &str = "[--samples N] [--control] [--seed S]";

/// Samples of each class.
const SAMPLES: u64 = 200_000;
/// Above this, two classes take different times.
const LIMIT: f64 = 4.5;
/// Rounds, of which the median counts: another process can disturb one.
const ROUNDS: usize = 5;
/// Keys of the store.
const KEYS: usize = 20;

/// Where a presented key differs from a valid one. The id of a key is public, so that of an unknown key is reported
/// and not limited.
const CLASSES: [&str; 3] = ["first_character", "last_character", "unknown_id"];

pub(crate) fn run(args: &[String]) -> Result<()> {
    let mut extras = ExtraOptions::of(args);
    let control = extras.flag("--control");
    let trial = Trial::parse("key_timing", "--samples", SAMPLES, &extras.rest())?;
    trial.run(async |setup| measure(&trial, setup, control).await)
}

async fn measure(trial: &Trial, setup: &Setup, control: bool) -> Result<ProofResult> {
    let clock = Clock::system();
    let store = Sqlite::open(&SqliteOptions::at(&setup.store), Feed::default(), &clock)?;
    let keys = ApiKeys::new(Arc::new(store));
    let mut texts = Vec::new();
    for _ in 0..KEYS {
        let new = NewApiKey { tenant: "default", agent: "echo", owner: None, prefix: "a2ad_" };
        texts.push(keys.create(&new, KEYS, clock.now()).await?.1);
    }
    let valid = texts.last().context("no key was made")?.expose().to_owned();
    ensure!(keys.find(&valid).ok().flatten().is_some(), "the valid key is not found");
    let inputs = variants(&valid)?;
    let mut random = Random::new(trial.seed);
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        let samples = sample(&inputs, trial.size, &mut random, |text| match control {
            true => stops_at_first_difference(text, &valid),
            false => keys.find(text).ok().flatten().is_some(),
        })?;
        rounds.push((welch(&samples[0], &samples[1]), welch(&samples[0], &samples[2])));
    }
    let position = median(rounds.iter().map(|round| round.0.abs()).collect());
    let unknown = median(rounds.iter().map(|round| round.1.abs()).collect());
    let mut findings = Vec::new();
    if control && position < LIMIT {
        findings.push(format!("the comparison that stops early was not found: t = {position:.1}"));
    }
    if !control && position >= LIMIT {
        findings.push(format!("a key takes a different time by where it is wrong: t = {position:.1}"));
    }
    let figures = json!({
        "samples": trial.size, "rounds": ROUNDS, "control": control,
        "t_first_against_last": position, "t_unknown_id": unknown, "limit": LIMIT,
    });
    Ok(ProofResult { figures, findings })
}

/// One invalid key for each class, of the same length.
fn variants(valid: &str) -> Result<[String; 3]> {
    let (rest, _) = valid.rsplit_once('_').context("a key has an underscore")?;
    let other = |at: usize| {
        let mut bytes = valid.as_bytes().to_vec();
        bytes[at] = if bytes[at] == b'a' { b'b' } else { b'a' };
        String::from_utf8(bytes).context("a key is ASCII")
    };
    Ok([other(rest.len() + 1)?, other(valid.len() - 1)?, other(rest.len() - 1)?])
}

/// Nanoseconds of each call, by class.
fn sample(
    inputs: &[String; 3],
    per_class: u64,
    random: &mut Random,
    mut accepts: impl FnMut(&str) -> bool,
) -> Result<[Vec<f64>; 3]> {
    let mut samples: [Vec<f64>; 3] = Default::default();
    let total = usize::try_from(per_class)? * CLASSES.len();
    // All classes are read from the same place, so that none has a better alignment.
    let mut presented = inputs[0].clone();
    for _ in 0..total {
        let class = random.within(0..=CLASSES.len() as u64 - 1) as usize;
        presented.clear();
        presented.push_str(&inputs[class]);
        let started = Instant::now();
        let accepted = black_box(accepts(black_box(&presented)));
        let took = started.elapsed();
        ensure!(!accepted, "an invalid key was accepted: {}", CLASSES[class]);
        samples[class].push(took.as_nanos() as f64);
    }
    for class in &mut samples {
        class.sort_by(f64::total_cmp);
        class.truncate(class.len() * 99 / 100);
    }
    Ok(samples)
}

/// The equality that the control measures.
fn stops_at_first_difference(one: &str, other: &str) -> bool {
    one.len() == other.len() && one.bytes().zip(other.bytes()).all(|(one, other)| black_box(one) == other)
}

/// Welch's t of two samples.
fn welch(one: &[f64], other: &[f64]) -> f64 {
    let moments = |sample: &[f64]| {
        let count = sample.len() as f64;
        let mean = sample.iter().sum::<f64>() / count;
        let variance = sample.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0);
        (mean, variance / count)
    };
    let ((one, one_error), (other, other_error)) = (moments(one), moments(other));
    (one - other) / (one_error + other_error).sqrt()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::INFINITY)
}
