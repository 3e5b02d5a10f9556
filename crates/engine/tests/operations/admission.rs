//! The arguments of a message are checked before its work gets them, whenever that runs.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use a2ad_engine::{
    AgentResult, DynAgent, Outcome, SchemaCheck, Skill, SkillInput, SkillSchema, Turn, agent_fn,
};
use protocol::{Dialect, Json, TaskState};

use crate::common::{MessageBuilder, Setup, call_in, msg, reply, skill, status_text, task};

/// Allows objects with this member.
struct Member(&'static str, Json);

impl SkillSchema for Member {
    fn text(&self) -> &Json {
        &self.1
    }

    fn required(&self) -> &[String] {
        &[]
    }

    fn single_text(&self) -> Option<&str> {
        None
    }

    fn allows(&self, value: &Json, _steps: &mut u64) -> Option<bool> {
        Some(value.as_str().contains(&format!("{:?}", self.0)))
    }

    fn check(&self, _root: &'static str, value: &Json) -> SchemaCheck {
        let is_valid = self.allows(value, &mut 0) == Some(true);
        SchemaCheck::Done(if is_valid { Ok(()) } else { Err(format!("arguments.{}: is missing", self.0)) })
    }

    fn check_text(&self, root: &'static str, text: &str) -> SchemaCheck {
        self.check(root, &Json::parse(text).unwrap())
    }
}

/// What the work of skills got, in order.
type Received = Arc<Mutex<Vec<String>>>;

/// A skill whose arguments have the member of its name, and whose work does what that says.
fn checked(id: &'static str, received: &Received) -> Skill {
    let received = Arc::clone(received);
    let work = DynAgent::new(agent_fn(move |turn: Turn| work(turn, Arc::clone(&received))));
    let schema: Arc<dyn SkillSchema> = Arc::new(Member(id, Json::parse("{}").unwrap()));
    Skill { input: SkillInput::Arguments(Some(schema)), ..Skill::new(skill(id), work) }
}

async fn work(turn: Turn, received: Received) -> AgentResult<Outcome> {
    let arguments = turn.arguments().map_or("none", Json::as_str).to_owned();
    received.lock().unwrap().push(format!("{} {arguments}", turn.skill.as_deref().unwrap_or_default()));
    tokio::time::sleep(Duration::from_millis(100)).await;
    if arguments.contains("wait") {
        turn.cancel.cancelled().await;
    } else if arguments.contains("retry") && turn.attempt == 1 {
        return Ok(Outcome::retry("busy"));
    } else if arguments.contains("ask") {
        return Ok(Outcome::ask("which?"));
    } else if arguments.contains("save") {
        return turn.record().save("left").then(Outcome::fail("broken"));
    }
    Ok(Outcome::done())
}

/// A message that selects the skill `greet`.
fn greet(arguments: &str) -> MessageBuilder {
    msg("greet").data(arguments)
}

#[tokio::test]
async fn rejected_message_needs_no_slot_and_reaches_no_work() {
    let received = Received::default();
    let skills = ["greet", "other"].map(|id| checked(id, &received));
    let server = Setup::plain().slots(1).separate(skills).open();
    server.send(greet(r#"{"greet":"wait"}"#).return_immediately()).await.unwrap();
    for message in [greet("{}"), greet("{}").return_immediately()] {
        let task = server.send_for_task(message).await;
        let text = status_text(&task);
        assert_eq!(
            (task.status.state, text.as_deref()),
            (TaskState::Rejected, Some("arguments.greet: is missing"))
        );
    }
    // Nor does the question which skill is wanted.
    let task = server.send_for_task(msg("hello").return_immediately()).await;
    assert_eq!(task.status.state, TaskState::InputRequired);
    assert_eq!(*received.lock().unwrap(), [r#"greet {"greet":"wait"}"#]);
}

/// The first turn asks, or is tried again, when there is a second message already.
#[tokio::test]
async fn message_to_a_working_task_is_checked_before_its_work_gets_it() {
    let next = || msg("").data("{}");
    let other = || msg("").data(r#"{"other":"b"}"#).skill("other");
    let good = || msg("").data(r#"{"greet":"b"}"#);
    for (first, second, state, last) in [
        ("ask", next(), TaskState::Rejected, r#"greet {"greet":"ask"}"#),
        ("ask", good(), TaskState::Completed, r#"greet {"greet":"b"}"#),
        ("ask", other(), TaskState::Completed, r#"other {"other":"b"}"#),
        // The message of the first turn has not been checked for that skill.
        ("retry", other(), TaskState::Rejected, r#"greet {"greet":"retry"}"#),
    ] {
        let received = Received::default();
        let skills = ["greet", "other"].map(|id| checked(id, &received));
        let server = Setup::plain().separate(skills).open();
        let task =
            server.send_for_task(greet(&format!(r#"{{"greet":"{first}"}}"#)).return_immediately()).await;
        let answered = server.send_for_task(second.to(&task.id)).await;
        assert_eq!(answered.status.state, state, "{first} {:?}", answered.status);
        assert_eq!(received.lock().unwrap().last().unwrap(), last);
    }
}

#[tokio::test]
async fn reopened_task_begins_without_the_checkpoint_of_its_last_turn() {
    let received = Received::default();
    let skills = ["greet", "other"].map(|id| checked(id, &received));
    let server = Setup::plain().separate(skills).open();
    let failed = server.send_for_task(greet(r#"{"greet":"save"}"#)).await;
    assert_eq!(failed.status.state, TaskState::Failed);
    // The draft reopens it.
    let draft = |message: MessageBuilder| server.send_as(call_in(Dialect::Draft), message.to(&failed.id));
    let reopened = task(reply(draft(msg("again")).await.unwrap()));
    assert_eq!(reopened.status.state, TaskState::InputRequired);
    let answered = task(reply(draft(msg("").data("{}")).await.unwrap()));
    assert_eq!(status_text(&answered).as_deref(), Some("arguments.greet: is missing"));
    assert_eq!(received.lock().unwrap().len(), 1);
}
