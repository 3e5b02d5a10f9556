//! The example agents that schedule, reject, negotiate the format and delegate (reminder, adder, plotter,
//! clerk).

use protocol::{Content, Part};

use super::common::{TestServer, message};

#[tokio::test]
async fn reminder_reports_its_delay_and_completes_later() {
    let server = TestServer::builtin("reminder");
    let output = server.send_text("stretch in=1ms").await;
    assert_eq!(
        output.lines,
        [
            "working: Scheduled, to be done in 1 ms: stretch",
            "artifact reminder: Remember: stretch",
            "completed"
        ]
    );
    let task = server.send_immediate(message(vec![Part::text("stretch in=300000ms")])).await;
    assert_eq!(server.cancel(&task.id).await.status.state, protocol::TaskState::Canceled);
}

#[tokio::test]
async fn adder_rejects_everything_but_sums() {
    let server = TestServer::builtin("adder");
    assert_eq!(server.send_text("1 + 2+ 39").await.lines, ["working", "artifact sum: 42", "completed"]);
    for text in ["sing", "1 - 2", "", "1 +", "9223372036854775807 + 1"] {
        let lines = server.send_text(text).await.lines;
        assert_eq!(
            lines,
            ["rejected: I add whole numbers, such as 1 + 2 + 39, and do nothing else."],
            "{text}"
        );
    }
}

#[tokio::test]
async fn plotter_offers_its_formats() {
    let server = TestServer::builtin("plotter");
    assert_eq!(server.send_text("2 1").await.lines, ["working", "artifact plot: ## 2\n# 1\n", "completed"]);
    let asked = server.send_text("2 1 as PNG").await;
    let question = "I cannot draw that; I give text/plain or image/svg+xml. Which one? | \
                    {\"offeredModes\":[\"text/plain\",\"image/svg+xml\"]}";
    assert_eq!(asked.lines, ["working".to_owned(), format!("input_required: {question}")]);
    let still = server.follow_up(&asked, vec![Part::text("gif")]).await;
    assert_eq!(still.lines.last(), Some(&format!("input_required: {question}")));
    let drawn = server.follow_up(&asked, vec![Part::text("svg")]).await.lines;
    assert!(
        drawn.iter().any(|line| line.starts_with("artifact plot: ") && line.ends_with("plot.svg")),
        "{drawn:?}"
    );
    assert_eq!(drawn.last().unwrap(), "completed");
    let task = server.send_and_wait(message(vec![Part::text("2 1 as image/svg+xml")])).await;
    let part = &task.artifacts[0].parts[0];
    assert_eq!(part.media_type.as_deref(), Some("image/svg+xml"));
    assert!(matches!(&part.content, Content::Raw(bytes) if bytes.starts_with(b"<svg ")));
    assert!(server.send_text("nothing").await.lines[0].starts_with("input_required: Which numbers?"));
}

#[tokio::test]
async fn clerk_delegates_work_and_questions() {
    let server = TestServer::builtin("clerk");
    let done = server.send_text("10 USD in INR").await.lines;
    assert_eq!(done[0], "working: Handed over to the currency agent");
    assert!(done.iter().any(|line| line.starts_with("artifact currency-result: ")), "{done:?}");
    assert_eq!(done.last().unwrap(), "completed: Done by the currency agent, signed by the clerk");
    let asked = server.send_text("10 USD").await;
    assert_eq!(asked.lines.last().unwrap(), "input_required: Which currency do you want to convert to?");
    let done = server.follow_up(&asked, vec![Part::text("INR")]).await.lines;
    assert_eq!(done.last().unwrap(), "completed: Done by the currency agent, signed by the clerk");
}
