//! What a process counts about itself, for `/metrics`.
//!
//! Counters are relaxed atomics in plain structs: counting neither allocates nor locks, and costs one or two additions.
//! Who counts owns the struct: the store has [`StoreMetrics`], the runner [`RunMetrics`], and `inbound` its own. Names,
//! help texts and the exposition format are in `inbound/src/metrics/`. No value here has an id or a text of a caller.

mod backends;
mod push;
mod runs;
mod store;

use std::{
    sync::atomic::{AtomicI64, AtomicU64, Ordering},
    time::Duration,
};

pub use self::{
    backends::{BackendKind, BackendMetrics, BackendOutcome},
    push::{PushMetrics, PushOutcome},
    runs::{RunMetrics, RunOutcome, RunnerLoad},
    store::{DiskUsage, StoreMetrics},
};

/// Defines a closed enum whose variants are the values of a metric's label.
#[doc(hidden)]
#[macro_export]
macro_rules! label_values {
    ($(#[$meta:meta])* $vis:vis enum $name:ident { $($(#[$doc:meta])* $variant:ident = $label:literal),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        $vis enum $name { $($(#[$doc])* $variant),+ }

        impl $name {
            /// The values of the label, in the order of the variants.
            $vis const LABELS: &'static [&'static str] = &[$($label),+];
            /// How many values there are.
            $vis const COUNT: usize = Self::LABELS.len();
        }
    };
}

/// A number that only grows.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds one.
    pub fn increment(&self) {
        self.add(1);
    }

    /// Adds this many.
    pub fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    /// The number.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A number that grows and shrinks.
#[derive(Debug, Default)]
pub struct Gauge(AtomicI64);

impl Gauge {
    /// Adds this many; fewer if it is negative.
    pub fn add(&self, difference: i64) {
        self.0.fetch_add(difference, Ordering::Relaxed);
    }

    /// The number. A reader may see the effect of an end before that of its begin, so it can be below zero for a moment.
    pub fn get(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Upper bounds for durations of calls and commits, in microseconds: 100 µs to 60 s.
pub const DURATION_BOUNDS: &[u64] = &[
    100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000,
    2_500_000, 5_000_000, 10_000_000, 30_000_000, 60_000_000,
];

/// Upper bounds for durations of runs and of calls of backends, in microseconds: 1 ms to 10 min.
pub const RUN_BOUNDS: &[u64] = &[
    1_000,
    5_000,
    10_000,
    50_000,
    100_000,
    500_000,
    1_000_000,
    5_000_000,
    10_000_000,
    30_000_000,
    60_000_000,
    300_000_000,
    600_000_000,
];

/// The most bounds of a histogram.
const MAX_BOUNDS: usize = 18;

const _: () = assert!(DURATION_BOUNDS.len() <= MAX_BOUNDS && RUN_BOUNDS.len() <= MAX_BOUNDS);

/// How often a value was within each of some fixed bounds, and the sum of the values.
#[derive(Debug)]
pub struct Histogram {
    bounds: &'static [u64],
    /// The last one is for values above all bounds; those behind it are unused.
    buckets: [AtomicU64; MAX_BOUNDS + 1],
    sum: AtomicU64,
}

impl Histogram {
    /// A histogram with these inclusive upper bounds, in ascending order; at most 18.
    pub const fn new(bounds: &'static [u64]) -> Self {
        assert!(bounds.len() <= MAX_BOUNDS, "too many bounds");
        Self { bounds, buckets: [const { AtomicU64::new(0) }; MAX_BOUNDS + 1], sum: AtomicU64::new(0) }
    }

    /// Counts a value.
    pub fn observe(&self, value: u64) {
        let at = self.bounds.iter().position(|bound| value <= *bound).unwrap_or(self.bounds.len());
        self.buckets[at].fetch_add(1, Ordering::Relaxed);
        self.sum.fetch_add(value, Ordering::Relaxed);
    }

    /// Counts a duration, in microseconds.
    pub fn observe_duration(&self, duration: Duration) {
        self.observe(u64::try_from(duration.as_micros()).unwrap_or(u64::MAX));
    }

    /// Each bound with the number of values up to it.
    pub fn cumulative(&self) -> impl Iterator<Item = (u64, u64)> {
        let mut count = 0;
        self.bounds.iter().zip(&self.buckets).map(move |(bound, bucket)| {
            count += bucket.load(Ordering::Relaxed);
            (*bound, count)
        })
    }

    /// The number of values above all bounds.
    pub fn above(&self) -> u64 {
        self.buckets[self.bounds.len()].load(Ordering::Relaxed)
    }

    /// The sum of all values.
    pub fn sum(&self) -> u64 {
        self.sum.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_counts_up_to_its_bound_and_in_every_larger_one() {
        let histogram = Histogram::new(&[1, 5, 10]);
        for value in [0, 1, 2, 5, 10, 11, 1_000] {
            histogram.observe(value);
        }
        assert_eq!(histogram.cumulative().collect::<Vec<_>>(), [(1, 2), (5, 4), (10, 5)]);
        assert_eq!((histogram.above(), histogram.sum()), (2, 1_029));
    }

    #[test]
    fn durations_are_counted_in_microseconds() {
        let histogram = Histogram::new(DURATION_BOUNDS);
        histogram.observe_duration(Duration::from_micros(100));
        histogram.observe_duration(Duration::from_micros(101));
        histogram.observe_duration(Duration::from_secs(61));
        let counts: Vec<u64> = histogram.cumulative().map(|(_, count)| count).collect();
        assert_eq!((counts[0], counts[1], histogram.above()), (1, 2, 1));
    }

    /// The cost of counting one call: a counter and a histogram. Printed, not checked: it depends on the machine.
    #[test]
    #[ignore = "a measurement; run it with --ignored --nocapture"]
    fn cost_of_counting() {
        const CALLS: u32 = 10_000_000;
        let (counter, histogram) = (Counter::default(), Histogram::new(DURATION_BOUNDS));
        let begun = std::time::Instant::now();
        for call in 0..CALLS {
            counter.increment();
            histogram.observe(u64::from(call % 2_000));
        }
        println!("{} ns per call", begun.elapsed().as_nanos() as f64 / f64::from(CALLS));
        assert_eq!(counter.get(), u64::from(CALLS));
    }
}
