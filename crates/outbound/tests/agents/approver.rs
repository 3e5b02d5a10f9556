//! Asks before it proceeds.

use protocol::{Json, Part};

use crate::common::House;

#[tokio::test]
async fn it_proceeds_when_it_may_and_gives_up_when_it_may_not() {
    let house = House::of("approver");
    let asked = house.say("delete it").await;
    assert_eq!(
        asked.lines,
        ["working", "input_required: May I proceed with: delete it? Answer approve or deny."]
    );
    let approved = ["artifact approval: Approved: delete it", "completed: Done: delete it"];
    let denied = ["rejected: Denied: delete it"];
    let again = ["input_required: Please answer approve or deny."];
    for (answer, expected) in [
        (Part::text("approve"), approved.as_slice()),
        (Part::text(" OK "), &approved),
        (data(r#"{"approved":true}"#), &approved),
        (data(r#"{"decision":"approve"}"#), &approved),
        (Part::text("deny"), &denied),
        (data(r#"{"approved":false}"#), &denied),
        (data(r#"{"decision":"deny"}"#), &denied),
        (Part::text("perhaps"), &again),
        (data(r#"{"decision":"later"}"#), &again),
        (data(r#"{"approved":"yes"}"#), &again),
        (data("[true]"), &again),
    ] {
        let asked = house.say("delete it").await;
        let shown = format!("{answer:?}");
        assert_eq!(house.more(&asked, vec![answer]).await.lines, expected, "{shown}");
    }
}

#[tokio::test]
async fn it_asks_for_credentials_when_it_needs_them() {
    for (house, request) in [
        (House::of("approver"), "Login to the archive"),
        (House::asked_for("approver", "approver-auth"), "open it"),
    ] {
        let asked = house.say(request).await;
        let question = format!("Please authenticate, then say so; I wait with: {request}");
        let expected =
            ["working".into(), format!("auth_required: {question} | {{\"schemes\":[\"bearer\"]}}")];
        assert_eq!(asked.lines, expected);
        let after = house.more(&asked, vec![Part::text("here I am")]).await;
        assert_eq!(
            after.lines,
            [format!("artifact approval: Approved: {request}"), format!("completed: Done: {request}")]
        );
    }
}

#[tokio::test]
async fn a_second_request_in_the_same_task_is_asked_about_again() {
    let seen = House::reopening("approver").talk(&["delete it", "yes", "delete more"]).await;
    assert_eq!(
        seen.last().unwrap(),
        "input_required: May I proceed with: delete more? Answer approve or deny."
    );
}

fn data(json: &str) -> Part {
    Part::data(Json::parse(json).unwrap())
}
