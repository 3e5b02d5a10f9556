//! Memory budget for requests and responses over all calls (`limits.memory`).
//!
//! A call takes a [`Reservation`] before its body is read and releases it when the last byte of its response
//! is sent. What does not fit is rejected with `Unavailable`: the server sheds load instead of running out of
//! memory. The last quarter of the budget is reserved for small calls, so that slow readers of large
//! responses cannot block all others.

use std::sync::{
    Arc, Mutex, PoisonError, Weak,
    atomic::{AtomicU64, Ordering},
};

use bytes::Bytes;
use protocol::ErrorKind;

/// Calls of up to this many bytes may use the whole budget; larger ones three quarters of it.
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

    /// The smallest budget that admits a request body of this size.
    pub fn needed_for(body: u64) -> u64 {
        Self::for_body(body).saturating_mul(4).div_ceil(3)
    }

    /// Bytes charged for a request body: it exists as received, as decoded and as recorded.
    fn for_body(body: u64) -> u64 {
        body.saturating_mul(3)
    }

    /// The most bytes that can be reserved.
    pub fn limit(&self) -> u64 {
        self.0.limit
    }

    /// Bytes currently reserved.
    pub fn used(&self) -> u64 {
        self.0.used.load(Ordering::Relaxed)
    }

    /// An empty reservation for a new call.
    pub fn begin(&self) -> Arc<Reservation> {
        Arc::new(Reservation { budget: self.clone(), bytes: AtomicU64::new(0) })
    }

    /// Bytes that stay charged until the last clone of them is dropped. They exist already, so this never
    /// fails.
    pub fn hold(&self, bytes: Vec<u8>) -> Bytes {
        self.begin().hold(bytes)
    }
}

/// The bytes charged to one call; released on drop.
#[derive(Debug)]
pub struct Reservation {
    budget: MemoryBudget,
    bytes: AtomicU64,
}

impl Reservation {
    /// Reserves more bytes.
    ///
    /// # Errors
    ///
    /// Fails when they do not fit into the budget; nothing is reserved then.
    pub fn reserve(&self, bytes: u64) -> Result<(), protocol::Error> {
        let Inner { limit, used } = &*self.budget.0;
        let mine = self.bytes.load(Ordering::Relaxed).saturating_add(bytes);
        let available = if mine <= SMALL { *limit } else { limit - limit / 4 };
        let fits = |used: u64| used.checked_add(bytes).filter(|used| *used <= available);
        used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).map_err(|_| exhausted())?;
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        Ok(())
    }

    /// Reserves memory for a request body of this size.
    ///
    /// # Errors
    ///
    /// As for [`reserve`](Self::reserve).
    pub fn reserve_body(&self, bytes: u64) -> Result<(), protocol::Error> {
        self.reserve(MemoryBudget::for_body(bytes))
    }

    /// Grows the reservation to at least this many bytes in total.
    ///
    /// # Errors
    ///
    /// Fails when they do not fit into the budget; the reservation is unchanged then.
    pub fn cover(&self, bytes: u64) -> Result<(), protocol::Error> {
        match bytes.checked_sub(self.bytes.load(Ordering::Relaxed)) {
            Some(missing) if missing > 0 => self.reserve(missing),
            _ => Ok(()),
        }
    }

    /// Reserves memory for reading a task: its log of this size and the response built from it.
    ///
    /// # Errors
    ///
    /// As for [`cover`](Self::cover).
    pub fn cover_task(&self, log_bytes: u64) -> Result<(), protocol::Error> {
        self.cover(log_bytes.saturating_mul(2))
    }

    /// Shrinks the reservation to at most this many bytes: a call that waits for its client has freed the rest.
    pub fn shrink(&self, bytes: u64) {
        if bytes < self.bytes.load(Ordering::Relaxed) {
            self.resize(bytes);
        }
    }

    /// Turns a response into bytes that keep the reservation, resized to the response, until the last clone
    /// is dropped.
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

/// Bytes that several responses send, such as an encoded card. They are charged once, while any response sends them;
/// otherwise they belong to a cache with its own limit.
#[derive(Debug)]
pub struct SharedBytes {
    bytes: Bytes,
    charge: Mutex<Weak<Reservation>>,
}

impl SharedBytes {
    /// Bytes that no response sends yet.
    pub fn new(bytes: impl Into<Bytes>) -> Self {
        Self { bytes: bytes.into(), charge: Mutex::default() }
    }

    /// The bytes without a charge.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// The bytes for a response; they are charged until the last clone is dropped. Nothing is copied.
    ///
    /// # Errors
    ///
    /// As for [`Reservation::reserve`].
    pub fn send(&self, budget: &MemoryBudget) -> Result<Bytes, protocol::Error> {
        Ok(Bytes::from_owner(Sent { bytes: self.bytes.clone(), _charge: self.charge(budget)? }))
    }

    fn charge(&self, budget: &MemoryBudget) -> Result<Arc<Reservation>, protocol::Error> {
        let mut current = self.charge.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(charge) = current.upgrade() {
            return Ok(charge);
        }
        let charge = budget.begin();
        charge.reserve(self.bytes.len() as u64)?;
        *current = Arc::downgrade(&charge);
        Ok(charge)
    }
}

struct Sent {
    bytes: Bytes,
    _charge: Arc<Reservation>,
}

impl AsRef<[u8]> for Sent {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
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
    let text = "the server has reached its memory limit (limits.memory); try again in a second";
    protocol::Error::new(ErrorKind::Unavailable, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reservation_beyond_the_budget_fails_and_reserves_nothing() {
        let budget = MemoryBudget::new(8 << 20);
        let call = budget.begin();
        call.reserve(5 << 20).unwrap();
        assert_eq!(call.reserve(2 << 20).unwrap_err().kind, ErrorKind::Unavailable);
        assert_eq!(budget.used(), 5 << 20);
        drop(call);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn last_quarter_is_reserved_for_small_calls() {
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
    fn shared_bytes_are_charged_once_while_they_are_sent() {
        let budget = MemoryBudget::new(1 << 20);
        let shared = SharedBytes::new(vec![7; 1000]);
        let (one, two) = (shared.send(&budget).unwrap(), shared.send(&budget).unwrap());
        assert_eq!((budget.used(), &one[..]), (1000, &[7; 1000][..]));
        assert_eq!(one.as_ptr(), shared.bytes().as_ptr(), "nothing is copied");
        let rest = two.slice(10..);
        drop((one, two));
        assert_eq!(budget.used(), 1000);
        drop(rest);
        assert_eq!(budget.used(), 0);
        assert_eq!(shared.send(&MemoryBudget::new(999)).unwrap_err().kind, ErrorKind::Unavailable);
        assert_eq!(shared.send(&budget).unwrap().len(), 1000);
    }

    #[test]
    fn reservation_of_a_waiting_call_shrinks() {
        let budget = MemoryBudget::new(1 << 20);
        let call = budget.begin();
        call.reserve(1000).unwrap();
        call.shrink(2000);
        assert_eq!(budget.used(), 1000);
        call.shrink(10);
        assert_eq!(budget.used(), 10);
    }

    #[test]
    fn response_is_charged_until_its_last_clone_is_dropped() {
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
