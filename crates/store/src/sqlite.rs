//! The embedded store: one SQLite file in WAL mode, synced at every commit.
//!
//! One thread writes and takes everything queued into one transaction; a few threads read; one more moves
//! finished pages from the log into the file beside the writer. The file belongs to one process at a time.

mod changes;
mod checkpoint;
mod counts;
mod docs;
mod expiry;
mod free_pages;
mod inspect;
mod instance;
mod keys;
mod lists;
mod migrations;
mod open;
mod readers;
mod rows;
mod scopes;
mod tallies;
mod writer;

use std::sync::Arc;

use engine::{
    Reservation, Scope, Store,
    ids::{Ids, TaskNo},
    log::{Entry, Seq},
    store::{
        Among, Change, ContextLookup, ContextRow, Due, Ended, Expired, Expiry, KeyUsed, ListPage, ListQuery,
        Lookup, MessageKey, Read, Receipt, Snapshot, StoreError, TaskRow, WorkItem,
    },
};
use futures_util::{FutureExt as _, future::BoxFuture};
use protocol::Timestamp;
use tokio::sync::watch;

pub use inspect::check;
pub use instance::{Holder, Instance, InstanceState, holder};
pub use open::{OpenError, Options};

use self::{
    inspect::Inspector,
    instance::InstanceLock,
    readers::{Failure, Readers},
    scopes::Scopes,
    writer::Writer,
};

/// An open store.
pub struct Sqlite {
    writer: Writer,
    readers: Readers,
    scopes: Scopes,
    ids: Ids,
    seal_key: [u8; 32],
    damage: watch::Receiver<Option<String>>,
    /// Looks the store over after an unclean stop.
    _inspector: Option<Inspector>,
    /// Held as long as the store is open; the last thing to go.
    lock: Arc<InstanceLock>,
}

impl Sqlite {
    /// Describes this process to others that want the store.
    pub fn instance(&self) -> Instance {
        Instance::of(&self.lock)
    }
}

/// Resolves when there is something to tell; never, when the store is closed in good order before.
fn told(mut news: watch::Receiver<Option<String>>) -> BoxFuture<'static, String> {
    async move {
        match news.wait_for(Option::is_some).await.map(|reason| reason.clone()) {
            Ok(Some(reason)) => reason,
            _ => std::future::pending().await,
        }
    }
    .boxed()
}

impl Sqlite {
    /// A task with its log, if its row passes.
    fn find_if(
        &self,
        scope: &Scope,
        lookup: Lookup,
        pass: impl FnOnce(&TaskRow) -> Result<(), StoreError> + Send + 'static,
    ) -> Read<Option<Snapshot>> {
        let (ids, scope) = (self.ids.clone(), self.scopes.reader(scope));
        self.readers.read(move |tx| {
            let Some(scope) = scope.resolve(tx)? else { return Ok(None) };
            let Some(row) = rows::find(tx, &ids, scope, &lookup)? else { return Ok(None) };
            pass(&row).map_err(Failure::Store)?;
            rows::with_log(tx, row).map(Some)
        })
    }
}

impl Store for Sqlite {
    fn commit(&self, change: Change) -> Receipt {
        self.writer.commit(change)
    }

    fn find(&self, scope: &Scope, lookup: Lookup) -> Read<Option<Snapshot>> {
        self.find_if(scope, lookup, |_| Ok(()))
    }

    fn find_within(
        &self,
        scope: &Scope,
        lookup: Lookup,
        memory: &Arc<Reservation>,
    ) -> Read<Option<Snapshot>> {
        let memory = Arc::clone(memory);
        self.find_if(scope, lookup, move |row| memory.cover_task(row.size).map_err(StoreError::TooLarge))
    }

    fn entries(&self, scope: &Scope, task: TaskNo, after: Seq, max: usize) -> Read<Vec<(Seq, Arc<Entry>)>> {
        let scope = self.scopes.reader(scope);
        self.readers.read(move |tx| {
            let Some(scope) = scope.resolve(tx)? else { return Ok(Vec::new()) };
            rows::entries(tx, scope, task, after, max)
        })
    }

