//! How many requests each receiving host gets at a time, and when it gets none (circuit breaker; pure).
//!
//! The number of concurrent requests to a host starts at one and doubles with each success, so that hosts that never
//! respond take few places from others. After [`FAILURES_TO_OPEN`] failures in a row a host is left alone, except for one
//! probe in each interval. The first success closes the breaker; the number then starts at one again.
//! A host is slow from a request that takes [`SLOW_AFTER`] until it responds in less; what that means is decided in
//! `places.rs`. Kept in memory: after a restart every host gets requests again.

use std::{collections::HashMap, net::SocketAddr, time::Duration};

use super::places::SLOW_AFTER;
use crate::store::WebhookOwner;

/// Failures in a row after which a host is left alone.
pub(super) const FAILURES_TO_OPEN: u32 = 8;
/// Maximum number of concurrent requests to a host.
pub(super) const MAX_PER_HOST: usize = 16;
/// Hosts beyond this number are dropped when they have no requests and no failures.
const MAX_IDLE: usize = 1_024;

#[derive(Debug, Default)]
pub(super) struct Hosts {
    hosts: HashMap<String, Host>,
}

#[derive(Debug)]
struct Host {
    in_flight: usize,
    limit: usize,
    failures: u32,
    /// When the next probe may be sent, as elapsed time; set while the breaker is open.
    probe_at: Option<Duration>,
    is_slow: bool,
    /// What its name was last resolved to, as addresses are counted.
    addresses: Vec<SocketAddr>,
    /// The owner of the last request.
    owner: Option<WebhookOwner>,
}

impl Default for Host {
    fn default() -> Self {
        Self {
            in_flight: 0,
            limit: 1,
            failures: 0,
            probe_at: None,
            is_slow: false,
            addresses: Vec::new(),
            owner: None,
        }
    }
}

impl Host {
    fn accepts(&self, now: Duration) -> bool {
        match self.probe_at {
            Some(at) => self.in_flight == 0 && now >= at,
            None => self.in_flight < self.limit,
        }
    }

    fn is_forgettable(&self) -> bool {
        self.in_flight == 0 && self.failures == 0
    }
}

/// What the end of a request changed.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum HostChange {
    None,
    /// The host gets no more requests than probes.
    Opened,
    /// The host gets requests again: its backlog can be delivered.
    Closed,
}

impl Hosts {
    /// Whether a request to the host may begin.
    pub(super) fn accepts(&self, name: &str, now: Duration) -> bool {
        self.hosts.get(name).is_none_or(|host| host.accepts(now))
    }

    /// Begins a request, unless the host gets none at the moment.
    pub(super) fn begin(&mut self, name: &str, owner: &WebhookOwner, now: Duration) -> bool {
        if !self.hosts.contains_key(name) {
            if self.hosts.len() >= MAX_IDLE {
                self.hosts.retain(|_, host| !host.is_forgettable());
            }
            self.hosts.insert(name.to_owned(), Host::default());
        }
        let Some(host) = self.hosts.get_mut(name) else { return false };
        let accepted = host.accepts(now);
        if accepted {
            host.in_flight += 1;
            host.owner = Some(owner.clone());
        }
        accepted
    }

    /// Ends a request that was not sent.
    pub(super) fn abandon(&mut self, name: &str) {
        if let Some(host) = self.hosts.get_mut(name) {
            host.in_flight = host.in_flight.saturating_sub(1);
        }
    }

    /// Ends a request. `responded` is whether the host is working, whatever it thinks of the notification.
    pub(super) fn end(
        &mut self,
        name: &str,
        responded: bool,
        now: Duration,
        probe_interval: Duration,
    ) -> HostChange {
        let Some(host) = self.hosts.get_mut(name) else { return HostChange::None };
        host.in_flight = host.in_flight.saturating_sub(1);
        if responded {
            host.failures = 0;
            if host.probe_at.take().is_some() {
                host.limit = 1;
                return HostChange::Closed;
            }
            host.limit = (host.limit * 2).min(MAX_PER_HOST);
            return HostChange::None;
        }
        host.failures = host.failures.saturating_add(1);
        if host.failures < FAILURES_TO_OPEN {
            return HostChange::None;
        }
        let was_open = host.probe_at.replace(now + probe_interval).is_some();
        if was_open { HostChange::None } else { HostChange::Opened }
    }

    /// Notes how long a request took. A failure in less than [`SLOW_AFTER`] shows nothing.
    pub(super) fn note_time(&mut self, name: &str, time: Duration, responded: bool) {
        let Some(host) = self.hosts.get_mut(name) else { return };
        if time >= SLOW_AFTER {
            host.is_slow = true;
        } else if responded {
            host.is_slow = false;
        }
    }

    pub(super) fn is_slow(&self, name: &str) -> bool {
        self.hosts.get(name).is_some_and(|host| host.is_slow)
    }

    pub(super) fn set_addresses(&mut self, name: &str, addresses: Vec<SocketAddr>) {
        if let Some(host) = self.hosts.get_mut(name) {
            host.addresses = addresses;
        }
    }

    /// The addresses of a host, as far as they are known.
    pub(super) fn addresses(&self, name: &str) -> &[SocketAddr] {
        self.hosts.get(name).map_or(&[], |host| &host.addresses)
    }

    /// The owner of the last request to a host.
    pub(super) fn owner(&self, name: &str) -> Option<&WebhookOwner> {
        self.hosts.get(name)?.owner.as_ref()
    }

    /// Hosts that get no request at the moment, or only probes.
    pub(super) fn refusing(&self, now: Duration) -> impl Iterator<Item = &String> {
        self.hosts
            .iter()
            .filter(move |(_, host)| host.probe_at.is_some() || !host.accepts(now))
            .map(|(name, _)| name)
    }

