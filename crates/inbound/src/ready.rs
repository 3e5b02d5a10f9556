//! Whether this process wants work, for those who ask over HTTP and for those who watch over gRPC.

use std::sync::Arc;

use tokio::sync::watch;

/// Whether this process wants new work: no while it drains or cannot write. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Ready(Arc<watch::Sender<Phase>>);

/// How far it is from taking work. The order is the only way they follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// It takes work.
    Ready,
    /// It takes none, and goes on answering.
    Withdrawn,
    /// It wants every connection to end.
    Leaving,
}

impl Default for Ready {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(Phase::Ready)))
    }
}

impl Ready {
    /// Says no from now on.
    pub fn withdraw(&self) {
        self.advance(Phase::Withdrawn);
    }

    /// Says no from now on, and ends what would stay open only to hear of it.
    pub fn leave(&self) {
        self.advance(Phase::Leaving);
    }

    pub(crate) fn is_ready(&self) -> bool {
        *self.0.borrow() == Phase::Ready
    }

    /// For those who want to hear of it.
    pub(crate) fn watch(&self) -> watch::Receiver<Phase> {
        self.0.subscribe()
    }

    /// Resolves when the process leaves.
    pub(crate) async fn left(&self) {
        // The sender lives as long as this does, so it ends with the phase only.
        let _ = self.watch().wait_for(|phase| *phase == Phase::Leaving).await;
    }

    fn advance(&self, next: Phase) {
        self.0.send_if_modified(|phase| {
            let later = *phase < next;
            *phase = (*phase).max(next);
            later
        });
    }
}
