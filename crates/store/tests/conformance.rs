//! The contract of [`engine::Store`] as behaviours: one suite, run for each database.
//!
//! A behaviour is an `async fn` over a [`TestDatabase`](conformance::test_database::TestDatabase) and contains
//! nothing specific to a database. It is listed once, in [`on_every_database`]; a new database implements
//! `TestDatabase` and adds one module to that macro.

#![allow(clippy::unwrap_used, reason = "test code; a helper may panic like a test")]

/// Defines one test per behaviour and database.
macro_rules! on_every_database {
    ($($behaviour:ident),+ $(,)?) => {
        mod sqlite {
            $(
                #[tokio::test]
                async fn $behaviour() {
                    super::$behaviour(&crate::conformance::test_database::Sqlite::new()).await;
                }
            )+
        }
    };
}

mod conformance {
    mod reference;
    mod samples;
    pub(crate) mod test_database;
    mod transitions;

    mod accept;
    mod api_keys;
    mod conflicts;
    mod context_history;
    mod contexts;
    mod damaged_records;
    mod deadlines;
    mod due;
    mod entries;
    mod fail_stop;
    mod file_safety;
    mod free_pages;
    mod free_space;
    mod idempotency_keys;
    mod integrity;
    mod journal;
    mod lists;
    mod long_lists;
    mod opening;
    mod overload;
    mod owners;
    mod principal_caps;
    mod probation;
    mod publication;
    mod purge_slices;
    mod reopen;
    mod reserve;
    mod retention;
    mod saved;
    mod sequence_numbers;
    mod snapshots;
    mod steps;
    mod webhooks;
}
