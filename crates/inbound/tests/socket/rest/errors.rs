//! Errors: status, form of the generation, and the invalid field.

use a2ad_inbound::{AgentSettings, AuthMethods};
use protocol::ErrorTable;

use super::{INVALID, NO_PUSH, NOT_FOUND, RestVersion, UNSUPPORTED};
use crate::common::{NOW, Server, Setup, member};

#[tokio::test]
async fn error_response_byte_for_byte() {
    let server = Server::open().await;
    let answer = server.rest(RestVersion::V1).refused("GET", "/tasks/x?historyLength=-1", "", INVALID).await;
    let expected = format!(
        r#"{{"error":{{"code":400,"status":"INVALID_ARGUMENT","message":"historyLength: expected an integer of 0 or more","details":[{{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"INVALID_PARAMS","domain":"a2a-protocol.org","metadata":{{"timestamp":"{NOW}"}}}},{{"@type":"type.googleapis.com/google.rpc.BadRequest","fieldViolations":[{{"field":"historyLength","description":"expected an integer of 0 or more"}}]}}]}}}}"#
    );
    assert_eq!(answer.body, expected);
    let answer = server.rest(RestVersion::V1).refused("GET", "/tasks/x", "", NOT_FOUND).await;
    let expected = format!(
        r#"{{"error":{{"code":404,"status":"NOT_FOUND","message":"task not found: x","details":[{{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"TASK_NOT_FOUND","domain":"a2a-protocol.org","metadata":{{"taskId":"x","timestamp":"{NOW}"}}}}]}}}}"#
    );
    assert_eq!(answer.body, expected);
    let answer = server.rest(RestVersion::V03).refused("GET", "/tasks/x", "", NOT_FOUND).await;
    assert_eq!(answer.body, r#"{"code":-32001,"message":"Task not found"}"#);
}

#[tokio::test]
async fn invalid_field_is_named() {
    let server = Server::open().await;
    for version in RestVersion::BOTH {
        let rest = server.rest(version);
        let parts = if version == RestVersion::V1 { "parts" } else { "content" };
        let part = format!("message.{parts}[0]");
        for (query, field) in [
            ("pageSize=0", "pageSize"),
            ("pageSize=101", "pageSize"),
            ("page_size=x", "pageSize"),
            ("pageToken=x", "pageToken"),
            ("status=working", "status"),
            ("status=99", "status"),
            ("historyLength=-1", "historyLength"),
            ("historyLength=1.5", "historyLength"),
            ("historyLength=%zz", "historyLength"),
            ("contextId=%ff", "contextId"),
            ("%=1", "%"),
            ("includeArtifacts=yes", "includeArtifacts"),
            ("statusTimestampAfter=yesterday", "statusTimestampAfter"),
        ] {
            let answer = rest.refused("GET", &format!("/tasks?{query}"), "", INVALID).await;
            assert!(answer.body.contains(&format!(r#""field":"{field}""#)), "{query}: {}", answer.body);
        }
        for (body, field) in [
            ("{}".to_owned(), "message"),
            ("[]".to_owned(), ""),
            ("\"x\"".to_owned(), ""),
            ("null".to_owned(), "message"),
            (r#"{"message":5}"#.to_owned(), "message"),
            (version.send_body("hi", "").replace("ROLE_USER", "user"), "message.role"),
            (version.send_body("hi", "").replace(parts, "unknown"), &part[..part.len() - "[0]".len()]),
            (version.send_body("", "").replace(r#""text":"""#, ""), part.as_str()),
        ] {
            for path in ["/message:send", "/message:stream"] {
                let answer = rest.refused("POST", path, &body, INVALID).await;
                let named = answer.body.contains(&format!(r#""field":"{field}"#));
                assert!(named, "{body}: {}", answer.body);
            }
        }
    }
}

#[tokio::test]
async fn invalid_ids_are_all_named_alike() {
    let server = Server::open().await;
    let long = "x".repeat(1_025);
    for (version, of_task, [task, config]) in [
        (RestVersion::V1, "id", ["taskId", "id"]),
        (RestVersion::V03, "id", ["id", "pushNotificationConfigId"]),
    ] {
        let rest = server.rest(version);
        for id in ["", "%zz", "%ff", &long] {
            for (verb, path, field) in [
                ("GET", format!("/tasks/{id}"), of_task),
                ("POST", format!("/tasks/{id}:cancel"), of_task),
                ("GET", format!("/tasks/{id}/pushNotificationConfigs"), task),
                ("GET", format!("/tasks/{id}/pushNotificationConfigs/c"), task),
                ("DELETE", format!("/tasks/t/pushNotificationConfigs/{id}"), config),
            ] {
                let answer = rest.refused(verb, &path, "", INVALID).await;
                let named = answer.body.contains(&format!(r#""field":"{field}""#));
                assert!(named, "{verb} {path:.60}: {}", answer.body);
            }
        }
    }
}

#[tokio::test]
async fn invalid_bodies_are_rejected() {
    let server = Setup::with(|options| options.max_body_bytes = 1 << 10).open().await;
    let parse = (400, "PARSE_ERROR", -32700);
    for version in RestVersion::BOTH {
        let rest = server.rest(version);
        for path in ["/message:send", "/message:stream"] {
            rest.refused("POST", path, "", (400, "INVALID_REQUEST", -32600)).await;
            for body in ["{", " ", "{} {}", "{\"message\":}", "\u{1}", "nul"] {
                rest.refused("POST", path, body, parse).await;
            }
            let large = version.send_body(&"x".repeat(1 << 10), "");
            let answer = rest.refused("POST", path, &large, (413, "BODY_TOO_LARGE", -32600)).await;
            assert!(answer.body.contains("1024 bytes"), "{}", answer.body);
        }
        rest.refused("POST", "/tasks/x:cancel", "{", parse).await;
        // Not UTF-8.
        let mut wire = server.connect().await;
        let head = rest.head("POST", "/message:send");
        wire.write(format!("{head}\r\nhost: x\r\ncontent-length: 4\r\n\r\n").as_bytes()).await;
        wire.write(b"\"\xff\xfe\"").await;
        let answer = wire.answer().await;
        assert_eq!((answer.status, answer.header("content-type")), (400, Some(version.media_type())));
        // An unsupported media type or content encoding.
        for header in ["content-type: text/xml", "content-type: application/jsonx", "content-encoding: gzip"]
        {
            let head = format!("{head}\r\n{header}");
            let answer = server.exchange(&head, &version.send_body("hi", "")).await;
            assert_eq!(
                (answer.status, answer.header("content-type")),
                (415, Some(version.media_type())),
                "{header}"
            );
        }
        let head = format!("{head}\r\ncontent-type: application/{}", "x".repeat(5_000));
        let answer = server.exchange(&head, &version.send_body("hi", "")).await;
        assert_eq!(answer.status, 415);
        assert!(answer.body.len() < 1_000, "{}", answer.body);
    }
}

#[tokio::test]
async fn unsupported_operations_are_rejected() {
    let server = Setup::with(|options| {
        options.agents.insert("echo".into(), AgentSettings { streaming: false, ..AgentSettings::default() });
    });
    let server = server.open().await;
    for version in RestVersion::BOTH {
        let rest = server.rest(version);
        rest.refused("POST", "/message:stream", &version.send_body("hi", ""), UNSUPPORTED).await;
        for verb in ["GET", "POST"] {
            rest.refused(verb, "/tasks/x:subscribe", "", UNSUPPORTED).await;
        }
        let card = if version == RestVersion::V1 { "/extendedAgentCard" } else { "/card" };
        rest.refused("GET", card, "", UNSUPPORTED).await;
        let config = r#"{"url":"https://example.test/"}"#;
        for (verb, path, body) in [
            ("POST", "/tasks/x/pushNotificationConfigs", config),
            ("GET", "/tasks/x/pushNotificationConfigs", ""),
            ("GET", "/tasks/x/pushNotificationConfigs/c", ""),
            ("DELETE", "/tasks/x/pushNotificationConfigs/c", ""),
        ] {
            rest.refused(verb, path, body, NO_PUSH).await;
        }
    }
    // The path that the older proto file defines for one of them.
    let rest = server.rest(RestVersion::V03);
    let config = r#"{"url":"https://example.test/"}"#;
    rest.refused("POST", "/task/x/pushNotificationConfigs", config, NO_PUSH).await;
}

#[tokio::test]
async fn unknown_agent_is_rejected() {
    let server = Setup::with(|options| {
        options
            .agents
            .insert("currency".into(), AgentSettings { enabled: false, ..AgentSettings::default() });
        options
            .agents
            .insert("approver".into(), AgentSettings { auth: AuthMethods::NONE, ..AgentSettings::default() });
    });
    let server = server.open().await;
    for version in RestVersion::BOTH {
        let disabled = (404, "AGENT_DISABLED", -32011);
        for at in ["/a2a/nobody", "/a2a/%ff", "/a2a/rpc", "/a2a/currency"] {
            let rest = super::Rest { at, ..server.rest(version) };
            rest.refused("GET", "/tasks", "", disabled).await;
            rest.refused("POST", "/message:send", &version.send_body("hi", ""), disabled).await;
            rest.refused("GET", "/tasks/x/pushNotificationConfigs", "", disabled).await;
        }
        let long = format!("/a2a/{}", "x".repeat(5_000));
        let rest = super::Rest { at: &long, ..server.rest(version) };
        let answer = rest.refused("GET", "/tasks", "", disabled).await;
        assert!(answer.body.len() < 1_000, "{}", answer.body);
        let rest = super::Rest { at: "/a2a/approver", ..server.rest(version) };
        let answer = rest.refused("GET", "/tasks", "", (401, "UNAUTHENTICATED", -32010)).await;
        assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
    }
    server.rest(RestVersion::V1).refused("GET", "/acme/tasks", "", (404, "AGENT_DISABLED", 0)).await;
}

#[tokio::test]
async fn older_edition_of_the_status_table_can_be_configured() {
    let server = Setup::with(|options| options.errors = ErrorTable::V1_0_0).open().await;
    let ask = async |version: RestVersion, verb: &str, path: &str, body: &str| {
        let answer = server.exchange(&server.rest(version).head(verb, path), body).await;
        // The older edition has no media type for this binding.
        assert_eq!(answer.header("content-type"), Some("application/json"), "{verb} {path}");
        answer
    };
    for version in RestVersion::BOTH {
        let sent = ask(version, "POST", "/message:send", &version.send_body("hi", "")).await;
        let path = format!("/tasks/{}:cancel", member(&sent.body, "id"));
        let refused = ask(version, "POST", &path, "").await;
        assert_eq!(refused.status, 409, "{}", refused.body);
        let has_reason = refused.body.contains("TASK_NOT_CANCELABLE") || refused.body.contains("-32002");
        assert!(has_reason, "{}", refused.body);
    }
    let refused = ask(RestVersion::V1, "GET", "/extendedAgentCard", "").await;
    assert!(refused.body.contains(r#""status":"UNIMPLEMENTED""#), "{}", refused.body);
    let head = server.rest(RestVersion::V1).head("GET", "/tasks/none") + "\r\naccept: application/a2a+json";
    let refused = server.exchange(&head, "").await;
    assert_eq!(refused.header("content-type"), Some("application/a2a+json"));
}
