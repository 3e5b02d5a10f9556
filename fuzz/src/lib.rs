//! Fuzzes the decoders and the task state machine with mutated input: no panic, no hang, no violated property.
//!
//! A [`Target`] is a function over bytes that panics when a property does not hold. [`mutate`] derives its inputs
//! from a corpus and a seed; [`run`] executes them on all cores and collects findings. Both run on the stable
//! toolchain; a coverage-guided fuzzer can call the same targets.
//!
//! To add a target: one file in `targets/` with `pub(crate) const TARGET: Target`, one line in [`targets()`]. A
//! decoder target parses the input as it is and checks that what it accepts survives a round trip through the encoder
//! (`targets/card.rs`). A state machine target reads the input as a script, one byte per event with the byte choosing
//! among the possible events, and checks its invariants after each; its corpus is a few typical scripts, its
//! dictionary is empty, and byte edits and splices then reorder, repeat and drop events.
//!
//! An input that aborts the process (a stack overflow, for example) cannot be caught. Inputs depend only on the
//! target, the seed and their number, so the same seed with a smaller `--inputs` narrows it down.

pub mod mutate;
pub mod run;
mod targets;

/// One fuzz target.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Id on the command line, such as `F-json`; prefix of the names of saved crashers.
    pub id: &'static str,
    /// One-line description: what is fuzzed and which property is checked.
    pub name: &'static str,
    /// Runs one input; panics when a property does not hold.
    pub run: fn(&[u8]),
    /// Seed inputs: valid ones, and invalid ones that cover known edge cases.
    pub corpus: fn() -> Vec<Vec<u8>>,
    /// Tokens that are meaningful to the target.
    pub dictionary: &'static [&'static str],
    /// Default number of inputs, used on every change.
    pub inputs: u64,
}

/// All targets, in the order in which they run.
pub fn targets() -> &'static [Target] {
    &[
        targets::json::TARGET,
        targets::legacy::TARGET,
        targets::rest::TARGET,
        targets::pb::TARGET,
        targets::card::TARGET,
        targets::cursor::TARGET,
        targets::tmpl::TARGET,
        targets::mcp::TARGET,
        targets::sm::TARGET,
        targets::url::TARGET,
        targets::jwt::TARGET,
        targets::cfg::TARGET,
    ]
}
