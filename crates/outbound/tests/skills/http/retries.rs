//! When a request is repeated.

use std::time::Instant;

use a2ad_outbound::backends::http::HttpConfig;

use super::{function::Function, server::TestServer};

async fn server(function: &Function, method: &str) -> TestServer {
    TestServer::new(&HttpConfig { method: method.into(), ..HttpConfig::new(function.url("/")) })
}

#[tokio::test]
async fn post_is_repeated_when_the_server_asks_for_it() {
    let function = Function::start().await;
    let server = server(&function, "POST").await;
    let mut events = server.call("{}").await;
    let first = function.request().await;
    let key = first.header("idempotency-key").unwrap().to_owned();
    let started = Instant::now();
    first.respond("503 Service Unavailable", "retry-after: 1\r\n", "").await;
    let second = function.request().await;
    assert!(started.elapsed().as_millis() >= 1_000);
    assert_eq!(second.header("idempotency-key"), Some(key.as_str()));
    second.respond_with("application/json", "1").await;
    assert_eq!(events.rest().await.last().unwrap(), "completed");
}

#[tokio::test]
async fn post_is_not_repeated_when_it_may_have_been_carried_out() {
    for status in ["503 Service Unavailable", "502 Bad Gateway", "504 Gateway Timeout"] {
        let function = Function::start().await;
        let server = server(&function, "POST").await;
        let mut events = server.call("{}").await;
        function.request().await.respond(status, "", "").await;
        let expected = format!("failed: the backend responded {status}");
        assert_eq!(events.rest().await.last().unwrap(), &expected);
    }
    let function = Function::start().await;
    let server = server(&function, "POST").await;
    let mut events = server.call("{}").await;
    drop(function.request().await);
    assert_eq!(
        events.rest().await.last().unwrap(),
        "failed: the call of the backend failed: the server closed the connection without a response"
    );
}

#[tokio::test]
async fn get_is_repeated_up_to_three_requests() {
    let function = Function::start().await;
    let server = server(&function, "GET").await;
    let mut events = server.call("{}").await;
    drop(function.request().await);
    function.request().await.respond("502 Bad Gateway", "", "").await;
    function.request().await.respond("503 Service Unavailable", "", "").await;
    assert_eq!(events.rest().await.last().unwrap(), "failed: the backend responded 503 Service Unavailable");
}

#[tokio::test]
async fn longer_wait_than_allowed_is_not_begun() {
    let function = Function::start().await;
    let server = server(&function, "GET").await;
    let mut events = server.call("{}").await;
    function.request().await.respond("429 Too Many Requests", "retry-after: 3600\r\n", "").await;
    assert_eq!(
        events.rest().await.last().unwrap(),
        "failed: the backend responded 429 Too Many Requests, try again after 3600 s"
    );
}

#[tokio::test]
async fn unreachable_function_fails_the_task_without_its_address() {
    let function = Function::start().await;
    let server = server(&function, "POST").await;
    drop(function);
    let mut events = server.call("{}").await;
    assert_eq!(
        events.rest().await.last().unwrap(),
        "failed: the call of the backend failed: the server cannot be reached"
    );
}
