//! The results of a load: one tally per connection, merged into one report, printed as one line of JSON.
//!
//! Every latency is stored, so that percentiles are exact. Failed calls are counted separately and do not affect
//! rates and latencies.

use std::time::Duration;

/// Results of one connection, or of several merged.
#[derive(Default)]
pub struct Tally {
    latencies: Vec<Duration>,
    errors: u64,
    first_error: Option<anyhow::Error>,
    kept: Vec<String>,
}

impl Tally {
    /// Counts a successful call.
    pub fn succeeded(&mut self, latency: Duration) {
        self.latencies.push(latency);
    }

    /// Counts a failed call.
    pub fn failed(&mut self, error: anyhow::Error) {
        self.errors += 1;
        self.first_error.get_or_insert(error);
    }

    /// Adds the kept task ids.
    pub fn with_kept(self, kept: Vec<String>) -> Self {
        Self { kept, ..self }
    }

    /// Merges two tallies.
    pub fn join(mut self, mut other: Self) -> Self {
        self.latencies.append(&mut other.latencies);
        self.kept.append(&mut other.kept);
        self.errors += other.errors;
        self.first_error = self.first_error.or(other.first_error);
        self
    }
}

/// The result of a whole load.
pub struct Report {
    /// Latencies of the successful calls, ascending.
    latencies: Vec<Duration>,
    elapsed: Duration,
    /// Number of failed calls.
    pub errors: u64,
    /// The cause of the first failure.
    pub first_error: Option<anyhow::Error>,
    /// Ids of created tasks.
    pub kept: Vec<String>,
}

impl Report {
    /// Merges the shares of all threads; the elapsed time is that of the slowest.
    pub fn of(shares: Vec<(Tally, Duration)>) -> Self {
        let elapsed = shares.iter().map(|(_, elapsed)| *elapsed).max().unwrap_or_default();
        let tally = shares.into_iter().map(|(tally, _)| tally).fold(Tally::default(), Tally::join);
        let Tally { mut latencies, errors, first_error, kept } = tally;
        latencies.sort_unstable();
        Self { latencies, elapsed, errors, first_error, kept }
    }

    /// The report as one JSON object of numbers.
    pub fn to_json(&self) -> String {
        let calls = self.latencies.len();
        let seconds = self.elapsed.as_secs_f64();
        serde_json::json!({
            "calls": calls,
            "seconds": rounded(seconds),
            "calls_per_s": rounded(calls as f64 / seconds),
            "p50_ms": self.percentile(50),
            "p99_ms": self.percentile(99),
            "max_ms": self.percentile(100),
            "errors": self.errors,
        })
        .to_string()
    }

    /// The latency within which `percent` of the calls succeeded, in milliseconds; 0 if none did.
    fn percentile(&self, percent: usize) -> f64 {
        let rank = (self.latencies.len() * percent).div_ceil(100).max(1);
        self.latencies.get(rank - 1).map_or(0.0, |latency| rounded(latency.as_secs_f64() * 1e3))
    }
}

/// Rounds to three decimals.
pub fn rounded(number: f64) -> f64 {
    (number * 1e3).round() / 1e3
}
