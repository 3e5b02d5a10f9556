//! Numbers are set aside once, whoever asks and however often the process starts.

use std::{collections::HashSet, thread};

use engine::{Clock, Store};

use super::{bench::Bench, samples::at};

on_every_database![no_number_is_given_twice, an_unused_number_is_never_given_again];

/// Adds a block to those given before; panics when one of its numbers is among them.
fn note(given: &mut HashSet<i64>, first: i64, count: i64) {
    for number in first..first + count {
        assert!(number > 0 && given.insert(number), "{number} was given twice");
    }
}

async fn no_number_is_given_twice(bench: &dyn Bench) {
    let mut given = HashSet::new();
    let mut store = bench.open();
    for _ in 0..3 {
        let reserve = |store: &dyn Store| [1, 7, 64].map(|count| (count, store.reserve(count)));
        let blocks: Vec<_> = thread::scope(|threads| {
            let threads = [(); 4].map(|()| threads.spawn(|| reserve(&*store)));
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
        });
        for (count, first) in blocks {
            note(&mut given, first.await.unwrap().0, count);
        }
        store = bench.reopen(store, &Clock::manual(at(0)));
    }
    assert_eq!(given.len(), 3 * 4 * (1 + 7 + 64));
}

async fn an_unused_number_is_never_given_again(bench: &dyn Bench) {
    let store = bench.open();
    let unused = store.reserve(1_000).await.unwrap();
    let store = bench.reopen(store, &Clock::manual(at(0)));
    assert!(store.reserve(1).await.unwrap().0 >= unused.0 + 1_000);
}
