//! A task that exceeds its size limit fails and accepts no more messages.

use a2ad_engine::{Outcome, Update};
use protocol::{ErrorKind, ListTasks, TaskState};

use crate::common::{
    Setup, artifact, artifacts, bare_message, chunk, done, join, msg, need_input, progress, refusal,
    retryable_failure, status_metadata, status_text, task,
};

#[tokio::test]
async fn task_over_its_size_limit_fails_and_keeps_its_artifacts() {
    let mut server = Setup::plain().max_task(4_096).open();
    let call = server.spawn_send(msg("hello"));
    let turn = server.agent.turn().await;
    turn.send([artifact("a", "kept")]);
    server.store.until("report", 1).await;
    turn.send([chunk("a", &"x".repeat(5_000))]);
    let failed = task(join(call).await.unwrap());
    assert_eq!(failed.status.state, TaskState::Failed);
    assert_eq!(status_text(&failed).as_deref(), Some("the task is larger than 4096 bytes"));
    assert_eq!(artifacts(&failed), [("a".into(), "kept".into())]);
    turn.dropped().await;
}

#[tokio::test]
async fn size_limit_applies_to_overlapping_agents() {
    let server = Setup::overlapping().max_task(4_096).open();
    let too_much = "x".repeat(5_000);
    let turns: [(Vec<Update>, Outcome); 4] = [
        (vec![artifact("a", &too_much)], done()),
        (vec![bare_message(&too_much)], done()),
        (vec![], need_input(&too_much)),
        (vec![], retryable_failure(&too_much)),
    ];
    for (updates, outcome) in turns {
        server.agent.prepare_turn(updates, outcome);
        let failed = server.send_for_task(msg("hello")).await;
        assert_eq!(failed.status.state, TaskState::Failed);
        assert_eq!(status_text(&failed).as_deref(), Some("the task is larger than 4096 bytes"));
        assert!(failed.artifacts.is_empty());
    }
    // The limit counts the message and the updates together.
    server.agent.prepare_turn([artifact("a", &"x".repeat(2_500))], done());
    assert_eq!(server.send_for_task(msg(&"y".repeat(2_500))).await.status.state, TaskState::Failed);
    server.agent.prepare_turn([artifact("a", &"x".repeat(2_500))], done());
    assert_eq!(server.send_for_task(msg("hello")).await.status.state, TaskState::Completed);
}

#[tokio::test]
async fn message_over_the_task_size_limit_is_rejected() {
    for setup in [Setup::overlapping(), Setup::plain()] {
        let mut server = setup.max_task(4_096).open();
        let refusal = refusal(server.send(msg(&"y".repeat(5_000))).await);
        assert_eq!(refusal.kind, ErrorKind::InvalidParams);
        assert_eq!(refusal.violations[0].field, "message.parts");
        assert!(refusal.violations[0].problem.contains("4096"), "{:?}", refusal.violations);
        assert!(server.agent.is_idle());
        assert_eq!(server.list(ListTasks::default()).await.unwrap().total_size, 0);
    }
}

#[tokio::test]
async fn follow_up_over_the_task_size_limit_is_rejected() {
    for setup in [Setup::overlapping(), Setup::plain()] {
        let mut server = setup.max_task(4_096).open();
        server.agent.prepare_turn([], need_input("which?"));
        let asked = server.send_for_task(msg(&"y".repeat(2_000))).await;
        assert_eq!(asked.status.state, TaskState::InputRequired);
        server.agent.turn().await;
        let refusal = refusal(server.send(msg(&"z".repeat(3_000)).to(&asked.id)).await);
        assert_eq!(
            (refusal.kind, refusal.violations[0].field.as_str()),
            (ErrorKind::InvalidParams, "message.parts")
        );
        assert!(refusal.violations[0].problem.contains("may hold 4096"), "{:?}", refusal.violations);
        // A shorter one is accepted, and its retry is replayed although another message would not fit.
        let short = msg(&"z".repeat(800)).to(&asked.id);
        server.agent.prepare_turn([], done());
        let ended = server.send_for_task(short.clone()).await;
        assert_eq!(ended.status.state, TaskState::Completed);
        server.agent.turn().await;
        assert_eq!(server.send_for_task(short).await, ended);
    }
}

#[tokio::test]
async fn message_to_a_working_task_over_the_size_limit_is_rejected() {
    let mut server = Setup::plain().max_task(4_096).open();
    let (id, turn) = server.start_task("hello").await;
    let refusal = refusal(server.send(msg(&"z".repeat(5_000)).to(&id).return_immediately()).await);
    assert_eq!(
        (refusal.kind, refusal.violations[0].field.as_str()),
        (ErrorKind::InvalidParams, "message.parts")
    );
    server.send(msg("more").to(&id).return_immediately()).await.unwrap();
    turn.end(done());
    server.store.until("finish", 1).await;
}

