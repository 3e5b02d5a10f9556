//! The index of idempotency keys of first messages, used by the writer. A log-structured index instead of a B-tree,
//! because inserting random keys into a B-tree is too slow for every call.
//!
//! Recent keys are in memory (the memtable). When there are enough of them the memtable is frozen: a thread sorts the
//! keys into pages and builds a Bloom filter, and the writer stores a few pages with each commit. The result is an
//! immutable sorted run: its filter and the first key of each page stay in memory, about two bytes a key, and a
//! lookup reads one page of one run, with few false positives. After a restart the runs are loaded, and the memtable
//! is rebuilt from the task rows after the last run. That is never more than one run's worth of rows, because a
//! memtable is also flushed after a number of rows, however few keys they have. Keys are digests, hence evenly
//! distributed.

use std::{
    collections::HashMap,
    hash::{BuildHasherDefault, Hasher},
    sync::{Arc, mpsc},
};

use rusqlite::{Connection, OptionalExtension as _, params};

use super::open;

/// A digest of a scope and a message id.
pub(super) type Key = [u8; 16];

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

/// Number of keys in a run.
const RUN_KEYS: usize = 32_768;
/// The memtable is also flushed after this many rows, however few keys they have.
const RUN_ROWS: i64 = 32_768;
/// Name in `meta`: every key of a row up to this number is in a run.
const INDEXED_UP_TO: &str = "keys_upto";
/// Task numbers are reserved before they are committed: a row with a number up to this much below the newest may not
/// be committed yet.
const SLACK: i64 = 4_096;
/// Bytes of a page entry: key and task number.
const ENTRY_BYTES: usize = 24;
const ENTRIES_PER_PAGE: usize = 160;
/// Pages stored with one commit.
const PAGES_PER_COMMIT: usize = 16;
const PAGE_BITS: u32 = 24;

/// The index of all first-message keys in the store.
pub(super) struct KeyIndex {
    memtable: Memtable,
    flush: Option<Flush>,
    runs: Vec<SortedRun>,
    /// Keys of rows up to this number are in runs.
    last_n: i64,
    /// Number of the newest row.
    newest: i64,
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

struct SortedRun {
    id: i64,
    max_n: i64,
    filter: BloomFilter,
    /// The first key of each page. Stored in the column `first_keys`.
    first_keys: Vec<Key>,
}

impl KeyIndex {
    /// Loads the runs, and the memtable from the rows after them.
    pub(super) fn load(connection: &Connection) -> rusqlite::Result<Self> {
        let newest = connection.query_row("SELECT coalesce(max(n), 0) FROM tasks", [], |row| row.get(0))?;
        let last_n = open::meta(connection, INDEXED_UP_TO)?.unwrap_or(0);
        let mut keys = Self { memtable: Memtable::default(), flush: None, runs: Vec::new(), last_n, newest };
        let mut runs =
            connection.prepare("SELECT id, last_n, max_n, filter, fences FROM key_runs ORDER BY id")?;
        let mut rows = runs.query([])?;
        while let Some(row) = rows.next()? {
            keys.last_n = keys.last_n.max(row.get(1)?);
            let first_keys: Vec<u8> = row.get(4)?;
            keys.runs.push(SortedRun {
                id: row.get(0)?,
                max_n: row.get(2)?,
                filter: BloomFilter(row.get(3)?),
                first_keys: first_keys.as_chunks().0.to_vec(),
            });
        }
        // Pages of a run whose flush did not finish before the process ended are garbage.
        let next = keys.runs.last().map_or(1, |run| run.id + 1);
        connection.execute("DELETE FROM key_pages WHERE place >= ?1", params![page_key(next, 0)])?;
        let mut memtable = connection.prepare("SELECT key, n FROM tasks WHERE n > ?1 AND key IS NOT NULL")?;
        let mut rows = memtable.query(params![keys.last_n])?;
        while let Some(row) = rows.next()? {
            keys.memtable.insert(row.get(0)?, row.get(1)?);
        }
        Ok(keys)
    }

    /// The task that used this key first. The caller must check the task row: the task may have been deleted.
    pub(super) fn find(&self, connection: &Connection, key: &Key) -> rusqlite::Result<Option<i64>> {
        if let Some(n) = self.memtable.get(key) {
            return Ok(Some(*n));
        }
        if let Some(n) = self.flush.as_ref().and_then(|flush| flush.keys.get(key)) {
            return Ok(Some(*n));
        }
        for run in self.runs.iter().rev().filter(|run| run.filter.may_contain(key)) {
            if let Some(n) = run.find(connection, key)? {
                return Ok(Some(n));
            }
        }
        Ok(None)
    }

    /// Adds a new task, and its key if it has one.
    pub(super) fn add(&mut self, key: Option<Key>, n: i64) {
        self.newest = self.newest.max(n);
        if let Some(key) = key {
            self.memtable.insert(key, n);
        }
    }

