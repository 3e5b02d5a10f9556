//! Calls of endpoints other than A2A: tasks only, which show their origin.

use std::time::Duration;

use a2ad_engine::{Call, Origin};
use protocol::{Task, TaskState};

use crate::common::{Setup, artifacts, bare_message, done, join, msg, reply, scope, task};

fn call(origin: Origin) -> Call {
    Call { origin, ..Call::new(scope()) }
}

fn metadata(task: &Task) -> &str {
    task.metadata.as_ref().unwrap().as_str()
}

#[tokio::test]
async fn bare_message_becomes_a_task_that_shows_its_origin() {
    let mut server = Setup::plain().open();
    for (origin, shown) in
        [(Origin::Mcp, r#"{"a2ad":{"origin":"mcp"}}"#), (Origin::Run, r#"{"a2ad":{"origin":"run"}}"#)]
    {
        let sent = server.spawn_send_as(call(origin), msg("hello"));
        let turn = server.agent.turn().await;
        // The task is visible before the agent records anything.
        let got = server.get(&turn.task_id).await.unwrap();
        assert_eq!((metadata(&got), got.status.state), (shown, TaskState::Submitted));
        turn.send([bare_message("a bare answer")]);
        let sent = task(reply(join(sent).await.unwrap()));
        assert_eq!((metadata(&sent), sent.status.state), (shown, TaskState::Completed));
        assert_eq!(artifacts(&sent)[0].1, "a bare answer");
        assert_eq!(server.engine.origin(&scope(), &sent.id).await.unwrap(), Some(origin));
        assert_eq!(server.row(&sent.id).await.origin, origin);
    }
}

#[tokio::test]
async fn place_in_the_queue_is_shown_beside_the_origin() {
    let mut server = Setup::plain().slots(1).open();
    let (_, turn) = server.start_task("one").await;
    let call = Call { wait: Some(Duration::from_millis(5)), ..call(Origin::Run) };
    // The call does not wait longer than it asks for.
    let queued = task(reply(server.send_as(call, msg("two")).await.unwrap()));
    assert_eq!(queued.status.state, TaskState::Submitted);
    assert_eq!(metadata(&queued), r#"{"a2ad":{"origin":"run","queued":1}}"#);
    turn.end(done());
    server.agent.turn().await.end(done());
}
