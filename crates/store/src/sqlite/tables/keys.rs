//! The index of idempotency keys of first messages, used by the writer. A log-structured merge tree instead of a
//! B-tree, because inserting random keys into a B-tree is too slow for every call.
//!
//! Recent keys are in memory (the memtable). When there are enough of them the memtable is frozen: a thread sorts the
//! keys into pages and builds a Bloom filter, and the writer stores a few pages with each commit. The result is an
//! immutable sorted run (`run.rs`): a lookup reads one page of one run, with few false positives. As soon as there are
//! [`FANOUT`] runs of a size class, they are merged (`merge.rs`), so that there are at most a few runs of each class,
//! however many keys there are. Merging, and deleting the pages that it leaves, is done in steps of one page; a commit
//! does steps in proportion to the keys it adds, so no commit is long.
//!
//! Memory: a little more than two bytes for each key in a run, and for the duration of a merge as much again for its
//! keys. Filters together are limited to [`MAX_FILTER_BYTES`]; a run beyond that has none, and a lookup reads one of
//! its pages.
//!
//! A run is dropped when all its tasks are deleted, and rewritten when nearly all are. After a restart the runs are
//! loaded, and the memtable is rebuilt from the task rows after the last flush. That is never more than one run's
//! worth of rows, because a memtable is also flushed after a number of rows, however few keys they have. Keys are
//! digests, hence evenly distributed.

mod merge;
mod run;

use std::{
    collections::{HashMap, VecDeque},
    hash::{BuildHasherDefault, Hasher},
    ops::Range,
    sync::{Arc, mpsc},
};

use rusqlite::{Connection, OptionalExtension as _, params};

use self::{
    merge::{BLOCK_NUMBERS, Merge, count_live_blocks},
    run::{ENTRIES_PER_PAGE, RunBuilder, SortedRun, entry, filter_bytes, page_key, run_of, store_page},
};
use crate::sqlite::files::open;

/// A digest of a scope and a message id.
pub(crate) type Key = [u8; 16];

/// Keys that are in no run yet, with their tasks.
type Memtable = HashMap<Key, i64, BuildHasherDefault<DigestHasher>>;

/// Keys are digests, so their first bytes serve as the hash.
#[derive(Default)]
struct DigestHasher(u64);

impl Hasher for DigestHasher {
    fn write(&mut self, bytes: &[u8]) {
        if let Some(first) = bytes.first_chunk() {
            self.0 = u64::from_ne_bytes(*first);
        }
    }

    fn write_usize(&mut self, _: usize) {}

    fn finish(&self) -> u64 {
        self.0
    }
}

/// Number of keys in a run that is flushed.
const RUN_KEYS: usize = 32_768;
/// The memtable is also flushed after this many rows, however few keys they have.
const RUN_ROWS: i64 = 32_768;
/// Name in `meta`: every key of a row up to this number is in a run.
const INDEXED_UP_TO: &str = "keys_upto";
/// Task numbers are reserved before they are committed: a row with a number up to this much below the newest may not
/// be committed yet.
const SLACK: i64 = 4_096;
/// Pages of a flush stored with one commit.
const PAGES_PER_COMMIT: usize = 16;
/// Runs of one size class that are merged; the next class is this much larger.
const FANOUT: usize = 8;
/// Entries that may be merged for each key that is added or whose task is deleted. Every size class needs one, and
/// there are four classes for up to a hundred million keys.
const MERGED_PER_KEY: usize = 16;
/// Steps of merges in one commit at most.
const MAX_STEPS: usize = 32;
/// Limit of all filters together.
const MAX_FILTER_BYTES: usize = 64 << 20;
/// A run is rewritten only if at most this many blocks of its tasks are left.
const MAX_REWRITTEN_BLOCKS: usize = 64;

/// The index of all first-message keys in the store.
pub(crate) struct KeyIndex {
    memtable: Memtable,
    flush: Option<Flush>,
    /// Sorted by their largest task number.
    runs: Vec<SortedRun>,
    /// At most one for each size class, and rewrites.
    merges: Vec<Merge>,
    /// Pages of runs that no longer exist, by primary key.
    garbage: VecDeque<Range<i64>>,
    next_run: i64,
    /// Keys of rows up to this number are in runs.
    last_n: i64,
    /// Number of the newest row.
    newest: i64,
    /// Entries that the next commits may merge.
    credit: usize,
    /// Position in `runs` after the run that was last checked for deleted tasks.
    checked: usize,
    run_keys: usize,
}

