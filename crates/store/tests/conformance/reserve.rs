//! Task numbers are reserved once, across concurrent callers and restarts.

use std::{collections::HashSet, thread};

use engine::{Clock, Store};

use super::{samples::at, test_database::TestDatabase};

on_every_database![no_number_is_reserved_twice, unused_number_is_never_reserved_again];

/// Adds a block to the reserved numbers; panics when one of them was reserved before.
fn add_block(reserved: &mut HashSet<i64>, first: i64, count: i64) {
    for number in first..first + count {
        assert!(number > 0 && reserved.insert(number), "{number} was reserved twice");
    }
}

async fn no_number_is_reserved_twice(database: &dyn TestDatabase) {
    let mut reserved = HashSet::new();
    let mut store = database.open();
    for _ in 0..3 {
        let reserve = |store: &dyn Store| [1, 7, 64].map(|count| (count, store.reserve(count)));
        let blocks: Vec<_> = thread::scope(|threads| {
            let threads = [(); 4].map(|()| threads.spawn(|| reserve(&*store)));
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
        });
        for (count, first) in blocks {
            add_block(&mut reserved, first.await.unwrap().0, count);
        }
        store = database.reopen(store, &Clock::manual(at(0)));
    }
    assert_eq!(reserved.len(), 3 * 4 * (1 + 7 + 64));
}

async fn unused_number_is_never_reserved_again(database: &dyn TestDatabase) {
    let store = database.open();
    let unused = store.reserve(1_000).await.unwrap();
    let store = database.reopen(store, &Clock::manual(at(0)));
    assert!(store.reserve(1).await.unwrap().0 >= unused.0 + 1_000);
}
