//! Keys in sorted runs, as in a2ad's store, without recovery after a restart and without deletion.
//!
//! Recent keys are in a map (the memtable). When there are enough, a thread sorts them into pages and builds a Bloom
//! filter; a few pages are stored with each commit. A lookup searches the map, then each run's filter, and reads a
//! page only where a filter may contain the key.

use std::collections::HashMap;
use std::mem;
use std::sync::{Arc, mpsc};
use std::thread;

use rusqlite::{Connection, OptionalExtension as _, params};

use super::{Index, Key};

const RUN_KEYS: usize = 32_768;
const ENTRY_BYTES: usize = 24;
const ENTRIES_PER_PAGE: usize = 160;
const PAGES_PER_COMMIT: usize = 16;
const BLOCK_BYTES: usize = 64;
const KEYS_PER_BLOCK: usize = 32;
const BITS_PER_KEY: u32 = 7;

#[derive(Default)]
pub(super) struct SortedRuns {
    memtable: HashMap<Key, i64>,
    flush: Option<Flush>,
    runs: Vec<SortedRun>,
}

struct Flush {
    keys: Arc<HashMap<Key, i64>>,
    built: mpsc::Receiver<(SortedRun, Vec<Vec<u8>>)>,
    /// The run, its pages, and how many of them are stored.
    storing: Option<(SortedRun, Vec<Vec<u8>>, usize)>,
}

struct SortedRun {
    filter: Vec<[u8; BLOCK_BYTES]>,
    /// The first key of each page.
    first_keys: Vec<Key>,
}

impl Index for SortedRuns {
    fn prepare(&self, connection: &Connection) -> rusqlite::Result<()> {
        connection.execute_batch(
            "CREATE TABLE key_pages (place INTEGER PRIMARY KEY, bytes BLOB NOT NULL) STRICT;
             CREATE TABLE key_runs (id INTEGER PRIMARY KEY, filter BLOB NOT NULL, fences BLOB NOT NULL) STRICT;",
        )
    }

    fn insert(&mut self, connection: &Connection, key: &Key, n: i64) -> rusqlite::Result<bool> {
        let free = self.find(connection, key)?.is_none();
        if free {
            self.memtable.insert(*key, n);
        }
        Ok(free)
    }

    fn find(&self, connection: &Connection, key: &Key) -> rusqlite::Result<Option<i64>> {
        let frozen = self.flush.as_ref().map(|flush| &flush.keys);
        if let Some(n) = self.memtable.get(key).or_else(|| frozen?.get(key)) {
            return Ok(Some(*n));
        }
        for (id, run) in self.runs.iter().enumerate().rev() {
            if run.may_contain(key)
                && let Some(n) = run.find(connection, id, key)?
            {
                return Ok(Some(n));
            }
        }
        Ok(None)
    }

    fn maintain(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        if self.flush.is_none() && self.memtable.len() >= RUN_KEYS {
            let keys = Arc::new(mem::take(&mut self.memtable));
            let (sender, built) = mpsc::channel();
            let sorting = Arc::clone(&keys);
            thread::spawn(move || sender.send(SortedRun::of(&sorting)));
            self.flush = Some(Flush { keys, built, storing: None });
        }
        let Some(flush) = &mut self.flush else { return Ok(()) };
        if flush.storing.is_none() {
            flush.storing = flush.built.try_recv().ok().map(|(run, pages)| (run, pages, 0));
        }
        let Some((run, pages, stored)) = &mut flush.storing else { return Ok(()) };
        let id = self.runs.len();
        let mut insert = connection.prepare_cached("INSERT INTO key_pages (place, bytes) VALUES (?1, ?2)")?;
        for (number, page) in pages.iter().enumerate().skip(*stored).take(PAGES_PER_COMMIT) {
            insert.execute(params![page_key(id, number), page])?;
            *stored += 1;
        }
        if *stored == pages.len() {
            let mut insert =
                connection.prepare_cached("INSERT INTO key_runs (id, filter, fences) VALUES (?1, ?2, ?3)")?;
            insert.execute(params![
                page_key(id, 0),
                run.filter.as_flattened(),
                run.first_keys.as_flattened()
            ])?;
            self.runs.extend(self.flush.take().and_then(|done| done.storing).map(|(run, ..)| run));
        }
        Ok(())
    }
}

impl SortedRun {
    /// A run of these keys, and its pages.
    fn of(keys: &HashMap<Key, i64>) -> (Self, Vec<Vec<u8>>) {
        let mut sorted: Vec<(Key, i64)> = keys.iter().map(|(key, n)| (*key, *n)).collect();
        sorted.sort_unstable();
        let mut run = Self {
            filter: vec![[0; BLOCK_BYTES]; keys.len().div_ceil(KEYS_PER_BLOCK)],
            first_keys: Vec::new(),
        };
        let mut pages = Vec::new();
        for entries in sorted.chunks(ENTRIES_PER_PAGE) {
            run.first_keys.push(entries[0].0);
            let mut page = Vec::with_capacity(entries.len() * ENTRY_BYTES);
            for (key, n) in entries {
                let (block, bits) = run.positions(key);
                bits.for_each(|(byte, bit)| run.filter[block][byte] |= bit);
                page.extend_from_slice(key);
                page.extend_from_slice(&n.to_be_bytes());
            }
            pages.push(page);
        }
        (run, pages)
    }

    fn may_contain(&self, key: &Key) -> bool {
        let (block, mut bits) = self.positions(key);
        bits.all(|(byte, bit)| self.filter[block][byte] & bit != 0)
    }

    /// The block of a key, and its bits in it: the first half of the digest selects the block, the second the bits.
    fn positions(&self, key: &Key) -> (usize, impl Iterator<Item = (usize, u8)> + use<>) {
        let digest = u128::from_be_bytes(*key);
        let (high, low) = ((digest >> 64) as u64, digest as u64);
        let block = (u128::from(high) * self.filter.len() as u128) >> 64;
        let bits = (0..BITS_PER_KEY).map(move |number| {
            let bit = (low >> (9 * number)) & 511;
            ((bit / 8) as usize, 1 << (bit % 8))
        });
        (block as usize, bits)
    }

    fn find(&self, connection: &Connection, id: usize, key: &Key) -> rusqlite::Result<Option<i64>> {
        let Some(page) = self.first_keys.partition_point(|first| first <= key).checked_sub(1) else {
            return Ok(None);
        };
        let mut select = connection.prepare_cached("SELECT bytes FROM key_pages WHERE place = ?1")?;
        let bytes: Option<Vec<u8>> =
            select.query_row(params![page_key(id, page)], |row| row.get(0)).optional()?;
        let bytes = bytes.unwrap_or_default();
        let (entries, _) = bytes.as_chunks::<ENTRY_BYTES>();
        let found = entries.binary_search_by(|entry| entry[..16].cmp(key)).ok();
        Ok(found.map(|at| i64::from_be_bytes(std::array::from_fn(|byte| entries[at][16 + byte]))))
    }
}

fn page_key(run: usize, page: usize) -> i64 {
    ((run as i64 + 1) << 24) + page as i64
}
