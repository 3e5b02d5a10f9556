//! Feeds the decoders and the task rules with damaged input: no panic, no hang, no broken property.
//!
//! A [`Target`] is a function over bytes that panics when something is wrong. [`mutate`] makes its inputs from
//! a corpus and a seed; [`run`] feeds them on all cores and collects what goes wrong. Both run on the stable
//! toolchain; a coverage-guided fuzzer can call the same targets.
//!
//! To add a target: one file in `targets/` with `pub(crate) const TARGET: Target`, one line in [`targets()`]. A
//! decoder reads the input as it comes and checks that what it accepts survives encoding (`targets/card.rs`).
//! A state machine reads the input as a script, one byte per event with the byte choosing among the events
//! there are, and checks its invariants after each; its corpus is a few scripts of ordinary lives, its
//! dictionary is empty, and byte edits and splices then reorder, repeat and drop events.
//!
//! An input that aborts the process (a stack overflow, say) cannot be caught. Inputs depend only on the
//! target, the seed and their number, so the same seed with a smaller `--inputs` narrows it down.

pub mod mutate;
pub mod run;
mod targets;

/// One thing to be fuzzed.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Its row in the test matrix.
    pub id: &'static str,
    /// What is fed, for people.
    pub name: &'static str,
    /// Takes one input; panics when a property does not hold.
    pub run: fn(&[u8]),
    /// Inputs to begin with: good ones, and bad ones worth remembering.
    pub corpus: fn() -> Vec<Vec<u8>>,
    /// Words that mean something to the target.
    pub dictionary: &'static [&'static str],
    /// How many inputs one run takes on every change.
    pub inputs: u64,
}

/// Every target.
pub fn targets() -> &'static [Target] {
    &[
        targets::json::TARGET,
        targets::legacy::TARGET,
        targets::rest::TARGET,
        targets::pb::TARGET,
        targets::card::TARGET,
        targets::cursor::TARGET,
        targets::sm::TARGET,
    ]
}
