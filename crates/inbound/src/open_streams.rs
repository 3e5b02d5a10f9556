//! How many streams each principal has open, for its cap. A stream counts from its request until its last event has been
//! taken or its client has disconnected.

use std::{
    collections::HashMap,
    hash::{BuildHasher as _, RandomState},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use engine::{CallResponse, CapReached, Scope};
use protocol::Error;

/// The open streams by the hash of tenant and principal; those without a stream are not here.
#[derive(Default)]
pub(crate) struct OpenStreams {
    hasher: RandomState,
    counts: Mutex<HashMap<u64, u64>>,
}

/// One stream. Dropping it ends the count.
pub(crate) struct OpenStream {
    streams: Arc<OpenStreams>,
    principal: u64,
}

impl OpenStreams {
    /// Counts a stream of a principal that may have `cap` of them; 0 is no limit, and nothing is counted.
    pub(crate) fn open(streams: &Arc<Self>, scope: &Scope, cap: u64) -> Result<Option<OpenStream>, Error> {
        if cap == 0 {
            return Ok(None);
        }
        let parts = scope.parts();
        let principal = streams.hasher.hash_one((&parts.tenant, &parts.principal));
        let mut counts = streams.counts();
        let count = counts.entry(principal).or_default();
        if *count >= cap {
            return Err(CapReached::Streams(cap).into());
        }
        *count += 1;
        drop(counts);
        Ok(Some(OpenStream { streams: Arc::clone(streams), principal }))
    }

    fn counts(&self) -> MutexGuard<'_, HashMap<u64, u64>> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OpenStream {
    /// Counts until the stream of a response ends.
    pub(crate) fn within(self, response: CallResponse) -> CallResponse {
        match response {
            CallResponse::Stream(stream) => CallResponse::Stream(stream.holding(self)),
            CallResponse::Noted(note, response) => CallResponse::Noted(note, Box::new(self.within(*response))),
            CallResponse::Reply(reply) => CallResponse::Reply(reply),
        }
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        let mut counts = self.streams.counts();
        if let Some(count) = counts.get_mut(&self.principal) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.principal);
            }
        }
    }
}
