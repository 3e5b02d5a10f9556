//! Returns the pages that purged tasks left free to the file system (incremental vacuum), in small slices.
//!
//! Runs only when more than a quarter of the file is free: fewer free pages are soon reused. While there are no
//! calls, slices follow each other; under load there are small ones at intervals, so that a store that is never idle
//! shrinks too. Each slice is a separate transaction of the writer, and its errors stop the writer.

use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode};

/// Fewer free pages than this are not worth a sync.
const MIN_FREE_PAGES: i64 = 256;
/// Time without calls after which large slices are used.
const IDLE_AFTER: Duration = Duration::from_secs(1);
/// A slice while there are no calls.
const IDLE_SLICE: Slice = Slice { pages: 256, time: Duration::from_millis(5) };
/// A slice while the writer has work. Small, so that it delays few calls, and those not noticeably.
const BUSY_SLICE: Slice = Slice { pages: 8, time: Duration::from_millis(1) };
/// Minimum time between two slices under load.
const BUSY_INTERVAL: Duration = Duration::from_millis(100);

/// Limits of one transaction: pages to release and time to spend.
struct Slice {
    pages: usize,
    time: Duration,
}

/// Decides when the next slice runs.
pub(crate) struct FreePages {
    last_run: Instant,
    last_call: Instant,
    /// The last slice released pages, so there may be more.
    more: bool,
}

impl FreePages {
    pub(crate) fn new() -> Self {
        let now = Instant::now();
        Self { last_run: now, last_call: now, more: false }
    }

    /// Records that a call has written something.
    pub(crate) fn record_call(&mut self) {
        self.last_call = Instant::now();
    }

    /// Whether the next slice should follow soon.
    pub(crate) fn has_more(&self) -> bool {
        self.more && self.is_idle()
    }

    /// Runs a slice if one is due; returns how many pages it released.
    pub(crate) fn release(&mut self, connection: &Connection) -> rusqlite::Result<usize> {
        let idle = self.is_idle();
        if !idle && self.last_run.elapsed() < BUSY_INTERVAL {
            return Ok(0);
        }
        self.last_run = Instant::now();
        let released = release(connection, if idle { &IDLE_SLICE } else { &BUSY_SLICE })?;
        self.more = released > 0;
        Ok(released)
    }

    fn is_idle(&self) -> bool {
        self.last_call.elapsed() >= IDLE_AFTER
    }
}

fn release(connection: &Connection, slice: &Slice) -> rusqlite::Result<usize> {
    let pages = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let (free, all) = (pages("freelist_count")?, pages("page_count")?);
    if free * 4 <= all || free <= MIN_FREE_PAGES {
        return Ok(0);
    }
    match connection.prepare_cached("BEGIN IMMEDIATE")?.execute([]) {
        // Another program has the file locked; the next slice tries again.
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => return Ok(0),
        begun => begun?,
    };
    let released = vacuum(connection, slice)?;
    connection.prepare_cached("COMMIT")?.execute([])?;
    Ok(released)
}

/// Each step of this statement releases one page, so its rows have to be read to the end.
fn vacuum(connection: &Connection, slice: &Slice) -> rusqlite::Result<usize> {
    let begun = Instant::now();
    let mut statement = connection.prepare_cached("PRAGMA incremental_vacuum")?;
    let mut steps = statement.query([])?;
    let mut released = 0;
    while released < slice.pages && begun.elapsed() < slice.time && steps.next()?.is_some() {
        released += 1;
    }
    Ok(released)
}
