//! Gives pages that forgotten tasks have left free back to the file system, a little at a time.
//!
//! Only where a quarter of the file is free: less than that is soon used again. While there are no calls, slice follows
//! slice; beside them there are small ones now and then, so that a store that is never quiet shrinks too. Each
//! slice is a transaction of the writer's own, and its errors are the writer's.

use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode};

/// Fewer free pages than this are not worth a sync.
const FEW: i64 = 256;
/// How long there must have been no call for large slices.
const QUIET_AFTER: Duration = Duration::from_secs(1);
/// A slice while there are no calls.
const QUIET: Slice = Slice { pages: 256, time: Duration::from_millis(5) };
/// A slice beside the writer's work. The calls that meet one must be too few and too little late to be noticed.
const BUSY: Slice = Slice { pages: 8, time: Duration::from_millis(1) };
/// How often there is one.
const PAUSE: Duration = Duration::from_millis(100);

/// How many pages are given back in one transaction, and how long that may take.
struct Slice {
    pages: usize,
    time: Duration,
}

/// When free pages were last looked for, and when there was a call.
pub(super) struct FreePages {
    looked: Instant,
    called: Instant,
    /// The last slice left more to do.
    more: bool,
}

impl FreePages {
    pub(super) fn new() -> Self {
        let now = Instant::now();
        Self { looked: now, called: now, more: false }
    }

    /// Something was written because somebody called.
    pub(super) fn called(&mut self) {
        self.called = Instant::now();
    }

    /// Whether the next slice should follow soon.
    pub(super) fn hurry(&self) -> bool {
        self.more && self.is_quiet()
    }

    /// A slice, if it is time for one; says how many pages were given back.
    pub(super) fn give_back(&mut self, connection: &Connection) -> rusqlite::Result<usize> {
        let quiet = self.is_quiet();
        if !quiet && self.looked.elapsed() < PAUSE {
            return Ok(0);
        }
        self.looked = Instant::now();
        let given = give_back(connection, if quiet { &QUIET } else { &BUSY })?;
        self.more = given > 0;
        Ok(given)
    }

    fn is_quiet(&self) -> bool {
        self.called.elapsed() >= QUIET_AFTER
    }
}

fn give_back(connection: &Connection, slice: &Slice) -> rusqlite::Result<usize> {
    let pages = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let (free, all) = (pages("freelist_count")?, pages("page_count")?);
    if free * 4 <= all || free <= FEW {
        return Ok(0);
    }
    match connection.prepare_cached("BEGIN IMMEDIATE")?.execute([]) {
        // Somebody looks into the file from outside; there is no hurry.
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => return Ok(0),
        begun => begun?,
    };
    let given = vacuum(connection, slice)?;
    connection.prepare_cached("COMMIT")?.execute([])?;
    Ok(given)
}

/// Each step of this statement gives one page back, so it has to be walked to its end.
fn vacuum(connection: &Connection, slice: &Slice) -> rusqlite::Result<usize> {
    let begun = Instant::now();
    let mut statement = connection.prepare_cached("PRAGMA incremental_vacuum")?;
    let mut steps = statement.query([])?;
    let mut given = 0;
    while given < slice.pages && begun.elapsed() < slice.time && steps.next()?.is_some() {
        given += 1;
    }
    Ok(given)
}
