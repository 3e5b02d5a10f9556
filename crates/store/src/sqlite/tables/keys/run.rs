//! Sorted runs: immutable pages of (key, task number), with a Bloom filter and the first key of each page in memory.

use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::Key;

/// Bytes of a page entry: key and task number.
const ENTRY_BYTES: usize = 24;
pub(super) const ENTRIES_PER_PAGE: usize = 160;
/// The number of a page within its run. The pages above these numbers hold the filter and the first keys.
const PAGE_BITS: u32 = 24;
const FILTER_PAGES: i64 = 1 << 22;
const FIRST_KEY_PAGES: i64 = 2 << 22;

/// A key and the number of the task that used it, in the byte order of the pages: sorted by key, then by number.
pub(super) type Entry = [u8; ENTRY_BYTES];

/// An immutable run. Only its filter and the first key of each page are in memory.
pub(super) struct SortedRun {
    pub(super) id: i64,
    /// No task of this run has a number outside of this range.
    pub(super) min_n: i64,
    pub(super) max_n: i64,
    /// Whether a merge reads this run.
    pub(super) merging: bool,
    filter: BloomFilter,
    first_keys: Vec<Key>,
}

impl SortedRun {
    /// Reads a row of `key_runs`: id, smallest and largest task number, filter, first keys. Runs of the first schema
    /// have filter and first keys in the row, later ones in pages.
    pub(super) fn load(connection: &Connection, row: &Row<'_>, with_filter: bool) -> rusqlite::Result<Self> {
        let id = row.get(0)?;
        let (mut filter, mut first_keys): (Vec<u8>, Vec<u8>) = (row.get(3)?, row.get(4)?);
        if first_keys.is_empty() {
            first_keys = read_chunks(connection, id, FIRST_KEY_PAGES)?;
            filter = if with_filter { read_chunks(connection, id, FILTER_PAGES)? } else { Vec::new() };
        }
        Ok(Self {
            id,
            min_n: row.get(1)?,
            max_n: row.get(2)?,
            merging: false,
            filter: BloomFilter(filter),
            first_keys: first_keys.as_chunks().0.to_vec(),
        })
    }

    /// Number of pages with entries.
    pub(super) fn pages(&self) -> usize {
        self.first_keys.len()
    }

    /// Whether a page has its first key and its entries are in order.
    pub(super) fn has_intact_page(&self, connection: &Connection, page: usize) -> rusqlite::Result<bool> {
        let entries = read_entries(connection, self.id, page)?;
        let first = entries.first().map(|entry| &entry[..16]);
        Ok(first == self.first_keys.get(page).map(|key| &key[..]) && entries.is_sorted())
    }

    /// Upper bound of the number of keys.
    pub(super) fn max_keys(&self) -> usize {
        self.pages() * ENTRIES_PER_PAGE
    }

    pub(super) fn filter_bytes(&self) -> usize {
        self.filter.0.len()
    }

    /// The number of the task that used this key.
    pub(super) fn find(&self, connection: &Connection, key: &Key) -> rusqlite::Result<Option<i64>> {
        if !self.filter.may_contain(key) {
            return Ok(None);
        }
        let Some(page) = self.first_keys.partition_point(|first| first <= key).checked_sub(1) else {
            return Ok(None);
        };
        let entries = read_entries(connection, self.id, page)?;
        let found = entries.binary_search_by(|entry| entry[..16].cmp(key)).ok();
        Ok(found.map(|at| task_number(&entries[at])))
    }

    /// The pages that hold filter and first keys, each with its number.
    pub(super) fn chunk(&self, index: usize) -> Option<(i64, &[u8])> {
        let filter_chunks = self.filter.0.len().div_ceil(CHUNK_BYTES);
        let (first, bytes, index) = match index.checked_sub(filter_chunks) {
            None => (FILTER_PAGES, self.filter.0.as_slice(), index),
            Some(index) => (FIRST_KEY_PAGES, self.first_keys.as_flattened(), index),
        };
        let chunk = bytes.chunks(CHUNK_BYTES).nth(index)?;
        Some((first + i64::try_from(index).unwrap_or_default(), chunk))
    }

    /// Makes the run visible; its pages must all be stored.
    pub(super) fn insert(&self, connection: &Connection, last_n: i64) -> rusqlite::Result<()> {
        connection
            .prepare_cached(
                "INSERT INTO key_runs (id, last_n, min_n, max_n, filter, fences)
                 VALUES (?1, ?2, ?3, ?4, x'', x'')",
            )?
            .execute(params![self.id, last_n, self.min_n, self.max_n])
            .map(drop)
    }
}

const CHUNK_BYTES: usize = ENTRIES_PER_PAGE * ENTRY_BYTES;

fn read_chunks(connection: &Connection, run: i64, first: i64) -> rusqlite::Result<Vec<u8>> {
    let mut statement = connection
        .prepare_cached("SELECT bytes FROM key_pages WHERE place >= ?1 AND place < ?2 ORDER BY place")?;
    let range = params![page_key(run, first), page_key(run, first + FILTER_PAGES)];
    let mut bytes = Vec::new();
    for chunk in statement.query_map(range, |row| row.get::<_, Vec<u8>>(0))? {
        bytes.extend_from_slice(&chunk?);
    }
    Ok(bytes)
}

