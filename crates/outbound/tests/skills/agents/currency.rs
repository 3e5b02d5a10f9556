//! The currency agent, with the dialogues of the protocol's first sample agent.

use protocol::{Content, Json, Message, Part, TaskState};

use super::common::{TestServer, message, show};

const LOOKING: &str = "working: Looking up the exchange rates...";
const PROCESSING: &str = "working: Processing the exchange rates..";

#[tokio::test]
async fn complete_question_is_answered_in_one_turn() {
    let server = TestServer::builtin("currency");
    let seen = server.send_all(&["How much is the exchange rate for 1 USD to INR?"]).await;
    let answer = "artifact currency-result: The exchange rate for 1 USD to INR is 85.49.";
    assert_eq!(seen, [LOOKING, PROCESSING, answer, "completed"]);

    let task = server.send_and_wait(message(vec![Part::text("1 USD to INR")])).await;
    assert_eq!((task.artifacts.len(), &task.artifacts[0].name), (1, &None));
    let question = Part::data(Json::parse(r#"{"amount":10,"from":"USD","to":"INR"}"#).unwrap());
    let asked = server.send(message(vec![question])).await;
    assert_eq!(asked.lines[2], "artifact currency-result: 10 USD is 854.90 INR.");
}

#[tokio::test]
async fn missing_currency_is_asked_for() {
    let server = TestServer::builtin("currency");
    let asked = server.send_text("how much is 1 USD?").await;
    assert_eq!(asked.lines, ["working", "input_required: Which currency do you want to convert to?"]);
    let answer = "artifact currency-result: The exchange rate for 1 USD to CAD is 1.43.";
    assert_eq!(
        server.follow_up(&asked, vec![Part::text("CAD")]).await.lines,
        [LOOKING, PROCESSING, answer, "completed"]
    );
    // An unrelated message keeps the question so far.
    assert_eq!(server.send_all(&["how much is 1 USD?", "hm", "in CAD"]).await[2], answer);
    let picture = Part::new(Content::Raw(vec![1, 2, 3]));
    let asked = server.send(message(vec![picture])).await;
    assert!(asked.lines[0].starts_with("input_required: I cannot read files"), "{:?}", asked.lines);
}

#[tokio::test]
async fn reopened_task_continues_from_its_last_question() {
    let server = TestServer::kept_open("currency");
    let seen = server.send_all(&["10 USD in INR", "and in EUR?"]).await;
    assert_eq!(seen[2], "artifact currency-result-2: 10 USD is 9.26 EUR.");
    let seen = server.send_all(&["10 USD in INR", "make it red", "20 GBP in EUR"]).await;
    assert_eq!(seen[2], "artifact currency-result-2: 20 GBP is 23.97 EUR.");
    // An unrelated message after an answer asks what to convert, and keeps the earlier question.
    let seen = server.send_all(&["10 USD in INR", "make it red"]).await;
    assert!(seen.join("\n").contains("input_required: What shall I convert?"), "{seen:?}");
    let seen = server.send_all(&["10 USD in INR", "make it red", "and in EUR?"]).await;
    assert_eq!(seen[2], "artifact currency-result-2: 10 USD is 9.26 EUR.");
}

#[tokio::test]
async fn new_task_of_a_context_continues_from_earlier_messages() {
    let server = TestServer::builtin("currency");
    let first = server.send_and_wait(message(vec![Part::text("10 USD in INR")])).await;
    let in_context = |text: &str| Message {
        context_id: Some(first.context_id.clone()),
        ..message(vec![Part::text(text)])
    };
    let mut asked = Vec::new();
    for text in ["and in EUR?", "and 20 GBP?", "5 JPY in CHF"] {
        let task = server.send_and_wait(in_context(text)).await;
        assert_ne!(task.id, first.id);
        asked.push(show(&task.artifacts[0].parts));
    }
    assert_eq!(asked, ["10 USD is 9.26 EUR.", "20 GBP is 23.97 EUR.", "5 JPY is 0.02954 CHF."]);
    // An unrelated message does not repeat the earlier question.
    let lost = server.send_and_wait(in_context("make it red")).await;
    assert_eq!(lost.status.state, TaskState::InputRequired);
    // Another context does not share it.
    let other_context = server.send_and_wait(message(vec![Part::text("and in EUR?")])).await;
    assert_eq!(other_context.status.state, TaskState::InputRequired);
}

/// Sends these texts in one context, a task each; returns the last reply.
async fn converse(agent: &str, texts: &[&str]) -> String {
    let server = TestServer::builtin(agent);
    let mut output = message(Vec::new());
    let mut shown = String::new();
    for text in texts {
        let task = server.send_and_wait(Message { parts: vec![Part::text(*text)], ..output.clone() }).await;
        shown = match (task.artifacts.first(), &task.status.message) {
            (Some(artifact), _) => show(&artifact.parts),
            (None, message) => message.as_ref().map(|message| show(&message.parts)).unwrap_or_default(),
        };
        output.context_id = Some(task.context_id);
    }
    shown
}

#[tokio::test]
async fn complete_question_ignores_earlier_ones() {
    let seen = converse("currency", &["10 USD in INR", "EUR to GBP"]).await;
    assert_eq!(seen, "The exchange rate for 1 EUR to GBP is 0.8345.");
    let seen = converse("currency", &["10 USD in INR", "EUR to GBP", "and in JPY?"]).await;
    assert_eq!(seen, "The exchange rate for 1 EUR to JPY is 161.66.");
}

#[tokio::test]
async fn messages_to_another_skill_are_ignored() {
    for other in ["the sea sections=2 delay=1ms", "echo 5", "echo this, 30 times"] {
        let seen = converse("demo", &["10 USD in INR", other, "currency: and in EUR?"]).await;
        assert_eq!(seen, "10 USD is 9.26 EUR.", "{other}");
    }
    // A bare amount changes the question.
    let seen = converse("currency", &["10 USD in INR", "and 30?", "and in EUR?"]).await;
    assert_eq!(seen, "30 USD is 27.77 EUR.");
}

#[tokio::test]
async fn unrelated_message_keeps_the_question() {
    let seen = converse("currency", &["10 USD in INR", "good morning"]).await;
    assert!(seen.starts_with("What shall I convert?"), "{seen}");
    let seen = converse("currency", &["10 USD in INR", "good morning", "and in EUR?"]).await;
    assert_eq!(seen, "10 USD is 9.26 EUR.");
    // Also when the follow-up continues the task of the unrelated message.
    let server = TestServer::builtin("currency");
    let first = server.send_and_wait(message(vec![Part::text("10 USD in INR")])).await;
    let greeting = message(vec![Part::text("good morning")]);
    let asked = server.send_and_wait(Message { context_id: Some(first.context_id), ..greeting }).await;
    let follow_up = message(vec![Part::text("and in EUR?")]);
    let answered = server.send_and_wait(Message { task_id: Some(asked.id), ..follow_up }).await;
    assert_eq!(show(&answered.artifacts[0].parts), "10 USD is 9.26 EUR.");
}

#[tokio::test]
async fn repeated_source_currency_is_not_the_target() {
    let seen = converse("currency", &["10 USD in INR", "what is the rate for dollars?"]).await;
    assert_eq!(seen, "10 USD is 854.90 INR.");
}
