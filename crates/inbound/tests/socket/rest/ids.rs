//! Ids may be any text; paths contain them percent-encoded.

use super::{INVALID, NOT_FOUND, RestVersion};
use crate::common::{Server, request};

/// Creates an open task with this id, through the draft, whose clients choose the ids.
async fn hold(server: &Server, id: &str) {
    let params = format!(
        r#"{{"id":"{id}","message":{{"role":"user","parts":[{{"type":"text","text":"hold"}}]}},"async":true}}"#
    );
    let answer = server.post("/a2a/echo", &request("tasks/send", &params)).await;
    assert!(answer.body.contains("working"), "{}", answer.body);
}

#[tokio::test]
async fn task_is_found_by_any_id() {
    let server = Server::open().await;
    for (id, path) in [
        ("plain", "plain"),
        ("a:b", "a:b"),
        ("a:cancel", "a%3Acancel"),
        ("a:subscribe", "a%3asubscribe"),
        ("a:cancel:b", "a:cancel:b"),
        ("a/b", "a%2Fb"),
        ("tasks/t/pushNotificationConfigs", "tasks%2Ft%2FpushNotificationConfigs"),
        ("100%", "100%25"),
        ("%2F", "%252F"),
        ("a b+c", "a%20b+c"),
        ("größe 🙂", "gr%C3%B6%C3%9Fe%20%F0%9F%99%82"),
        ("größe", "größe"),
        ("?x#y&z", "%3Fx%23y%26z"),
        ("..", "%2E%2E"),
        ("send", "%73end"),
        ("v1", "v1"),
    ] {
        hold(&server, id).await;
        let member = format!(r#""id":"{id}""#);
        for version in RestVersion::BOTH {
            let rest = server.rest(version);
            let got = rest.done("GET", &format!("/tasks/{path}"), "").await;
            assert!(got.contains(&member), "{path}: {got}");
            let verb = rest.head("POST", &format!("/tasks/{path}:subscribe"));
            let mut wire = server.connect().await;
            wire.send(&verb, "").await;
            assert_eq!(wire.head().await.status, 200, "{path}");
            assert!(wire.event().await.unwrap().contains(&member), "{path}");
        }
        let canceled_state =
            server.rest(RestVersion::V1).done("POST", &format!("/tasks/{path}:cancel"), "").await;
        assert!(
            canceled_state.contains(&member) && canceled_state.contains("TASK_STATE_CANCELED"),
            "{canceled_state}"
        );
    }
}

#[tokio::test]
async fn invalid_id_is_named() {
    let server = Server::open().await;
    let long = format!("/tasks/{}", "x".repeat(1_025));
    for version in RestVersion::BOTH {
        let rest = server.rest(version);
        for path in ["/tasks/%", "/tasks/%zz", "/tasks/a%2", "/tasks/%ff", "/tasks/%C3", "/tasks/", &long] {
            let answer = rest.refused("GET", path, "", INVALID).await;
            assert!(answer.body.contains(r#""field":"id""#), "{path}: {}", answer.body);
        }
        for path in ["/tasks/:cancel", "/tasks/%ff:cancel", "/tasks/:subscribe"] {
            rest.refused("POST", path, "", INVALID).await;
        }
        for path in ["/tasks/x", "/tasks/%00", "/tasks/x%2Fy", "/tasks/x:y", "/tasks/%20"] {
            rest.refused("GET", path, "", NOT_FOUND).await;
        }
    }
}

#[tokio::test]
async fn ids_in_path_and_body_must_match() {
    let server = crate::common::Setup::with(|options| {
        options
            .agents
            .insert("echo".into(), a2ad_inbound::AgentSettings { push: true, ..Default::default() });
    });
    let server = server.open().await;
    let rest = server.rest(RestVersion::V1);
    let url = r#""url":"https://example.test/""#;
    let create = |more: &str| format!("{{{url}{more}}}");
    for (verb, path, body, field) in [
        ("POST", "/tasks/a:cancel", r#"{"id":"b"}"#.to_owned(), "id"),
        ("POST", "/tasks/a:subscribe", r#"{"id":"b"}"#.to_owned(), "id"),
        ("GET", "/tasks/a:subscribe?id=b", String::new(), "id"),
        ("GET", "/tasks/a?id=b", String::new(), "id"),
        ("POST", "/tasks/a/pushNotificationConfigs", create(r#","taskId":"b""#), "taskId"),
        ("GET", "/tasks/a/pushNotificationConfigs?taskId=b", String::new(), "taskId"),
        ("GET", "/tasks/a/pushNotificationConfigs/c?id=d", String::new(), "id"),
        ("DELETE", "/tasks/a/pushNotificationConfigs/c?task_id=b", String::new(), "taskId"),
        ("POST", "/default/tasks/a:cancel", r#"{"tenant":"other"}"#.to_owned(), "tenant"),
        (
            "POST",
            "/default/message:send",
            RestVersion::V1.send_body("hi", "").replacen('{', r#"{"tenant":"other","#, 1),
            "tenant",
        ),
        ("GET", "/default/tasks?tenant=other", String::new(), "tenant"),
    ] {
        let answer = rest.refused(verb, path, &body, INVALID).await;
        let expected = format!(
            r#""fieldViolations":[{{"field":"{field}","description":"expected the {field} of the path, or none"}}]"#
        );
        assert!(answer.body.contains(&expected), "{path}: {}", answer.body);
    }
    // Two equal values are accepted.
    rest.refused("POST", "/default/tasks/a:cancel?id=b", r#"{"id":"a","tenant":"default"}"#, NOT_FOUND).await;
    rest.refused("GET", "/default/tasks/a?id=a&tenant=default", "", NOT_FOUND).await;
    // In 0.3 the ids are in resource names.
    let rest = server.rest(RestVersion::V03);
    for body in [
        format!(r#"{{"parent":"tasks/b","configId":"c","config":{{"pushNotificationConfig":{{{url}}}}}}}"#),
        format!(r#"{{"name":"tasks/b/pushNotificationConfigs/c","pushNotificationConfig":{{{url}}}}}"#),
    ] {
        rest.refused("POST", "/tasks/a/pushNotificationConfigs", &body, INVALID).await;
    }
}