/// A frozen memtable on its way to stored pages.
struct Flush {
    keys: Arc<Memtable>,
    built: mpsc::Receiver<BuiltRun>,
    storing: Option<(BuiltRun, usize)>,
}

/// A run that is built but not yet stored completely.
struct BuiltRun {
    run: SortedRun,
    last_n: i64,
    pages: Vec<Vec<u8>>,
}

/// A page of a run that is damaged.
pub(crate) struct DamagedRun {
    pub(crate) run: i64,
    pub(crate) page: usize,
}

/// Reads every page of every run.
pub(crate) fn damaged_runs(connection: &Connection) -> rusqlite::Result<Vec<DamagedRun>> {
    let mut damaged = Vec::new();
    for run in KeyIndex::load(connection)?.runs {
        for page in 0..run.pages() {
            if !run.has_intact_page(connection, page)? {
                damaged.push(DamagedRun { run: run.id, page });
            }
        }
    }
    Ok(damaged)
}

impl KeyIndex {
    /// Loads the runs, and the memtable from the rows after them.
    pub(crate) fn load(connection: &Connection) -> rusqlite::Result<Self> {
        Self::load_with(connection, RUN_KEYS)
    }

    fn load_with(connection: &Connection, run_keys: usize) -> rusqlite::Result<Self> {
        let newest = connection.query_row("SELECT coalesce(max(n), 0) FROM tasks", [], |row| row.get(0))?;
        let mut keys = Self {
            memtable: Memtable::default(),
            flush: None,
            runs: Vec::new(),
            merges: Vec::new(),
            garbage: VecDeque::new(),
            next_run: 1,
            last_n: open::meta(connection, INDEXED_UP_TO)?.unwrap_or(0),
            newest,
            credit: 0,
            checked: 0,
            run_keys,
        };
        keys.load_runs(connection)?;
        let mut memtable = connection.prepare("SELECT key, n FROM tasks WHERE n > ?1 AND key IS NOT NULL")?;
        let mut rows = memtable.query(params![keys.last_n])?;
        while let Some(row) = rows.next()? {
            keys.memtable.insert(row.get(0)?, row.get(1)?);
        }
        Ok(keys)
    }

    fn load_runs(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        let mut runs = connection
            .prepare("SELECT id, min_n, max_n, filter, fences, last_n FROM key_runs ORDER BY id")?;
        let mut rows = runs.query([])?;
        let mut filter_bytes = 0;
        while let Some(row) = rows.next()? {
            let run = SortedRun::load(connection, row, filter_bytes < MAX_FILTER_BYTES)?;
            filter_bytes += run.filter_bytes();
            self.last_n = self.last_n.max(row.get(5)?);
            // Pages between those of two runs are what an unfinished flush or merge left.
            self.find_garbage(connection, run.id)?;
            self.next_run = run.id + 1;
            self.runs.push(run);
        }
        while let Some(left) = self.find_garbage(connection, i64::MAX >> 24)? {
            self.next_run = left + 1;
        }
        self.runs.sort_by_key(|run| run.max_n);
        self.start_merges();
        Ok(())
    }

    /// Remembers pages of runs from `next_run` on and before another one; returns the last of those runs.
    fn find_garbage(&mut self, connection: &Connection, before: i64) -> rusqlite::Result<Option<i64>> {
        let range = page_key(self.next_run, 0)..page_key(before, 0);
        let last: Option<i64> = connection
            .prepare_cached("SELECT max(place) FROM key_pages WHERE place >= ?1 AND place < ?2")?
            .query_row(params![range.start, range.end], |row| row.get(0))?;
        let Some(last) = last else { return Ok(None) };
        self.garbage.push_back(range.start..last + 1);
        Ok(Some(run_of(last)))
    }