    fn last_status(&self, scope: &Scope, task: TaskNo, up_to: Seq) -> Read<Option<Arc<Entry>>> {
        let scope = self.scopes.reader(scope);
        self.readers.read(move |tx| {
            let Some(scope) = scope.resolve(tx)? else { return Ok(None) };
            rows::last_status(tx, scope, task, up_to)
        })
    }

    fn list(&self, scope: &Scope, query: ListQuery) -> Read<ListPage> {
        let (ids, scope) = (self.ids.clone(), self.scopes.reader(scope));
        let long = self.writer.tallier();
        self.readers.read(move |tx| {
            let Some(scope) = scope.resolve(tx)? else { return Ok(ListPage::default()) };
            lists::list(tx, &ids, scope, &query, long)
        })
    }

    fn first_use(&self, key: MessageKey) -> Read<Option<KeyUsed>> {
        self.writer.first_use(key)
    }

    fn count_open(&self, agent: &str) -> Read<u64> {
        let agent = agent.to_owned();
        self.readers.read(move |tx| Ok(expiry::count_open(tx, &agent)?))
    }

    fn context(&self, scope: &Scope, lookup: ContextLookup) -> Read<Option<ContextRow>> {
        let (ids, scope) = (self.ids.clone(), self.scopes.reader(scope));
        self.readers.read(move |tx| {
            let Some(scope) = scope.resolve(tx)? else { return Ok(None) };
            rows::context(tx, &ids, scope, &lookup)
        })
    }

    fn conversation(&self, scope: &Scope, first: TaskNo, before: TaskNo, max: usize) -> Read<Vec<Snapshot>> {
        let (ids, scope) = (self.ids.clone(), self.scopes.reader(scope));
        self.readers.read(move |tx| {
            let Some(scope) = scope.resolve(tx)? else { return Ok(Vec::new()) };
            rows::conversation(tx, &ids, scope, first, before, max)
        })
    }

    fn due(&self, now: Timestamp, max: usize) -> Read<Due> {
        self.readers.read(move |tx| rows::due(tx, now, max))
    }

    fn work(&self, task: TaskNo) -> Read<Option<WorkItem>> {
        let ids = self.ids.clone();
        self.readers.read(move |tx| rows::work(tx, &ids, task))
    }

    fn turn_key(&self, scope: &Scope, among: Among, key: MessageKey) -> Read<Option<KeyUsed>> {
        let scope = self.scopes.reader(scope);
        let ids = self.ids.clone();
        self.readers.read(move |tx| {
            let Some(scope) = scope.resolve(tx)? else { return Ok(None) };
            match among {
                Among::Task(task) if rows::owns(tx, scope, task)? => Ok(rows::turn_key(tx, task, &key)?),
                Among::Task(_) => Ok(None),
                Among::Context(lookup) => rows::turn_key_in_context(tx, &ids, scope, &lookup, &key),
            }
        })
    }

    fn agents(&self) -> Read<Vec<String>> {
        self.readers.read(move |tx| Ok(expiry::agents(tx)?))
    }

    fn expired(&self, expiry: Expiry) -> Read<Expired> {
        let ids = self.ids.clone();
        self.readers.read(move |tx| expiry::find(tx, &ids, &expiry))
    }

    fn purge(&self, tasks: Vec<Ended>, now: Timestamp) -> Read<usize> {
        self.writer.purge(tasks, now)
    }

    fn drop_purged(&self, purged_before: Timestamp, max: usize) -> Read<usize> {
        self.writer.drop_purged(purged_before, max)
    }

    fn reserve(&self, count: i64) -> Read<TaskNo> {
        self.writer.reserve(count)
    }

    fn ids(&self) -> Ids {
        self.ids.clone()
    }

    fn seal_key(&self) -> [u8; 32] {
        self.seal_key
    }

    fn failed(&self) -> BoxFuture<'static, String> {
        told(self.writer.failure())
    }

    fn damaged(&self) -> BoxFuture<'static, String> {
        told(self.damage.clone())
    }
}
