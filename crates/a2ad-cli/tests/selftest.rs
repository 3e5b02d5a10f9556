//! `a2ad selftest`: everything passes on a server of its own, and at a URL it says what the server lacks or does wrong.

#![allow(clippy::unwrap_used, reason = "a test fails on any error")]

use std::sync::atomic::{AtomicUsize, Ordering};

use a2ad::{Builder, Card, Server, agents::Echo, server::AuthMethod};
use axum::{Router, extract::Request, http::header, response::IntoResponse as _, routing::any};
use selftest::{Report, SelftestOptions, Verdict};
use tokio::{net::TcpListener, task::JoinSet};
use tokio_util::sync::CancellationToken;

const CHECKS: [&str; 5] = ["card", "send", "stream", "cancel", "resume"];

async fn check(url: Option<&str>) -> Report {
    let executable = Some(env!("CARGO_BIN_EXE_a2ad").into());
    let options = SelftestOptions { url: url.map(str::to_owned), executable, ..SelftestOptions::default() };
    selftest::check(&options).await.unwrap()
}

/// Serves until the returned `JoinSet` is dropped.
async fn serve(router: Router) -> (String, JoinSet<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let mut serving = JoinSet::new();
    let (caps, drain) = (inbound::listen::Caps::default(), CancellationToken::new());
    serving.spawn(inbound::listen::serve(listener, router, caps, drain));
    (url, serving)
}

async fn serve_agent(builder: Builder) -> (String, JoinSet<()>) {
    serve(builder.build().unwrap().router()).await
}

/// The checks of a version that have passed.
fn passed(report: &Report, version: &str) -> Vec<&'static str> {
    let of_version = report.checks.iter().filter(|result| result.version == version);
    of_version
        .filter(|result| matches!(result.verdict, Verdict::Passed(_)))
        .map(|result| result.check)
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn all_checks_pass_in_each_version_on_a_server_of_its_own() {
    let report = check(None).await;
    assert!(report.is_success(), "{}", report.lines());
    for version in ["draft", "0.3", "1.0"] {
        assert_eq!(passed(&report, version), CHECKS, "{}", report.lines());
    }
    assert_eq!(report.summary(), "selftest passed: 15 passed, 0 failed, 0 not checked");
}

#[tokio::test(flavor = "multi_thread")]
async fn any_agent_is_checked_as_far_as_it_goes() {
    let (url, _serving) = serve_agent(Server::builder().agent("mine", Echo)).await;
    let report = check(Some(&url)).await;
    assert!(report.is_success(), "{}", report.lines());
    assert_eq!(passed(&report, "1.0"), CHECKS, "{}", report.lines());
    assert!(report.left_open.is_empty(), "{:?}", report.left_open);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_agent_does_not_offer_is_not_checked() {
    let card = Card::new("echo").skill("echo", "Returns its input");
    let (url, _serving) = serve_agent(Server::builder().agent(card.clone().streaming(false), Echo)).await;
    let report = check(Some(&url)).await;
    assert!(report.is_success(), "{}", report.lines());
    assert_eq!(passed(&report, "0.3"), ["card", "send", "cancel"], "{}", report.lines());
    // There is no credential for a server at a URL.
    let (url, _serving) = serve_agent(Server::builder().agent(card.auth([AuthMethod::ApiKey]), Echo)).await;
    let report = check(Some(&url)).await;
    assert!(report.is_success(), "{}", report.lines());
    assert_eq!(passed(&report, "draft"), ["card"], "{}", report.lines());
    assert!(report.lines().contains("calls of this agent need a credential"), "{}", report.lines());
}

/// A server whose card is right and whose calls are not: each call returns a task that never ends, under the same id.
#[tokio::test(flavor = "multi_thread")]
async fn wrong_answers_fail_with_what_was_expected_and_what_came() {
    const CARD: &str = r#"{"name":"Odd","version":"1","protocolVersion":"0.3.0","url":"http://odd.example/rpc",
        "capabilities":{"streaming":true},"skills":[]}"#;
    const TASK: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"id":"t","status":{"state":"working"}}}"#;
    static CALLS: AtomicUsize = AtomicUsize::new(0);
    let respond = async |request: Request| {
        let body = match request.uri().path() {
            "/.well-known/agent-card.json" => CARD,
            "/rpc" => {
                CALLS.fetch_add(1, Ordering::Relaxed);
                TASK
            }
            _ => return http::StatusCode::NOT_FOUND.into_response(),
        };
        ([(header::CONTENT_TYPE, "application/json")], body).into_response()
    };
    let (url, _serving) = serve(Router::new().fallback(any(respond))).await;
    let report = check(Some(&url)).await;
    assert!(!report.is_success());
    assert_eq!(passed(&report, "0.3"), ["card"], "{}", report.lines());
    assert_eq!(
        report.summary().split(';').next().unwrap(),
        "selftest FAILED: 1 passed, 4 failed, 0 not checked"
    );
    assert_eq!(report.left_open, ["t"]);
    assert!(report.lines().contains("expected a task in a known state, or a message"), "{}", report.lines());
    assert!(CALLS.load(Ordering::Relaxed) > 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unusable_or_unreachable_url_is_an_error() {
    for (url, reason) in [
        ("https://127.0.0.1:1", "without TLS"),
        ("ftp://127.0.0.1", "is no origin"),
        ("http://127.0.0.1:1", "cannot check"),
    ] {
        let options = SelftestOptions { url: Some(url.into()), ..SelftestOptions::default() };
        let error = selftest::check(&options).await.unwrap_err();
        assert!(error.to_string().contains(reason), "{error}");
    }
}
