//! The idempotency keys of first messages: known to the writer, found without a random tree.
//!
//! Young keys are in memory. When there are enough of them they are frozen; a thread sorts them into pages and
//! makes a filter, and the writer stores the pages a few at a time beside its other work. From then on they are
//! an immutable run: its filter and the first key of each page stay in memory, two bytes or so a key, and a
//! lookup reads one page of one run, almost never in vain. After a restart the runs are there, and the young
//! keys are read from the task rows behind the last run: never more than a run's worth of rows, because where few
//! tasks or none have a key, what there is is frozen all the same. Keys are digests, hence evenly spread.

use std::{
    collections::HashMap,
    hash::{BuildHasherDefault, Hasher},
    sync::{Arc, mpsc},
};

use rusqlite::{Connection, OptionalExtension as _, params};

use super::open;

/// A digest of a scope and a name.
pub(super) type Key = [u8; 16];

/// Young keys and their tasks.
type Young = HashMap<Key, i64, BuildHasherDefault<Digested>>;

/// Keys are digests already: their first bytes are as good as any hash of them.
#[derive(Default)]
struct Digested(u64);

impl Hasher for Digested {
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

/// How many keys make a run.
const RUN: usize = 32_768;
/// Behind so many rows there is a run too, however few keys they have.
const ROWS: i64 = 32_768;
/// Where `meta` says up to which row there is no key that is in no run.
const UPTO: &str = "keys_upto";
/// Numbers are taken before they are committed: a row this much older than the newest may still be on its way.
const SLACK: i64 = 4_096;
/// A key and the number of its task.
const ENTRY: usize = 24;
const ENTRIES_A_PAGE: usize = 160;
/// How many pages the writer stores with one commit.
const PAGES_A_COMMIT: usize = 16;
const PAGE_BITS: u32 = 24;

/// All keys of the store.
pub(super) struct Keys {
    young: Young,
    freezing: Option<Freezing>,
    runs: Vec<Run>,
    /// Keys of rows up to this are in runs.
    last_n: i64,
    /// The newest row.
    newest: i64,
}

/// Keys on their way from memory to pages.
struct Freezing {
    keys: Arc<Young>,
    made: mpsc::Receiver<Made>,
    storing: Option<(Made, usize)>,
}

/// A run that has been made and not yet stored.
struct Made {
    run: Run,
    last_n: i64,
    pages: Vec<Vec<u8>>,
}

struct Run {
    id: i64,
    max_n: i64,
    filter: Filter,
    /// The first key of each page.
    fences: Vec<Key>,
}

impl Keys {
    /// Reads the runs, and the young keys from the rows behind them.
    pub(super) fn load(connection: &Connection) -> rusqlite::Result<Self> {
        let newest = connection.query_row("SELECT coalesce(max(n), 0) FROM tasks", [], |row| row.get(0))?;
        let last_n = open::meta(connection, UPTO)?.unwrap_or(0);
        let mut keys = Self { young: Young::default(), freezing: None, runs: Vec::new(), last_n, newest };
        let mut runs =
            connection.prepare("SELECT id, last_n, max_n, filter, fences FROM key_runs ORDER BY id")?;
        let mut rows = runs.query([])?;
        while let Some(row) = rows.next()? {
            keys.last_n = keys.last_n.max(row.get(1)?);
            let fences: Vec<u8> = row.get(4)?;
            keys.runs.push(Run {
                id: row.get(0)?,
                max_n: row.get(2)?,
                filter: Filter(row.get(3)?),
                fences: fences.as_chunks().0.to_vec(),
            });
        }
        // Pages of a run that was not finished when the process ended are of no use.
        let next = keys.runs.last().map_or(1, |run| run.id + 1);
        connection.execute("DELETE FROM key_pages WHERE place >= ?1", params![place(next, 0)])?;
        let mut young = connection.prepare("SELECT key, n FROM tasks WHERE n > ?1 AND key IS NOT NULL")?;
        let mut rows = young.query(params![keys.last_n])?;
        while let Some(row) = rows.next()? {
            keys.young.insert(row.get(0)?, row.get(1)?);
        }
        Ok(keys)
    }

    /// The task that used this key first, as far as is known; its row has the last word.
    pub(super) fn find(&self, connection: &Connection, key: &Key) -> rusqlite::Result<Option<i64>> {
        if let Some(n) = self.young.get(key) {
            return Ok(Some(*n));
        }
        if let Some(n) = self.freezing.as_ref().and_then(|freezing| freezing.keys.get(key)) {
            return Ok(Some(*n));
        }
        for run in self.runs.iter().rev().filter(|run| run.filter.may_hold(key)) {
            if let Some(n) = run.find(connection, key)? {
                return Ok(Some(n));
            }
        }
        Ok(None)
    }

    /// Remembers a new task, and its key if it has one.
    pub(super) fn add(&mut self, key: Option<Key>, n: i64) {
        self.newest = self.newest.max(n);
        if let Some(key) = key {
            self.young.insert(key, n);
        }
    }

