//! Every path with every verb.

use super::{Generation, NO_PATH, NO_VERB};
use crate::common::Server;

const VERBS: [&str; 6] = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

#[tokio::test]
async fn a_verb_that_does_nothing_is_told_which_do_something() {
    let server = Server::open().await;
    for generation in Generation::BOTH {
        let card = if generation == Generation::V1 { "/extendedAgentCard" } else { "/card" };
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
                let rest = server.rest(generation);
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
async fn a_path_below_that_is_nothing_is_told_what_there_is() {
    let server = Server::open().await;
    for (generation, paths) in [
        (
            Generation::V1,
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
            Generation::V03,
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
                let answer = server.rest(generation).refused(verb, path, "", NO_PATH).await;
                assert_eq!(answer.header("allow"), None, "{path}");
                let told = generation == Generation::V03 || answer.body.contains("/tasks/{id}:cancel");
                assert!(told, "{}", answer.body);
            }
        }
    }
}

#[tokio::test]
async fn the_head_of_an_answer_can_be_had_alone() {
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
        // Nothing follows it: the next answer begins where this one ends.
        wire.send("GET /healthz HTTP/1.1", "").await;
        assert_eq!(wire.answer().await.body, r#"{"status":"ok"}"#);
    }
}
