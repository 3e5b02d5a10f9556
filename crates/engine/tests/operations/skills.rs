//! A skill that is asked for by id is the task's, for all its turns.

use protocol::{Dialect, ErrorKind, TaskState};

use crate::common::{Setup, ask, done, joined, refusal, refused, reply, say, speaking, task, try_again};

#[tokio::test]
async fn a_skill_the_agent_has_reaches_it() {
    for setup in [Setup::overlapping(), Setup::plain()] {
        let mut house = setup.skills(&["paint", "draw"]).open();
        for (asked, skill) in [
            (say("hello").skill("draw"), Some("draw")),
            (say("hello").skill_in_metadata("paint"), Some("paint")),
            (say("hello").skill_in_metadata("paint").skill("draw"), Some("draw")),
            (say("hello"), None),
        ] {
            house.stage.prepare_turn([], done());
            let task = house.send_for_task(asked).await;
            assert_eq!(house.stage.turn().await.skill.as_deref(), skill);
            assert_eq!(house.row(&task.id).await.skill.as_deref(), skill);
        }
    }
}

#[tokio::test]
async fn a_skill_the_agent_does_not_have_is_refused_by_name() {
    let mut house = Setup::overlapping().skills(&["paint", "draw"]).open();
    for (asked, aside) in [
        (say("hello").skill("sing"), false),
        (say("hello").skill(""), false),
        (say("hello").skill_in_metadata("Draw"), true),
    ] {
        for dialect in Dialect::ALL {
            let refusal = refusal(house.send_as(speaking(dialect), asked.clone()).await);
            assert_eq!(refusal.kind, ErrorKind::InvalidParams);
            let named = match dialect {
                _ if aside => "metadata.skillId",
                Dialect::Draft => "skill",
                _ => "configuration.skillId",
            };
            assert_eq!(refusal.violations[0].field, named);
            assert!(refusal.violations[0].problem.contains("paint, draw"), "{:?}", refusal.violations);
        }
    }
    assert!(house.stage.is_quiet());
}

#[tokio::test]
async fn later_turns_are_about_the_same_skill() {
    for setup in [Setup::overlapping(), Setup::plain()] {
        let mut house = setup.skills(&["paint", "draw"]).open();
        house.stage.prepare_turn([], ask("what?"));
        let asked = house.send_for_task(say("hello").skill("draw")).await;
        house.stage.turn().await;
        for again in [say("a cat"), say("a dog").skill("draw")] {
            house.stage.prepare_turn([], ask("what else?"));
            house.send(again.to(&asked.id)).await.unwrap();
            assert_eq!(house.stage.turn().await.skill.as_deref(), Some("draw"));
        }
        let before = house.get(&asked.id).await.unwrap();
        for (another, dialect, field) in [
            (say("a song").skill("paint"), Dialect::V1, "configuration.skillId"),
            (say("a song").skill("paint"), Dialect::Draft, "skill"),
            (say("a song").skill_in_metadata("paint"), Dialect::V1, "metadata.skillId"),
        ] {
            let refusal = refusal(house.send_as(speaking(dialect), another.to(&asked.id)).await);
            assert_eq!(
                (refusal.kind, refusal.violations[0].field.as_str()),
                (ErrorKind::InvalidParams, field)
            );
            assert!(refusal.violations[0].problem.contains("draw"), "{:?}", refusal.violations);
        }
        assert_eq!(house.get(&asked.id).await.unwrap(), before);
        assert!(house.stage.is_quiet());
        // Also when it is over and goes on.
        house.stage.prepare_turn([], done());
        house.send(say("that is all").to(&asked.id)).await.unwrap();
        house.stage.turn().await;
        house.stage.prepare_turn([], done());
        let more = say("or not").to(&asked.id);
        let answer = house.send_as(speaking(Dialect::Draft), more).await.unwrap();
        assert_eq!(task(reply(answer)).status.state, TaskState::Completed);
        assert_eq!(house.stage.turn().await.skill.as_deref(), Some("draw"));
    }
}

#[tokio::test]
async fn a_task_without_a_skill_is_given_one_by_a_later_message() {
    for setup in [Setup::overlapping(), Setup::plain()] {
        let mut house = setup.skills(&["paint", "draw"]).open();
        house.stage.prepare_turn([], ask("which skill?"));
        let asked = house.send_for_task(say("hello")).await;
        assert_eq!(house.stage.turn().await.skill, None);
        house.stage.prepare_turn([], ask("what?"));
        house.send(say("that one").skill_in_metadata("draw").to(&asked.id)).await.unwrap();
        assert_eq!(house.stage.turn().await.skill.as_deref(), Some("draw"));
        assert_eq!(house.row(&asked.id).await.skill.as_deref(), Some("draw"));
        // From then on it is the task's.
        assert_eq!(
            refused(house.send(say("no").skill("paint").to(&asked.id)).await),
            ErrorKind::InvalidParams
        );
        house.stage.prepare_turn([], done());
        house.send(say("a cat").to(&asked.id)).await.unwrap();
        assert_eq!(house.stage.turn().await.skill.as_deref(), Some("draw"));
    }
}

#[tokio::test]
async fn a_skill_named_while_the_task_is_at_work_is_for_what_comes_next() {
    let mut house = Setup::plain().skills(&["paint", "draw"]).open();
    let (id, turn) = house.begin("hello").await;
    house.send(say("draw it").skill("draw").to(&id).at_once()).await.unwrap();
    turn.end(ask("which?"));
    let next = house.stage.turn().await;
    assert_eq!((next.message.text().as_str(), next.skill.as_deref()), ("draw it", Some("draw")));
}

#[tokio::test]
async fn a_skill_waits_in_the_queue_and_is_tried_again() {
    let mut house = Setup::plain().skills(&["draw"]).slots(1).open();
    let (_, running) = house.begin("hello").await;
    let call = house.send_aside(say("a cat").skill("draw"));
    house.store.until("accept", 2).await;
    house.stage.prepare_turn([], try_again("busy"));
    running.end(done());
    for attempt in 1..=2 {
        let turn = house.stage.turn().await;
        assert_eq!((turn.attempt, turn.skill.as_deref()), (attempt, Some("draw")));
        turn.end(done());
    }
    joined(call).await.unwrap();
}