#[tokio::test]
async fn empty_updates_count_against_the_size_limit() {
    let empty_chunk =
        || Update::Artifact { artifact: protocol::Artifact::new("a", Vec::new()), append: true, last: false };
    let mut server = Setup::plain().max_task(4_096).open();
    let call = server.spawn_send(msg("hello"));
    let turn = server.agent.turn().await;
    // Each in a commit of its own, and then many at once.
    for count in 1..=8 {
        turn.send([empty_chunk()]);
        server.store.until("report", count).await;
    }
    turn.send((0..100).map(|_| empty_chunk()));
    turn.end(done());
    let failed = task(join(call).await.unwrap());
    assert_eq!(failed.status.state, TaskState::Failed);
    assert_eq!(status_text(&failed).as_deref(), Some("the task is larger than 4096 bytes"));
    assert_eq!(status_metadata(&failed), Some(r#"{"a2ad":{"reason":"too_large"}}"#));
    assert!(server.row(&failed.id).await.size <= 2 * 4_096);
}

#[tokio::test]
async fn progress_messages_never_fail_the_task_and_are_bounded() {
    for (setup, text) in [(Setup::plain(), ""), (Setup::plain(), "more"), (Setup::overlapping(), "more")] {
        let mut server = setup.max_task(4_096).open();
        let call = server.spawn_send(msg("hello"));
        let turn = server.agent.turn().await;
        // Each in a commit of its own, and then many at once.
        for count in 1..=8 {
            turn.send([progress(text)]);
            server.store.until("report", count).await;
        }
        turn.send((0..100).map(|_| progress(text)));
        // They take no space from the result.
        turn.send([artifact("a", &"x".repeat(3_000))]);
        turn.end(done());
        let ended = task(join(call).await.unwrap());
        assert_eq!((ended.status.state, ended.artifacts.len()), (TaskState::Completed, 1));
        let row = server.row(&ended.id).await;
        assert!(row.progress_size > 2_048 && row.progress_size <= 2 * 4_096, "{row:?}");
        assert!(row.size - row.progress_size <= 2 * 4_096, "{row:?}");
    }
}

#[tokio::test]
async fn progress_messages_of_earlier_turns_do_not_limit_messages() {
    let mut server = Setup::plain().max_task(4_096).open();
    server.agent.prepare_turn((0..20).map(|_| progress("more")), need_input("which?"));
    let asked = server.send_for_task(msg("hello")).await;
    assert!(server.row(&asked.id).await.progress_size > 2_048);
    server.agent.turn().await;
    server.agent.prepare_turn([artifact("a", &"x".repeat(500))], done());
    let ended = server.send_for_task(msg(&"y".repeat(1_000)).to(&asked.id)).await;
    assert_eq!(ended.status.state, TaskState::Completed);
}

#[tokio::test]
async fn checkpoint_over_its_size_limit_fails_the_agent() {
    let mut server = Setup::plain().max_saved(16).open();
    let call = server.spawn_send(msg("hello"));
    let turn = server.agent.turn().await;
    turn.send([Update::Save(vec![b'1'; 16].into())]);
    server.store.until("report", 1).await;
    let error = turn.save(&"seventeen bytes").await.unwrap_err().to_string();
    assert_eq!(error, "the agent saved a checkpoint of 17 bytes and limits.max_saved is 16 bytes");
    // What is recorded together with it is not recorded either.
    turn.send([artifact("a", "lost"), Update::Save(vec![b'1'; 17].into())]);
    let failed = task(join(call).await.unwrap());
    assert_eq!((failed.status.state, failed.artifacts.len()), (TaskState::Failed, 0));
    assert_eq!(status_text(&failed), Some(error));
}

#[tokio::test]
async fn task_that_the_store_cannot_hold_fails() {
    let mut server = Setup::plain().open();
    let call = server.spawn_send(msg("hello"));
    let turn = server.agent.turn().await;
    turn.send([artifact("a", "kept")]);
    server.store.until("report", 1).await;
    server.store.reject_as_too_large("report");
    turn.send([artifact("b", "too large")]);
    let failed = task(join(call).await.unwrap());
    assert_eq!(failed.status.state, TaskState::Failed);
    assert_eq!(status_text(&failed).as_deref(), Some("injected by the test"));
    assert_eq!(artifacts(&failed), [("a".into(), "kept".into())]);
    turn.dropped().await;
    // The outcome too, and a retry.
    for (step, outcome) in
        [("finish", done()), ("retry", retryable_failure("no")), ("pause", need_input("?"))]
    {
        let call = server.spawn_send(msg("hello"));
        let turn = server.agent.turn().await;
        server.store.reject_as_too_large(step);
        turn.end(outcome);
        let failed = task(join(call).await.unwrap());
        assert_eq!(failed.status.state, TaskState::Failed, "{step}");
        assert_eq!(status_text(&failed).as_deref(), Some("injected by the test"), "{step}");
    }
    // A message that cannot be stored is the client's error, and the server goes on.
    server.store.reject_as_too_large("accept");
    let refusal = refusal(server.send(msg("hello")).await);
    assert_eq!((refusal.kind, refusal.violations[0].field.as_str()), (ErrorKind::InvalidParams, "message"));
    server.agent.clear_prepared();
    let call = server.spawn_send(msg("hello"));
    server.agent.turn().await.end(done());
    assert_eq!(task(join(call).await.unwrap()).status.state, TaskState::Completed);
}
