//! The cost of storing idempotency keys: several index designs, each beside the same task rows.
//!
//! A row is a small task found by number and a segment of its log, committed in batches with the settings of a2ad's
//! store (WAL, `synchronous=FULL`); only the keys are stored differently. Each design has its own database, and the
//! designs alternate in small pieces, so that other load on the machine affects all of them. Checkpoints run inside
//! the commits that make them due, so that each design pays for its own.

mod hours;
mod runs;
mod tree;

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use rusqlite::{Connection, params};

use self::hours::Hours;
use self::runs::SortedRuns;
use self::tree::Tree;

/// A digest of the message id.
type Key = [u8; 16];

/// Rows per commit.
const BATCH: usize = 64;
const TASK_BYTES: usize = 120;
const SEGMENT_BYTES: usize = 1_200;
/// Keys that are looked up at the end.
const PROBES: u64 = 10_000;

/// A way to store keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Design {
    /// No keys, as the baseline.
    None,
    /// A unique index on the task rows.
    Tree,
    /// One table per hour; a lookup searches all of them.
    Hours {
        /// Rows per hour.
        rows: u64,
    },
    /// Sorted runs with Bloom filters, as in a2ad's store.
    Runs,
}

impl Design {
    /// Name in the printed table.
    pub fn name(self) -> String {
        match self {
            Self::None => "no keys".to_owned(),
            Self::Tree => "one unique B-tree".to_owned(),
            Self::Hours { rows } => format!("hour tables of {rows} rows"),
            Self::Runs => "sorted runs with filters".to_owned(),
        }
    }

    fn index(self) -> Box<dyn Index> {
        match self {
            Self::None => Box::new(NoIndex),
            Self::Tree => Box::new(Tree),
            Self::Hours { rows } => Box::new(Hours::new(rows)),
            Self::Runs => Box::new(SortedRuns::default()),
        }
    }
}

/// The key index of one database.
trait Index {
    /// Creates its tables.
    fn prepare(&self, connection: &Connection) -> rusqlite::Result<()>;

    /// Inserts the key of row `n`, inside the row's transaction; `false` if another row has it.
    fn insert(&mut self, connection: &Connection, key: &Key, n: i64) -> rusqlite::Result<bool>;

    /// The row that has the key.
    fn find(&self, connection: &Connection, key: &Key) -> rusqlite::Result<Option<i64>>;

    /// Called once in each transaction.
    fn maintain(&mut self, _connection: &Connection) -> rusqlite::Result<()> {
        Ok(())
    }
}

/// Stores no keys.
struct NoIndex;

impl Index for NoIndex {
    fn prepare(&self, _connection: &Connection) -> rusqlite::Result<()> {
        Ok(())
    }

    fn insert(&mut self, _connection: &Connection, _key: &Key, _n: i64) -> rusqlite::Result<bool> {
        Ok(true)
    }

    fn find(&self, _connection: &Connection, _key: &Key) -> rusqlite::Result<Option<i64>> {
        Ok(None)
    }
}

/// A design with its database and its measurements.
pub struct Trial {
    design: Design,
    connection: Connection,
    index: Box<dyn Index>,
    rows: u64,
    /// How long each piece took.
    pieces: Vec<Duration>,
}

impl Trial {
    /// Creates a new database in `folder`.
    pub fn open(design: Design, folder: &Path, name: &str) -> Result<Self> {
        let path = folder.join(format!("{name}.db"));
        ensure!(!path.exists(), "{} already exists", path.display());
        fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
        let connection = Connection::open(&path)?;
        for (pragma, value) in
            [("auto_vacuum", "INCREMENTAL"), ("journal_mode", "WAL"), ("synchronous", "FULL")]
        {
            connection.pragma_update(None, pragma, value)?;
        }
        // A checkpoint every 8 MiB.
        connection.pragma_update(None, "wal_autocheckpoint", 2_048)?;
        connection.pragma_update(None, "cache_size", -8_192)?;
        connection.set_prepared_statement_cache_capacity(64);
        connection.execute_batch(
            "CREATE TABLE tasks (n INTEGER PRIMARY KEY, key BLOB NOT NULL, body BLOB NOT NULL) STRICT;
             CREATE TABLE segments (place INTEGER PRIMARY KEY, bytes BLOB NOT NULL) STRICT;",
        )?;
        let index = design.index();
        index.prepare(&connection)?;
        Ok(Self { design, connection, index, rows: 0, pieces: Vec::new() })
    }

    /// The design under test.
    pub fn design(&self) -> Design {
        self.design
    }

    /// Adds this many rows and records how long that took.
    pub fn add_piece(&mut self, rows: u64) -> Result<()> {
        let began = Instant::now();
        let end = self.rows + rows;
        while self.rows < end {
            self.connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
            for _ in 0..BATCH {
                self.add()?;
            }
            self.index.maintain(&self.connection)?;
            self.connection.prepare_cached("COMMIT")?.execute([])?;
        }
        self.pieces.push(began.elapsed());
        Ok(())
    }

    fn add(&mut self) -> Result<()> {
        self.rows += 1;
        let (n, key) = (self.rows.cast_signed(), key(self.rows));
        ensure!(
            self.index.insert(&self.connection, &key, n)?,
            "the key of row {n} was found for an earlier row"
        );
        let mut task =
            self.connection.prepare_cached("INSERT INTO tasks (n, key, body) VALUES (?1, ?2, ?3)")?;
        task.execute(params![n, key, [b't'; TASK_BYTES]])?;
        let mut segment =
            self.connection.prepare_cached("INSERT INTO segments (place, bytes) VALUES (?1, ?2)")?;
        segment.execute(params![n << 24, [b's'; SEGMENT_BYTES]])?;
        Ok(())
    }

    /// Rows per second in the first and in the last `pieces` pieces, each of `rows` rows.
    pub fn rates(&self, pieces: usize, rows: u64) -> [f64; 2] {
        let rate = |times: &[Duration]| {
            rows as f64 * times.len() as f64 / times.iter().sum::<Duration>().as_secs_f64()
        };
        let pieces = pieces.min(self.pieces.len());
        [rate(&self.pieces[..pieces]), rate(&self.pieces[self.pieces.len() - pieces..])]
    }

    /// Looks up existing keys and as many unknown ones; returns the average time for an existing one.
    pub fn probe(&self) -> Result<Option<Duration>> {
        if self.design == Design::None {
            return Ok(None);
        }
        let mut took = Duration::ZERO;
        for _ in 0..PROBES {
            let row = fastrand::u64(1..=self.rows);
            let (there, unknown) = (key(row), key(row + (1 << 40)));
            let began = Instant::now();
            let found = self.index.find(&self.connection, &there)?;
            took += began.elapsed();
            ensure!(found == Some(row.cast_signed()), "the key of row {row} was found for {found:?}");
            ensure!(self.index.find(&self.connection, &unknown)?.is_none(), "an unknown key was found");
        }
        Ok(Some(took / u32::try_from(PROBES)?))
    }
}

/// The key of a row: as evenly distributed as a digest, and reproducible.
fn key(row: u64) -> Key {
    let mut rng = fastrand::Rng::with_seed(row);
    rng.u128(..).to_be_bytes()
}
