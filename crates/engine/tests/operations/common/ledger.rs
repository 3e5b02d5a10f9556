//! A store that remembers what was handed to it and can keep changes waiting at its gate.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
};

use a2ad_engine::{
    Reservation, Scope, Store,
    ids::{Ids, TaskNo},
    log::{Entry, Kind, Seq},
    store::{
        Among, Change, ContextLookup, ContextRow, Due, Ended, Expired, Expiry, KeyUsed, ListPage, ListQuery,
        Lookup, MessageKey, Read, Receipt, Receipts, Snapshot, StoreError, TaskRow, WorkItem,
    },
};
use futures_util::future::BoxFuture;
use protocol::{TaskState, Timestamp};
use store::Sqlite;
use tokio::sync::watch;
use tokio_util::task::TaskTracker;

/// Counts changes by the name of their step: `accept`, `report`, `finish`, ….
pub(crate) struct Ledger {
    store: Sqlite,
    /// What was handed over, in order.
    handed: Mutex<Vec<String>>,
    /// What has been committed, in order.
    committed: Arc<watch::Sender<Vec<String>>>,
    gate: Mutex<Gate>,
    /// What goes wrong with the next looks at work to be taken up.
    spoiled: Mutex<VecDeque<Spoiled>>,
    waiting: watch::Sender<usize>,
    receipts: TaskTracker,
}

/// What is wrong with a look at work to be taken up.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Spoiled {
    /// There is no answer, for now.
    NoAnswer,
    /// The log is not what was recorded.
    NoLog,
}

#[derive(Default)]
struct Gate {
    closed: bool,
    queue: Vec<(Change, Receipts)>,
}

impl Ledger {
    pub(super) fn new(store: Sqlite) -> Self {
        Self {
            store,
            handed: Mutex::default(),
            committed: Arc::new(watch::Sender::default()),
            gate: Mutex::default(),
            spoiled: Mutex::default(),
            waiting: watch::Sender::default(),
            receipts: TaskTracker::new(),
        }
    }

    /// Every change handed over so far, by its step.
    pub(crate) fn steps(&self) -> Vec<String> {
        self.handed.lock().unwrap().clone()
    }

    /// How many changes of a step have been handed over.
    pub(crate) fn count(&self, step: &str) -> usize {
        self.handed.lock().unwrap().iter().filter(|handed| *handed == step).count()
    }

    /// Waits until so many changes of a step are committed.
    pub(crate) async fn until(&self, step: &str, count: usize) {
        let mut committed = self.committed.subscribe();
        let enough = |steps: &Vec<String>| steps.iter().filter(|done| *done == step).count() >= count;
        super::within(committed.wait_for(enough)).await.unwrap();
    }

    /// What each entry of a task's log says about its state, if anything.
    pub(crate) async fn log(&self, row: &TaskRow) -> Vec<Option<TaskState>> {
        let entries = self.store.entries(&super::scope(), row.no, 0, usize::MAX).await.unwrap();
        let state = |entry: &Entry| match entry.kind() {
            Kind::Status(state) => Some(state),
            Kind::Artifact | Kind::Message => None,
        };
        entries.iter().map(|(_, entry)| state(entry)).collect()
    }

    /// Keeps changes waiting from now on.
    pub(crate) fn close_gate(&self) {
        self.gate.lock().unwrap().closed = true;
    }

    /// The next looks at work to be taken up go wrong like this, one after the other.
    pub(crate) fn spoil(&self, looks: impl IntoIterator<Item = Spoiled>) {
        self.spoiled.lock().unwrap().extend(looks);
    }

    /// Waits until so many changes wait.
    pub(crate) async fn until_waiting(&self, count: usize) {
        let mut waiting = self.waiting.subscribe();
        super::within(waiting.wait_for(|waiting| *waiting >= count)).await.unwrap();
    }

    /// Lets everything through again.
    pub(crate) fn open_gate(&self) {
        let mut gate = self.gate.lock().unwrap();
        gate.closed = false;
        for (change, receipts) in gate.queue.drain(..) {
            self.pass(change, receipts);
        }
        self.waiting.send_replace(0);
    }