    /// Moves the freezing on by a few pages; to be called inside each commit.
    pub(super) fn maintain(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        if self.freezing.is_none() && (self.young.len() >= RUN || self.newest - self.last_n >= ROWS + SLACK) {
            if self.young.is_empty() {
                self.last_n = self.newest - SLACK;
                open::set_meta(connection, UPTO, self.last_n)?;
            } else {
                self.freeze();
            }
        }
        let Some(freezing) = &mut self.freezing else { return Ok(()) };
        if freezing.storing.is_none() {
            freezing.storing = freezing.made.try_recv().ok().map(|made| (made, 0));
        }
        let Some((made, stored)) = &mut freezing.storing else { return Ok(()) };
        let mut insert = connection.prepare_cached("INSERT INTO key_pages (place, bytes) VALUES (?1, ?2)")?;
        for (number, page) in (0..).zip(&made.pages).skip(*stored).take(PAGES_A_COMMIT) {
            insert.execute(params![place(made.run.id, number), page])?;
            *stored += 1;
        }
        if *stored == made.pages.len() {
            connection.execute(
                "INSERT INTO key_runs (id, last_n, max_n, filter, fences) VALUES (?1, ?2, ?3, ?4, ?5)",
                params![
                    made.run.id,
                    made.last_n,
                    made.run.max_n,
                    made.run.filter.0,
                    made.run.fences.as_flattened()
                ],
            )?;
            self.finish();
        }
        Ok(())
    }

    /// Forgets runs all of whose tasks are gone.
    pub(super) fn forget_before(&mut self, connection: &Connection, first_n: i64) -> rusqlite::Result<()> {
        while self.runs.first().is_some_and(|run| run.max_n < first_n) {
            let run = self.runs.remove(0);
            connection.execute("DELETE FROM key_runs WHERE id = ?1", params![run.id])?;
            connection.execute(
                "DELETE FROM key_pages WHERE place BETWEEN ?1 AND ?2",
                params![place(run.id, 0), place(run.id + 1, 0) - 1],
            )?;
        }
        Ok(())
    }

    fn freeze(&mut self) {
        let keys = Arc::new(std::mem::take(&mut self.young));
        let (told, made) = mpsc::channel();
        let id = self.runs.last().map_or(1, |run| run.id + 1);
        let (sorting, last_n) = (Arc::clone(&keys), self.last_n.max(self.newest - SLACK));
        let thread = std::thread::Builder::new().name("a2ad-keys".into());
        // It ends by itself within milliseconds and tells nobody but us; a thread that cannot be had means that
        // the keys stay in memory until the next restart finds them in their rows.
        let _ = thread.spawn(move || told.send(Made::new(id, &sorting, last_n)));
        self.freezing = Some(Freezing { keys, made, storing: None });
    }

    fn finish(&mut self) {
        if let Some(Freezing { storing: Some((made, _)), .. }) = self.freezing.take() {
            self.last_n = made.last_n;
            self.runs.push(made.run);
        }
    }
}

impl Made {
    fn new(id: i64, keys: &Young, last_n: i64) -> Self {
        let mut sorted: Vec<(Key, i64)> = keys.iter().map(|(key, n)| (*key, *n)).collect();
        sorted.sort_unstable();
        let max_n = sorted.iter().map(|(_, n)| *n).max().unwrap_or_default();
        let mut filter = Filter::for_keys(sorted.len());
        let mut fences = Vec::new();
        let mut pages = Vec::new();
        for chunk in sorted.chunks(ENTRIES_A_PAGE) {
            let mut page = Vec::with_capacity(chunk.len() * ENTRY);
            for (key, n) in chunk {
                filter.add(key);
                page.extend_from_slice(key);
                page.extend_from_slice(&n.to_be_bytes());
            }
            fences.push(chunk[0].0);
            pages.push(page);
        }
        Self { run: Run { id, max_n, filter, fences }, last_n, pages }
    }
}

impl Run {
    fn find(&self, connection: &Connection, key: &Key) -> rusqlite::Result<Option<i64>> {
        let Some(page) = self.fences.partition_point(|fence| fence <= key).checked_sub(1) else {
            return Ok(None);
        };
        let page = i64::try_from(page).unwrap_or_default();
        let bytes: Option<Vec<u8>> = connection
            .prepare_cached("SELECT bytes FROM key_pages WHERE place = ?1")?
            .query_row(params![place(self.id, page)], |row| row.get(0))
            .optional()?;
        let bytes = bytes.unwrap_or_default();
        let (entries, _) = bytes.as_chunks::<ENTRY>();
        let found = entries.binary_search_by(|entry| entry[..16].cmp(key)).ok();
        Ok(found.map(|at| i64::from_be_bytes(std::array::from_fn(|byte| entries[at][16 + byte]))))
    }
}

fn place(run: i64, page: i64) -> i64 {
    (run << PAGE_BITS) + page
}

/// A Bloom filter of 64-byte blocks: one look at memory for each key, about one false yes in a thousand.
struct Filter(Vec<u8>);

const BLOCK: usize = 64;
const KEYS_A_BLOCK: usize = 32;
/// How many bits a key sets in its block; nine bits of the digest choose each.
const BITS: u32 = 7;

impl Filter {
    fn for_keys(count: usize) -> Self {
        Self(vec![0; BLOCK * count.div_ceil(KEYS_A_BLOCK).max(1)])
    }

