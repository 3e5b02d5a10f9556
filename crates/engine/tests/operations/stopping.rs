//! A run that is ended from outside: its agent is asked to stop and has 5 seconds for it, whatever ended the run.

use std::time::Duration;

use a2ad_engine::{
    Agent, AgentResult, Lost, Outcome, STOP_GRACE, Scope, Store as _, Turn,
    log::Log,
    store::{Advance, Change, JournalChange, Step},
    task::PublicIds,
};
use futures_util::FutureExt as _;
use protocol::{CancelTask, Operation, TaskId, TaskState};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::common::{
    RunningTurn, Setup, TestServer, artifact, bare_message, done, done_with, join, msg, prevent_auto_advance,
    progress, reply, task, working,
};

/// What ends the run.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Cause {
    /// The client cancels the task.
    Cancel,
    /// The client cancels the task while a report is not committed yet.
    CancelDuringReport,
    /// Another writer has canceled the task, and the next report is rejected.
    OtherWriter,
    /// `limits.run_time`.
    RunTime,
    /// `limits.max_task`.
    MaxTask,
    /// The store's own limit.
    StoreLimit,
    /// The store cannot write.
    StoreUnavailable,
    /// The agent's last update ends the turn, but the agent goes on.
    BareMessage,
}

impl Cause {
    fn setup(self) -> Setup {
        match self {
            Self::MaxTask => Setup::plain().max_task(4_096),
            _ => Setup::plain(),
        }
    }

    async fn end_run(self, server: &TestServer, id: &TaskId, turn: &RunningTurn) {
        match self {
            Self::Cancel => drop(server.cancel(id).await.unwrap()),
            Self::CancelDuringReport => {
                server.store.block_step("report");
                turn.send([progress("in flight")]);
                server.store.until_blocked(1).await;
                server.cancel(id).await.unwrap();
                server.store.unblock_commits();
            }
            Self::OtherWriter => {
                cancel_elsewhere(server, id).await;
                turn.send([progress("rejected")]);
            }
            Self::RunTime => tokio::time::advance(Duration::from_secs(601)).await,
            Self::MaxTask => turn.send([artifact("a", &"x".repeat(5_000))]),
            Self::StoreLimit => {
                server.store.reject_as_too_large("report");
                turn.send([artifact("a", "too large")]);
            }
            Self::StoreUnavailable => {
                server.store.reject_as_unavailable("report");
                turn.send([artifact("a", "not written")]);
            }
            Self::BareMessage => turn.send([bare_message("that is all")]),
        }
    }

    /// The last line of the task's stream; `None` if the task has not ended.
    fn last_line(self) -> Option<&'static str> {
        match self {
            Self::Cancel | Self::CancelDuringReport | Self::OtherWriter => Some("3 canceled"),
            Self::RunTime => Some("3 failed: the turn took longer than 600s"),
            Self::MaxTask => Some("3 failed: the task is larger than 4096 bytes"),
            Self::StoreLimit => Some("3 failed: injected by the test"),
            Self::StoreUnavailable => None,
            Self::BareMessage => Some("3 completed: that is all"),
        }
    }
}

/// Cancels the task in the store only, as another process would.
async fn cancel_elsewhere(server: &TestServer, id: &TaskId) {
    let row = server.row(id).await;
    let names = PublicIds::of(&server.store.ids(), &row);
    let log = Log::pack([(names.status(TaskState::Canceled, None, server.engine.clock().now()), None)]);
    let cancel = Advance {
        status: log.status(),
        log,
        journal: JournalChange::Clear,
        ..Advance::new(row.no, Step::Cancel)
    };
    server.store.commit(Change::Advance(Box::new(cancel))).await.unwrap();
}

fn is_alive(turn: &RunningTurn) -> bool {
    turn.dropped().now_or_never().is_none()
}

/// A run that the cause has ended; its agent is asked to stop and clients have seen the end.
async fn ended(cause: Cause) -> (TestServer, TaskId, RunningTurn) {
    let mut server = cause.setup().slots(1).open();
    let (id, turn) = server.start_task("hello").await;
    let mut frames = server.subscribe(&id).await.unwrap();
    assert_eq!(frames.next().await, "2 task working", "{cause:?}");
    assert!(!turn.cancel.is_cancelled(), "{cause:?}");
    cause.end_run(&server, &id, &turn).await;
    crate::common::with_timeout(turn.cancel.cancelled()).await;
    if let Some(last_line) = cause.last_line() {
        assert_eq!(frames.lines().await, [last_line], "{cause:?}");
    }
    assert!(is_alive(&turn), "{cause:?}");
    (server, id, turn)
}

async fn has_ended_once(cause: Cause, server: &TestServer, id: &TaskId) {
    let states = server.store.log(&server.row(id).await).await;
    let terminal = states.iter().flatten().filter(|state| state.is_terminal()).count();
    assert_eq!(terminal, usize::from(cause.last_line().is_some()), "{cause:?}: {states:?}");
}

/// The agent cleans up for 4 seconds and returns.
async fn agent_stops_by_itself(cause: Cause) {
    let _time = prevent_auto_advance();
    let (mut server, id, turn) = ended(cause).await;
    let rejected = turn.progress("late").await.unwrap_err();
    assert!(rejected.downcast_ref::<Lost>().is_some(), "{cause:?}: {rejected:?}");
    let next = server.spawn_send(msg("next"));
    server.store.until("accept", 2).await;
    tokio::time::advance(Duration::from_secs(4)).await;
    assert!(is_alive(&turn), "{cause:?}");
    // Its slot stays taken until it has stopped.
    assert!(server.agent.is_idle(), "{cause:?}");
    turn.end(done_with("late"));
    turn.dropped().await;
    server.agent.turn().await.end(done());
    join(next).await.unwrap();
    has_ended_once(cause, &server, &id).await;
}

