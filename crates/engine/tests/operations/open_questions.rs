//! A backend that cannot take the answer to its question any more: the task fails at once.

use std::{
    future,
    sync::{Arc, Mutex},
};

use a2ad_engine::{DynAgent, OpenQuestion, Outcome, Skill, Turn, agent_fn};
use protocol::{TaskId, TaskState};

use crate::common::{Setup, TestServer, msg, reason, skill, with_timeout};

type Questions = Arc<Mutex<Vec<OpenQuestion>>>;

/// An agent that asks in each turn, and its questions.
fn asking() -> (TestServer, Questions) {
    let questions = Questions::default();
    let kept = Arc::clone(&questions);
    let agent = agent_fn(move |turn: Turn| {
        kept.lock().unwrap().extend(turn.open_question());
        future::ready(match turn.text().as_str() {
            "sign in" => Outcome::ask_for_credentials("sign in"),
            _ => Outcome::ask("which?"),
        })
    });
    let work = Skill::new(skill("ask"), DynAgent::new(agent));
    let server = Setup::plain().separate([work]).open();
    (server, questions)
}

async fn until_failed(server: &TestServer, id: &TaskId) {
    with_timeout(async {
        while server.get(id).await.unwrap().status.state != TaskState::Failed {
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert_eq!(reason(&server.get(id).await.unwrap()).as_deref(), Some("elicitation_lost"));
}

#[tokio::test]
async fn lost_question_fails_its_task_at_once() {
    let (server, questions) = asking();
    for text in ["hello", "sign in"] {
        let task = server.send_for_task(msg(text)).await;
        assert!(task.status.state.is_interrupted());
        let question = questions.lock().unwrap().pop().unwrap();
        question.lose("gone".into());
        until_failed(&server, &task.id).await;
    }
}

#[tokio::test]
async fn lost_question_that_was_answered_leaves_its_task_alone() {
    let (server, questions) = asking();
    let task = server.send_for_task(msg("hello")).await;
    server.send_for_task(msg("this one").to(&task.id)).await;
    let other = server.send_for_task(msg("hello")).await;
    let [first, second, later] = std::mem::take(&mut *questions.lock().unwrap()).try_into().ok().unwrap();
    first.lose("gone".into());
    // It takes the same way, and begins after it.
    later.lose("gone".into());
    until_failed(&server, &other.id).await;
    assert_eq!(server.get(&task.id).await.unwrap().status.state, TaskState::InputRequired);
    second.lose("gone".into());
    until_failed(&server, &task.id).await;
}