    /// Hosts that may be probed now, longest due first.
    pub(super) fn to_probe(&self, now: Duration) -> Vec<String> {
        let due = self.hosts.iter().filter(|(_, host)| host.accepts(now));
        let mut due: Vec<_> = due.filter_map(|(name, host)| Some((host.probe_at?, name))).collect();
        due.sort_unstable();
        due.into_iter().map(|(_, name)| name.clone()).collect()
    }

    /// When the next probe may be sent.
    pub(super) fn next_probe(&self) -> Option<Duration> {
        self.hosts.values().filter(|host| host.in_flight == 0).filter_map(|host| host.probe_at).min()
    }

    /// Drops a host that has nothing left to be sent.
    pub(super) fn forget(&mut self, name: &str) {
        self.hosts.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: Duration = Duration::from_secs(60);

    fn begin(hosts: &mut Hosts, name: &str, now: Duration) -> bool {
        hosts.begin(name, &WebhookOwner::new("default", "a"), now)
    }

    fn fail(hosts: &mut Hosts, now: u64) -> HostChange {
        assert!(begin(hosts, "h", Duration::from_secs(now)));
        hosts.end("h", false, Duration::from_secs(now), INTERVAL)
    }

    #[test]
    fn eight_failures_open_the_breaker_and_one_success_closes_it() {
        let mut hosts = Hosts::default();
        for _ in 1..FAILURES_TO_OPEN {
            assert_eq!(fail(&mut hosts, 0), HostChange::None);
        }
        assert_eq!(fail(&mut hosts, 0), HostChange::Opened);
        let (early, late) = (Duration::from_secs(59), Duration::from_secs(60));
        assert!(!begin(&mut hosts, "h", early) && hosts.to_probe(early).is_empty());
        assert_eq!(hosts.refusing(early).collect::<Vec<_>>(), ["h"]);
        assert_eq!(hosts.next_probe(), Some(late));
        assert_eq!(hosts.to_probe(late), ["h"]);
        assert_eq!(hosts.refusing(late).count(), 1, "a probe is not one of many requests");
        assert!(begin(&mut hosts, "h", late) && !begin(&mut hosts, "h", late), "one probe at a time");
        assert_eq!(hosts.end("h", true, late, INTERVAL), HostChange::Closed);
        assert!(begin(&mut hosts, "h", late) && !begin(&mut hosts, "h", late), "begins with one at a time");
        hosts.end("h", true, late, INTERVAL);
        assert!(begin(&mut hosts, "h", late) && begin(&mut hosts, "h", late), "then two");
    }

    #[test]
    fn a_success_in_between_starts_the_count_again() {
        let mut hosts = Hosts::default();
        for _ in 1..FAILURES_TO_OPEN {
            fail(&mut hosts, 0);
        }
        assert!(begin(&mut hosts, "h", Duration::ZERO));
        hosts.end("h", true, Duration::ZERO, INTERVAL);
        assert_eq!(fail(&mut hosts, 0), HostChange::None);
    }

    #[test]
    fn a_failed_probe_waits_for_the_next_interval() {
        let mut hosts = Hosts::default();
        for _ in 0..FAILURES_TO_OPEN {
            fail(&mut hosts, 0);
        }
        assert_eq!(fail(&mut hosts, 60), HostChange::None);
        assert!(!begin(&mut hosts, "h", Duration::from_secs(119)));
        assert!(begin(&mut hosts, "h", Duration::from_secs(120)));
    }

    #[test]
    fn requests_to_one_host_are_limited() {
        let mut hosts = Hosts::default();
        assert!(
            begin(&mut hosts, "h", Duration::ZERO) && !hosts.accepts("h", Duration::ZERO),
            "one at first"
        );
        for _ in 0..5 {
            hosts.end("h", true, Duration::ZERO, INTERVAL);
            assert!(begin(&mut hosts, "h", Duration::ZERO));
        }
        for _ in 1..MAX_PER_HOST {
            assert!(begin(&mut hosts, "h", Duration::ZERO));
        }
        assert!(!begin(&mut hosts, "h", Duration::ZERO) && begin(&mut hosts, "other", Duration::ZERO));
        hosts.abandon("h");
        assert!(begin(&mut hosts, "h", Duration::ZERO));
    }

    #[test]
    fn a_host_is_slow_until_it_responds_in_time() {
        let (mut hosts, almost) = (Hosts::default(), SLOW_AFTER - Duration::from_millis(1));
        assert!(begin(&mut hosts, "h", Duration::ZERO) && !hosts.is_slow("h"));
        for (time, responded, slow) in
            [(almost, true, false), (SLOW_AFTER, true, true), (almost, false, true), (almost, true, false)]
        {
            hosts.note_time("h", time, responded);
            assert_eq!(hosts.is_slow("h"), slow, "{time:?} {responded}");
        }
        hosts.note_time("h", SLOW_AFTER, false);
        assert!(hosts.is_slow("h"), "also if it fails");
    }

    #[test]
    fn hosts_are_probed_in_the_order_of_their_times() {
        let mut hosts = Hosts::default();
        for (name, now) in [("b", 2), ("a", 3), ("c", 1)] {
            for _ in 0..FAILURES_TO_OPEN {
                assert!(begin(&mut hosts, name, Duration::ZERO));
                hosts.end(name, false, Duration::from_secs(now), INTERVAL);
            }
        }
        assert_eq!(hosts.to_probe(Duration::from_secs(62)), ["c", "b"]);
    }
}
