//! What an agent may do with a request: schedule it, reject it, negotiate its form, hand it on. Answering and asking
//! are the echo's and the approver's.

use protocol::{Content, Part};

use crate::common::{House, message};

#[tokio::test]
async fn the_reminder_says_when_and_does_it_then() {
    let house = House::of("reminder");
    let said = house.say("stretch in=1ms").await;
    assert_eq!(
        said.lines,
        [
            "working: Scheduled, to be done in 1 ms: stretch",
            "artifact reminder: Remember: stretch",
            "completed"
        ]
    );
    let task = house.send_at_once(message(vec![Part::text("stretch in=300000ms")])).await;
    assert_eq!(house.cancel(&task.id).await.status.state, protocol::TaskState::Canceled);
}

#[tokio::test]
async fn the_adder_rejects_what_is_no_sum() {
    let house = House::of("adder");
    assert_eq!(house.say("1 + 2+ 39").await.lines, ["working", "artifact sum: 42", "completed"]);
    for text in ["sing", "1 - 2", "", "1 +", "9223372036854775807 + 1"] {
        let lines = house.say(text).await.lines;
        assert_eq!(
            lines,
            ["rejected: I add whole numbers, such as 1 + 2 + 39, and do nothing else."],
            "{text}"
        );
    }
}

#[tokio::test]
async fn the_plotter_offers_the_forms_it_has() {
    let house = House::of("plotter");
    assert_eq!(house.say("2 1").await.lines, ["working", "artifact plot: ## 2\n# 1\n", "completed"]);
    let asked = house.say("2 1 as PNG").await;
    let question = "I cannot draw that; I give text/plain or image/svg+xml. Which one? | \
                    {\"offeredModes\":[\"text/plain\",\"image/svg+xml\"]}";
    assert_eq!(asked.lines, ["working".to_owned(), format!("input_required: {question}")]);
    let still = house.more(&asked, vec![Part::text("gif")]).await;
    assert_eq!(still.lines.last(), Some(&format!("input_required: {question}")));
    let drawn = house.more(&asked, vec![Part::text("svg")]).await.lines;
    assert!(
        drawn.iter().any(|line| line.starts_with("artifact plot: ") && line.ends_with("plot.svg")),
        "{drawn:?}"
    );
    assert_eq!(drawn.last().unwrap(), "completed");
    let task = house.settled(message(vec![Part::text("2 1 as image/svg+xml")])).await;
    let part = &task.artifacts[0].parts[0];
    assert_eq!(part.media_type.as_deref(), Some("image/svg+xml"));
    assert!(matches!(&part.content, Content::Raw(bytes) if bytes.starts_with(b"<svg ")));
    assert!(house.say("nothing").await.lines[0].starts_with("input_required: Which numbers?"));
}

#[tokio::test]
async fn the_clerk_has_another_do_it_and_ask() {
    let house = House::of("clerk");
    let done = house.say("10 USD in INR").await.lines;
    assert_eq!(done[0], "working: Handed over to the currency agent");
    assert!(done.iter().any(|line| line.starts_with("artifact currency-result: ")), "{done:?}");
    assert_eq!(done.last().unwrap(), "completed: Done by the currency agent, signed by the clerk");
    let asked = house.say("10 USD").await;
    assert_eq!(asked.lines.last().unwrap(), "input_required: Which currency do you want to convert to?");
    let done = house.more(&asked, vec![Part::text("INR")]).await.lines;
    assert_eq!(done.last().unwrap(), "completed: Done by the currency agent, signed by the clerk");
}
