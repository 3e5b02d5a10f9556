//! Versions and media types.

use a2ad_inbound::AcceptedVersions;

use super::RestVersion;
use crate::common::{Answer, Server, Setup};

/// Gets a path with these headers.
async fn get(server: &Server, path: &str, headers: &str) -> Answer {
    server.exchange(&format!("GET {path} HTTP/1.1{headers}"), "").await
}

fn is_version_refusal(answer: &Answer) -> bool {
    answer.status == 400
        && answer.body.starts_with(r#"{"error":{"code":400,"status":"FAILED_PRECONDITION","#)
        && answer.body.contains(r#""reason":"VERSION_NOT_SUPPORTED""#)
}

#[tokio::test]
async fn version_must_match_the_path() {
    let server = Server::open().await;
    for (path, version, served) in [
        ("/tasks", "", true),
        ("/tasks", "1.0", true),
        ("/tasks", "1", true),
        ("/tasks", "1.0.1", true),
        ("/tasks", "0.3", false),
        ("/tasks", "0.1", false),
        ("/tasks", "1.1", false),
        ("/tasks", "99.0", false),
        ("/tasks", "abc", false),
        ("/v1/tasks", "", true),
        ("/v1/tasks", "0.3", true),
        ("/v1/tasks", "0.2.6", true),
        ("/v1/tasks", "1.0", false),
        ("/v1/tasks", "99.0", false),
    ] {
        for prefix in ["", "/a2a/echo"] {
            let in_header =
                get(&server, &format!("{prefix}{path}"), &format!("\r\nA2A-Version: {version}")).await;
            let in_query = get(&server, &format!("{prefix}{path}?A2A-Version={version}"), "").await;
            for answer in [in_header, in_query] {
                assert_eq!(answer.status == 200, served, "{path} {version}: {}", answer.body);
                assert!(served || is_version_refusal(&answer), "{path} {version}: {}", answer.body);
                // The error lists the versions that this path supports.
                let here = match (version, path) {
                    ("1.1" | "99.0" | "abc", _) => "1.0, 0.3, 0.1",
                    (_, "/tasks") => "1.0",
                    _ => "0.3",
                };
                let expected = format!(r#""supportedVersions":"{here}""#);
                assert!(served || answer.body.contains(&expected), "{}", answer.body);
            }
        }
    }
}

#[tokio::test]
async fn version_may_be_required_or_disabled() {
    let all = AcceptedVersions::default();
    let of = |accepted_versions: AcceptedVersions| {
        Setup::with(|options| options.accepted_versions = accepted_versions).open()
    };
    let strict = of(AcceptedVersions { lenient_version: false, ..all }).await;
    assert!(is_version_refusal(&get(&strict, "/tasks", "").await));
    assert_eq!(get(&strict, "/tasks", "\r\na2a-version: 1.0").await.status, 200);
    assert_eq!(get(&strict, "/v1/tasks", "").await.status, 200);
    let without_v1 = of(AcceptedVersions { v1: false, ..all }).await;
    for version in ["", "1.0", "0.3"] {
        assert!(is_version_refusal(
            &get(&without_v1, "/tasks", &format!("\r\na2a-version: {version}")).await
        ));
    }
    assert_eq!(get(&without_v1, "/v1/tasks", "").await.status, 200);
    let without_v03 = of(AcceptedVersions { v03: false, ..all }).await;
    let answer = get(&without_v03, "/v1/tasks", "").await;
    assert_eq!(
        (answer.status, answer.body.as_str()),
        (400, r#"{"code":-32004,"message":"This operation is not supported"}"#)
    );
}

#[tokio::test]
async fn response_media_type_follows_the_request() {
    let server = Server::open().await;
    let (own, plain) = ("application/a2a+json", "application/json");
    for (headers, called) in [
        ("", own),
        ("accept: */*", own),
        ("accept: application/*", own),
        ("accept: text/html, */*;q=0.8", own),
        ("accept: application/json", plain),
        ("accept: text/event-stream, Application/JSON;q=0.5", plain),
        ("accept: text/html\r\naccept: application/json", plain),
        ("accept: application/a2a+json, application/json", own),
        ("content-type: application/json", plain),
        ("content-type: application/json; charset=utf-8", plain),
        ("content-type: application/a2a+json", own),
        ("content-type: application/json\r\naccept: application/a2a+json", own),
        ("content-type: application/a2a+json\r\naccept: application/json", plain),
    ] {
        let headers = if headers.is_empty() { String::new() } else { format!("\r\n{headers}") };
        let exchange = async |version: RestVersion, verb: &str, path: &str, body: &str| {
            let head = server.rest(version).head(verb, path) + &headers;
            let answer = server.exchange(&head, body).await;
            (answer.status, answer.header("content-type").map(str::to_owned))
        };
        let body = RestVersion::V1.send_body("hi", "");
        let called = Some(called.to_owned());
        assert_eq!(
            exchange(RestVersion::V1, "POST", "/message:send", &body).await,
            (200, called.clone()),
            "{headers}"
        );
        assert_eq!(
            exchange(RestVersion::V1, "POST", "/message:send", "{}").await,
            (400, called.clone()),
            "{headers}"
        );
        assert_eq!(exchange(RestVersion::V1, "GET", "/tasks", "").await, (200, called.clone()), "{headers}");
        assert_eq!(exchange(RestVersion::V1, "PUT", "/tasks", "").await, (405, called), "{headers}");
        let plain = Some(plain.to_owned());
        let body = RestVersion::V03.send_body("hi", "");
        assert_eq!(
            exchange(RestVersion::V03, "POST", "/message:send", &body).await,
            (200, plain),
            "{headers}"
        );
    }
}