    fn pass(&self, change: Change, receipts: Receipts) {
        let (step, committed) = (name(&change), Arc::clone(&self.committed));
        let receipt = self.store.commit(change);
        self.receipts.spawn(async move {
            let result = receipt.await;
            let success = result.is_ok();
            receipts.fill(result);
            if success {
                committed.send_modify(|steps| steps.push(step));
            }
        });
    }
}

/// The first word of a step, in lower case.
fn name(change: &Change) -> String {
    match change {
        Change::Accept(_) => "accept".into(),
        Change::Advance(advance) => {
            let step = format!("{:?}", advance.step).to_lowercase();
            step.split([' ', '(']).next().unwrap_or_default().into()
        }
    }
}

impl Store for Ledger {
    fn commit(&self, change: Change) -> Receipt {
        self.handed.lock().unwrap().push(name(&change));
        let (receipts, receipt) = Receipt::new();
        let mut gate = self.gate.lock().unwrap();
        if gate.closed {
            gate.queue.push((change, receipts));
            self.waiting.send_replace(gate.queue.len());
        } else {
            self.pass(change, receipts);
        }
        receipt
    }

    fn find(&self, scope: &Scope, lookup: Lookup) -> Read<Option<Snapshot>> {
        self.store.find(scope, lookup)
    }

    fn find_within(
        &self,
        scope: &Scope,
        lookup: Lookup,
        memory: &Arc<Reservation>,
    ) -> Read<Option<Snapshot>> {
        self.store.find_within(scope, lookup, memory)
    }

    fn entries(&self, scope: &Scope, task: TaskNo, after: Seq, max: usize) -> Read<Vec<(Seq, Arc<Entry>)>> {
        self.store.entries(scope, task, after, max)
    }

    fn last_status(&self, scope: &Scope, task: TaskNo, up_to: Seq) -> Read<Option<Arc<Entry>>> {
        self.store.last_status(scope, task, up_to)
    }

    fn list(&self, scope: &Scope, query: ListQuery) -> Read<ListPage> {
        self.store.list(scope, query)
    }

    fn turn_key(&self, scope: &Scope, among: Among, key: MessageKey) -> Read<Option<KeyUsed>> {
        self.store.turn_key(scope, among, key)
    }

    fn first_use(&self, key: MessageKey) -> Read<Option<KeyUsed>> {
        self.store.first_use(key)
    }

    fn count_open(&self, agent: &str) -> Read<u64> {
        self.store.count_open(agent)
    }

    fn context(&self, scope: &Scope, lookup: ContextLookup) -> Read<Option<ContextRow>> {
        self.store.context(scope, lookup)
    }

    fn conversation(&self, scope: &Scope, first: TaskNo, before: TaskNo, max: usize) -> Read<Vec<Snapshot>> {
        self.store.conversation(scope, first, before, max)
    }

    fn due(&self, now: Timestamp, max: usize) -> Read<Due> {
        self.store.due(now, max)
    }

    fn work(&self, task: TaskNo) -> Read<Option<WorkItem>> {
        let work = self.store.work(task);
        let spoiled = self.spoiled.lock().unwrap().pop_front();
        Box::pin(async move {
            let mut work = work.await?;
            match (spoiled, &mut work) {
                (Some(Spoiled::NoAnswer), _) => return Err(StoreError::Unavailable("a test says so".into())),
                (Some(Spoiled::NoLog), Some(work)) => work.snapshot.log.clear(),
                _ => {}
            }
            Ok(work)
        })
    }

    fn agents(&self) -> Read<Vec<String>> {
        self.store.agents()
    }

    fn expired(&self, expiry: Expiry) -> Read<Expired> {
        self.store.expired(expiry)
    }

    fn purge(&self, tasks: Vec<Ended>, now: Timestamp) -> Read<usize> {
        self.store.purge(tasks, now)
    }

    fn drop_purged(&self, purged_before: Timestamp, max: usize) -> Read<usize> {
        self.store.drop_purged(purged_before, max)
    }

    fn reserve(&self, count: i64) -> Read<TaskNo> {
        self.store.reserve(count)
    }

    fn ids(&self) -> Ids {
        self.store.ids()
    }

    fn seal_key(&self) -> [u8; 32] {
        self.store.seal_key()
    }

    fn failed(&self) -> BoxFuture<'static, String> {
        self.store.failed()
    }

    fn damaged(&self) -> BoxFuture<'static, String> {
        self.store.damaged()
    }
}
