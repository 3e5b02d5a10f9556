//! How many requests go to one address at a time, whatever the names of its hosts.
//!
//! A host is a name (`hosts.rs`), and a receiver can have any number of names: so the requests of one principal to the
//! same address and port share the places of one host. Principals do not share them, because many receivers can be
//! behind one address. The order of notifications, the circuit breaker and the health belong to webhooks and hosts; the
//! address decides about places only. It is found when the name is resolved, in the middle of an attempt, so it is the
//! sender that asks the [`AddressGate`] of the attempt.

use std::{
    collections::HashMap,
    fmt,
    net::{Ipv6Addr, SocketAddr},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::hosts::MAX_PER_HOST;
use crate::store::WebhookOwner;

/// Requests in progress by principal and address.
#[derive(Default)]
pub(super) struct AddressPlaces(Mutex<HashMap<(WebhookOwner, SocketAddr), Count>>);

#[derive(Default)]
struct Count {
    in_flight: usize,
    /// A request was refused for lack of a place.
    is_wanted: bool,
}

impl AddressPlaces {
    /// Whether a request to a host with these addresses may begin. If not, [`Self::take_wanted`] tells when to ask again.
    pub(super) fn have_room(&self, owner: &WebhookOwner, addresses: &[SocketAddr]) -> bool {
        addresses.is_empty() || have_room(&mut self.lock(), owner, addresses)
    }

    /// Whether a request to one of the addresses was refused since this was asked last.
    pub(super) fn take_wanted(&self, owner: &WebhookOwner, addresses: &[SocketAddr]) -> bool {
        if addresses.is_empty() {
            return false;
        }
        let (mut all, mut wanted) = (self.lock(), false);
        for key in keys(owner, addresses) {
            if let Some(places) = all.get_mut(&key) {
                wanted |= std::mem::take(&mut places.is_wanted);
                if places.in_flight == 0 {
                    all.remove(&key);
                }
            }
        }
        wanted
    }

    fn enter(&self, owner: &WebhookOwner, addresses: &[SocketAddr]) -> bool {
        let mut all = self.lock();
        let admitted = have_room(&mut all, owner, addresses);
        if admitted {
            for key in keys(owner, addresses) {
                all.entry(key).or_default().in_flight += 1;
            }
        }
        admitted
    }

    fn leave(&self, owner: &WebhookOwner, addresses: &[SocketAddr]) {
        let mut all = self.lock();
        for key in keys(owner, addresses) {
            if let Some(places) = all.get_mut(&key) {
                places.in_flight -= 1;
                if places.in_flight == 0 && !places.is_wanted {
                    all.remove(&key);
                }
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<(WebhookOwner, SocketAddr), Count>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn keys(owner: &WebhookOwner, addresses: &[SocketAddr]) -> impl Iterator<Item = (WebhookOwner, SocketAddr)> {
    addresses.iter().map(|address| (owner.clone(), *address))
}

fn have_room(
    all: &mut HashMap<(WebhookOwner, SocketAddr), Count>,
    owner: &WebhookOwner,
    addresses: &[SocketAddr],
) -> bool {
    let mut room = true;
    for key in keys(owner, addresses) {
        if let Some(places) = all.get_mut(&key)
            && places.in_flight >= MAX_PER_HOST
        {
            (places.is_wanted, room) = (true, false);
        }
    }
    room
}

/// What is counted as one address: a network of IPv6 with 64 bits, because one machine can have all of its addresses.
fn counted(address: &SocketAddr) -> SocketAddr {
    let ip = match address.ip().to_canonical() {
        std::net::IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits() & !u128::from(u64::MAX)).into(),
        v4 @ std::net::IpAddr::V4(_) => v4,
    };
    SocketAddr::new(ip, address.port())
}

/// Asked by the sender of an attempt as soon as it knows the addresses of the host. The places are free again when the
/// attempt has ended. The default admits everything.
#[derive(Clone, Default)]
pub struct AddressGate(Option<Arc<Attempted>>);

struct Attempted {
    places: Arc<AddressPlaces>,
    owner: WebhookOwner,
    resolved: Mutex<Resolved>,
}

#[derive(Clone, Default)]
struct Resolved {
    addresses: Vec<SocketAddr>,
    has_places: bool,
}

impl AddressGate {
    pub(super) fn new(places: Arc<AddressPlaces>, owner: WebhookOwner) -> Self {
        Self(Some(Arc::new(Attempted { places, owner, resolved: Mutex::default() })))
    }

    /// Whether a request to these addresses may be sent now. If not, the result is [`super::SendResult::NoPlace`].
    pub fn admits(&self, addresses: &[SocketAddr]) -> bool {
        let Some(attempted) = &self.0 else { return true };
        let mut counted: Vec<_> = addresses.iter().map(counted).collect();
        counted.sort_unstable();
        counted.dedup();
        let mut resolved = attempted.resolved();
        // An attempt may send two requests, one after another.
        attempted.leave(&mut resolved);
        let has_places = attempted.places.enter(&attempted.owner, &counted);
        *resolved = Resolved { addresses: counted, has_places };
        has_places
    }

    /// Ends the attempt. Returns the addresses of the host, as they are counted; none if it was not resolved.
    pub(super) fn leave(&self) -> Vec<SocketAddr> {
        let Some(attempted) = &self.0 else { return Vec::new() };
        let mut resolved = attempted.resolved();
        attempted.leave(&mut resolved);
        std::mem::take(&mut resolved.addresses)
    }
}

impl fmt::Debug for AddressGate {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("AddressGate").finish_non_exhaustive()
    }
}

impl Attempted {
    fn resolved(&self) -> MutexGuard<'_, Resolved> {
        self.resolved.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn leave(&self, resolved: &mut Resolved) {
        if std::mem::take(&mut resolved.has_places) {
            self.places.leave(&self.owner, &resolved.addresses);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gate(places: &Arc<AddressPlaces>, principal: &str) -> AddressGate {
        AddressGate::new(Arc::clone(places), WebhookOwner::new("default", principal))
    }

    fn address(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    #[test]
    fn one_principal_has_the_places_of_one_host_at_an_address() {
        let places = Arc::new(AddressPlaces::default());
        let receiver = [address("192.0.2.1:443"), address("[2001:db8::1]:443")];
        let mut gates: Vec<_> = (0..MAX_PER_HOST).map(|_| gate(&places, "a")).collect();
        assert!(
            gates.iter().all(|gate| gate.admits(&receiver) && gate.admits(&receiver)),
            "each counts once"
        );
        for same in ["192.0.2.1:443", "[::ffff:192.0.2.1]:443", "[2001:db8::2:3]:443"] {
            assert!(!gate(&places, "a").admits(&[address("192.0.2.9:443"), address(same)]), "{same}");
            assert!(gate(&places, "b").admits(&[address(same)]), "{same}");
        }
        for other in ["192.0.2.1:8443", "192.0.2.2:443", "[2001:db8:0:1::1]:443"] {
            assert!(gate(&places, "a").admits(&[address(other)]), "{other}");
        }
        let counted = gates.pop().unwrap().leave();
        let owner = WebhookOwner::new("default", "a");
        assert!(places.take_wanted(&owner, &counted) && !places.take_wanted(&owner, &counted));
        gates.push(gate(&places, "a"));
        assert!(gates.last().unwrap().admits(&receiver) && !places.have_room(&owner, &counted));
    }
}
