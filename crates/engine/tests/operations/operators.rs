//! The engine of operators' commands, on a store that no server uses.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use a2ad_engine::{Catalog, Clock, DynAgent, Engine, Feed, agent_fn, store::TaskCounts};
use store::{Sqlite, SqliteOptions};

use crate::common::{Setup, registered, with_timeout};

#[tokio::test]
async fn engine_of_operators_leaves_work_that_is_due() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Setup::plain().open_at(folder.path());
    let (_, turn) = server.start_task("hold").await;
    server.engine.drain(std::time::Duration::ZERO).await;
    drop((turn, server));

    let (feed, clock, runs) = (Feed::default(), Clock::system(), Arc::new(AtomicUsize::new(0)));
    let options = SqliteOptions::at(folder.path().join("a2ad.db"));
    // The tasks of the first engine end in the background.
    let opened = async {
        loop {
            match Sqlite::open(&options, feed.clone(), &clock) {
                Ok(store) => break Arc::new(store),
                Err(_) => tokio::task::yield_now().await,
            }
        }
    };
    let store = with_timeout(opened).await;
    let counted = Arc::clone(&runs);
    let agent = agent_fn(move |_| {
        counted.fetch_add(1, Ordering::SeqCst);
        async {}
    });
    let catalog = Catalog::new("scripted", [registered("scripted", Vec::new(), DynAgent::new(agent))]);
    let engine = Engine::for_operators(store, feed, catalog, clock);
    // An engine that claims work does it between these reads.
    for _ in 0..50 {
        let TaskCounts { queued, running, .. } =
            with_timeout(engine.operator_tasks().counts()).await.unwrap();
        assert_eq!((queued, running, runs.load(Ordering::SeqCst)), (1, 0, 0));
    }
}
