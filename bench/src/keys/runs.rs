//! Keys in sorted runs, as the program's store keeps them, without its restarts and its forgetting.
//!
//! Young keys are in a map. When there are enough, a thread sorts them into pages and makes a filter; the pages
//! are stored a few with each commit. A lookup asks the map, then each run's filter, and reads a page only
//! where a filter says that it may be worth it.

use std::collections::HashMap;
use std::mem;
use std::sync::{Arc, mpsc};
use std::thread;

use rusqlite::{Connection, OptionalExtension as _, params};

use super::{Index, Key};

const RUN: usize = 32_768;
const ENTRY: usize = 24;
const ENTRIES_A_PAGE: usize = 160;
const PAGES_A_COMMIT: usize = 16;
const BLOCK: usize = 64;
const KEYS_A_BLOCK: usize = 32;
const BITS_A_KEY: u32 = 7;

#[derive(Default)]
pub(super) struct Runs {
    young: HashMap<Key, i64>,
    freezing: Option<Freezing>,
    runs: Vec<Run>,
}

struct Freezing {
    keys: Arc<HashMap<Key, i64>>,
    made: mpsc::Receiver<(Run, Vec<Vec<u8>>)>,
    /// The run, its pages, and how many of them are stored.
    storing: Option<(Run, Vec<Vec<u8>>, usize)>,
}

struct Run {
    filter: Vec<[u8; BLOCK]>,
    /// The first key of each page.
    fences: Vec<Key>,
}

impl Index for Runs {
    fn prepare(&self, connection: &Connection) -> rusqlite::Result<()> {
        connection.execute_batch(
            "CREATE TABLE key_pages (place INTEGER PRIMARY KEY, bytes BLOB NOT NULL) STRICT;
             CREATE TABLE key_runs (id INTEGER PRIMARY KEY, filter BLOB NOT NULL, fences BLOB NOT NULL) STRICT;",
        )
    }

    fn claim(&mut self, connection: &Connection, key: &Key, n: i64) -> rusqlite::Result<bool> {
        let free = self.find(connection, key)?.is_none();
        if free {
            self.young.insert(*key, n);
        }
        Ok(free)
    }

    fn find(&self, connection: &Connection, key: &Key) -> rusqlite::Result<Option<i64>> {
        let frozen = self.freezing.as_ref().map(|freezing| &freezing.keys);
        if let Some(n) = self.young.get(key).or_else(|| frozen?.get(key)) {
            return Ok(Some(*n));
        }
        for (id, run) in self.runs.iter().enumerate().rev() {
            if run.may_hold(key)
                && let Some(n) = run.find(connection, id, key)?
            {
                return Ok(Some(n));
            }
        }
        Ok(None)
    }

    fn maintain(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        if self.freezing.is_none() && self.young.len() >= RUN {
            let keys = Arc::new(mem::take(&mut self.young));
            let (told, made) = mpsc::channel();
            let sorting = Arc::clone(&keys);
            thread::spawn(move || told.send(Run::of(&sorting)));
            self.freezing = Some(Freezing { keys, made, storing: None });
        }
        let Some(freezing) = &mut self.freezing else { return Ok(()) };
        if freezing.storing.is_none() {
            freezing.storing = freezing.made.try_recv().ok().map(|(run, pages)| (run, pages, 0));
        }
        let Some((run, pages, stored)) = &mut freezing.storing else { return Ok(()) };
        let id = self.runs.len();
        let mut insert = connection.prepare_cached("INSERT INTO key_pages (place, bytes) VALUES (?1, ?2)")?;
        for (number, page) in pages.iter().enumerate().skip(*stored).take(PAGES_A_COMMIT) {
            insert.execute(params![place(id, number), page])?;
            *stored += 1;
        }
        if *stored == pages.len() {
            let mut insert =
                connection.prepare_cached("INSERT INTO key_runs (id, filter, fences) VALUES (?1, ?2, ?3)")?;
            insert.execute(params![place(id, 0), run.filter.as_flattened(), run.fences.as_flattened()])?;
            self.runs.extend(self.freezing.take().and_then(|done| done.storing).map(|(run, ..)| run));
        }
        Ok(())
    }
}

impl Run {
    /// A run of these keys, and its pages.
    fn of(keys: &HashMap<Key, i64>) -> (Self, Vec<Vec<u8>>) {
        let mut sorted: Vec<(Key, i64)> = keys.iter().map(|(key, n)| (*key, *n)).collect();
        sorted.sort_unstable();
        let mut run =
            Self { filter: vec![[0; BLOCK]; keys.len().div_ceil(KEYS_A_BLOCK)], fences: Vec::new() };
        let mut pages = Vec::new();
        for entries in sorted.chunks(ENTRIES_A_PAGE) {
            run.fences.push(entries[0].0);
            let mut page = Vec::with_capacity(entries.len() * ENTRY);
            for (key, n) in entries {
                let (block, bits) = run.marks(key);
                bits.for_each(|(byte, bit)| run.filter[block][byte] |= bit);
                page.extend_from_slice(key);
                page.extend_from_slice(&n.to_be_bytes());
            }
            pages.push(page);
        }
        (run, pages)
    }

    fn may_hold(&self, key: &Key) -> bool {
        let (block, mut bits) = self.marks(key);
        bits.all(|(byte, bit)| self.filter[block][byte] & bit != 0)
    }

    /// The block of a key, and its bits there: the first half of the digest chooses the one, the second the others.
    fn marks(&self, key: &Key) -> (usize, impl Iterator<Item = (usize, u8)> + use<>) {
        let digest = u128::from_be_bytes(*key);
        let (high, low) = ((digest >> 64) as u64, digest as u64);
        let block = (u128::from(high) * self.filter.len() as u128) >> 64;
        let bits = (0..BITS_A_KEY).map(move |number| {
            let bit = (low >> (9 * number)) & 511;
            ((bit / 8) as usize, 1 << (bit % 8))
        });
        (block as usize, bits)
    }

    fn find(&self, connection: &Connection, id: usize, key: &Key) -> rusqlite::Result<Option<i64>> {
        let Some(page) = self.fences.partition_point(|fence| fence <= key).checked_sub(1) else {
            return Ok(None);
        };
        let mut select = connection.prepare_cached("SELECT bytes FROM key_pages WHERE place = ?1")?;
        let bytes: Option<Vec<u8>> =
            select.query_row(params![place(id, page)], |row| row.get(0)).optional()?;
        let bytes = bytes.unwrap_or_default();
        let (entries, _) = bytes.as_chunks::<ENTRY>();
        let found = entries.binary_search_by(|entry| entry[..16].cmp(key)).ok();
        Ok(found.map(|at| i64::from_be_bytes(std::array::from_fn(|byte| entries[at][16 + byte]))))
    }
}

fn place(run: usize, page: usize) -> i64 {
    ((run as i64 + 1) << 24) + page as i64
}
