//! Checkpoints that resolve when they are on disk, and records that are one commit with the outcome.

use std::collections::HashMap;

use a2ad_engine::{Agent, AgentResult, ExecutionPolicy, Lost, OnCrash, Outcome, Scope, Turn, agent_fn};
use protocol::{Operation, TaskState};

use crate::common::{
    Setup, artifact, artifacts, done, history, join, msg, process, reply, status_metadata, status_text, task,
    with_timeout,
};

#[tokio::test]
async fn checkpoint_resolves_when_it_is_committed() {
    let mut server = Setup::plain().open();
    let (id, turn) = server.start_task("hello").await;
    server.store.block_commits();
    let mut checkpoint = std::pin::pin!(turn.checkpoint(&1));
    tokio::select! {
        biased;
        result = &mut checkpoint => panic!("{result:?} before the commit"),
        () = server.store.until_blocked(1) => {}
    }
    // It does not join the change in flight.
    let mut second = std::pin::pin!(turn.checkpoint_bytes("2"));
    tokio::select! {
        biased;
        result = &mut second => panic!("{result:?} before the commit"),
        () = tokio::task::yield_now() => {}
    }
    server.store.unblock_commits();
    assert_eq!(with_timeout(checkpoint).await, Ok(()));
    assert_eq!(with_timeout(second).await, Ok(()));
    assert_eq!(server.store.steps(), ["accept", "report", "report"]);
    turn.end(done());
    server.store.until("finish", 1).await;
    assert_eq!(server.get(&id).await.unwrap().status.state, TaskState::Completed);
    assert_eq!(with_timeout(turn.checkpoint(&3)).await, Err(Lost));
}

#[test]
fn checkpoint_survives_a_crash_right_after_it() {
    let folder = tempfile::tempdir().unwrap();
    process(folder.path(), Setup::plain(), async |server| {
        let (_, turn) = server.start_task("hello").await;
        turn.checkpoint(&7).await.unwrap();
    });
    process(folder.path(), Setup::plain(), async |server| {
        assert_eq!(server.agent.turn().await.saved::<u32>().unwrap(), Some(7));
    });
}

#[tokio::test]
async fn checkpoint_of_a_cancelled_task_is_lost() {
    let mut server = Setup::plain().open();
    let (id, turn) = server.start_task("hello").await;
    server.store.block_commits();
    let cancel = server.spawn_cancel(&id);
    server.store.until_blocked(1).await;
    // Sent before the cancel is committed, rejected after it.
    let mut checkpoint = std::pin::pin!(turn.checkpoint(&1));
    tokio::select! {
        biased;
        result = &mut checkpoint => panic!("{result:?} before the commit"),
        () = server.store.until_blocked(2) => {}
    }
    server.store.unblock_commits();
    assert_eq!(with_timeout(checkpoint).await, Err(Lost));
    join(cancel).await.unwrap();
    assert_eq!(with_timeout(turn.checkpoint(&2)).await, Err(Lost));
    assert!(with_timeout(turn.step("late", async { Ok(1) })).await.unwrap_err().is_lost());
    assert_eq!(server.get(&id).await.unwrap().status.state, TaskState::Canceled);
}