    /// Calls `check` with the tasks that used this key, until it returns something. A task may have been deleted, and
    /// the key used again after that.
    pub(crate) fn find<T>(
        &self,
        connection: &Connection,
        key: &Key,
        mut check: impl FnMut(i64) -> rusqlite::Result<Option<T>>,
    ) -> rusqlite::Result<Option<T>> {
        let flushed = self.flush.as_ref().and_then(|flush| flush.keys.get(key));
        for n in self.memtable.get(key).into_iter().chain(flushed) {
            if let Some(found) = check(*n)? {
                return Ok(Some(found));
            }
        }
        for run in self.runs.iter().rev() {
            if let Some(n) = run.find(connection, key)?
                && let Some(found) = check(n)?
            {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// Adds a new task, and its key if it has one.
    pub(crate) fn add(&mut self, key: Option<Key>, n: i64) {
        self.newest = self.newest.max(n);
        if let Some(key) = key {
            self.memtable.insert(key, n);
            self.credit += MERGED_PER_KEY;
        }
    }

    /// Flushes and merges a few pages, if there is something to flush or merge. Called in each commit.
    pub(crate) fn maintain(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        self.flush_pages(connection)?;
        if self.merges.is_empty() && self.garbage.is_empty() {
            self.credit = 0;
            return Ok(());
        }
        let steps = (self.credit / ENTRIES_PER_PAGE).min(MAX_STEPS);
        self.credit = self.credit.min(MAX_STEPS * ENTRIES_PER_PAGE) - steps * ENTRIES_PER_PAGE;
        for _ in 0..steps {
            self.merge_page(connection)?;
            self.delete_page(connection)?;
        }
        Ok(())
    }

    /// Starts a flush when one is due and stores a few of its pages.
    fn flush_pages(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        if self.flush.is_none()
            && (self.memtable.len() >= self.run_keys || self.newest - self.last_n >= RUN_ROWS + SLACK)
        {
            if self.memtable.is_empty() {
                self.last_n = self.newest - SLACK;
                open::set_meta(connection, INDEXED_UP_TO, self.last_n)?;
            } else {
                self.start_flush();
            }
        }
        let Some(flush) = &mut self.flush else { return Ok(()) };
        if flush.storing.is_none() {
            flush.storing = flush.built.try_recv().ok().map(|built| (built, 0));
        }
        let Some((built, stored)) = &mut flush.storing else { return Ok(()) };
        for _ in 0..PAGES_PER_COMMIT {
            let page = match stored.checked_sub(built.pages.len()) {
                None => Some((i64::try_from(*stored).unwrap_or_default(), built.pages[*stored].as_slice())),
                Some(chunk) => built.run.chunk(chunk),
            };
            let Some((number, bytes)) = page else { return self.finish_flush(connection) };
            store_page(connection, built.run.id, number, bytes)?;
            *stored += 1;
        }
        Ok(())
    }

    fn start_flush(&mut self) {
        let keys = Arc::new(std::mem::take(&mut self.memtable));
        let (reply, built) = mpsc::channel();
        let id = self.take_run_id();
        let (sorting, last_n) = (Arc::clone(&keys), self.last_n.max(self.newest - SLACK));
        let thread = std::thread::Builder::new().name("a2ad-keys".into());
        // The thread ends within milliseconds and sends to nothing but this channel, so it is not joined. If it
        // cannot be started, the keys stay in memory, and the next restart reads them from their rows.
        let _ = thread.spawn(move || reply.send(BuiltRun::new(id, &sorting, last_n)));
        self.flush = Some(Flush { keys, built, storing: None });
    }

    fn finish_flush(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        if let Some(Flush { storing: Some((built, _)), .. }) = self.flush.take() {
            built.run.insert(connection, built.last_n)?;
            self.last_n = built.last_n;
            self.add_run(built.run);
        }
        Ok(())
    }

    fn add_run(&mut self, run: SortedRun) {
        let position = self.runs.partition_point(|other| other.max_n <= run.max_n);
        self.runs.insert(position, run);
        self.start_merges();
    }

    fn take_run_id(&mut self) -> i64 {
        self.next_run += 1;
        self.next_run - 1
    }

    /// Starts a merge of every size class that has enough runs and is not being merged.
    fn start_merges(&mut self) {
        let mut by_level: HashMap<u32, Vec<i64>> = HashMap::new();
        for run in self.runs.iter().filter(|run| !run.merging) {
            by_level.entry(self.level(run)).or_default().push(run.id);
        }
        for (level, runs) in by_level {
            if runs.len() >= FANOUT && self.merges.iter().all(|merge| merge.level != level) {
                self.start_merge(level, &runs[..FANOUT], usize::MAX);
            }
        }
    }

    /// The size class of a run.
    fn level(&self, run: &SortedRun) -> u32 {
        let flushed = self.run_keys.div_ceil(ENTRIES_PER_PAGE);
        (0..).find(|level| run.pages() <= flushed * FANOUT.pow(*level)).unwrap_or_default()
    }

    /// Starts a merge that will leave at most `max_left` keys.
    fn start_merge(&mut self, level: u32, inputs: &[i64], max_left: usize) {
        let id = self.take_run_id();
        let (mut max_keys, mut filters) = (0, self.merges.iter().map(Merge::filter_bytes).sum::<usize>());
        for run in &mut self.runs {
            if inputs.contains(&run.id) {
                run.merging = true;
                max_keys += run.max_keys();
            } else {
                filters += run.filter_bytes();
            }
        }
        let max_keys = max_keys.min(max_left);
        let output = RunBuilder::new(id, max_keys, filters + filter_bytes(max_keys) <= MAX_FILTER_BYTES);
        let inputs = self.runs.iter().filter(|run| inputs.contains(&run.id));
        self.merges.push(Merge::new(level, inputs, output));
        // Small merges are soon done, and without them the number of runs would grow.
        self.merges.sort_by_key(|merge| merge.level);
    }

    fn merge_page(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        let Some(merge) = self.merges.first_mut() else { return Ok(()) };
        if !merge.step(connection)? {
            return Ok(());
        }
        let merge = self.merges.remove(0);
        for run in merge.inputs() {
            self.remove_run(connection, run)?;
        }
        match merge.finish() {
            Some(run) => {
                run.insert(connection, self.last_n)?;
                self.add_run(run);
            }
            None => open::set_meta(connection, INDEXED_UP_TO, self.last_n)?,
        }
        Ok(())
    }

    /// Removes a run; its pages are deleted later.
    fn remove_run(&mut self, connection: &Connection, id: i64) -> rusqlite::Result<()> {
        self.runs.retain(|run| run.id != id);
        self.garbage.push_back(page_key(id, 0)..page_key(id + 1, 0));
        connection.prepare_cached("DELETE FROM key_runs WHERE id = ?1")?.execute(params![id]).map(drop)
    }

    /// Deletes one page that no run refers to.
    fn delete_page(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        let Some(range) = self.garbage.front_mut() else { return Ok(()) };
        let deleted: Option<i64> = connection
            .prepare_cached(
                "DELETE FROM key_pages WHERE place = (SELECT min(place) FROM key_pages
                                                      WHERE place >= ?1 AND place < ?2) RETURNING place",
            )?
            .query_row(params![range.start, range.end], |row| row.get(0))
            .optional()?;
        match deleted {
            Some(page) => range.start = page + 1,
            None => drop(self.garbage.pop_front()),
        }
        Ok(())
    }

    /// Called when tasks were deleted: checks one run, in turn. A run without tasks is removed; one that a few old
    /// tasks keep is rewritten.
    pub(crate) fn tasks_deleted(&mut self, connection: &Connection, count: usize) -> rusqlite::Result<()> {
        self.credit += count * MERGED_PER_KEY;
        self.checked = if self.checked < self.runs.len() { self.checked } else { 0 };
        let Some(run) = self.runs.get(self.checked).filter(|run| !run.merging) else {
            self.checked += 1;
            return Ok(());
        };
        let (id, level) = (run.id, self.level(run));
        let live = count_live_blocks(connection, (run.min_n, run.max_n), MAX_REWRITTEN_BLOCKS + 1)?;
        let left = live * usize::try_from(BLOCK_NUMBERS).unwrap_or_default();
        if live == 0 {
            open::set_meta(connection, INDEXED_UP_TO, self.last_n)?;
            return self.remove_run(connection, id);
        }
        self.checked += 1;
        if live <= MAX_REWRITTEN_BLOCKS && 2 * left < run.max_keys() {
            self.start_merge(level, &[id], left);
        }
        Ok(())
    }
}

impl BuiltRun {
    fn new(id: i64, keys: &Memtable, last_n: i64) -> Self {
        let mut sorted: Vec<_> = keys.iter().map(|(key, n)| entry(key, *n)).collect();
        sorted.sort_unstable();
        let mut output = RunBuilder::new(id, sorted.len(), true);
        let mut pages = Vec::new();
        for chunk in sorted.chunks(ENTRIES_PER_PAGE) {
            chunk.iter().for_each(|entry| output.add(entry));
            pages.extend(output.take_page().map(|(_, page)| page));
        }
        Self { run: output.finish(), last_n, pages }
    }
}

#[cfg(test)]
mod tests;
