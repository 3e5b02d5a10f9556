//! One door to the other agents.

use std::sync::Arc;

use a2ad_outbound::agents::{self, Route, Router};
use engine::AgentInfo;
use protocol::{Part, model::AgentSkill};

use crate::common::{House, message};

#[tokio::test]
async fn the_words_choose_the_skill() {
    let house = House::of("demo");
    for (text, first) in [
        ("how much is 10 USD in INR?", "working: Looking up the exchange rates..."),
        ("what is 5 euros in rupees", "working: Looking up the exchange rates..."),
        ("echo how much is 10 USD", "working"),
        ("write about dollars sections=1 delay=0ms", "working: writing section 1 of 1"),
        ("please ask me before you go on", "working"),
    ] {
        assert_eq!(house.talk(&[text]).await[0], first, "{text}");
    }
}

#[tokio::test]
async fn every_example_on_its_card_goes_to_the_skill_that_has_it() {
    let card = agents::info("demo").unwrap();
    let ids: Vec<&str> = card.skills.iter().map(|skill| skill.id.as_str()).collect();
    assert_eq!(ids, ["currency", "echo", "slow-writer", "approver"]);
    let house = House::of("demo");
    for skill in &card.skills {
        for example in skill
            .examples
            .iter()
            .filter(|example| !example.starts_with("hold") && !example.starts_with("the sea"))
        {
            let own = House::of(&skill.id).say(example).await.lines;
            let through = house.say(example).await.lines;
            assert_eq!(own, through, "{example}");
        }
    }
}

#[tokio::test]
async fn it_asks_when_the_words_do_not_tell() {
    let house = House::of("demo");
    let asked = house.say("good morning").await;
    assert_eq!(asked.lines.len(), 1);
    let question = &asked.lines[0];
    assert!(question.starts_with("input_required: Which skill do you want?\ncurrency: "), "{question}");
    assert!(
        question.ends_with(r#" | {"skills":["currency","echo","slow-writer","approver"]}"#),
        "{question}"
    );
    let echoed = house.more(&asked, vec![Part::text("echo this")]).await;
    assert_eq!(echoed.lines, ["artifact echo-result: echo this", "completed"]);
}

#[tokio::test]
async fn the_choice_holds_for_the_whole_task() {
    let house = House::of("demo");
    // "echo" alone would choose another skill.
    let asked = house.say("ask before you go on").await;
    let unclear = house.more(&asked, vec![Part::text("echo")]).await;
    assert_eq!(unclear.lines, ["input_required: Please answer approve or deny."]);
    let done = house.more(&unclear, vec![Part::text("approve")]).await;
    assert_eq!(done.lines[1], "completed: Done: ask before you go on");

    // Also for an agent that saves nothing, and with everything the agent itself has saved.
    let open = House::reopening("demo");
    assert_eq!(open.talk(&["hello", "10 USD in INR"]).await[0], "artifact echo-result: 10 USD in INR");
    assert_eq!(
        open.talk(&["10 USD in INR", "and in EUR?"]).await[2],
        "artifact currency-result-2: 10 USD is 9.26 EUR."
    );
}

#[tokio::test]
async fn a_skill_that_is_named_is_the_one() {
    let house = House::asked_for("demo", "approver");
    let lines = house.talk(&["10 USD in INR", "approve"]).await;
    assert_eq!(lines[1], "completed: Done: 10 USD in INR");
    // A name that is none of its own was meant for whoever handed the turn on.
    let house = House::asked_for("demo", "another-name");
    assert_eq!(house.talk(&["hello"]).await[1], "artifact echo-result: hello");
    assert!(house.talk(&["good morning"]).await[0].starts_with("input_required: Which skill"));
}

#[tokio::test]
async fn an_artifact_is_named_after_the_skill_that_was_asked_for() {
    let house = House::of("demo");
    let asked =
        [("echo", "hello"), ("currency", "1 USD in INR"), ("slow-writer", "the sea sections=3 delay=0ms")];
    for (skill, text) in asked {
        let task = house.ask(skill, text).await;
        let names: Vec<_> = task.artifacts.iter().map(|artifact| artifact.name.as_deref()).collect();
        assert_eq!(names, [Some(format!("{skill}-result").as_str())], "{skill}");
    }
    // The name a skill has elsewhere counts, not that of the agent behind it.
    let skill = |id: &str| AgentSkill { id: id.into(), ..agents::info("echo").unwrap().skills[0].clone() };
    let ids = ["hello", "parrot"];
    let routes = ids.map(|id| Route::new(skill(id), agents::builtin("echo").unwrap()));
    let info = AgentInfo { skills: ids.map(skill).into(), ..agents::info("echo").unwrap() };
    let house = House::with(info, Arc::new(Router::new(routes.into())));
    assert_eq!(house.ask("parrot", "hi").await.artifacts[0].name.as_deref(), Some("parrot-result"));
    // Nobody asked for one: the agent's own name.
    let task = house.settled(message(vec![Part::text("parrot")])).await;
    assert_eq!(task.artifacts[0].name.as_deref(), Some("echo-result"));
}

#[tokio::test]
async fn it_may_begin_early_only_if_all_it_reaches_may() {
    let policy = agents::builtin("demo").unwrap().policy();
    assert!(!policy.overlap);
    assert_eq!(policy.on_crash, agents::builtin("slow-writer").unwrap().policy().on_crash);
    for name in ["approver", "currency", "echo", "tck"] {
        assert!(agents::builtin(name).unwrap().policy().overlap, "{name}");
    }
}

#[test]
fn every_builtin_has_a_profile_and_every_profile_a_builtin() {
    for name in agents::BUILTIN {
        assert!(agents::builtin(name).is_some(), "{name}");
        let info = agents::info(name).unwrap();
        assert_eq!(info.id, *name);
        assert!(!info.skills.is_empty() && !info.input_modes.is_empty());
        assert!(info.skills.iter().all(|skill| !skill.tags.is_empty() && !skill.examples.is_empty()));
    }
    assert!(agents::builtin("none").is_none() && agents::info("none").is_none());
    let demo: Vec<String> = agents::demo().iter().map(|registered| registered.info().id.clone()).collect();
    assert_eq!(demo[..5], ["demo", "currency", "echo", "slow-writer", "approver"]);
}
