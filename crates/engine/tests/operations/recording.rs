//! What an agent records through its turn, and how its result becomes the task's.

use std::sync::Arc;

use a2ad_engine::{Agent, AgentResult, Error, Outcome, Scope, Turn, agent_fn};
use protocol::{Operation, Reply, Task, TaskState};
use tokio::sync::Mutex;

use crate::common::{
    MessageBuilder, Setup, TestServer, artifacts, done, join, msg, need_input, reply, status_text, task,
    with_timeout,
};

/// A server with this agent beside the scripted one.
fn server_with(agent: impl Agent) -> TestServer {
    Setup::plain().with("other", agent).open()
}

async fn send(server: &TestServer, msg: MessageBuilder) -> Reply {
    let scope = Scope::anonymous("default", "other");
    reply(server.call(scope, Operation::SendMessage(msg.into())).await.unwrap())
}

async fn send_for_task(server: &TestServer, msg: MessageBuilder) -> Task {
    task(send(server, msg).await)
}

#[tokio::test]
async fn error_of_an_agent_fails_the_task_with_its_text() {
    let mut server = Setup::plain().open();
    let call = server.spawn_send(msg("hello"));
    let parse_error = "x".parse::<u32>().unwrap_err();
    server.agent.turn().await.fail(parse_error.clone());
    let failed = task(join(call).await.unwrap());
    assert_eq!(failed.status.state, TaskState::Failed);
    assert_eq!(status_text(&failed), Some(parse_error.to_string()));
    let message = failed.status.message.unwrap();
    assert_eq!(
        (message.task_id.as_ref(), message.context_id.as_ref()),
        (Some(&failed.id), Some(&failed.context_id))
    );
}

#[tokio::test]
async fn error_of_the_engine_is_not_shown_to_the_client() {
    let mut server = Setup::plain().attempts(2).open();
    let call = server.spawn_send(msg("hello"));
    let secret = || "no such table: secrets".to_owned();
    // A temporary error is retried.
    server.agent.turn().await.fail(Error::Unavailable(secret()));
    server.agent.turn().await.fail(Error::Broken(secret()));
    let failed = task(join(call).await.unwrap());
    assert_eq!(status_text(&failed).as_deref(), Some("the server could not read what the agent needs"));
}

#[tokio::test]
async fn nothing_is_recorded_after_the_outcome() {
    let mut server = Setup::plain().open();
    let call = server.spawn_send(msg("hello"));
    let turn = server.agent.turn().await;
    turn.end(done());
    join(call).await.unwrap();
    assert!(turn.progress("late").await.unwrap_err().is_lost());
}

#[tokio::test]
async fn return_values_of_a_function_become_outcomes() {
    let text = server_with(agent_fn(async |turn: Turn| turn.text().to_uppercase()));
    let done = send_for_task(&text, msg("hello")).await;
    assert_eq!(
        (done.status.state, artifacts(&done)),
        (TaskState::Completed, vec![("result".into(), "HELLO".into())])
    );
    assert_eq!(done.artifacts[0].name.as_deref(), Some("result"));

    let nothing = server_with(agent_fn(async |_| ()));
    let done = send_for_task(&nothing, msg("hello")).await;
    assert_eq!((done.status.state, done.artifacts.len()), (TaskState::Completed, 0));

    let message = server_with(agent_fn(async |_| Outcome::message("hi")));
    match send(&message, msg("hello")).await {
        Reply::SentMessage(message) => assert_eq!((message.text(), message.task_id), ("hi".into(), None)),
        other => panic!("{other:?} where a bare message was expected"),
    }

    let failing = server_with(agent_fn(async |turn: Turn| turn.text().parse::<u32>().map(|_| "a number")));
    assert_eq!(send_for_task(&failing, msg("7")).await.status.state, TaskState::Completed);
    assert_eq!(send_for_task(&failing, msg("seven")).await.status.state, TaskState::Failed);
}