    /// Starts a flush when one is due and stores a few of its pages. Called in each commit.
    pub(super) fn maintain(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        if self.flush.is_none()
            && (self.memtable.len() >= RUN_KEYS || self.newest - self.last_n >= RUN_ROWS + SLACK)
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
        let mut insert = connection.prepare_cached("INSERT INTO key_pages (place, bytes) VALUES (?1, ?2)")?;
        for (number, page) in (0..).zip(&built.pages).skip(*stored).take(PAGES_PER_COMMIT) {
            insert.execute(params![page_key(built.run.id, number), page])?;
            *stored += 1;
        }
        if *stored == built.pages.len() {
            connection.execute(
                "INSERT INTO key_runs (id, last_n, max_n, filter, fences) VALUES (?1, ?2, ?3, ?4, ?5)",
                params![
                    built.run.id,
                    built.last_n,
                    built.run.max_n,
                    built.run.filter.0,
                    built.run.first_keys.as_flattened()
                ],
            )?;
            self.finish_flush();
        }
        Ok(())
    }

    /// Deletes runs all of whose tasks are deleted.
    pub(super) fn drop_runs_before(&mut self, connection: &Connection, first_n: i64) -> rusqlite::Result<()> {
        while self.runs.first().is_some_and(|run| run.max_n < first_n) {
            let run = self.runs.remove(0);
            connection.execute("DELETE FROM key_runs WHERE id = ?1", params![run.id])?;
            connection.execute(
                "DELETE FROM key_pages WHERE place BETWEEN ?1 AND ?2",
                params![page_key(run.id, 0), page_key(run.id + 1, 0) - 1],
            )?;
        }
        Ok(())
    }

    fn start_flush(&mut self) {
        let keys = Arc::new(std::mem::take(&mut self.memtable));
        let (reply, built) = mpsc::channel();
        let id = self.runs.last().map_or(1, |run| run.id + 1);
        let (sorting, last_n) = (Arc::clone(&keys), self.last_n.max(self.newest - SLACK));
        let thread = std::thread::Builder::new().name("a2ad-keys".into());
        // The thread ends within milliseconds and sends to nothing but this channel, so it is not joined. If it
        // cannot be started, the keys stay in memory, and the next restart reads them from their rows.
        let _ = thread.spawn(move || reply.send(BuiltRun::new(id, &sorting, last_n)));
        self.flush = Some(Flush { keys, built, storing: None });
    }

    fn finish_flush(&mut self) {
        if let Some(Flush { storing: Some((built, _)), .. }) = self.flush.take() {
            self.last_n = built.last_n;
            self.runs.push(built.run);
        }
    }
}

impl BuiltRun {
    fn new(id: i64, keys: &Memtable, last_n: i64) -> Self {
        let mut sorted: Vec<(Key, i64)> = keys.iter().map(|(key, n)| (*key, *n)).collect();
        sorted.sort_unstable();
        let max_n = sorted.iter().map(|(_, n)| *n).max().unwrap_or_default();
        let mut filter = BloomFilter::for_keys(sorted.len());
        let mut first_keys = Vec::new();
        let mut pages = Vec::new();
        for chunk in sorted.chunks(ENTRIES_PER_PAGE) {
            let mut page = Vec::with_capacity(chunk.len() * ENTRY_BYTES);
            for (key, n) in chunk {
                filter.add(key);
                page.extend_from_slice(key);
                page.extend_from_slice(&n.to_be_bytes());
            }
            first_keys.push(chunk[0].0);
            pages.push(page);
        }
        Self { run: SortedRun { id, max_n, filter, first_keys }, last_n, pages }
    }
}

impl SortedRun {
    fn find(&self, connection: &Connection, key: &Key) -> rusqlite::Result<Option<i64>> {
        let Some(page) = self.first_keys.partition_point(|first| first <= key).checked_sub(1) else {
            return Ok(None);
        };
        let page = i64::try_from(page).unwrap_or_default();
        let bytes: Option<Vec<u8>> = connection
            .prepare_cached("SELECT bytes FROM key_pages WHERE place = ?1")?
            .query_row(params![page_key(self.id, page)], |row| row.get(0))
            .optional()?;
        let bytes = bytes.unwrap_or_default();
        let (entries, _) = bytes.as_chunks::<ENTRY_BYTES>();
        let found = entries.binary_search_by(|entry| entry[..16].cmp(key)).ok();
        Ok(found.map(|at| i64::from_be_bytes(std::array::from_fn(|byte| entries[at][16 + byte]))))
    }
}

fn page_key(run: i64, page: i64) -> i64 {
    (run << PAGE_BITS) + page
}

/// A Bloom filter of 64-byte blocks: one cache line per lookup, a false-positive rate of about one in a thousand.
struct BloomFilter(Vec<u8>);

const BLOCK_BYTES: usize = 64;
const KEYS_PER_BLOCK: usize = 32;
/// Bits that a key sets in its block; nine bits of the digest choose each.
const BITS_PER_KEY: u32 = 7;

impl BloomFilter {
    fn for_keys(count: usize) -> Self {
        Self(vec![0; BLOCK_BYTES * count.div_ceil(KEYS_PER_BLOCK).max(1)])
    }

    fn add(&mut self, key: &Key) {
        let (block, bits) = self.positions(key);
        for (byte, bit) in bits {
            self.0[block + byte] |= bit;
        }
    }

