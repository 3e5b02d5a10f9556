//! The approver asks before it proceeds.

use protocol::{Json, Part};

use super::common::TestServer;

#[tokio::test]
async fn approval_completes_and_denial_rejects() {
    let server = TestServer::builtin("approver");
    let asked = server.send_text("delete it").await;
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
        let asked = server.send_text("delete it").await;
        let shown = format!("{answer:?}");
        assert_eq!(server.follow_up(&asked, vec![answer]).await.lines, expected, "{shown}");
    }
}

#[tokio::test]
async fn login_request_asks_for_credentials() {
    for (server, request) in [
        (TestServer::builtin("approver"), "Login to the archive"),
        (TestServer::with_skill("approver", "approver-auth"), "open it"),
    ] {
        let asked = server.send_text(request).await;
        let question = format!("Please authenticate, then reply. Pending request: {request}");
        let expected =
            ["working".into(), format!("auth_required: {question} | {{\"schemes\":[\"Bearer\"]}}")];
        assert_eq!(asked.lines, expected);
        let after = server.follow_up(&asked, vec![Part::text("here I am")]).await;
        assert_eq!(
            after.lines,
            [format!("artifact approval: Approved: {request}"), format!("completed: Done: {request}")]
        );
    }
}

#[tokio::test]
async fn second_request_in_the_same_task_needs_approval_again() {
    let seen = TestServer::kept_open("approver").send_all(&["delete it", "yes", "delete more"]).await;
    assert_eq!(
        seen.last().unwrap(),
        "input_required: May I proceed with: delete more? Answer approve or deny."
    );
}

fn data(json: &str) -> Part {
    Part::data(Json::parse(json).unwrap())
}
