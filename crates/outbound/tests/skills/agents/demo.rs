//! The skills of the demo agent are other agents.

use a2ad_outbound::agents;
use engine::{Agent as _, Skill, SkillSet};
use protocol::{Part, model::AgentSkill};

use super::common::{TestServer, message};

#[tokio::test]
async fn keywords_choose_the_skill() {
    let server = TestServer::builtin("demo");
    for (text, first) in [
        ("how much is 10 USD in INR?", "working: Looking up the exchange rates..."),
        ("what is 5 euros in rupees", "working: Looking up the exchange rates..."),
        ("echo how much is 10 USD", "working"),
        ("write about dollars sections=1 delay=0ms", "working: writing section 1 of 1"),
        ("please ask me before you go on", "working"),
    ] {
        assert_eq!(server.send_all(&[text]).await[0], first, "{text}");
    }
}

#[tokio::test]
async fn every_card_example_is_routed_to_its_skill() {
    let demo = agents::builtin("demo").unwrap();
    let ids: Vec<&str> = demo.skill_cards().map(|skill| skill.id.as_str()).collect();
    assert_eq!(ids, ["currency", "echo", "slow-writer", "approver"]);
    let server = TestServer::builtin("demo");
    for skill in demo.skill_cards() {
        for example in skill
            .examples
            .iter()
            .filter(|example| !example.starts_with("hold") && !example.starts_with("the sea"))
        {
            let own = TestServer::builtin(&skill.id).send_text(example).await.lines;
            let through = server.send_text(example).await.lines;
            assert_eq!(own, through, "{example}");
        }
    }
}

#[tokio::test]
async fn unclear_message_is_answered_with_the_skill_list() {
    let server = TestServer::builtin("demo");
    let asked = server.send_text("good morning").await;
    assert_eq!(asked.lines.len(), 1);
    let question = &asked.lines[0];
    assert!(question.starts_with("input_required: Which skill do you want?\ncurrency: "), "{question}");
    assert!(
        question.ends_with(r#" | {"skills":["currency","echo","slow-writer","approver"]}"#),
        "{question}"
    );
    let echoed = server.follow_up(&asked, vec![Part::text("echo this")]).await;
    assert_eq!(echoed.lines, ["artifact echo-result: echo this", "completed"]);
    // An answer that only names a skill: the skill gets the first message.
    let asked = server.send_text("good morning").await;
    let echoed = server.follow_up(&asked, vec![Part::text("echo")]).await;
    assert_eq!(echoed.lines, ["artifact echo-result: good morning", "completed"]);
}

#[tokio::test]
async fn chosen_skill_is_kept_for_the_whole_task() {
    let server = TestServer::builtin("demo");
    // "echo" in a first message would choose another skill.
    let asked = server.send_text("ask before you go on").await;
    let unclear = server.follow_up(&asked, vec![Part::text("echo")]).await;
    assert_eq!(unclear.lines, ["input_required: Please answer approve or deny."]);
    let done = server.follow_up(&unclear, vec![Part::text("approve")]).await;
    assert_eq!(done.lines[1], "completed: Done: ask before you go on");

    // Also for an agent without checkpoints, and with the agent's own checkpoints.
    let open = TestServer::kept_open("demo");
    assert_eq!(open.send_all(&["hello", "10 USD in INR"]).await[0], "input_required: (done) | 10 USD in INR");
    assert_eq!(
        open.send_all(&["10 USD in INR", "and in EUR?"]).await[2],
        "artifact currency-result-2: 10 USD is 9.26 EUR."
    );
}

#[tokio::test]
async fn requested_skill_is_chosen() {
    let server = TestServer::with_skill("demo", "approver");
    let lines = server.send_all(&["10 USD in INR", "approve"]).await;
    assert_eq!(lines[1], "completed: Done: 10 USD in INR");
}

#[tokio::test]
async fn demo_as_one_skill_of_an_agent_selects_among_its_own() {
    let demo = agents::main_skill("demo").unwrap();
    let all = Skill { card: AgentSkill { id: "all".into(), ..demo.card.clone() }, ..demo };
    let parrot = agents::main_skill("echo").unwrap();
    let info = agents::builtin("echo").unwrap().info().clone();
    let server = TestServer::with(info, SkillSet::separate([all, parrot]));
    let asked = server.send_all(&["all", "ask before you go on", "echo"]).await;
    assert_eq!(asked, ["input_required: Please answer approve or deny."]);
}

#[tokio::test]
async fn artifact_is_named_after_the_requested_skill() {
    let server = TestServer::builtin("demo");
    let asked =
        [("echo", "hello"), ("currency", "1 USD in INR"), ("slow-writer", "the sea sections=3 delay=0ms")];
    for (skill, text) in asked {
        let task = server.send_for_skill(skill, text).await;
        let names: Vec<_> = task.artifacts.iter().map(|artifact| artifact.name.as_deref()).collect();
        assert_eq!(names, [Some(format!("{skill}-result").as_str())], "{skill}");
    }
    // The name comes from the id of the skill, not from the agent behind it.
    let echo = agents::main_skill("echo").unwrap();
    let skill = |id: &str| Skill { card: AgentSkill { id: id.into(), ..echo.card.clone() }, ..echo.clone() };
    let info = agents::builtin("echo").unwrap().info().clone();
    let server = TestServer::with(info, SkillSet::separate(["hello", "parrot"].map(skill)));
    assert_eq!(
        server.send_for_skill("parrot", "hi").await.artifacts[0].name.as_deref(),
        Some("parrot-result")
    );
    // Without a requested skill: the agent's own artifact name.
    let task = server.send_and_wait(message(vec![Part::text("parrot")])).await;
    assert_eq!(task.artifacts[0].name.as_deref(), Some("echo-result"));
}

#[tokio::test]
async fn demo_overlaps_only_if_all_its_agents_do() {
    let policy = |name: &str| agents::main_skill(name).unwrap().work.policy();
    assert!(!policy("demo").overlap);
    assert_eq!(policy("demo").on_crash, policy("slow-writer").on_crash);
    for name in ["approver", "currency", "echo", "tck"] {
        assert!(policy(name).overlap, "{name}");
    }
}

#[test]
fn every_builtin_has_card_data() {
    for name in agents::names() {
        let agent = agents::builtin(name).unwrap();
        assert_eq!(agent.info().id, name);
        assert!(!agent.skills().is_empty() && !agent.info().input_modes.is_empty());
        assert!(agent.skill_cards().all(|skill| !skill.tags.is_empty() && !skill.examples.is_empty()));
    }
    assert!(agents::builtin("none").is_none() && agents::main_skill("none").is_none());
    let demo: Vec<String> = agents::demo().iter().map(|registered| registered.info().id.clone()).collect();
    assert_eq!(demo[..5], ["demo", "currency", "echo", "slow-writer", "approver"]);
}
