//! Merges sorted runs into one, a page at a time, and drops the keys of deleted tasks.
//!
//! The pages of the new run are stored with the commits in which they are made, but nothing refers to them until the
//! run is complete: a process that ends before leaves pages of an unknown run, which the next one deletes.

use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension as _, params};

use super::run::{ENTRIES_PER_PAGE, Entry, RunBuilder, SortedRun, read_entries, store_page, task_number};

/// Task numbers are checked in blocks of this size: an old task keeps at most the keys of its block.
pub(super) const BLOCK_NUMBERS: i64 = 1_024;
/// Entries read and blocks looked up in one step, at most.
const MAX_ENTRIES: usize = 2 * ENTRIES_PER_PAGE;
const MAX_LOOKUPS: usize = 32;
/// Cached blocks before the cache is cleared.
const MAX_BLOCKS: usize = 65_536;

/// A merge that is under way.
pub(super) struct Merge {
    /// Size class of its inputs.
    pub(super) level: u32,
    inputs: Vec<Input>,
    output: RunBuilder,
    /// The smallest entry that is not in the output yet: a later entry may have the same key.
    pending: Option<Entry>,
    /// Whether a block of task numbers has a task.
    blocks: HashMap<i64, bool>,
    /// All entries are stored, and the pages of filter and first keys up to this one.
    chunks: Option<usize>,
}

struct Input {
    run: i64,
    pages: usize,
    next_page: usize,
    /// The rest of the page read last, in reverse order.
    entries: Vec<Entry>,
}

impl Merge {
    pub(super) fn new<'a>(
        level: u32,
        inputs: impl Iterator<Item = &'a SortedRun>,
        output: RunBuilder,
    ) -> Self {
        let input =
            |run: &SortedRun| Input { run: run.id, pages: run.pages(), next_page: 0, entries: Vec::new() };
        let inputs = inputs.map(input).collect();
        Self { level, inputs, output, pending: None, blocks: HashMap::new(), chunks: None }
    }

    /// The runs that are merged.
    pub(super) fn inputs(&self) -> impl Iterator<Item = i64> {
        self.inputs.iter().map(|input| input.run)
    }

    pub(super) fn filter_bytes(&self) -> usize {
        self.output.run().filter_bytes()
    }

    /// Stores at most one page; returns whether all are stored.
    pub(super) fn step(&mut self, connection: &Connection) -> rusqlite::Result<bool> {
        let run = self.output.run().id;
        if let Some(chunk) = &mut self.chunks {
            let Some((number, bytes)) = self.output.run().chunk(*chunk) else { return Ok(true) };
            store_page(connection, run, number, bytes)?;
            *chunk += 1;
            return Ok(false);
        }
        let more = self.fill_page(connection)?;
        if (!more || self.output.page_is_full())
            && let Some((number, page)) = self.output.take_page()
        {
            store_page(connection, run, number, &page)?;
        }
        if !more {
            self.chunks = Some(0);
        }
        // Without entries there is nothing to store: the filter would be that of an empty run.
        Ok(!more && self.output.run().pages() == 0)
    }

    /// The new run, after the last step; `None` if no key was left.
    pub(super) fn finish(self) -> Option<SortedRun> {
        let run = self.output.finish();
        (run.pages() > 0).then_some(run)
    }

    /// Adds entries to the output until its page is full or the work is enough for one step. Returns whether there
    /// are more entries.
    fn fill_page(&mut self, connection: &Connection) -> rusqlite::Result<bool> {
        let (mut read, mut lookups) = (0, 0);
        while read < MAX_ENTRIES && lookups < MAX_LOOKUPS && !self.output.page_is_full() {
            let next = self.next_entry(connection)?;
            let same_key = |pending: &Entry| next.is_some_and(|next| next[..16] == pending[..16]);
            // Of two uses of one key the later one counts: the task of the first was deleted in between.
            if let Some(pending) = self.pending.filter(|pending| !same_key(pending))
                && self.is_live(connection, task_number(&pending), &mut lookups)?
            {
                self.output.add(&pending);
            }
            self.pending = next;
            if next.is_none() {
                return Ok(false);
            }
            read += 1;
        }
        Ok(true)
    }

    /// Takes the smallest entry of all inputs.
    fn next_entry(&mut self, connection: &Connection) -> rusqlite::Result<Option<Entry>> {
        for input in &mut self.inputs {
            if input.entries.is_empty() && input.next_page < input.pages {
                input.entries = read_entries(connection, input.run, input.next_page)?;
                input.entries.reverse();
                input.next_page += 1;
            }
        }
        let least = self.inputs.iter_mut().filter(|input| !input.entries.is_empty());
        let least = least.min_by(|one, other| one.entries.last().cmp(&other.entries.last()));
        Ok(least.and_then(|input| input.entries.pop()))
    }

    /// Whether any task in the block of this number exists. A number is never used again, so "no" is final.
    fn is_live(&mut self, connection: &Connection, n: i64, lookups: &mut usize) -> rusqlite::Result<bool> {
        let block = n / BLOCK_NUMBERS;
        if let Some(live) = self.blocks.get(&block) {
            return Ok(*live);
        }
        *lookups += 1;
        let first = block * BLOCK_NUMBERS;
        let live = next_task(connection, first)?.is_some_and(|n| n < first + BLOCK_NUMBERS);
        if self.blocks.len() >= MAX_BLOCKS {
            self.blocks.clear();
        }
        self.blocks.insert(block, live);
        Ok(live)
    }
}

/// Number of blocks with tasks among these task numbers; counts no further than `limit`.
pub(super) fn count_live_blocks(
    connection: &Connection,
    (min_n, max_n): (i64, i64),
    limit: usize,
) -> rusqlite::Result<usize> {
    let (mut count, mut from) = (0, min_n);
    while count < limit
        && let Some(n) = next_task(connection, from)?.filter(|n| *n <= max_n)
    {
        count += 1;
        from = (n / BLOCK_NUMBERS + 1) * BLOCK_NUMBERS;
    }
    Ok(count)
}

/// The first task with this number or a larger one.
fn next_task(connection: &Connection, from: i64) -> rusqlite::Result<Option<i64>> {
    connection
        .prepare_cached("SELECT n FROM tasks WHERE n >= ?1 ORDER BY n LIMIT 1")?
        .query_row(params![from], |row| row.get(0))
        .optional()
}
