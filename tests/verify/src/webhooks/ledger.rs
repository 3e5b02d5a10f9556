//! What arrived at the receivers, and the rules that hold for it whatever happens: signatures are valid, the notifications of
//! a webhook arrive in the order of their numbers, and a notification that arrives again has the same id and the same bytes.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use testkit::json::is_terminal;

/// A notification that arrived, whatever the response was.
#[derive(Clone, Debug)]
pub(crate) struct Arrival {
    pub(crate) at: Instant,
    /// The process of the server that sent it.
    pub(crate) boot: u64,
    /// The header `webhook-id`.
    pub(crate) id: String,
    /// Digest of the body.
    pub(crate) body: Vec<u8>,
    /// The task in the body, and its state.
    pub(crate) task: String,
    pub(crate) state: String,
    /// What is wrong with its headers or its body, if anything.
    pub(crate) fault: Option<String>,
    /// Whether the receiver took it and said so.
    pub(crate) accepted: bool,
}

/// The arrivals of each webhook, by the number of its task.
#[derive(Default)]
pub(crate) struct Ledger {
    arrivals: Mutex<BTreeMap<u64, Vec<Arrival>>>,
    boot: AtomicU64,
}

/// A second arrival of a notification that the receiver had taken.
#[derive(Debug)]
pub(crate) struct Duplicate {
    pub(crate) id: String,
    pub(crate) first: Arrival,
    pub(crate) again: Arrival,
}

impl Arrival {
    /// The number of the event in the log of the task: the end of the id.
    pub(crate) fn seq(&self) -> Option<u64> {
        self.id.rsplit_once('-')?.1.parse().ok()
    }
}

impl Ledger {
    pub(crate) fn arrivals(&self) -> MutexGuard<'_, BTreeMap<u64, Vec<Arrival>>> {
        self.arrivals.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn record(&self, number: u64, arrival: Arrival) {
        self.arrivals().entry(number).or_default().push(arrival);
    }

    /// The number of earlier arrivals of a notification.
    pub(crate) fn earlier(&self, number: u64, id: &str) -> usize {
        self.arrivals()
            .get(&number)
            .map_or(0, |found| found.iter().filter(|arrival| arrival.id == id).count())
    }

    pub(crate) fn boot(&self) -> u64 {
        self.boot.load(Ordering::SeqCst)
    }

    pub(crate) fn begin_boot(&self, boot: u64) {
        self.boot.store(boot, Ordering::SeqCst);
    }

    /// Those of these webhooks whose last accepted notification is not of a terminal state.
    pub(crate) fn unfinished(&self, numbers: impl IntoIterator<Item = u64>) -> Vec<u64> {
        let arrivals = self.arrivals();
        let is_finished = |number: &u64| {
            let mut found = arrivals.get(number).into_iter().flatten();
            found.rfind(|arrival| arrival.accepted).is_some_and(|last| is_terminal(&last.state))
        };
        numbers.into_iter().filter(|number| !is_finished(number)).collect()
    }

    /// Violations of the rules that always hold, one sentence each.
    pub(crate) fn faults(&self) -> Vec<String> {
        self.arrivals().iter().flat_map(|(number, arrivals)| faults(*number, arrivals)).collect()
    }

    /// Arrivals of notifications that had been taken before.
    pub(crate) fn duplicates(&self) -> Vec<Duplicate> {
        let arrivals = self.arrivals();
        let mut found = Vec::new();
        for arrivals in arrivals.values() {
            let mut taken: HashMap<&str, &Arrival> = HashMap::new();
            for arrival in arrivals {
                if let Some(first) = taken.get(arrival.id.as_str()) {
                    let (first, again) = ((*first).clone(), arrival.clone());
                    found.push(Duplicate { id: arrival.id.clone(), first, again });
                }
                if arrival.accepted {
                    taken.insert(&arrival.id, arrival);
                }
            }
        }
        found
    }

    /// The number of different notifications that were taken.
    pub(crate) fn taken(&self) -> usize {
        let arrivals = self.arrivals();
        let accepted = arrivals.values().flatten().filter(|arrival| arrival.accepted);
        accepted.map(|arrival| arrival.id.as_str()).collect::<BTreeSet<_>>().len()
    }

    /// The number of requests that arrived.
    pub(crate) fn requests(&self) -> usize {
        self.arrivals().values().map(Vec::len).sum()
    }
}

fn faults(number: u64, arrivals: &[Arrival]) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    found.extend(arrivals.iter().filter_map(|arrival| {
        arrival.fault.as_ref().map(|fault| format!("webhook {number}: {}: {fault}", arrival.id))
    }));
    let Some(first) = arrivals.first() else { return found };
    // The id without its last number belongs to the webhook, of which each task has one here.
    let prefix = |arrival: &Arrival| arrival.id.rsplit_once('-').map(|(prefix, _)| prefix.to_owned());
    let mut contents: HashMap<&str, (&[u8], &str)> = HashMap::new();
    for pair in arrivals.windows(2) {
        if pair[1].seq() < pair[0].seq() {
            found.push(format!("webhook {number}: out of order: {} after {}", pair[1].id, pair[0].id));
        }
    }
    for arrival in arrivals {
        if prefix(arrival) != prefix(first) || !arrival.id.starts_with(&format!("{}-", arrival.task)) {
            found
                .push(format!("webhook {number}: the id {} is not that of its task and webhook", arrival.id));
        }
        let content = (&arrival.body[..], arrival.state.as_str());
        if *contents.entry(&arrival.id).or_insert(content) != content {
            found.push(format!("webhook {number}: {} arrived again with another body", arrival.id));
        }
    }
    found
}
