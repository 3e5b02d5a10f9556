//! Many messages at once to one task of the draft dialect: each is decided on the state it meets.

use a2ad_engine::{Agent, AgentResult, Call, CallResponse, Error, ExecutionPolicy, Outcome, Scope, Turn};
use futures_util::future::join_all;
use protocol::{Dialect, ErrorKind, GetTask, Operation, Task, TaskState};

use crate::common::{
    MessageBuilder, Setup, TestServer, call_in, done, history, msg, reply, task, with_timeout,
};

const SENDERS: usize = 64;
/// Messages that a working task keeps for its next turn.
const KEPT: usize = 16;

/// Completes at its first poll.
struct Immediate;

impl Agent for Immediate {
    async fn run(&self, _: Turn) -> AgentResult<Outcome> {
        Ok(Outcome::done())
    }

    fn policy(&self) -> ExecutionPolicy {
        ExecutionPolicy::default().with_overlap(true)
    }
}

fn message(number: usize) -> MessageBuilder {
    msg(&format!("message {number}")).client_task("t-1")
}

/// Sends messages with these numbers to one task at the same time.
async fn send_all(
    server: &TestServer,
    call: impl Fn() -> Call,
    message: impl Fn(usize) -> MessageBuilder,
) -> Vec<Result<CallResponse, Error>> {
    let sends: Vec<_> = (0..SENDERS).map(|number| server.spawn_send_as(call(), message(number))).collect();
    with_timeout(join_all(sends)).await.into_iter().map(Result::unwrap).collect()
}

async fn send(server: &TestServer, call: Call, msg: MessageBuilder) -> Task {
    task(reply(server.send_as(call, msg).await.unwrap()))
}

#[tokio::test]
async fn every_message_to_a_finished_task_gets_its_own_turn() {
    let server = Setup::plain().with("immediate", Immediate).open();
    let scope = || Scope::anonymous("default", "immediate");
    let call = || Call { origin: Dialect::Draft.into(), ..Call::new(scope()) };
    send(&server, call(), msg("first").client_task("t-1")).await;
    for answer in send_all(&server, call, message).await {
        let answered = task(reply(answer.unwrap()));
        assert_eq!((answered.id.as_str(), answered.status.state), ("t-1", TaskState::Completed));
    }
    let get = GetTask { id: "t-1".into(), history_length: None, tenant: None };
    let stored = task(reply(server.call(scope(), Operation::GetTask(get)).await.unwrap()));
    let mut texts = history(&stored);
    texts.sort();
    let mut expected: Vec<_> = (0..SENDERS).map(|number| format!("message {number}")).collect();
    expected.push("first".into());
    expected.sort();
    assert_eq!(texts, expected);
}

#[tokio::test]
async fn one_message_starts_the_turn_and_as_many_as_fit_are_kept_for_the_next() {
    let mut server = Setup::plain().open();
    let call = || call_in(Dialect::Draft);
    server.agent.prepare_turn([], done());
    let first = send(&server, call(), msg("first").client_task("t-1")).await;
    server.agent.turn().await;
    let (mut accepted, mut refused) = (0, 0);
    for answer in send_all(&server, call, |number| message(number).return_immediately()).await {
        match answer {
            Ok(_) => accepted += 1,
            Err(Error::Refused(error)) => {
                assert_eq!(error.kind, ErrorKind::UnsupportedOperation, "{error}");
                assert!(error.message.contains("16 unanswered messages"), "{error}");
                refused += 1;
            }
            Err(error) => panic!("{error:?} where a decision was expected"),
        }
    }
    assert_eq!((accepted, refused), (1 + KEPT, SENDERS - 1 - KEPT));
    let row = server.row(&first.id).await;
    assert_eq!((row.turn, row.unanswered), (2, 16));
    let turn = server.agent.turn().await;
    assert!(turn.message.text().starts_with("message "));
    assert!(server.agent.is_idle());
}
