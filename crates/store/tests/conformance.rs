//! What the engine asks of a store, told as behaviours: one suite, run for each database.
//!
//! A behaviour is an `async fn` over a [`Bench`](conformance::bench::Bench) and knows no database. It is listed
//! once, under [`on_every_database`]; a database joins with a bench of its own and one module in that macro.

#![allow(clippy::unwrap_used, reason = "everything here is a test; a helper may give up like one")]

/// Makes a test of each behaviour, for each database.
macro_rules! on_every_database {
    ($($behaviour:ident),+ $(,)?) => {
        mod sqlite {
            $(
                #[tokio::test]
                async fn $behaviour() {
                    super::$behaviour(&crate::conformance::bench::Sqlite::new()).await;
                }
            )+
        }
    };
}

mod conformance {
    pub(crate) mod bench;
    mod reference;
    mod samples;

    mod accept;
    mod contexts;
    mod conversation;
    mod due;
    mod entries;
    mod fail_stop;
    mod keys;
    mod lists;
    mod long_lists;
    mod numbers;
    mod opening;
    mod publication;
    mod refusals;
    mod reopen;
    mod reserve;
    mod retention;
    mod saved;
    mod snapshots;
    mod space;
    mod steps;
}