#[tokio::test]
async fn chunks_continue_an_open_artifact_in_the_next_turn() {
    async fn run(turn: Turn) -> AgentResult<Outcome> {
        turn.chunk("open", turn.text()).await?;
        turn.chunk("closed", format!("<{}", turn.text())).await?;
        turn.record().last_chunk("closed", ">").await?;
        Ok(if turn.text() == "end" { Outcome::done() } else { Outcome::ask("more?") })
    }
    let server = server_with(agent_fn(run));
    let asked = send_for_task(&server, msg("one")).await;
    assert_eq!(artifacts(&asked), [("open".into(), "one".into()), ("closed".into(), "<one>".into())]);
    let done = send_for_task(&server, msg("end").to(&asked.id)).await;
    // The complete artifact is begun anew, the other one is continued.
    assert_eq!(artifacts(&done), [("open".into(), "oneend".into()), ("closed".into(), "<end>".into())]);
}

#[tokio::test]
async fn checkpoint_is_typed_and_committed_with_the_chunk() {
    async fn run(turn: Turn) -> AgentResult<Outcome> {
        let turns: Vec<String> = turn.saved()?.unwrap_or_default();
        let turns = [turns, vec![turn.text()]].concat();
        if turns.len() == 3 {
            return Ok(Outcome::artifact("turns", turns.join(",")));
        }
        turn.record().chunk("log", turn.text()).save(&turns).await?;
        Ok(Outcome::ask("next?"))
    }
    let server = server_with(agent_fn(run));
    let first = send_for_task(&server, msg("a")).await;
    send_for_task(&server, msg("b").to(&first.id)).await;
    assert_eq!(server.store.steps(), ["accept", "pause", "resume", "pause"]);
    let done = send_for_task(&server, msg("c").to(&first.id)).await;
    assert_eq!(artifacts(&done)[1], ("turns".into(), "a,b,c".into()));
}

#[tokio::test]
async fn checkpoint_of_another_type_is_an_error() {
    async fn run(turn: Turn) -> AgentResult<Outcome> {
        match turn.text().as_str() {
            "save" => turn.save("a text").await?,
            _ => {
                turn.saved::<u32>()?;
            }
        }
        Ok(Outcome::ask("next?"))
    }
    let server = server_with(agent_fn(run));
    let asked = send_for_task(&server, msg("save")).await;
    let failed = send_for_task(&server, msg("read").to(&asked.id)).await;
    let text = status_text(&failed).unwrap();
    assert_eq!(text, "the saved state of the task has another form than the agent expects");
}

/// Waits for the cancel, then tries to record more than fits into the queue.
struct RecordsTooLate(Arc<Mutex<Option<bool>>>);

impl Agent for RecordsTooLate {
    async fn run(&self, turn: Turn) -> AgentResult<Outcome> {
        let mut lost = self.0.lock().await;
        turn.record().working().await?;
        turn.cancel.cancelled().await;
        for _ in 0..1_000 {
            if let Err(error) = turn.progress("late").await {
                *lost = Some(error.is_lost());
                return Err(error);
            }
        }
        *lost = Some(false);
        Ok(Outcome::done())
    }
}

#[tokio::test]
async fn turn_of_a_cancelled_task_is_lost() {
    let lost = Arc::new(Mutex::new(None));
    let server = server_with(RecordsTooLate(Arc::clone(&lost)));
    let task = send_for_task(&server, msg("hello").return_immediately()).await;
    let cancel = protocol::CancelTask { id: task.id.clone(), metadata: None, tenant: None };
    let scope = Scope::anonymous("default", "other");
    with_timeout(server.call(scope, Operation::CancelTask(cancel))).await.unwrap();
    // Locked by the agent until it ends.
    while with_timeout(lost.lock()).await.is_none() {
        tokio::task::yield_now().await;
    }
    assert_eq!(*lost.lock().await, Some(true));
}

#[tokio::test]
async fn artifact_of_the_outcome_is_named_after_the_requested_skill() {
    let server = Setup::overlapping().skills(&["shout"]).open();
    for (skill, name) in [(Some("shout"), "shout-result"), (None, "loud")] {
        server.agent.prepare_turn([], Outcome::artifact("loud", "HELLO"));
        let msg = skill.map_or_else(|| msg("hello"), |skill| msg("hello").skill(skill));
        let done = server.send_for_task(msg).await;
        assert_eq!(done.artifacts[0].name.as_deref(), Some(name));
    }
    server.agent.prepare_turn([], need_input("which?"));
    let asked = server.send_for_task(msg("hello")).await;
    server.agent.prepare_turn([], done());
    assert_eq!(server.send_for_task(msg("x").to(&asked.id)).await.status.state, TaskState::Completed);
}
