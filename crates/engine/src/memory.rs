//! Bytes of requests and responses in memory, bounded over all calls (`limits.memory`).
//!
//! A call takes a [`Reservation`] before its body is read and gives it back when the last byte of its response has left.
//! What does not fit is refused with `Unavailable`, so that load is shed instead of memory running out. The last
//! quarter of the budget is kept for small calls: slow readers of large responses must not lock everybody else out.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use bytes::Bytes;
use protocol::ErrorKind;

/// Calls of up to this many bytes may use the whole budget.
const SMALL: u64 = 1 << 20;

/// The budget of one process. Cheap to clone.
#[derive(Clone, Debug)]
pub struct MemoryBudget(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    limit: u64,
    used: AtomicU64,
}

impl MemoryBudget {
    /// A budget of this many bytes.
    pub fn new(limit: u64) -> Self {
        Self(Arc::new(Inner { limit, used: AtomicU64::new(0) }))
    }

    /// The smallest budget that a request body of this size fits into.
    pub fn needed_for(body: u64) -> u64 {
        Self::for_body(body).saturating_mul(4).div_ceil(3)
    }

    /// What a request body takes: it is kept as received, as decoded and as recorded.
    fn for_body(body: u64) -> u64 {
        body.saturating_mul(3)
    }

    /// Bytes in use.
    pub fn used(&self) -> u64 {
        self.0.used.load(Ordering::Relaxed)
    }

    /// An empty reservation for a new call.
    pub fn begin(&self) -> Arc<Reservation> {
        Arc::new(Reservation { budget: self.clone(), bytes: AtomicU64::new(0) })
    }

    /// Bytes that count as used until the last clone of them is dropped. They exist already, so they always fit.
    pub fn hold(&self, bytes: Vec<u8>) -> Bytes {
        self.begin().hold(bytes)
    }
}

/// The bytes that one call has in memory; given back when dropped.
#[derive(Debug)]
pub struct Reservation {
    budget: MemoryBudget,
    bytes: AtomicU64,
}

impl Reservation {
    /// Reserves so many bytes more.
    ///
    /// # Errors
    ///
    /// Refused when they do not fit into the budget; nothing is reserved then.
    pub fn reserve(&self, bytes: u64) -> Result<(), protocol::Error> {
        let Inner { limit, used } = &*self.budget.0;
        let mine = self.bytes.load(Ordering::Relaxed).saturating_add(bytes);
        let available = if mine <= SMALL { *limit } else { limit - limit / 4 };
        let fits = |used: u64| used.checked_add(bytes).filter(|used| *used <= available);
        used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).map_err(|_| exhausted())?;
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        Ok(())
    }

    /// Reserves memory for so many bytes of a request body.
    ///
    /// # Errors
    ///
    /// As for [`reserve`](Self::reserve).
    pub fn reserve_body(&self, bytes: u64) -> Result<(), protocol::Error> {
        self.reserve(MemoryBudget::for_body(bytes))
    }

    /// Reserves what is missing to so many bytes in all.
    ///
    /// # Errors
    ///
    /// Refused when they do not fit into the budget; the reservation stays as it is then.
    pub fn cover(&self, bytes: u64) -> Result<(), protocol::Error> {
        match bytes.checked_sub(self.bytes.load(Ordering::Relaxed)) {
            Some(missing) if missing > 0 => self.reserve(missing),
            _ => Ok(()),
        }
    }

    /// Reserves memory for a task that is to be read: its log of this size, and the response made of it.
    ///
    /// # Errors
    ///
    /// As for [`cover`](Self::cover).
    pub fn cover_task(&self, log_bytes: u64) -> Result<(), protocol::Error> {
        self.cover(log_bytes.saturating_mul(2))
    }

    /// A response that takes over the whole reservation until the last clone of its bytes is dropped.
    pub fn hold(self: Arc<Self>, response: Vec<u8>) -> Bytes {
        self.resize(response.len() as u64);
        Bytes::from_owner(Held { response, _reservation: self })
    }

    fn resize(&self, bytes: u64) {
        let before = self.bytes.swap(bytes, Ordering::Relaxed);
        let used = &self.budget.0.used;
        if bytes >= before {
            used.fetch_add(bytes - before, Ordering::Relaxed);
        } else {
            used.fetch_sub(before - bytes, Ordering::Relaxed);
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.resize(0);
    }
}

struct Held {
    response: Vec<u8>,
    _reservation: Arc<Reservation>,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.response
    }
}

fn exhausted() -> protocol::Error {
    let text = "the server has as many bytes in flight as limits.memory allows; try again in a second";
    protocol::Error::new(ErrorKind::Unavailable, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_refused_and_reserves_nothing() {
        let budget = MemoryBudget::new(8 << 20);
        let call = budget.begin();
        call.reserve(5 << 20).unwrap();
        assert_eq!(call.reserve(2 << 20).unwrap_err().kind, ErrorKind::Unavailable);
        assert_eq!(budget.used(), 5 << 20);
        drop(call);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn large_calls_leave_a_quarter_to_small_ones() {
        let budget = MemoryBudget::new(8 << 20);
        let large = budget.begin();
        large.reserve(6 << 20).unwrap();
        assert!(large.reserve(1).is_err());
        let (small, other) = (budget.begin(), budget.begin());
        small.reserve(1 << 20).unwrap();
        assert!(small.reserve(1).is_err(), "it is no longer small");
        other.reserve(1 << 20).unwrap();
        assert!(budget.begin().reserve(1).is_err(), "nothing is left");
    }

    #[test]
    fn a_response_counts_until_its_last_clone_is_dropped() {
        let budget = MemoryBudget::new(1 << 20);
        let call = budget.begin();
        call.reserve(1000).unwrap();
        let bytes = call.hold(vec![0; 10]);
        let clone = bytes.slice(1..2);
        drop(bytes);
        assert_eq!(budget.used(), 10);
        drop(clone);
        assert_eq!(budget.used(), 0);
        let event = budget.hold(vec![0; 7]);
        assert_eq!(budget.used(), 7);
        drop(event);
        assert_eq!(budget.used(), 0);
    }
}
