//! The connections of requests to URLs that peers chose.
//!
//! The HTTP client keys its connections by scheme, host and port. Here each set of checked addresses has a client of
//! its own: when a name has other addresses than before, its next request opens a connection to one of those.

use std::{
    collections::HashMap,
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
    time::Instant,
};

use super::{
    IDLE_TIMEOUT, Pool, client,
    connect::{Connector, Destination},
    tls::Tls,
};

pub(super) struct PeerPools {
    tls: Arc<Tls>,
    /// By the sorted addresses. A pool that has not been used for as long as a connection stays open has none.
    pools: Mutex<HashMap<Vec<SocketAddr>, UsedPool>>,
}

struct UsedPool {
    pool: Pool,
    last_use: Instant,
}

impl PeerPools {
    pub(super) fn new(tls: Arc<Tls>) -> Self {
        Self { tls, pools: Mutex::default() }
    }

    /// The connections to exactly these addresses, which have been checked.
    pub(super) fn to(&self, addresses: Vec<SocketAddr>) -> Pool {
        let now = Instant::now();
        let mut key = addresses.clone();
        key.sort_unstable();
        let mut pools = self.pools.lock().unwrap_or_else(PoisonError::into_inner);
        pools.retain(|_, used| now.duration_since(used.last_use) < IDLE_TIMEOUT);
        let used = pools.entry(key).or_insert_with(|| {
            let destination = Destination::Checked(addresses.into());
            let pool = client(Connector { destination, tls: Arc::clone(&self.tls) });
            UsedPool { pool, last_use: now }
        });
        used.last_use = now;
        used.pool.clone()
    }
}