/// The entries of a page; none if the page does not exist.
pub(super) fn read_entries(connection: &Connection, run: i64, page: usize) -> rusqlite::Result<Vec<Entry>> {
    let page = i64::try_from(page).unwrap_or_default();
    let bytes: Option<Vec<u8>> = connection
        .prepare_cached("SELECT bytes FROM key_pages WHERE place = ?1")?
        .query_row(params![page_key(run, page)], |row| row.get(0))
        .optional()?;
    Ok(bytes.unwrap_or_default().as_chunks().0.to_vec())
}

pub(super) fn store_page(connection: &Connection, run: i64, page: i64, bytes: &[u8]) -> rusqlite::Result<()> {
    connection
        .prepare_cached("INSERT INTO key_pages (place, bytes) VALUES (?1, ?2)")?
        .execute(params![page_key(run, page), bytes])
        .map(drop)
}

/// The primary key of a page.
pub(super) fn page_key(run: i64, page: i64) -> i64 {
    (run << PAGE_BITS) + page
}

/// The run that a page belongs to.
pub(super) fn run_of(page_key: i64) -> i64 {
    page_key >> PAGE_BITS
}

pub(super) fn entry(key: &Key, n: i64) -> Entry {
    let mut entry = [0; ENTRY_BYTES];
    entry[..16].copy_from_slice(key);
    entry[16..].copy_from_slice(&n.to_be_bytes());
    entry
}

pub(super) fn task_number(entry: &Entry) -> i64 {
    i64::from_be_bytes(std::array::from_fn(|byte| entry[16 + byte]))
}

/// Makes a run of entries that are added in order.
pub(super) struct RunBuilder {
    run: SortedRun,
    page: Vec<u8>,
}

impl RunBuilder {
    /// For at most `max_keys` entries. Without a filter every lookup reads a page.
    pub(super) fn new(id: i64, max_keys: usize, with_filter: bool) -> Self {
        let filter = if with_filter { BloomFilter::for_keys(max_keys) } else { BloomFilter(Vec::new()) };
        let run = SortedRun {
            id,
            min_n: i64::MAX,
            max_n: i64::MIN,
            merging: false,
            filter,
            first_keys: Vec::new(),
        };
        Self { run, page: Vec::with_capacity(ENTRIES_PER_PAGE * ENTRY_BYTES) }
    }

    /// The run as far as it is made.
    pub(super) fn run(&self) -> &SortedRun {
        &self.run
    }

    pub(super) fn add(&mut self, entry: &Entry) {
        let (key, n) = (entry.first_chunk().expect("an entry begins with its key"), task_number(entry));
        if self.page.is_empty() {
            self.run.first_keys.push(*key);
        }
        self.run.filter.add(key);
        self.run.min_n = self.run.min_n.min(n);
        self.run.max_n = self.run.max_n.max(n);
        self.page.extend_from_slice(entry);
    }

    pub(super) fn page_is_full(&self) -> bool {
        self.page.len() == ENTRIES_PER_PAGE * ENTRY_BYTES
    }

    /// Takes the page that is being filled, with its number; `None` if it is empty.
    pub(super) fn take_page(&mut self) -> Option<(i64, Vec<u8>)> {
        let number = i64::try_from(self.run.pages()).unwrap_or_default() - 1;
        let next = Vec::with_capacity(ENTRIES_PER_PAGE * ENTRY_BYTES);
        (!self.page.is_empty()).then(|| (number, std::mem::replace(&mut self.page, next)))
    }

    /// The run of the entries added; all its pages have been taken.
    pub(super) fn finish(self) -> SortedRun {
        self.run
    }
}

/// A Bloom filter of 64-byte blocks: one cache line per lookup, a false-positive rate of about one in a thousand. An
/// empty one excludes nothing.
struct BloomFilter(Vec<u8>);

const BLOCK_BYTES: usize = 64;
const KEYS_PER_BLOCK: usize = 32;
/// Bits that a key sets in its block; nine bits of the digest choose each.
const BITS_PER_KEY: u32 = 7;

/// Bytes of the filter of a run with this many keys.
pub(super) fn filter_bytes(keys: usize) -> usize {
    BLOCK_BYTES * keys.div_ceil(KEYS_PER_BLOCK).max(1)
}

impl BloomFilter {
    fn for_keys(count: usize) -> Self {
        Self(vec![0; filter_bytes(count)])
    }

    fn add(&mut self, key: &Key) {
        if self.0.is_empty() {
            return;
        }
        let (block, bits) = self.positions(key);
        for (byte, bit) in bits {
            self.0[block + byte] |= bit;
        }
    }

    fn may_contain(&self, key: &Key) -> bool {
        if self.0.is_empty() {
            return true;
        }
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
    use super::super::tests::key;
    use super::*;

    #[test]
    fn bloom_filter_has_no_false_negatives_and_few_false_positives() {
        const KEYS: u64 = 32_768;
        let mut filter = BloomFilter::for_keys(KEYS as usize);
        (0..KEYS).for_each(|number| filter.add(&key(number)));
        assert!((0..KEYS).all(|number| filter.may_contain(&key(number))));
        let wrong = (0..100_000).filter(|number| filter.may_contain(&key(1_000_000 + number))).count();
        assert!(wrong < 1_000, "{wrong} of 100000");
    }
}
