use super::*;
use crate::sqlite::migrations;

pub(super) fn key(number: u64) -> Key {
    // A cheap mixer replaces the digest.
    let mix = |number: u64| (number ^ number >> 31).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23);
    let (one, two) = (mix(mix(number)), mix(mix(number ^ 0xabcd_ef01)));
    let mut key = [0; 16];
    key[..8].copy_from_slice(&one.to_be_bytes());
    key[8..].copy_from_slice(&two.to_be_bytes());
    key
}

fn empty() -> (Connection, KeyIndex) {
    let mut connection = Connection::open_in_memory().unwrap();
    connection.pragma_update(None, "foreign_keys", "OFF").unwrap();
    migrations::run(&mut connection).map_err(drop).unwrap();
    let keys = KeyIndex::load(&connection).unwrap();
    (connection, keys)
}

impl KeyIndex {
    /// The first task found, whether it exists or not.
    fn first(&self, connection: &Connection, key: &Key) -> Option<i64> {
        self.find(connection, key, |n| Ok(Some(n))).unwrap()
    }
}

#[test]
fn restart_reads_few_rows_however_few_keys_they_have() {
    for keyed_every in [7, 1_000, i64::MAX] {
        let (connection, mut keys) = empty();
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
            assert_eq!(again.first(&connection, &key(n.cast_unsigned())), Some(n));
        }
    }
}

#[test]
fn keys_are_found_in_memtable_flush_and_runs_and_after_a_restart() {
    let (connection, mut keys) = empty();
    let count = RUN_KEYS as u64 * 2 + 100;
    for number in 0..count {
        keys.add(Some(key(number)), i64::try_from(number).unwrap());
        if number % 64 == 0 {
            keys.maintain(&connection).unwrap();
            assert_eq!(keys.first(&connection, &key(number / 2)), Some((number / 2).cast_signed()));
        }
    }
    while keys.runs.is_empty() || keys.flush.is_some() {
        keys.maintain(&connection).unwrap();
        std::thread::yield_now();
    }
    let all_there = |keys: &KeyIndex, up_to: u64| {
        (0..up_to)
            .step_by(97)
            .all(|number| keys.first(&connection, &key(number)) == Some(number.cast_signed()))
    };
    assert!(all_there(&keys, count));
    assert_eq!(keys.first(&connection, &key(u64::MAX)), None);
    // Without task rows a restart finds only the keys in runs.
    let stored: u64 = keys.runs.iter().map(|run| run.max_keys() as u64).sum();
    let again = KeyIndex::load(&connection).unwrap();
    assert_eq!(again.runs.len(), keys.runs.len());
    let known = (0..count).filter(|number| again.first(&connection, &key(*number)).is_some()).count() as u64;
    assert!(known >= RUN_KEYS as u64 && known <= stored, "{known} of {stored}");
    // Without rows there are no tasks, so every run is removed and its pages are deleted.
    // Pages of a run that is still being stored are not garbage.
    while !keys.runs.is_empty() || !keys.garbage.is_empty() || keys.flush.is_some() || !keys.merges.is_empty()
    {
        keys.tasks_deleted(&connection, 64).unwrap();
        keys.maintain(&connection).unwrap();
    }
    let left: i64 = connection.query_row("SELECT count(*) FROM key_pages", [], |row| row.get(0)).unwrap();
    assert_eq!((left, keys.runs.len()), (0, 0));
}

/// A store with small runs, whose tasks have numbers with gaps, so that few of them are in the memtable after a restart.
struct Store {
    connection: Connection,
    keys: KeyIndex,
    added: u64,
}

const GAP: i64 = 100;

fn task_of(number: u64) -> i64 {
    (number.cast_signed() + 1) * GAP
}

const SMALL_RUN: usize = 320;

impl Store {
    fn new() -> Self {
        let (connection, _) = empty();
        let keys = KeyIndex::load_with(&connection, SMALL_RUN).unwrap();
        Self { connection, keys, added: 0 }
    }

    /// Adds tasks with the next keys, a few in each commit.
    fn add(&mut self, count: u64) {
        self.connection.execute_batch("BEGIN").unwrap();
        for number in self.added..self.added + count {
            let n = task_of(number);
            self.connection
                .prepare_cached(
                    "INSERT INTO tasks (n, tag, scope, context, state, status_at, last_seq, visible, size, key)
                     VALUES (?1, x'00000000000000000000', 1, ?1, 3, 0, 1, 1, 0, ?2)",
                )
                .unwrap()
                .execute(params![n, key(number)])
                .unwrap();
            self.keys.add(Some(key(number)), n);
            if number % 16 == 0 {
                self.commit();
            }
        }
        self.connection.execute_batch("COMMIT").unwrap();
        self.added += count;
    }

    fn commit(&mut self) {
        self.keys.maintain(&self.connection).unwrap();
        // The sorting thread takes no longer than a commit, but here commits take no time.
        while self.keys.flush.as_ref().is_some_and(|flush| flush.storing.is_none()) {
            self.keys.flush_pages(&self.connection).unwrap();
            std::thread::yield_now();
        }
    }

    fn delete(&mut self, numbers: Range<u64>) {
        for number in numbers {
            let n = task_of(number);
            self.connection.prepare_cached("DELETE FROM tasks WHERE n = ?1").unwrap().execute([n]).unwrap();
            if number % 64 == 0 {
                self.keys.tasks_deleted(&self.connection, 64).unwrap();
                self.commit();
            }
        }
    }

    /// Deletes no task but does what a commit of other deletions would do, until nothing changes any more.
    fn settle(&mut self) {
        for _ in 0..2_000 {
            self.keys.tasks_deleted(&self.connection, 64).unwrap();
            self.commit();
        }
        assert!(self.keys.merges.is_empty() && self.keys.garbage.is_empty());
    }

