//! What it costs to know every idempotency key: ways to keep them, each beside the same task rows.
//!
//! A row is a small task found by number and a segment of its log, committed in batches with the settings of
//! the program's store (WAL, `synchronous=FULL`); only the keys are kept differently. Each way has a database
//! of its own, and the ways take turns in small pieces, so that whatever the machine does meanwhile meets all
//! of them. Checkpoints happen within the commits that make them due and so are paid by whoever causes them.

mod hours;
mod runs;
mod tree;

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use rusqlite::{Connection, params};

use self::hours::Hours;
use self::runs::Runs;
use self::tree::Tree;

/// A digest.
type Key = [u8; 16];

/// How many rows one commit takes.
const BATCH: usize = 64;
const TASK_BYTES: usize = 120;
const SEGMENT_BYTES: usize = 1_200;
/// How many keys are looked for at the end.
const PROBES: u64 = 10_000;

/// A way to keep keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Design {
    /// Not at all.
    None,
    /// A unique index on the task rows.
    Tree,
    /// A table an hour, looked up in all of them.
    Hours {
        /// How many rows an hour has.
        rows: u64,
    },
    /// Sorted runs with filters, as the program does it.
    Runs,
}

impl Design {
    /// What it is called.
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
            Self::None => Box::new(Nothing),
            Self::Tree => Box::new(Tree),
            Self::Hours { rows } => Box::new(Hours::new(rows)),
            Self::Runs => Box::new(Runs::default()),
        }
    }
}

/// The keys of one database.
trait Index {
    /// Makes its tables.
    fn prepare(&self, connection: &Connection) -> rusqlite::Result<()>;

    /// Takes a key for row `n`, inside the row's transaction; `false` if another row has it.
    fn claim(&mut self, connection: &Connection, key: &Key, n: i64) -> rusqlite::Result<bool>;

    /// The row that has the key.
    fn find(&self, connection: &Connection, key: &Key) -> rusqlite::Result<Option<i64>>;

    /// What is to be done once in each transaction.
    fn maintain(&mut self, _connection: &Connection) -> rusqlite::Result<()> {
        Ok(())
    }
}

/// Keeps no keys.
struct Nothing;

impl Index for Nothing {
    fn prepare(&self, _connection: &Connection) -> rusqlite::Result<()> {
        Ok(())
    }

    fn claim(&mut self, _connection: &Connection, _key: &Key, _n: i64) -> rusqlite::Result<bool> {
        Ok(true)
    }

    fn find(&self, _connection: &Connection, _key: &Key) -> rusqlite::Result<Option<i64>> {
        Ok(None)
    }
}

/// A design at work.
pub struct Trial {
    design: Design,
    connection: Connection,
    index: Box<dyn Index>,
    rows: u64,
    /// How long each piece took.
    pieces: Vec<Duration>,
}

impl Trial {
    /// Opens a new database in `folder`.
    pub fn open(design: Design, folder: &Path, name: &str) -> Result<Self> {
        let path = folder.join(format!("{name}.db"));
        ensure!(!path.exists(), "{} is there already", path.display());
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let connection = Connection::open(&path)?;
        for (pragma, value) in
            [("auto_vacuum", "INCREMENTAL"), ("journal_mode", "WAL"), ("synchronous", "FULL")]
        {
            connection.pragma_update(None, pragma, value)?;
        }
        // A checkpoint for every 8 MiB.
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

    /// Which design it is.
    pub fn design(&self) -> Design {
        self.design
    }

    /// Adds so many rows and notes how long that took.
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
        ensure!(self.index.claim(&self.connection, &key, n)?, "row {n} is taken for an earlier one");
        let mut task =
            self.connection.prepare_cached("INSERT INTO tasks (n, key, body) VALUES (?1, ?2, ?3)")?;
        task.execute(params![n, key, [b't'; TASK_BYTES]])?;
        let mut segment =
            self.connection.prepare_cached("INSERT INTO segments (place, bytes) VALUES (?1, ?2)")?;
        segment.execute(params![n << 24, [b's'; SEGMENT_BYTES]])?;
        Ok(())
    }

    /// Rows a second in the first and in the last `pieces` of them, each of so many rows.
    pub fn rates(&self, pieces: usize, rows: u64) -> [f64; 2] {
        let rate = |times: &[Duration]| {
            rows as f64 * times.len() as f64 / times.iter().sum::<Duration>().as_secs_f64()
        };
        let pieces = pieces.min(self.pieces.len());
        [rate(&self.pieces[..pieces]), rate(&self.pieces[self.pieces.len() - pieces..])]
    }

    /// Looks for keys that are there and for as many that are not; how long one that is there took.
    pub fn probe(&self) -> Result<Option<Duration>> {
        if self.design == Design::None {
            return Ok(None);
        }
        let mut took = Duration::ZERO;
        for _ in 0..PROBES {
            let row = fastrand::u64(1..=self.rows);
            let (there, elsewhere) = (key(row), key(row + (1 << 40)));
            let began = Instant::now();
            let found = self.index.find(&self.connection, &there)?;
            took += began.elapsed();
            ensure!(found == Some(row.cast_signed()), "the key of row {row} leads to {found:?}");
            ensure!(
                self.index.find(&self.connection, &elsewhere)?.is_none(),
                "a key leads to a row not its own"
            );
        }
        Ok(Some(took / u32::try_from(PROBES)?))
    }
}

/// The key of a row: as evenly spread as a digest, and the same whenever it is asked for.
fn key(row: u64) -> Key {
    let mut rng = fastrand::Rng::with_seed(row);
    rng.u128(..).to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_design_finds_its_keys_and_no_others() {
        let folder = std::env::temp_dir().join(format!("a2ad-keys-{}", std::process::id()));
        for (name, design) in
            [("tree", Design::Tree), ("hours", Design::Hours { rows: 9_000 }), ("runs", Design::Runs)]
        {
            let mut trial = Trial::open(design, &folder, name).unwrap();
            trial.connection.pragma_update(None, "synchronous", "OFF").unwrap();
            trial.add_piece(40_000).unwrap();
            assert!(trial.probe().unwrap().is_some());
            let taken = trial.index.claim(&trial.connection, &key(7), 50_000);
            // The tree itself refuses the row.
            assert!(design == Design::Tree || !taken.unwrap(), "{design:?}");
        }
        fs::remove_dir_all(folder).unwrap();
    }
}
