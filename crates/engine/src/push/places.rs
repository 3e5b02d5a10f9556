//! Which attempts may be in progress at the same time (pure).
//!
//! Attempts for hosts that respond in time share [`MAX_IN_FLIGHT`] places, those for slow hosts [`MAX_SLOW`] others, and
//! probes of hosts that fail [`MAX_PROBES`] others again. One principal gets at most a quarter of the places of a class
//! while another one can use them, and all of them otherwise: the caller offers each place first to those who have less
//! than a quarter ([`Share::Quarter`]), and then to all ([`Share::All`]).
//!
//! An attempt that takes [`SLOW_AFTER`] belongs to a slow host, which is known only then. It gives its place back and
//! goes on without one, so that hosts that are slow for the first time hold the places of others for that long at most.
//! It still counts for its principal, which so has [`MAX_IN_FLIGHT`] attempts in all.

use std::{
    collections::{HashMap, VecDeque},
    time::Duration,
};

use crate::store::{WebhookNo, WebhookOwner};

/// Attempts in flight for hosts that respond in time.
pub(super) const MAX_IN_FLIGHT: usize = 256;
/// Attempts in flight for slow hosts, and those that have given their place back.
const MAX_SLOW: usize = 64;
const MAX_LATE: usize = 256;
/// Probes in flight: hosts that never respond must not take the places of others.
const MAX_PROBES: usize = 64;
/// A host that needs this long is slow.
pub(super) const SLOW_AFTER: Duration = Duration::from_secs(2);

/// Which places an attempt takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Class {
    Prompt,
    Slow,
    Probe,
}

impl Class {
    fn max(self) -> usize {
        match self {
            Self::Prompt => MAX_IN_FLIGHT,
            Self::Slow => MAX_SLOW,
            Self::Probe => MAX_PROBES,
        }
    }
}

/// How many places of a class one principal may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Share {
    Quarter,
    All,
}

/// The attempts in flight.
#[derive(Debug, Default)]
pub(super) struct Places {
    attempts: HashMap<WebhookNo, InFlight>,
    prompt: usize,
    slow: usize,
    probes: usize,
    /// Attempts that have given their place back.
    late: usize,
    /// By principal and class; late attempts count as prompt.
    owners: HashMap<(WebhookOwner, Class), usize>,
    /// Prompt attempts in the order of their beginning. Those that have ended are removed when they come first.
    begun: VecDeque<(Duration, WebhookNo)>,
}

#[derive(Debug)]
struct InFlight {
    owner: WebhookOwner,
    host: String,
    class: Class,
    begun: Duration,
    is_late: bool,
}

impl Places {
    pub(super) fn is_full(&self, class: Class) -> bool {
        self.taken(class) >= class.max()
    }

    /// Whether an attempt for this principal may begin.
    pub(super) fn have_room(&self, class: Class, owner: &WebhookOwner, share: Share) -> bool {
        let max = match share {
            Share::Quarter => class.max() / 4,
            Share::All => class.max(),
        };
        !self.is_full(class) && self.of(owner, class) < max
    }

    pub(super) fn begin(
        &mut self,
        webhook: WebhookNo,
        host: &str,
        class: Class,
        owner: &WebhookOwner,
        now: Duration,
    ) {
        let (owner, host) = (owner.clone(), host.to_owned());
        *self.taken_mut(class) += 1;
        *self.owners.entry((owner.clone(), class)).or_default() += 1;
        if class == Class::Prompt {
            self.drop_ended();
            self.begun.push_back((now, webhook));
        }
        self.attempts.insert(webhook, InFlight { owner, host, class, begun: now, is_late: false });
    }

    /// Ends an attempt. Returns whether attempts that had to wait may begin now.
    pub(super) fn end(&mut self, webhook: WebhookNo) -> bool {
        let Some(ended) = self.attempts.remove(&webhook) else { return false };
        let key = (ended.owner, ended.class);
        let was_limited = self.is_full(ended.class) && !ended.is_late
            || self.owners.get(&key).is_some_and(|taken| *taken >= ended.class.max());
        *(if ended.is_late { &mut self.late } else { self.taken_mut(ended.class) }) -= 1;
        if let Some(taken) = self.owners.get_mut(&key) {
            *taken -= 1;
            if *taken == 0 {
                self.owners.remove(&key);
            }
        }
        was_limited
    }