    /// Loses everything that is only in memory.
    fn restart(&mut self) {
        self.keys = KeyIndex::load_with(&self.connection, SMALL_RUN).unwrap();
    }

    fn finds(&self, number: u64) -> bool {
        let check = |n: i64| {
            let row = "SELECT n FROM tasks WHERE n = ?1 AND key = ?2";
            self.connection
                .prepare_cached(row)?
                .query_row(params![n, key(number)], |row| row.get(0))
                .optional()
        };
        self.keys.find::<i64>(&self.connection, &key(number), check).unwrap() == Some(task_of(number))
    }

    fn count(&self, table: &str) -> usize {
        let query = format!("SELECT count(*) FROM {table}");
        self.connection.query_row(&query, [], |row| row.get::<_, u32>(0)).unwrap() as usize
    }

    /// Entries in the pages of all runs, also of those that are no longer used.
    fn stored_keys(&self) -> usize {
        let query =
            "SELECT coalesce(sum(length(bytes)), 0) / 24 FROM key_pages WHERE place & 0xffffff < 1 << 22";
        self.connection.query_row(query, [], |row| row.get::<_, u32>(0)).unwrap() as usize
    }
}

#[test]
fn number_of_runs_is_bounded_and_keys_are_found_during_merges_and_after_a_restart() {
    let mut store = Store::new();
    let mut most = 0;
    for round in 0..100 {
        store.add(SMALL_RUN as u64);
        most = most.max(store.keys.runs.len());
        for number in (0..store.added).step_by(331) {
            assert!(store.finds(number), "key {number} in round {round}");
        }
    }
    // 100 flushed runs are at most two size classes, each with eight runs and those added during a merge.
    assert!(most <= 2 * (FANOUT + 2), "{most} runs");
    assert_eq!(store.count("key_runs"), store.keys.runs.len());
    store.restart();
    assert!((0..store.added).all(|number| store.finds(number)));
    assert!(!store.finds(store.added));
    store.settle();
    assert!((0..store.added).all(|number| store.finds(number)));
    // The restart has flushed the newest keys a second time.
    let twice = usize::try_from(SLACK / GAP).unwrap() + 1;
    assert!(
        store.stored_keys() <= store.added as usize + twice,
        "{} keys for {}",
        store.stored_keys(),
        store.added
    );
}

#[test]
fn process_that_ends_during_a_merge_loses_no_key_and_leaves_no_page() {
    let mut store = Store::new();
    let mut interrupted = 0;
    for _ in 0..400 {
        // Not a multiple of the run size, so that every stage of a merge is interrupted.
        store.add(97);
        interrupted += usize::from(!store.keys.merges.is_empty());
        store.restart();
        for number in (0..store.added).rev().step_by(59) {
            assert!(store.finds(number), "key {number} of {}", store.added);
        }
    }
    assert!(interrupted > 20, "{interrupted} merges were interrupted");
    store.settle();
    assert!((0..store.added).all(|number| store.finds(number)));
    // Each restart flushes the newest keys a second time, until they are merged.
    assert!(
        store.stored_keys() <= store.added as usize * 5 / 4,
        "{} of {}",
        store.stored_keys(),
        store.added
    );
    assert!(store.keys.runs.len() <= 2 * (FANOUT + 2), "{} runs", store.keys.runs.len());
}

#[test]
fn old_task_keeps_only_the_keys_of_its_block() {
    let mut store = Store::new();
    store.add(SMALL_RUN as u64 * 40);
    let last = store.added;
    // The first task stays, and so do the newest.
    store.delete(1..last - 100);
    store.settle();
    assert!(store.finds(0) && (last - 100..last).all(|number| store.finds(number)));
    assert!((1..last - 100).step_by(7).all(|number| !store.finds(number)));
    assert!(store.stored_keys() < 2 * SMALL_RUN, "{} keys are left", store.stored_keys());
    assert!(store.keys.runs.len() <= FANOUT, "{} runs", store.keys.runs.len());
    store.restart();
    assert!(store.finds(0) && (last - 100..last).all(|number| store.finds(number)));
}

#[test]
fn key_that_is_used_again_is_found_after_a_merge() {
    let mut store = Store::new();
    store.add(SMALL_RUN as u64);
    store.delete(0..10);
    // The same keys with new tasks; the numbers of the first ones are never used again.
    let again = |number: u64| 1_000_000_000 + number.cast_signed();
    for number in 0..10 {
        store
            .connection
            .execute(
                "INSERT INTO tasks (n, tag, scope, context, state, status_at, last_seq, visible, size, key)
                 VALUES (?1, x'00000000000000000000', 1, ?1, 3, 0, 1, 1, 0, ?2)",
                params![again(number), key(number)],
            )
            .unwrap();
        store.keys.add(Some(key(number)), again(number));
    }
    store.add(SMALL_RUN as u64 * 20);
    store.settle();
    for number in 0..10 {
        let check = |n: i64| Ok((n == again(number)).then_some(n));
        assert_eq!(
            store.keys.find(&store.connection, &key(number), check).unwrap(),
            Some(again(number)),
            "{number}"
        );
    }
}

#[test]
fn filters_take_about_two_bytes_for_each_key() {
    let mut store = Store::new();
    store.add(SMALL_RUN as u64 * 70);
    let bytes: usize = store.keys.runs.iter().map(SortedRun::filter_bytes).sum();
    let keys: usize = store.keys.runs.iter().map(SortedRun::max_keys).sum();
    assert!(bytes <= keys * 5 / 2, "{bytes} bytes for {keys} keys");
}
