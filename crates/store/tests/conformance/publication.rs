//! Watchers hear of an entry when it can be read, in order, and not before.

use std::sync::Arc;

use engine::{
    Agent, AgentInfo, Agents, Answer, Call, Clock, Engine, Feed, Frame, Limits, Next, Outcome,
    RegisteredAgent, Store, TaskStream, Turn, Updates, ids::TaskNo, log::Seq, store::Step,
};
use futures_util::{FutureExt as _, future::BoxFuture};
use protocol::{Operation, SubscribeToTask, TaskState};

use super::{
    bench::Bench,
    samples::{accepted, advance, at, found, hand_over, report, says, scope, tag},
};

on_every_database![
    what_a_watcher_hears_can_be_read_already,
    a_refused_change_is_not_heard,
    watchers_hear_everything_in_order,
];

/// An agent that is only needed to have its name.
struct Nobody;

impl Agent for Nobody {
    fn run(&self, _: Turn, _: Updates) -> BoxFuture<'static, Outcome> {
        std::future::pending().boxed()
    }
}

/// A store and an engine beside it: watching is the engine's business, writing is done past it.
struct Watched {
    store: Arc<dyn Store>,
    engine: Engine,
}

impl Watched {
    fn open(bench: &dyn Bench) -> Self {
        let (feed, clock) = (Feed::default(), Clock::manual(at(0)));
        let store = bench.open_with(feed.clone(), &clock);
        let info = AgentInfo {
            id: scope().agent().to_owned(),
            name: String::new(),
            description: String::new(),
            version: String::new(),
            skills: Vec::new(),
            input_modes: Vec::new(),
            output_modes: Vec::new(),
        };
        let agents = Agents::new([RegisteredAgent::new(info, Arc::new(Nobody))]);
        let engine = Engine::start(Arc::clone(&store), feed, agents, clock, Limits::default());
        Self { store, engine }
    }

    /// Watches a task; the opening snapshot has been taken off.
    async fn watch(&self, no: TaskNo) -> TaskStream {
        let subscribe = SubscribeToTask { id: self.store.ids().task(no, tag(no)), tenant: None };
        let call = Call::new(scope());
        let Ok(Answer::Stream(mut stream)) =
            self.engine.call(call, Operation::SubscribeToTask(subscribe)).await
        else {
            panic!("no stream");
        };
        let Ok(Next::Frames(opening)) = stream.next().await else { panic!("no frames") };
        assert!(matches!(opening.as_slice(), [Frame::Snapshot { .. }]));
        stream
    }

    /// What is heard next; each entry is looked up in the log the moment it is heard.
    async fn hear(&self, no: TaskNo, stream: &mut TaskStream) -> Vec<Seq> {
        let next = tokio::select! {
            next = stream.next() => next,
            reason = self.store.failed() => panic!("there is nothing to hear from a store that failed: {reason}"),
        };
        let Ok(Next::Frames(frames)) = next else { return Vec::new() };
        let mut heard = Vec::new();
        for frame in frames {
            let Frame::Entry { seq, entry } = frame else { panic!("a snapshot in between") };
            let read = self.store.entries(&scope(), no, seq - 1, 1).await.unwrap();
            let [(number, there)] = read.as_slice() else { panic!("{seq} was heard before it was there") };
            assert_eq!((*number, there.kind(), there.v1()), (seq, entry.kind(), entry.v1()));
            heard.push(seq);
        }
        heard
    }
}

async fn what_a_watcher_hears_can_be_read_already(bench: &dyn Bench) {
    let watched = Watched::open(bench);
    let no = accepted(&*watched.store, |_| {}).await;
    let mut stream = watched.watch(no).await;
    let mut next = 3;
    for round in 0..100 {
        let words = ["a", "b", "c"];
        // Nobody waits for the receipt: the feed alone tells when.
        drop(hand_over(&*watched.store, report(no, &words[..1 + round % 3])));
        for seq in watched.hear(no, &mut stream).await {
            assert_eq!(seq, next);
            next += 1;
        }
    }
    assert_eq!(next, found(&*watched.store, no).await.row.last_seq + 1);
}

async fn a_refused_change_is_not_heard(bench: &dyn Bench) {
    let watched = Watched::open(bench);
    let no = accepted(&*watched.store, |_| {}).await;
    let other = accepted(&*watched.store, |_| {}).await;
    let mut stream = watched.watch(no).await;
    let mut stale = report(no, &["stale"]);
    stale.step = Step::Report { fence: 0 };
    advance(&*watched.store, stale).await.unwrap_err();
    advance(&*watched.store, report(other, &["of another task"])).await.unwrap();
    assert!(stream.next().now_or_never().is_none(), "there is nothing to hear");
    advance(&*watched.store, report(no, &["third"])).await.unwrap();
    assert_eq!(watched.hear(no, &mut stream).await, [3]);
}

async fn watchers_hear_everything_in_order(bench: &dyn Bench) {
    let watched = Watched::open(bench);
    let no = accepted(&*watched.store, |_| {}).await;
    let mut streams = [watched.watch(no).await, watched.watch(no).await];
    let store = &*watched.store;
    std::thread::scope(|threads| {
        for _ in 0..4 {
            threads.spawn(|| {
                for _ in 0..50 {
                    drop(hand_over(store, report(no, &["one", "two"])));
                }
            });
        }
    });
    drop(hand_over(store, says(no, Step::Finish { fence: 1 }, TaskState::Completed, "the end")));
    for stream in &mut streams {
        let mut all = Vec::new();
        loop {
            let heard = watched.hear(no, stream).await;
            if heard.is_empty() {
                break;
            }
            all.extend(heard);
        }
        assert!(all.iter().copied().eq(3..=403), "{all:?}");
    }
}
