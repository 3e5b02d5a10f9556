//! The right to run a call on an endpoint.

use std::sync::Arc;

use tokio::time::Instant;

use super::{Endpoint, Server};
use crate::backends::mcp::slots::Granted;

/// The right to run a call on an endpoint; dropped, it is released.
pub(in super::super) struct Lease {
    server: Arc<Server>,
    slot: u64,
    endpoint: Arc<Endpoint>,
    call_ended: bool,
}

impl Lease {
    pub(super) fn new(server: &Arc<Server>, granted: Granted<Arc<Endpoint>>) -> Self {
        let Granted { slot, connection: endpoint } = granted;
        Self { server: Arc::clone(server), slot, endpoint, call_ended: true }
    }

    pub(in super::super) fn endpoint(&self) -> &Arc<Endpoint> {
        &self.endpoint
    }

    pub(in super::super) fn slot(&self) -> u64 {
        self.slot
    }

    /// A call was sent: until it ends, an endpoint with one call at a time does not become free.
    pub(in super::super) fn call_begins(&mut self) {
        self.call_ended = false;
    }

    /// The server has answered the call, or never received it.
    pub(in super::super) fn call_ended(&mut self) {
        self.call_ended = true;
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let (id, ended) = (self.slot, self.call_ended);
        self.server.change(|slots| slots.release(id, ended, Instant::now()));
    }
}