    fn add(&mut self, key: &Key) {
        let (block, bits) = self.places(key);
        for (byte, bit) in bits {
            self.0[block + byte] |= bit;
        }
    }

    fn may_hold(&self, key: &Key) -> bool {
        let (block, mut bits) = self.places(key);
        bits.all(|(byte, bit)| self.0[block + byte] & bit != 0)
    }

    /// Where a key's block begins, and its bits in there.
    fn places(&self, key: &Key) -> (usize, impl Iterator<Item = (usize, u8)> + use<>) {
        let half = |from: usize| u64::from_be_bytes(std::array::from_fn(|at| key[from + at]));
        let blocks = (self.0.len() / BLOCK) as u128;
        let block = usize::try_from((u128::from(half(0)) * blocks) >> 64).unwrap_or_default();
        let choice = half(8);
        let bits = (0..BITS).map(move |number| {
            let bit = choice >> (9 * number) & 511;
            (usize::try_from(bit / 8).unwrap_or_default(), 1 << (bit % 8))
        });
        (block * BLOCK, bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u64) -> Key {
        // A cheap mixer stands in for the digest.
        let mix = |number: u64| (number ^ number >> 31).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23);
        let (one, two) = (mix(mix(number)), mix(mix(number ^ 0xabcd_ef01)));
        let mut key = [0; 16];
        key[..8].copy_from_slice(&one.to_be_bytes());
        key[8..].copy_from_slice(&two.to_be_bytes());
        key
    }

    #[test]
    fn a_filter_never_denies_what_it_holds_and_rarely_claims_more() {
        let mut filter = Filter::for_keys(RUN);
        (0..RUN as u64).for_each(|number| filter.add(&key(number)));
        assert!((0..RUN as u64).all(|number| filter.may_hold(&key(number))));
        let wrong = (0..100_000).filter(|number| filter.may_hold(&key(1_000_000 + number))).count();
        assert!(wrong < 1_000, "{wrong} of 100000");
    }

    fn empty(connection: &Connection) -> Keys {
        connection.execute_batch(include_str!("migrations/0001_tasks.sql")).unwrap();
        Keys::load(connection).unwrap()
    }

    #[test]
    fn a_start_reads_few_rows_however_few_keys_they_have() {
        for keyed_every in [7, 1_000, i64::MAX] {
            let connection = Connection::open_in_memory().unwrap();
            let mut keys = empty(&connection);
            let newest = 4 * ROWS + 17;
            let has_key = |n: i64| n % keyed_every == 0;
            for n in 1..=newest {
                keys.add(has_key(n).then(|| key(n.cast_unsigned())), n);
                if n % 64 == 0 {
                    keys.maintain(&connection).unwrap();
                }
            }
            while keys.freezing.is_some() || keys.newest - keys.last_n >= ROWS + SLACK {
                keys.maintain(&connection).unwrap();
                std::thread::yield_now();
            }
            let again = Keys::load(&connection).unwrap();
            assert!(newest - again.last_n < ROWS + SLACK, "{keyed_every}: {}", again.last_n);
            for n in (1..=again.last_n).filter(|n| has_key(*n)) {
                assert_eq!(again.find(&connection, &key(n.cast_unsigned())).unwrap(), Some(n));
            }
        }
    }

    #[test]
    fn keys_are_found_young_frozen_and_stored_and_after_a_restart() {
        let connection = Connection::open_in_memory().unwrap();
        let mut keys = empty(&connection);
        let count = RUN as u64 * 2 + 100;
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
        while keys.runs.is_empty() || keys.freezing.is_some() {
            keys.maintain(&connection).unwrap();
            std::thread::yield_now();
        }
        let all_there = |keys: &Keys, upto: u64| {
            (0..upto)
                .step_by(97)
                .all(|number| keys.find(&connection, &key(number)).unwrap() == Some(number.cast_signed()))
        };
        assert!(all_there(&keys, count));
        assert_eq!(keys.find(&connection, &key(u64::MAX)).unwrap(), None);
        // Without task rows a restart knows the runs only.
        let stored: u64 = keys.runs.iter().map(|run| run.fences.len() as u64 * ENTRIES_A_PAGE as u64).sum();
        let again = Keys::load(&connection).unwrap();
        assert_eq!(again.runs.len(), keys.runs.len());
        let known = (0..count)
            .filter(|number| again.find(&connection, &key(*number)).unwrap().is_some())
            .count() as u64;
        assert!(known >= RUN as u64 && known <= stored, "{known} of {stored}");
        keys.forget_before(&connection, i64::MAX).unwrap();
        let left: i64 = connection.query_row("SELECT count(*) FROM key_pages", [], |row| row.get(0)).unwrap();
        assert_eq!((left, keys.runs.len()), (0, 0));
    }
}
