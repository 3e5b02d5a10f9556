//! What the delivery of push notifications counts.

use super::Counter;

crate::label_values! {
    /// How an attempt to deliver a notification ended.
    pub enum PushOutcome {
        /// The receiver has accepted it.
        Delivered = "delivered",
        /// It failed; it may be tried again.
        Failed = "failed",
        /// It was given up.
        Dead = "dead",
    }
}

/// Counts of this process.
#[derive(Debug, Default)]
pub struct PushMetrics {
    outcomes: [Counter; PushOutcome::COUNT],
}

impl PushMetrics {
    /// Counts one outcome.
    pub fn count(&self, outcome: PushOutcome) {
        self.outcomes[outcome as usize].increment();
    }

    /// How often each outcome has occurred, in the order of the labels.
    pub fn outcomes(&self) -> &[Counter; PushOutcome::COUNT] {
        &self.outcomes
    }
}
