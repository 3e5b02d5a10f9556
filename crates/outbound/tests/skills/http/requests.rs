//! The requests that functions receive.

use std::collections::BTreeMap;

use a2ad_outbound::{
    backends::http::{HttpConfig, HttpFunction},
    dial::Dialer,
};

use super::{
    function::{Function, Received},
    server::TestServer,
};

/// The request of a call, which gets no response.
async fn request(config: &HttpConfig, function: &Function, arguments: &str) -> Received {
    let server = TestServer::new(config);
    let _events = server.call(arguments).await;
    function.request().await
}

#[tokio::test]
async fn body_is_the_arguments_and_headers_have_the_facts() {
    let function = Function::start().await;
    let config = HttpConfig::new(function.url("/fx?a={a}"));
    let seen = request(&config, &function, r#"{"b":9007199254740993,"a":"x y"}"#).await;
    assert_eq!(seen.line, "POST /fx?a=x%20y HTTP/1.1");
    assert_eq!(seen.body, r#"{"b":9007199254740993}"#);
    assert_eq!(seen.header("host"), Some(function.address().to_string().as_str()));
    assert_eq!(seen.header("content-type"), Some("application/json"));
    assert_eq!(
        seen.header("accept"),
        Some("application/json, text/event-stream, application/x-ndjson, text/*, */*")
    );
    assert_eq!(seen.header("a2ad-attempt"), Some("1"));
    assert_eq!(seen.header("a2ad-skill"), Some("fx"));
    for name in ["idempotency-key", "a2ad-task", "a2ad-context"] {
        assert!(seen.header(name).is_some_and(|value| !value.is_empty()), "{name}");
    }
    assert!(seen.header("traceparent").is_some_and(|value| value.starts_with("00-") && value.len() == 55));
    for name in ["authorization", "cookie", "accept-encoding", "proxy-connection"] {
        assert_eq!(seen.header(name), None);
    }
}

#[tokio::test]
async fn methods_without_a_body_have_a_query() {
    for method in ["GET", "HEAD", "DELETE", "OPTIONS"] {
        let function = Function::start().await;
        let config = HttpConfig { method: method.into(), ..HttpConfig::new(function.url("/items/{id}")) };
        let seen = request(&config, &function, r#"{"id":7,"tags":["a"],"deep":true}"#).await;
        assert_eq!(seen.line, format!("{method} /items/7?tags=%5B%22a%22%5D&deep=true HTTP/1.1"));
        assert_eq!((seen.body.as_str(), seen.header("content-length")), ("", None), "{method}");
    }
}

#[tokio::test]
async fn credentials_come_from_the_environment() {
    let function = Function::start().await;
    // Variables that every environment of a test has.
    let headers_env = BTreeMap::from([("X-Api-Key".to_owned(), "CARGO_PKG_NAME".to_owned())]);
    let config = HttpConfig {
        headers_env,
        bearer_env: Some("CARGO_PKG_VERSION".into()),
        ..HttpConfig::new(function.url("/"))
    };
    let seen = request(&config, &function, "{}").await;
    let version = format!("Bearer {}", env!("CARGO_PKG_VERSION"));
    assert_eq!(seen.header("authorization"), Some(version.as_str()));
    assert_eq!(seen.header("x-api-key"), Some(env!("CARGO_PKG_NAME")));
    let absent = HttpConfig { bearer_env: Some("A2AD_TEST_ABSENT".into()), ..config.clone() };
    let problem = HttpFunction::new(&absent, Dialer::new()).err().unwrap();
    assert_eq!(problem, "bearer_env: the environment variable A2AD_TEST_ABSENT is not set");
    let twice = HttpConfig { headers: vec![("X-API-KEY".into(), "{k}".into())], ..config };
    let problem = HttpFunction::new(&twice, Dialer::new()).err().unwrap();
    assert_eq!(problem, "headers.x-api-key: the same header is also set from the environment");
}

#[tokio::test]
async fn arguments_that_would_change_the_request_are_rejected_unsent() {
    let function = Function::start().await;
    let config = HttpConfig {
        headers: vec![("X-Name".into(), "{name}".into())],
        ..HttpConfig::new(function.url("/a/{id}/b?q={q}"))
    };
    let server = TestServer::new(&config);
    for (arguments, problem) in [
        (r#"{"id":".."}"#, "arguments.id: a path must not have a segment . or .."),
        (r#"{"id":"../../admin"}"#, "arguments.id: a path must not have a segment . or .."),
        (r#"{"id":""}"#, "arguments.id: it is part of a path and must not be empty"),
        (r#"{"id":"1\r\nHost: h"}"#, "arguments.id: a path must not have control characters"),
        (
            r#"{"id":"1","name":"a\r\nx-admin: 1"}"#,
            "arguments.name: the header x-name must not contain control characters",
        ),
    ] {
        let seen = server.call(arguments).await.rest().await;
        assert_eq!(seen.last().unwrap(), &format!("rejected: {problem}"), "{arguments}");
    }
    let harmless = r#"{"id":"x?admin=1#/@h:80","q":"1&admin=1 HTTP/1.1\r\n\r\nGET /","name":"é"}"#;
    let seen = request(&config, &function, harmless).await;
    let target = "/a/x%3Fadmin%3D1%23%2F%40h%3A80/b?q=1%26admin%3D1%20HTTP%2F1.1%0D%0A%0D%0AGET%20%2F";
    assert_eq!(seen.line, format!("POST {target} HTTP/1.1"));
    assert_eq!(seen.header("x-name"), Some("é"));
}
