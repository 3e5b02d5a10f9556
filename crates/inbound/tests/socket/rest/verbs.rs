//! Every path with every method.

use super::{NO_PATH, NO_VERB, RestVersion};
use crate::common::Server;

const VERBS: [&str; 6] = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

#[tokio::test]
async fn wrong_method_error_lists_the_allowed_methods() {
    let server = Server::open().await;
    for version in RestVersion::BOTH {
        let card = if version == RestVersion::V1 { "/extendedAgentCard" } else { "/card" };
        for (path, allowed) in [
            ("/message:send", "POST"),
            ("/message:stream", "POST"),
            ("/tasks", "GET, HEAD"),
            ("/tasks/a", "GET, HEAD"),
            ("/tasks/a:b", "GET, HEAD"),
            ("/tasks/a:cancel", "POST"),
            ("/tasks/a:subscribe", "POST, GET, HEAD"),
            ("/tasks/a/pushNotificationConfigs", "POST, GET, HEAD"),
            ("/tasks/a/pushNotificationConfigs/c", "GET, HEAD, DELETE"),
            (card, "GET, HEAD"),
        ] {
            for verb in VERBS {
                let rest = server.rest(version);
                if allowed.split(", ").any(|allowed| allowed == verb) {
                    let answer = rest.ask(verb, path, "").await;
                    assert!(answer.status != 405 && answer.header("allow").is_none(), "{verb} {path}");
                    continue;
                }
                let answer = rest.refused(verb, path, "", NO_VERB).await;
                assert_eq!(answer.header("allow"), Some(allowed), "{verb} {path}");
            }
        }
    }
}

#[tokio::test]
async fn unknown_path_error_lists_the_paths() {
    let server = Server::open().await;
    for (version, paths) in [
        (
            RestVersion::V1,
            &[
                "/message:",
                "/message:sent",
                "/message:send/",
                "/tasks/a/b",
                "/tasks/a/pushNotifications",
                "/tasks/a/pushNotificationConfigs/c/d",
                "/extendedAgentCard/",
                "/default/tasks/a/b",
            ][..],
        ),
        (
            RestVersion::V03,
            &[
                "",
                "/",
                "/message",
                "/card/",
                "/extendedAgentCard",
                "/default/tasks",
                "/task/a",
                "/tasks/a/pushNotifications",
                "/%ff",
                "/v1/tasks",
            ][..],
        ),
    ] {
        for path in paths {
            for verb in VERBS {
                let answer = server.rest(version).refused(verb, path, "", NO_PATH).await;
                assert_eq!(answer.header("allow"), None, "{path}");
                let lists_paths = version == RestVersion::V03 || answer.body.contains("/tasks/{id}:cancel");
                assert!(lists_paths, "{}", answer.body);
            }
        }
    }
}

#[tokio::test]
async fn head_requests_are_supported() {
    let server = Server::open().await;
    for (path, status) in [("/tasks", 200), ("/tasks/x", 404), ("/message:send", 405)] {
        let mut wire = server.connect().await;
        wire.send(&format!("HEAD /a2a/echo{path} HTTP/1.1"), "").await;
        let head = wire.head().await;
        assert_eq!(
            (head.status, head.header("content-type")),
            (status, Some("application/a2a+json")),
            "{path}"
        );
        // No body follows: the next response begins directly after the head.
        wire.send("GET /healthz HTTP/1.1", "").await;
        assert_eq!(wire.answer().await.body, r#"{"status":"ok"}"#);
    }
}
