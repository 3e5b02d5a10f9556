//! The refusals of the current second, merged and limited: which of them become lines, and how many of which networks do
//! not. Pure.
//!
//! Refusals that differ only in time, task, request and the address within a network are one line. [`LINES_PER_SECOND`] lines
//! are written in a second; every network gets one of them before any gets its second, so that a network with many
//! different refusals does not hide those of others. The rest is counted by network. Memory is bounded, however many
//! senders there are.

use std::{collections::HashMap, net::IpAddr};

use inbound::AuditEntry;
use protocol::Timestamp;

/// All lines of a second, with the one that has the rest.
const LINES_PER_SECOND: usize = 20;
/// How many different refusals are kept at a time; of one network at most as many as lines.
const MAX_MERGED: usize = 1_024;
/// How many networks are counted in a second; refusals of more are counted together.
const MAX_NETWORKS: usize = 1_024;
/// How many networks the line of the rest names: those with the most refusals.
const MAX_NAMED: usize = 10;

/// Refusals since the last lines.
#[derive(Default)]
pub(super) struct Refusals {
    /// Whether there was one since the end of the last second.
    has_begun: bool,
    /// How many lines were taken in this second.
    taken: usize,
    merged: HashMap<MergeKey, MergedRefusals>,
    networks: HashMap<Option<IpAddr>, NetworkCount>,
    /// Those of further networks.
    elsewhere: u64,
}

/// A refusal without time, task and request, whose sender is a network.
type MergeKey = AuditEntry;

struct MergedRefusals {
    order: usize,
    count: u64,
    // What the first one has and the others need not have.
    time: Timestamp,
    task: Option<String>,
    request_id: Option<u64>,
    peer: Option<IpAddr>,
}

#[derive(Default)]
struct NetworkCount {
    /// Different refusals.
    kinds: usize,
    /// Refusals that are in no line.
    dropped: u64,
}

/// One line: the first refusal, and how many there were.
pub(super) struct RefusalLine {
    pub(super) first: AuditEntry,
    pub(super) count: u64,
}

/// The refusals of a second that are in no line.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct DroppedRefusals {
    pub(super) count: u64,
    /// The networks with the most of them, as their first address.
    pub(super) networks: Vec<(IpAddr, u64)>,
}

impl Refusals {
    /// Adds a refusal. Whether it is the first one of a second, at whose end [`end_second`](Self::end_second) is due.
    pub(super) fn add(&mut self, mut refusal: AuditEntry) -> bool {
        let network = refusal.network();
        let merged = MergedRefusals {
            order: self.merged.len(),
            count: 1,
            time: std::mem::replace(&mut refusal.time, Timestamp::from_millis(0)),
            task: refusal.task.take(),
            request_id: refusal.request_id.take(),
            peer: std::mem::replace(&mut refusal.peer, network),
        };
        if let Some(known) = self.merged.get_mut(&refusal) {
            known.count += 1;
        } else if self.networks.len() < MAX_NETWORKS || self.networks.contains_key(&network) {
            let counted = self.networks.entry(network).or_default();
            if counted.kinds < LINES_PER_SECOND && self.merged.len() < MAX_MERGED {
                counted.kinds += 1;
                self.merged.insert(refusal, merged);
            } else {
                counted.dropped += 1;
            }
        } else {
            self.elsewhere += 1;
        }
        !std::mem::replace(&mut self.has_begun, true)
    }

    /// The lines to write now, oldest first. What is beyond those of a second is counted.
    pub(super) fn take(&mut self) -> Vec<RefusalLine> {
        let mut merged: Vec<_> = self.merged.drain().collect();
        merged.sort_unstable_by_key(|(_, merged)| merged.order);
        let mut of_network: HashMap<Option<IpAddr>, usize> = HashMap::new();
        let mut ranked: Vec<_> = merged
            .into_iter()
            .map(|(key, merged)| {
                let rank = of_network.entry(key.peer).or_default();
                *rank += 1;
                (*rank, key, merged)
            })
            .collect();
        ranked.sort_by_key(|(rank, ..)| *rank);
        // One is for the rest.
        let places = (LINES_PER_SECOND - 1).saturating_sub(self.taken).min(ranked.len());
        for (_, key, merged) in ranked.split_off(places) {
            self.networks.entry(key.peer).or_default().dropped += merged.count;
        }
        self.taken += places;
        ranked.sort_unstable_by_key(|(_, _, merged)| merged.order);
        ranked.into_iter().map(|(_, key, merged)| merged.into_line(key)).collect()
    }

