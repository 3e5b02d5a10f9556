//! What a call of a skill has to pass, before its work runs and before its result is recorded.

/// The guards of a skill. There are none yet: this is their place in a call (`call.rs`).
#[derive(Clone, Debug, Default)]
pub struct Guards;

impl Guards {
    /// Whether a guard judges the whole output. Its chunks are then held in the update queue of the run until that is decided.
    pub(crate) fn hold_output(&self) -> bool {
        false
    }
}
