//! The open connections, counted in all and by client.

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Arc, Mutex, PoisonError},
};

use super::Caps;
use crate::{addresses::network::network, metrics::ServerMetrics};

/// The connections that are open now.
#[derive(Default)]
pub(super) struct Connections {
    counts: Mutex<Counts>,
    metrics: Arc<ServerMetrics>,
}

#[derive(Default)]
struct Counts {
    all: usize,
    by_client: HashMap<IpAddr, usize>,
}

/// One open connection; counted until dropped.
pub(super) struct Slot {
    connections: Arc<Connections>,
    client: IpAddr,
}

impl Connections {
    /// None yet; they are counted here too.
    pub(super) fn new(metrics: Arc<ServerMetrics>) -> Self {
        Self { counts: Mutex::default(), metrics }
    }

    /// Counts a connection from this address, unless there are too many.
    pub(super) fn open(self: &Arc<Self>, address: IpAddr, caps: &Caps) -> Option<Slot> {
        let client = network(address);
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let from_client = counts.by_client.get(&client).copied().unwrap_or_default();
        if counts.all >= caps.connections || from_client >= caps.per_address {
            self.metrics.connections.refused.increment();
            return None;
        }
        self.metrics.connections.accepted.increment();
        self.metrics.connections.open.add(1);
        counts.all += 1;
        counts.by_client.insert(client, from_client + 1);
        Some(Slot { connections: Arc::clone(self), client })
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.connections.metrics.connections.open.add(-1);
        let mut counts = self.connections.counts.lock().unwrap_or_else(PoisonError::into_inner);
        counts.all -= 1;
        let left = counts.by_client.get(&self.client).map_or(0, |open| open - 1);
        if left == 0 {
            counts.by_client.remove(&self.client);
        } else {
            counts.by_client.insert(self.client, left);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_capped_by_ipv4_address_and_by_ipv6_network() {
        let caps = Caps { per_address: 2, ..Caps::default() };
        for [one, two, three, other] in [
            ["10.0.0.1", "::ffff:10.0.0.1", "10.0.0.1", "10.0.0.2"],
            ["2001:db8::1", "2001:db8::2", "2001:db8::ffff:0:0:3", "2001:db8:0:1::1"],
        ] {
            let connections = Arc::new(Connections::default());
            let open = |address: &str| connections.open(address.parse().unwrap(), &caps);
            let (first, _second) = (open(one).unwrap(), open(two).unwrap());
            assert!(open(three).is_none());
            assert!(open(other).is_some());
            drop(first);
            assert!(open(three).is_some());
        }
    }
}