    fn may_contain(&self, key: &Key) -> bool {
        let (block, mut bits) = self.positions(key);
        bits.all(|(byte, bit)| self.0[block + byte] & bit != 0)
    }

    /// The offset of a key's block, and the key's bits in it as (byte, mask).
    fn positions(&self, key: &Key) -> (usize, impl Iterator<Item = (usize, u8)> + use<>) {
        let half = |from: usize| u64::from_be_bytes(std::array::from_fn(|at| key[from + at]));
        let blocks = (self.0.len() / BLOCK_BYTES) as u128;
        let block = usize::try_from((u128::from(half(0)) * blocks) >> 64).unwrap_or_default();
        let choice = half(8);
        let bits = (0..BITS_PER_KEY).map(move |number| {
            let bit = choice >> (9 * number) & 511;
            (usize::try_from(bit / 8).unwrap_or_default(), 1 << (bit % 8))
        });
        (block * BLOCK_BYTES, bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u64) -> Key {
        // A cheap mixer replaces the digest.
        let mix = |number: u64| (number ^ number >> 31).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23);
        let (one, two) = (mix(mix(number)), mix(mix(number ^ 0xabcd_ef01)));
        let mut key = [0; 16];
        key[..8].copy_from_slice(&one.to_be_bytes());
        key[8..].copy_from_slice(&two.to_be_bytes());
        key
    }

    #[test]
    fn bloom_filter_has_no_false_negatives_and_few_false_positives() {
        let mut filter = BloomFilter::for_keys(RUN_KEYS);
        (0..RUN_KEYS as u64).for_each(|number| filter.add(&key(number)));
        assert!((0..RUN_KEYS as u64).all(|number| filter.may_contain(&key(number))));
        let wrong = (0..100_000).filter(|number| filter.may_contain(&key(1_000_000 + number))).count();
        assert!(wrong < 1_000, "{wrong} of 100000");
    }

    fn empty(connection: &Connection) -> KeyIndex {
        connection.execute_batch(include_str!("migrations/0001_tasks.sql")).unwrap();
        KeyIndex::load(connection).unwrap()
    }

    #[test]
    fn restart_reads_few_rows_however_few_keys_they_have() {
        for keyed_every in [7, 1_000, i64::MAX] {
            let connection = Connection::open_in_memory().unwrap();
            let mut keys = empty(&connection);
            let newest = 4 * RUN_ROWS + 17;
            let has_key = |n: i64| n % keyed_every == 0;
            for n in 1..=newest {
                keys.add(has_key(n).then(|| key(n.cast_unsigned())), n);
                if n % 64 == 0 {
                    keys.maintain(&connection).unwrap();
                }
            }
            while keys.flush.is_some() || keys.newest - keys.last_n >= RUN_ROWS + SLACK {
                keys.maintain(&connection).unwrap();
                std::thread::yield_now();
            }
            let again = KeyIndex::load(&connection).unwrap();
            assert!(newest - again.last_n < RUN_ROWS + SLACK, "{keyed_every}: {}", again.last_n);
            for n in (1..=again.last_n).filter(|n| has_key(*n)) {
                assert_eq!(again.find(&connection, &key(n.cast_unsigned())).unwrap(), Some(n));
            }
        }
    }

    #[test]
    fn keys_are_found_in_memtable_flush_and_runs_and_after_a_restart() {
        let connection = Connection::open_in_memory().unwrap();
        let mut keys = empty(&connection);
        let count = RUN_KEYS as u64 * 2 + 100;
        for number in 0..count {
            keys.add(Some(key(number)), i64::try_from(number).unwrap());
            if number % 64 == 0 {
                keys.maintain(&connection).unwrap();
                assert_eq!(
                    keys.find(&connection, &key(number / 2)).unwrap(),
                    Some((number / 2).cast_signed())
                );
            }
        }
        while keys.runs.is_empty() || keys.flush.is_some() {
            keys.maintain(&connection).unwrap();
            std::thread::yield_now();
        }
        let all_there = |keys: &KeyIndex, up_to: u64| {
            (0..up_to)
                .step_by(97)
                .all(|number| keys.find(&connection, &key(number)).unwrap() == Some(number.cast_signed()))
        };
        assert!(all_there(&keys, count));
        assert_eq!(keys.find(&connection, &key(u64::MAX)).unwrap(), None);
        // Without task rows a restart finds only the keys in runs.
        let stored: u64 =
            keys.runs.iter().map(|run| run.first_keys.len() as u64 * ENTRIES_PER_PAGE as u64).sum();
        let again = KeyIndex::load(&connection).unwrap();
        assert_eq!(again.runs.len(), keys.runs.len());
        let known = (0..count)
            .filter(|number| again.find(&connection, &key(*number)).unwrap().is_some())
            .count() as u64;
        assert!(known >= RUN_KEYS as u64 && known <= stored, "{known} of {stored}");
        keys.drop_runs_before(&connection, i64::MAX).unwrap();
        let left: i64 = connection.query_row("SELECT count(*) FROM key_pages", [], |row| row.get(0)).unwrap();
        assert_eq!((left, keys.runs.len()), (0, 0));
    }
}
