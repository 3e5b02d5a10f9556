//! Watchers receive an entry in order, and not before it can be read.

use std::sync::Arc;

use engine::{
    Agent, AgentInfo, AgentResult, Call, CallResponse, Catalog, Clock, DynAgent, Engine, Feed, Frame, Limits,
    Outcome, RegisteredAgent, Store, StreamItem, TaskStream, Turn, ids::TaskNo, log::Seq, store::Step,
};
use futures_util::FutureExt as _;
use protocol::{Operation, SubscribeToTask, TaskState};

use super::{
    samples::{accepted, advance, at, found, queue_advance, report, scope, tag, with_status},
    test_database::TestDatabase,
};

on_every_database![
    published_entries_can_already_be_read,
    rejected_change_is_not_published,
    watchers_receive_everything_in_order,
];

/// An agent that is only needed for its id.
struct IdleAgent;

impl Agent for IdleAgent {
    async fn run(&self, _: Turn) -> AgentResult<Outcome> {
        std::future::pending().await
    }
}

/// A store and an engine on it: watching goes through the engine, the test writes to the store directly.
struct Watched {
    store: Arc<dyn Store>,
    engine: Engine,
}

impl Watched {
    fn open(database: &dyn TestDatabase) -> Self {
        let (feed, clock) = (Feed::default(), Clock::manual(at(0)));
        let store = database.open_with(feed.clone(), &clock);
        let info = AgentInfo {
            id: scope().agent().to_owned(),
            name: String::new(),
            description: String::new(),
            version: String::new(),
            input_modes: Vec::new(),
            output_modes: Vec::new(),
        };
        let id = info.id.clone();
        let catalog = Catalog::new(id, [RegisteredAgent::new(info, DynAgent::new(IdleAgent))]);
        let engine = Engine::start(Arc::clone(&store), feed, catalog, clock, Limits::default());
        Self { store, engine }
    }

    /// Watches a task and consumes the opening snapshot.
    async fn watch(&self, no: TaskNo) -> TaskStream {
        let subscribe = SubscribeToTask { id: self.store.ids().task(no, tag(no)), tenant: None };
        let call = Call::new(scope());
        let Ok(CallResponse::Stream(mut stream)) =
            self.engine.call(call, Operation::SubscribeToTask(subscribe)).await
        else {
            panic!("no stream");
        };
        let Ok(StreamItem::Frames(opening)) = stream.next().await else { panic!("no frames") };
        assert!(matches!(opening.as_slice(), [Frame::Snapshot { .. }]));
        stream
    }

    /// The entries received next; each is compared with the log the moment it is received.
    async fn receive(&self, no: TaskNo, stream: &mut TaskStream) -> Vec<Seq> {
        let next = tokio::select! {
            next = stream.next() => next,
            reason = self.store.failed() => panic!("the store failed, so nothing will be published: {reason}"),
        };
        let Ok(StreamItem::Frames(frames)) = next else { return Vec::new() };
        let mut received = Vec::new();
        for frame in frames {
            let Frame::Entry { seq, entry } = frame else { panic!("unexpected snapshot") };
            let read = self.store.entries(&scope(), no, seq - 1, 1).await.unwrap();
            let [(number, there)] = read.as_slice() else {
                panic!("{seq} was published before it could be read")
            };
            assert_eq!((*number, there.kind(), there.v1()), (seq, entry.kind(), entry.v1()));
            received.push(seq);
        }
        received
    }
}

async fn published_entries_can_already_be_read(database: &dyn TestDatabase) {
    let watched = Watched::open(database);
    let no = accepted(&*watched.store, |_| {}).await;
    let mut stream = watched.watch(no).await;
    let mut next = 3;
    for round in 0..100 {
        let texts = ["a", "b", "c"];
        // The receipt is dropped: only the feed reports the commit.
        drop(queue_advance(&*watched.store, report(no, &texts[..1 + round % 3])));
        for seq in watched.receive(no, &mut stream).await {
            assert_eq!(seq, next);
            next += 1;
        }
    }
    assert_eq!(next, found(&*watched.store, no).await.row.last_seq + 1);
}

async fn rejected_change_is_not_published(database: &dyn TestDatabase) {
    let watched = Watched::open(database);
    let no = accepted(&*watched.store, |_| {}).await;
    let other = accepted(&*watched.store, |_| {}).await;
    let mut stream = watched.watch(no).await;
    let mut stale = report(no, &["stale"]);
    stale.step = Step::Report { fence: 0 };
    advance(&*watched.store, stale).await.unwrap_err();
    advance(&*watched.store, report(other, &["of another task"])).await.unwrap();
    assert!(stream.next().now_or_never().is_none(), "nothing may be published");
    advance(&*watched.store, report(no, &["third"])).await.unwrap();
    assert_eq!(watched.receive(no, &mut stream).await, [3]);
}

async fn watchers_receive_everything_in_order(database: &dyn TestDatabase) {
    let watched = Watched::open(database);
    let no = accepted(&*watched.store, |_| {}).await;
    let mut streams = [watched.watch(no).await, watched.watch(no).await];
    let store = &*watched.store;
    std::thread::scope(|threads| {
        for _ in 0..4 {
            threads.spawn(|| {
                for _ in 0..50 {
                    drop(queue_advance(store, report(no, &["one", "two"])));
                }
            });
        }
    });
    drop(queue_advance(store, with_status(no, Step::Finish { fence: 1 }, TaskState::Completed, "the end")));
    for stream in &mut streams {
        let mut all = Vec::new();
        loop {
            let received = watched.receive(no, stream).await;
            if received.is_empty() {
                break;
            }
            all.extend(received);
        }
        assert!(all.iter().copied().eq(3..=403), "{all:?}");
    }
}