    /// Takes the places of attempts that have become late. Returns their hosts.
    pub(super) fn take_late(&mut self, now: Duration) -> Vec<String> {
        let mut hosts = Vec::new();
        while self.late < MAX_LATE && self.next_late().is_some_and(|at| at <= now) {
            let Some((_, webhook)) = self.begun.pop_front() else { break };
            if let Some(attempt) = self.attempts.get_mut(&webhook).filter(|attempt| !attempt.is_late) {
                attempt.is_late = true;
                hosts.push(attempt.host.clone());
                (self.prompt, self.late) = (self.prompt - 1, self.late + 1);
            }
        }
        hosts
    }

    /// When the next attempt becomes late.
    pub(super) fn next_late(&mut self) -> Option<Duration> {
        if self.late >= MAX_LATE {
            return None;
        }
        self.drop_ended();
        self.begun.front().map(|(begun, _)| *begun + SLOW_AFTER)
    }

    fn drop_ended(&mut self) {
        let attempts = &self.attempts;
        let in_flight = |(begun, webhook): &(Duration, WebhookNo)| {
            attempts
                .get(webhook)
                .is_some_and(|attempt| attempt.begun == *begun && attempt.class == Class::Prompt)
        };
        while self.begun.front().is_some_and(|first| !in_flight(first)) {
            self.begun.pop_front();
        }
    }

    fn of(&self, owner: &WebhookOwner, class: Class) -> usize {
        self.owners.get(&(owner.clone(), class)).copied().unwrap_or_default()
    }

    fn taken(&self, class: Class) -> usize {
        match class {
            Class::Prompt => self.prompt,
            Class::Slow => self.slow,
            Class::Probe => self.probes,
        }
    }

    fn taken_mut(&mut self, class: Class) -> &mut usize {
        match class {
            Class::Prompt => &mut self.prompt,
            Class::Slow => &mut self.slow,
            Class::Probe => &mut self.probes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Duration = Duration::ZERO;

    fn owner(name: &str) -> WebhookOwner {
        WebhookOwner::new("default", name)
    }

    /// Takes as many places as the principal may have; their numbers begin with `first`.
    fn fill(places: &mut Places, class: Class, name: &str, share: Share, first: i64) -> i64 {
        let mut next = first;
        while places.have_room(class, &owner(name), share) {
            places.begin(WebhookNo(next), "h", class, &owner(name), NOW);
            next += 1;
        }
        next - first
    }

    #[test]
    fn a_principal_has_a_quarter_of_each_class_and_all_of_it_alone() {
        for (class, max) in [(Class::Prompt, 256), (Class::Slow, 64), (Class::Probe, 64)] {
            let mut places = Places::default();
            assert_eq!(fill(&mut places, class, "a", Share::Quarter, 0), max / 4);
            assert_eq!(fill(&mut places, class, "b", Share::Quarter, 1_000), max / 4);
            assert_eq!(fill(&mut places, class, "a", Share::All, 2_000), max / 2, "what b leaves");
            assert!(places.is_full(class) && !places.have_room(class, &owner("c"), Share::All));
            assert!(places.end(WebhookNo(0)), "others may wait for it");
            assert!(!places.have_room(class, &owner("a"), Share::Quarter));
            assert!(places.have_room(class, &owner("c"), Share::Quarter));
            assert!(!places.end(WebhookNo(1)), "there was a free one already");
        }
    }

    #[test]
    fn late_attempts_leave_their_places_to_others() {
        let mut places = Places::default();
        let all = fill(&mut places, Class::Prompt, "a", Share::All, 0);
        assert_eq!(places.next_late(), Some(SLOW_AFTER));
        assert!(places.take_late(SLOW_AFTER - Duration::from_millis(1)).is_empty());
        assert_eq!(places.take_late(SLOW_AFTER).len(), 256);
        assert_eq!((all, places.next_late()), (256, None));
        assert!(!places.have_room(Class::Prompt, &owner("a"), Share::All), "they still count for it");
        assert!(places.have_room(Class::Prompt, &owner("b"), Share::Quarter));
        assert!(places.end(WebhookNo(0)), "it may have one more");
        assert!(places.have_room(Class::Prompt, &owner("a"), Share::All));
        // There is a limit for all principals together.
        places.begin(WebhookNo(0), "h", Class::Prompt, &owner("b"), NOW);
        places.begin(WebhookNo(1_000), "h", Class::Prompt, &owner("b"), NOW);
        assert_eq!(places.take_late(SLOW_AFTER).len(), 1);
        assert_eq!(places.prompt, 1);
        for webhook in (0..256).chain([1_000]) {
            places.end(WebhookNo(webhook));
        }
        assert_eq!((places.prompt, places.late, places.owners.len()), (0, 0, 0));
    }
}