/// The agent does not look at its token.
async fn agent_that_goes_on_is_dropped(cause: Cause) {
    let _time = prevent_auto_advance();
    let (server, id, turn) = ended(cause).await;
    let mut seconds = 0;
    while is_alive(&turn) {
        assert!(seconds < 10, "{cause:?}");
        tokio::time::advance(Duration::from_secs(1)).await;
        seconds += 1;
    }
    assert!((STOP_GRACE.as_secs()..=STOP_GRACE.as_secs() + 1).contains(&seconds), "{cause:?}: {seconds}");
    has_ended_once(cause, &server, &id).await;
}

/// The agent panics while it stops.
async fn panic_in_the_grace_period_harms_nothing(cause: Cause) {
    let _time = prevent_auto_advance();
    let (mut server, id, turn) = ended(cause).await;
    turn.panic("while it stops");
    turn.dropped().await;
    let next = server.spawn_send(msg("next"));
    server.agent.turn().await.end(done());
    join(next).await.unwrap();
    has_ended_once(cause, &server, &id).await;
}

macro_rules! causes {
    ($($name:ident: $cause:ident,)*) => {$(
        #[tokio::test(start_paused = true)]
        async fn $name() {
            agent_stops_by_itself(Cause::$cause).await;
            agent_that_goes_on_is_dropped(Cause::$cause).await;
            panic_in_the_grace_period_harms_nothing(Cause::$cause).await;
        }
    )*};
}

causes! {
    cancel_gives_the_agent_its_grace: Cancel,
    cancel_during_a_report_gives_the_agent_its_grace: CancelDuringReport,
    change_by_another_writer_gives_the_agent_its_grace: OtherWriter,
    end_of_the_run_time_gives_the_agent_its_grace: RunTime,
    size_limit_gives_the_agent_its_grace: MaxTask,
    size_limit_of_the_store_gives_the_agent_its_grace: StoreLimit,
    unavailable_store_gives_the_agent_its_grace: StoreUnavailable,
    turn_ended_by_an_update_gives_the_agent_its_grace: BareMessage,
}

#[tokio::test(start_paused = true)]
async fn agent_that_started_before_a_rejected_commit_has_its_grace() {
    let _time = prevent_auto_advance();
    let mut server = Setup::overlapping().slots(1).open();
    server.store.reject_as_too_large("accept");
    server.agent.prepare_updates([working()]);
    assert!(server.send(msg("hello")).await.is_err());
    let turn = server.agent.turn().await;
    crate::common::with_timeout(turn.cancel.cancelled()).await;
    tokio::time::advance(Duration::from_secs(4)).await;
    assert!(is_alive(&turn));
    tokio::time::advance(Duration::from_secs(2)).await;
    turn.dropped().await;
    // An agent that did not start is not started to be stopped.
    let mut server = Setup::plain().open();
    server.store.reject_as_too_large("accept");
    assert!(server.send(msg("hello")).await.is_err());
    assert!(server.agent.is_idle());
}

#[tokio::test(start_paused = true)]
async fn overlapping_agent_over_the_size_limit_has_its_grace() {
    let _time = prevent_auto_advance();
    let mut server = Setup::overlapping().max_task(4_096).open();
    server.agent.prepare_updates([artifact("a", &"x".repeat(5_000))]);
    let failed = server.send_for_task(msg("hello")).await;
    assert_eq!(failed.status.state, TaskState::Failed);
    let turn = server.agent.turn().await;
    crate::common::with_timeout(turn.cancel.cancelled()).await;
    tokio::time::advance(Duration::from_secs(4)).await;
    assert!(is_alive(&turn));
    turn.end(done());
    turn.dropped().await;
    assert_eq!(server.get(&failed.id).await.unwrap(), failed);
}

#[tokio::test]
async fn agent_that_ended_by_itself_is_not_asked_to_stop() {
    let mut server = Setup::plain().open();
    let (id, turn) = server.start_task("hello").await;
    turn.end(done());
    server.store.until("finish", 1).await;
    turn.dropped().await;
    assert!(!turn.cancel.is_cancelled());
    assert_eq!(server.get(&id).await.unwrap().status.state, TaskState::Completed);
}

/// Records progress for ever and ignores that it is rejected.
struct NeverStops(CancellationToken);

impl Agent for NeverStops {
    async fn run(&self, turn: Turn) -> AgentResult<Outcome> {
        let _dropped: DropGuard = self.0.clone().drop_guard();
        loop {
            turn.progress("again").await.ok();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn agent_that_ignores_rejected_updates_does_not_block_its_thread() {
    let _time = prevent_auto_advance();
    let dropped = CancellationToken::new();
    let server = Setup::plain().with("never-stops", NeverStops(dropped.clone())).open();
    let scope = || Scope::anonymous("default", "never-stops");
    let send = Operation::SendMessage(msg("hello").return_immediately().into());
    let id = task(reply(server.call(scope(), send).await.unwrap())).id;
    server.store.until("report", 2).await;
    let cancel = Operation::CancelTask(CancelTask { id, metadata: None, tenant: None });
    server.call(scope(), cancel).await.unwrap();
    assert!(!dropped.is_cancelled());
    tokio::time::advance(STOP_GRACE).await;
    crate::common::with_timeout(dropped.cancelled()).await;
}