#[tokio::test]
async fn checkpoint_that_cannot_be_saved_fails_the_turn() {
    let too_large = "the agent saved a checkpoint of 17 bytes and limits.max_saved is 16 bytes";
    for (text, metadata) in [
        (too_large, Some(r#"{"a2ad":{"reason":"too_large"}}"#)),
        ("the state of the task cannot be saved", None),
    ] {
        let mut server = Setup::plain().max_saved(16).open();
        let call = server.spawn_send(msg("hello"));
        let turn = server.agent.turn().await;
        turn.record().artifact(turn.new_artifact("a", "kept")).await.unwrap();
        let result = if text == too_large {
            turn.checkpoint("seventeen bytes").await
        } else {
            // The keys of a JSON object are texts.
            turn.checkpoint(&HashMap::from([((1, 2), 3)])).await
        };
        assert_eq!(result, Err(Lost));
        // The outcome of the agent does not replace the failure.
        turn.end(done());
        let failed = task(join(call).await.unwrap());
        assert_eq!((failed.status.state, failed.artifacts.len()), (TaskState::Failed, 1));
        assert_eq!((status_text(&failed).as_deref(), status_metadata(&failed)), (Some(text), metadata));
    }
}

/// Saves at its first poll, before its task is committed.
struct EarlySaver;

impl Agent for EarlySaver {
    async fn run(&self, turn: Turn) -> AgentResult<Outcome> {
        match turn.text().as_str() {
            "save" => turn.checkpoint(&1).await?,
            "step" => turn.step("one", async { Ok(()) }).await?,
            _ => turn.checkpoint(&"more than 16 bytes").await?,
        }
        Ok(Outcome::done())
    }

    fn policy(&self) -> ExecutionPolicy {
        ExecutionPolicy::default().with_overlap(true)
    }
}

#[tokio::test]
async fn checkpoint_before_the_first_commit_joins_it() {
    for (text, state, steps) in [
        ("save", TaskState::Completed, vec!["accept", "finish"]),
        ("step", TaskState::Completed, vec!["accept", "finish"]),
        ("too large", TaskState::Failed, vec!["accept"]),
    ] {
        let server = Setup::plain().max_saved(16).with("early", EarlySaver).open();
        let scope = Scope::anonymous("default", "early");
        let answer = server.call(scope, Operation::SendMessage(msg(text).into())).await.unwrap();
        assert_eq!(task(reply(answer)).status.state, state, "{text}");
        assert_eq!(server.store.steps(), steps, "{text}");
    }
}

/// Asks once, with an artifact and a checkpoint in the same commit.
async fn ask_once(turn: Turn) -> AgentResult<Outcome> {
    if let Some(place) = turn.saved::<String>()? {
        return Ok(Outcome::done_with(format!("{place}, {}", turn.text())));
    }
    turn.record().artifact(turn.new_artifact("draft", "a")).save("place").then(Outcome::ask("which?"))
}

#[tokio::test]
async fn record_and_pause_are_one_commit() {
    for overlap in [false, true] {
        let policy = ExecutionPolicy::default().with_overlap(overlap);
        let server = Setup::plain().with("asks", agent_fn(ask_once).with_policy(policy)).open();
        let scope = || Scope::anonymous("default", "asks");
        let send = async |msg: crate::common::MessageBuilder| {
            task(reply(server.call(scope(), Operation::SendMessage(msg.into())).await.unwrap()))
        };
        let asked = send(msg("hello")).await;
        assert_eq!(asked.status.state, TaskState::InputRequired);
        assert_eq!(artifacts(&asked), [("draft".into(), "a".into())]);
        let expected: &[&str] = if overlap { &["accept"] } else { &["accept", "pause"] };
        assert_eq!(server.store.steps(), expected);
        let ended = send(msg("blue").to(&asked.id)).await;
        assert_eq!(status_text(&ended).as_deref(), Some("place, blue"));
    }
}

#[tokio::test]
async fn record_of_a_rejected_pause_is_kept() {
    let mut server = Setup::plain().open();
    let (id, turn) = server.start_task("hello").await;
    turn.step("one", async { Ok(1) }).await.unwrap();
    assert_eq!(server.journal(&id).await, ["one"]);
    server.store.block_commits();
    let more = server.spawn_send(msg("blue").to(&id).return_immediately());
    server.store.until_blocked(1).await;
    let asked = turn.record().artifact(turn.new_artifact("draft", "a")).save("place");
    turn.end(asked.then(Outcome::ask("which?")).unwrap());
    server.store.until_blocked(2).await;
    server.store.unblock_commits();
    join(more).await.unwrap();
    let next = server.agent.turn().await;
    assert_eq!((next.message.text().as_str(), next.attempt), ("blue", 1));
    assert_eq!(next.saved::<String>().unwrap().as_deref(), Some("place"));
    // The journal belongs to the turn that has ended.
    assert!(server.journal(&id).await.is_empty());
    next.end(done());
    server.store.until("finish", 1).await;
    let ended = server.get(&id).await.unwrap();
    assert_eq!(
        (ended.status.state, artifacts(&ended)),
        (TaskState::Completed, vec![("draft".into(), "a".into())])
    );
    assert_eq!(history(&ended), ["hello", "blue"]);
    assert_eq!(
        server.store.steps(),
        ["accept", "report", "queuemessage", "pause", "requeue", "claim", "finish"]
    );
}

#[tokio::test]
async fn record_and_retry_are_one_commit() {
    let mut server = Setup::plain().on_crash(OnCrash::Resume).open();
    let (id, turn) = server.start_task("hello").await;
    turn.end(turn.record().save(&1).then(Outcome::retry("busy")).unwrap());
    let next = server.agent.turn().await;
    assert_eq!((next.attempt, next.saved::<u32>().unwrap()), (2, Some(1)));
    next.send([artifact("a", "b")]);
    next.end(done());
    server.store.until("finish", 1).await;
    assert_eq!(server.get(&id).await.unwrap().status.state, TaskState::Completed);
    assert_eq!(server.store.steps(), ["accept", "retry", "claim", "finish"]);
}