    /// Ends the second: its last lines, and what is in none of them.
    pub(super) fn end_second(&mut self) -> (Vec<RefusalLine>, Option<DroppedRefusals>) {
        let lines = self.take();
        let ended = std::mem::take(self);
        let mut networks: Vec<_> =
            ended.networks.into_iter().filter(|(_, counted)| counted.dropped > 0).collect();
        let count = ended.elsewhere + networks.iter().map(|(_, counted)| counted.dropped).sum::<u64>();
        networks.sort_unstable_by_key(|(network, counted)| (std::cmp::Reverse(counted.dropped), *network));
        let named = networks.iter().filter_map(|(network, counted)| Some(((*network)?, counted.dropped)));
        let networks = named.take(MAX_NAMED).collect();
        (lines, (count > 0).then_some(DroppedRefusals { count, networks }))
    }
}

impl MergedRefusals {
    fn into_line(self, key: MergeKey) -> RefusalLine {
        let Self { count, time, task, request_id, peer, .. } = self;
        RefusalLine { first: AuditEntry { time, task, request_id, peer, ..key }, count }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(peer: &str, agent: usize) -> AuditEntry {
        AuditEntry {
            peer: Some(peer.parse().unwrap()),
            agent: Some(agent.to_string()),
            ..AuditEntry::done(Timestamp::from_millis(5), "anonymous", "refused.credential")
        }
    }

    /// The counts of the lines of a second, and the rest.
    fn second(refusals: &mut Refusals) -> (Vec<u64>, Option<DroppedRefusals>) {
        let (lines, rest) = refusals.end_second();
        (lines.iter().map(|line| line.count).collect(), rest)
    }

    #[test]
    fn addresses_of_an_ipv6_network_are_one_line_with_the_first_of_them() {
        let mut refusals = Refusals::default();
        assert!(refusals.add(refusal("2001:db8::1", 0)));
        assert!(!refusals.add(refusal("2001:db8::ffff:0:0:2", 0)));
        refusals.add(refusal("2001:db8:0:1::1", 0));
        let lines = refusals.take();
        assert_eq!(lines.iter().map(|line| line.count).collect::<Vec<_>>(), [2, 1]);
        assert_eq!(lines[0].first, refusal("2001:db8::1", 0));
        assert_eq!(second(&mut refusals), (vec![], None));
        assert!(refusals.add(refusal("2001:db8::1", 0)), "the next second");
    }

    #[test]
    fn a_network_with_many_refusals_does_not_hide_another_one() {
        let mut refusals = Refusals::default();
        for agent in 0..100 {
            refusals.add(refusal("192.0.2.1", agent));
        }
        refusals.add(refusal("192.0.2.2", 0));
        let lines = refusals.take();
        assert_eq!(lines.len(), LINES_PER_SECOND - 1);
        assert_eq!(lines[LINES_PER_SECOND - 2].first, refusal("192.0.2.2", 0));
        // Lines that were taken before the end of the second count.
        refusals.add(refusal("192.0.2.3", 0));
        let (lines, rest) = second(&mut refusals);
        assert_eq!(lines, [0; 0]);
        let networks = [("192.0.2.1", 100 - 18), ("192.0.2.3", 1)];
        let networks = networks.map(|(network, count)| (network.parse().unwrap(), count)).to_vec();
        assert_eq!(rest, Some(DroppedRefusals { count: 83, networks }));
    }

    #[test]
    fn memory_is_bounded_and_every_refusal_is_counted() {
        let mut refusals = Refusals::default();
        for network in 0..3_000_u32 {
            for agent in 0..2 {
                refusals.add(refusal(&std::net::Ipv4Addr::from_bits(network).to_string(), agent));
            }
        }
        refusals.add(refusal("0.0.0.7", 0));
        assert!(refusals.merged.len() <= MAX_MERGED && refusals.networks.len() <= MAX_NETWORKS);
        let (lines, rest) = second(&mut refusals);
        let rest = rest.unwrap();
        assert_eq!((lines.len(), rest.networks.len()), (LINES_PER_SECOND - 1, MAX_NAMED));
        assert_eq!(lines.iter().sum::<u64>() + rest.count, 6_001);
    }
}
