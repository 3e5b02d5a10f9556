//! Samples of a load, medians, and ratios with their spread, formatted for tables.

use std::collections::HashMap;
use std::fmt::Write as _;

use anyhow::{Context, Result, ensure};

/// The measurement of one cell in one round.
#[derive(Clone, Copy)]
pub(super) struct Sample {
    pub(super) calls: f64,
    pub(super) rate: f64,
    pub(super) p50_ms: f64,
    pub(super) p99_ms: f64,
    max_ms: f64,
    pub(super) errors: u64,
}

impl Sample {
    pub(super) fn decode(line: &[u8]) -> Result<Self> {
        let fields = Fields::decode(line)?;
        let sample = Self {
            calls: fields.get("calls")?,
            rate: fields.get("calls_per_s")?,
            p50_ms: fields.get("p50_ms")?,
            p99_ms: fields.get("p99_ms")?,
            max_ms: fields.get("max_ms")?,
            errors: fields.get("errors")? as u64,
        };
        ensure!(sample.calls > 0.0, "not one call was answered");
        Ok(sample)
    }
}

/// The numbers the load generator prints.
pub(super) struct Fields(HashMap<String, f64>);

impl Fields {
    pub(super) fn decode(line: &[u8]) -> Result<Self> {
        serde_json::from_slice(line).map(Self).context("the load printed no report")
    }

    pub(super) fn get(&self, name: &str) -> Result<f64> {
        self.0.get(name).copied().with_context(|| format!("the report has no {name}"))
    }
}

/// Rate, median, 99th percentile and maximum of one cell's rounds, as table columns.
pub(super) fn write_calls(text: &mut String, samples: &[Sample]) -> Result<()> {
    let middle = |field: fn(&Sample) -> f64| median(samples.iter().map(field).collect());
    let failed: u64 = samples.iter().map(|sample| sample.errors).sum();
    let failed = if failed > 0 { format!(" ({failed} failed)") } else { String::new() };
    let slowest = samples.iter().map(|sample| sample.max_ms).fold(0.0, f64::max);
    let (p50, p99) = (middle(|sample| sample.p50_ms), middle(|sample| sample.p99_ms));
    let rate = thousands(middle(|sample| sample.rate));
    write!(text, "| {rate}{failed} | {p50:.2} | {p99:.2} | {slowest:.1} ")?;
    Ok(())
}

/// The ratios of `samples` to those of `base`, round by round.
pub(super) fn ratios<T>(samples: &[T], base: &[T], field: fn(&T) -> f64) -> Vec<f64> {
    samples.iter().zip(base).map(|(sample, base)| field(sample) / field(base)).collect()
}

/// The median, and in brackets the smallest and the largest value.
pub(super) fn spread(ratios: Vec<f64>) -> String {
    let least = ratios.iter().copied().fold(f64::INFINITY, f64::min);
    let greatest = ratios.iter().copied().fold(0.0, f64::max);
    format!("{:.2} ({least:.2}..{greatest:.2})", median(ratios))
}

pub(super) fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    (numbers[(numbers.len() - 1) / 2] + numbers[numbers.len() / 2]) / 2.0
}

pub(super) fn thousands(number: f64) -> String {
    let digits = format!("{number:.0}");
    let groups = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy);
    groups.collect::<Vec<_>>().join(",")
}
