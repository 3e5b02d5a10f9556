//! A skill requested by id belongs to the task, for all its turns.

use protocol::{Dialect, ErrorKind, TaskState};

use crate::common::{
    Setup, call_in, done, join, msg, need_input, refusal, refused, reply, retryable_failure, task,
};

#[tokio::test]
async fn requested_skill_is_passed_to_the_agent() {
    for setup in [Setup::overlapping(), Setup::plain()] {
        let mut server = setup.skills(&["paint", "draw"]).open();
        for (asked, skill) in [
            (msg("hello").skill("draw"), Some("draw")),
            (msg("hello").skill_in_metadata("paint"), Some("paint")),
            (msg("hello").skill_in_metadata("paint").skill("draw"), Some("draw")),
            (msg("hello"), None),
        ] {
            server.agent.prepare_turn([], done());
            let task = server.send_for_task(asked).await;
            assert_eq!(server.agent.turn().await.skill.as_deref(), skill);
            assert_eq!(server.row(&task.id).await.skill.as_deref(), skill);
        }
    }
}

#[tokio::test]
async fn unknown_skill_is_rejected_with_its_field_name() {
    let mut server = Setup::overlapping().skills(&["paint", "draw"]).open();
    for (asked, handle) in [
        (msg("hello").skill("sing"), false),
        (msg("hello").skill(""), false),
        (msg("hello").skill_in_metadata("Draw"), true),
    ] {
        for dialect in Dialect::ALL {
            let refusal = refusal(server.send_as(call_in(dialect), asked.clone()).await);
            assert_eq!(refusal.kind, ErrorKind::InvalidParams);
            let client_task = match dialect {
                _ if handle => "metadata.skillId",
                Dialect::Draft => "skill",
                _ => "configuration.skillId",
            };
            assert_eq!(refusal.violations[0].field, client_task);
            assert!(refusal.violations[0].problem.contains("paint, draw"), "{:?}", refusal.violations);
        }
    }
    assert!(server.agent.is_idle());
}

#[tokio::test]
async fn later_turns_keep_the_skill() {
    for setup in [Setup::overlapping(), Setup::plain()] {
        let mut server = setup.skills(&["paint", "draw"]).open();
        server.agent.prepare_turn([], need_input("what?"));
        let asked = server.send_for_task(msg("hello").skill("draw")).await;
        server.agent.turn().await;
        for again in [msg("a cat"), msg("a dog").skill("draw")] {
            server.agent.prepare_turn([], need_input("what else?"));
            server.send(again.to(&asked.id)).await.unwrap();
            assert_eq!(server.agent.turn().await.skill.as_deref(), Some("draw"));
        }
        let before = server.get(&asked.id).await.unwrap();
        for (another, dialect, field) in [
            (msg("a song").skill("paint"), Dialect::V1, "configuration.skillId"),
            (msg("a song").skill("paint"), Dialect::Draft, "skill"),
            (msg("a song").skill_in_metadata("paint"), Dialect::V1, "metadata.skillId"),
        ] {
            let refusal = refusal(server.send_as(call_in(dialect), another.to(&asked.id)).await);
            assert_eq!(
                (refusal.kind, refusal.violations[0].field.as_str()),
                (ErrorKind::InvalidParams, field)
            );
            assert!(refusal.violations[0].problem.contains("draw"), "{:?}", refusal.violations);
        }
        assert_eq!(server.get(&asked.id).await.unwrap(), before);
        assert!(server.agent.is_idle());
        // Also after a reopening.
        server.agent.prepare_turn([], done());
        server.send(msg("that is all").to(&asked.id)).await.unwrap();
        server.agent.turn().await;
        server.agent.prepare_turn([], done());
        let more = msg("or not").to(&asked.id);
        let answer = server.send_as(call_in(Dialect::Draft), more).await.unwrap();
        assert_eq!(task(reply(answer)).status.state, TaskState::Completed);
        assert_eq!(server.agent.turn().await.skill.as_deref(), Some("draw"));
    }
}

#[tokio::test]
async fn later_message_can_set_the_skill() {
    for setup in [Setup::overlapping(), Setup::plain()] {
        let mut server = setup.skills(&["paint", "draw"]).open();
        server.agent.prepare_turn([], need_input("which skill?"));
        let asked = server.send_for_task(msg("hello")).await;
        assert_eq!(server.agent.turn().await.skill, None);
        server.agent.prepare_turn([], need_input("what?"));
        server.send(msg("that one").skill_in_metadata("draw").to(&asked.id)).await.unwrap();
        assert_eq!(server.agent.turn().await.skill.as_deref(), Some("draw"));
        assert_eq!(server.row(&asked.id).await.skill.as_deref(), Some("draw"));
        // From then on the task keeps it.
        assert_eq!(
            refused(server.send(msg("no").skill("paint").to(&asked.id)).await),
            ErrorKind::InvalidParams
        );
        server.agent.prepare_turn([], done());
        server.send(msg("a cat").to(&asked.id)).await.unwrap();
        assert_eq!(server.agent.turn().await.skill.as_deref(), Some("draw"));
    }
}

#[tokio::test]
async fn skill_of_a_queued_message_applies_to_the_next_turn() {
    let mut server = Setup::plain().skills(&["paint", "draw"]).open();
    let (id, turn) = server.start_task("hello").await;
    server.send(msg("draw it").skill("draw").to(&id).return_immediately()).await.unwrap();
    turn.end(need_input("which?"));
    let next = server.agent.turn().await;
    assert_eq!((next.message.text().as_str(), next.skill.as_deref()), ("draw it", Some("draw")));
}

#[tokio::test]
async fn skill_is_kept_in_the_queue_and_in_retries() {
    let mut server = Setup::plain().skills(&["draw"]).slots(1).open();
    let (_, running) = server.start_task("hello").await;
    let call = server.spawn_send(msg("a cat").skill("draw"));
    server.store.until("accept", 2).await;
    server.agent.prepare_turn([], retryable_failure("busy"));
    running.end(done());
    for attempt in 1..=2 {
        let turn = server.agent.turn().await;
        assert_eq!((turn.attempt, turn.skill.as_deref()), (attempt, Some("draw")));
        turn.end(done());
    }
    join(call).await.unwrap();
}
