//! Converts money, as in the dialogues of the protocol's first sample.

use protocol::{Content, Json, Message, Part, TaskState};

use crate::common::{House, message, show};

const LOOKING: &str = "working: Looking up the exchange rates...";
const PROCESSING: &str = "working: Processing the exchange rates..";

#[tokio::test]
async fn a_whole_question_is_answered_at_once() {
    let house = House::of("currency");
    let seen = house.talk(&["How much is the exchange rate for 1 USD to INR?"]).await;
    let answer = "artifact currency-result: The exchange rate for 1 USD to INR is 85.49.";
    assert_eq!(seen, [LOOKING, PROCESSING, answer, "completed"]);

    let task = house.settled(message(vec![Part::text("1 USD to INR")])).await;
    assert_eq!((task.artifacts.len(), &task.artifacts[0].name), (1, &None));
    let question = Part::data(Json::parse(r#"{"amount":10,"from":"USD","to":"INR"}"#).unwrap());
    let asked = house.send(message(vec![question])).await;
    assert_eq!(asked.lines[2], "artifact currency-result: 10 USD is 854.90 INR.");
}

#[tokio::test]
async fn what_is_missing_is_asked_for() {
    let house = House::of("currency");
    let asked = house.say("how much is 1 USD?").await;
    assert_eq!(asked.lines, ["working", "input_required: Which currency do you want to convert to?"]);
    let answer = "artifact currency-result: The exchange rate for 1 USD to CAD is 1.43.";
    assert_eq!(
        house.more(&asked, vec![Part::text("CAD")]).await.lines,
        [LOOKING, PROCESSING, answer, "completed"]
    );
    // Nothing helpful is no reason to forget what was said before.
    assert_eq!(house.talk(&["how much is 1 USD?", "hm", "in CAD"]).await[2], answer);
    let picture = Part::new(Content::Raw(vec![1, 2, 3]));
    let asked = house.send(message(vec![picture])).await;
    assert!(asked.lines[0].starts_with("input_required: I cannot read files"), "{:?}", asked.lines);
}

#[tokio::test]
async fn an_answered_task_goes_on_from_its_answer() {
    let house = House::reopening("currency");
    let seen = house.talk(&["10 USD in INR", "and in EUR?"]).await;
    assert_eq!(seen[2], "artifact currency-result-2: 10 USD is 9.26 EUR.");
    let seen = house.talk(&["10 USD in INR", "make it red", "20 GBP in EUR"]).await;
    assert_eq!(seen[2], "artifact currency-result-2: 20 GBP is 23.97 EUR.");
    // Nothing that belongs to a question asks nothing again, and makes nothing forgotten.
    let seen = house.talk(&["10 USD in INR", "make it red"]).await;
    assert!(seen.join("\n").contains("input_required: What shall I convert?"), "{seen:?}");
    let seen = house.talk(&["10 USD in INR", "make it red", "and in EUR?"]).await;
    assert_eq!(seen[2], "artifact currency-result-2: 10 USD is 9.26 EUR.");
}

#[tokio::test]
async fn a_new_task_of_a_conversation_goes_on_from_what_was_said() {
    let house = House::of("currency");
    let first = house.settled(message(vec![Part::text("10 USD in INR")])).await;
    let within = |text: &str| Message {
        context_id: Some(first.context_id.clone()),
        ..message(vec![Part::text(text)])
    };
    let mut asked = Vec::new();
    for text in ["and in EUR?", "and 20 GBP?", "5 JPY in CHF"] {
        let task = house.settled(within(text)).await;
        assert_ne!(task.id, first.id);
        asked.push(show(&task.artifacts[0].parts));
    }
    assert_eq!(asked, ["10 USD is 9.26 EUR.", "20 GBP is 23.97 EUR.", "5 JPY is 0.02954 CHF."]);
    // Nothing that belongs to a question asks nothing again.
    let lost = house.settled(within("make it red")).await;
    assert_eq!(lost.status.state, TaskState::InputRequired);
    // Another conversation knows nothing of it.
    let stranger = house.settled(message(vec![Part::text("and in EUR?")])).await;
    assert_eq!(stranger.status.state, TaskState::InputRequired);
}

/// Says these texts in one conversation, a task each; gives what the last one came to.
async fn converse(agent: &str, texts: &[&str]) -> String {
    let house = House::of(agent);
    let mut said = message(Vec::new());
    let mut shown = String::new();
    for text in texts {
        let task = house.settled(Message { parts: vec![Part::text(*text)], ..said.clone() }).await;
        shown = match (task.artifacts.first(), &task.status.message) {
            (Some(artifact), _) => show(&artifact.parts),
            (None, message) => message.as_ref().map(|message| show(&message.parts)).unwrap_or_default(),
        };
        said.context_id = Some(task.context_id);
    }
    shown
}

#[tokio::test]
async fn a_question_that_needs_no_other_takes_nothing_from_earlier_ones() {
    let seen = converse("currency", &["10 USD in INR", "EUR to GBP"]).await;
    assert_eq!(seen, "The exchange rate for 1 EUR to GBP is 0.8345.");
    let seen = converse("currency", &["10 USD in INR", "EUR to GBP", "and in JPY?"]).await;
    assert_eq!(seen, "The exchange rate for 1 EUR to JPY is 161.66.");
}

#[tokio::test]
async fn words_for_another_skill_change_nothing() {
    for other in ["the sea sections=2 delay=1ms", "echo 5", "echo this, 30 times"] {
        let seen = converse("demo", &["10 USD in INR", other, "currency: and in EUR?"]).await;
        assert_eq!(seen, "10 USD is 9.26 EUR.", "{other}");
    }
    // An amount alone is still one to go on from.
    let seen = converse("currency", &["10 USD in INR", "and 30?", "and in EUR?"]).await;
    assert_eq!(seen, "30 USD is 27.77 EUR.");
}

#[tokio::test]
async fn small_talk_makes_nothing_forgotten() {
    let seen = converse("currency", &["10 USD in INR", "good morning"]).await;
    assert!(seen.starts_with("What shall I convert?"), "{seen}");
    let seen = converse("currency", &["10 USD in INR", "good morning", "and in EUR?"]).await;
    assert_eq!(seen, "10 USD is 9.26 EUR.");
    // Also where the answer to it goes on with its own task.
    let house = House::of("currency");
    let first = house.settled(message(vec![Part::text("10 USD in INR")])).await;
    let greeting = message(vec![Part::text("good morning")]);
    let asked = house.settled(Message { context_id: Some(first.context_id), ..greeting }).await;
    let more = message(vec![Part::text("and in EUR?")]);
    let answered = house.settled(Message { task_id: Some(asked.id), ..more }).await;
    assert_eq!(show(&answered.artifacts[0].parts), "10 USD is 9.26 EUR.");
}

#[tokio::test]
async fn the_currency_one_has_is_not_the_one_one_wants() {
    let seen = converse("currency", &["10 USD in INR", "what is the rate for dollars?"]).await;
    assert_eq!(seen, "10 USD is 854.90 INR.");
}
