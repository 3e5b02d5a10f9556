//! The selftest: all built items pass, and a server that is misconfigured on purpose fails the right items.

#![allow(clippy::unwrap_used, reason = "a test fails on any error")]

use std::{fs, path::Path, sync::Arc};

use a2ad_cli::selftest::ThisProgram;
use selftest::{Report, SelftestOptions};

/// The ranges of items that must pass, by group.
const PASSING: [(&str, &[(u16, u16)]); 5] = [
    ("S0", &[(1, 1), (4, 4), (6, 6), (8, 15), (17, 35), (44, 46)]),
    ("S1", &[(1, 56), (59, 78), (80, 89)]),
    ("S2", &[(1, 8), (10, 23), (26, 31), (33, 48)]),
    ("S3", &[(1, 10), (12, 24), (33, 48), (60, 62), (68, 68)]),
    ("S4", &[(2, 7), (17, 22), (33, 33), (36, 38)]),
];

async fn check(options: SelftestOptions) -> Report {
    let executable = Some(env!("CARGO_BIN_EXE_a2ad").into());
    run_checks(&SelftestOptions { executable, ..options }).await.unwrap()
}

async fn run_checks(options: &SelftestOptions) -> anyhow::Result<Report> {
    selftest::run_checks(Arc::new(ThisProgram), options).await
}

/// Checks these items after a text replacement in the server's configuration.
async fn check_with_change(from: &str, to: &str, only: &[&str]) -> Report {
    let only = only.iter().map(|&id| id.into()).collect();
    check(SelftestOptions { only, changes: vec![(from.into(), to.into())], ..SelftestOptions::default() })
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn all_built_items_pass() {
    let report = check(SelftestOptions::default()).await;
    assert!(report.is_success(), "{}", report.failures());
    let expected: Vec<String> = PASSING
        .iter()
        .flat_map(|(group, ranges)| {
            ranges.iter().flat_map(|range| range.0..=range.1).map(move |n| format!("{group}-{n}"))
        })
        .collect();
    assert_eq!(report.passed(), expected);
    assert_eq!(
        report.summary(),
        "S0 33/46 (13 not yet)\nS1 86/89 (3 not yet)\nS2 44/49 (5 not yet)\nS3 43/68 (25 not yet)\n\
         S4 16/42 (1 by test, 25 not yet)\n"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_profile_fails_its_items() {
    let from = "[agents.pinkfish]\nprofile = \"pinkfish\"";
    let report =
        check_with_change(from, "[agents.pinkfish]", &["S2-22", "S2-34", "S2-44", "S2-20", "S0-14"]).await;
    assert_eq!(report.failed(), ["S2-20", "S2-22", "S2-34", "S2-44"], "{}", report.failures());
    assert_eq!(report.passed(), ["S0-14"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unsupported_generation_fails_its_items() {
    let report = check_with_change(
        "[server]",
        "[protocol]\ndialects = [\"0.3\", \"1.0\"]\n[server]",
        &["S0-19", "S1-81", "S4-19", "S2-22", "S3-13"],
    )
    .await;
    assert_eq!(report.failed(), ["S0-19", "S1-81", "S4-19"], "{}", report.failures());
    assert_eq!(report.passed(), ["S2-22", "S3-13"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn disabled_streaming_fails_its_items() {
    let off = "[agents.main]\nstreaming = false";
    let report =
        check_with_change("[agents.main]", off, &["S0-31", "S1-12", "S1-47", "S1-52", "S3-17", "S0-22"])
            .await;
    assert_eq!(report.failed(), ["S0-31", "S1-12", "S1-47", "S1-52", "S3-17"], "{}", report.failures());
    assert_eq!(report.passed(), ["S0-22"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_retention_limit_fails_its_items() {
    let from = "retention = { max_age = \"1s\", keys = \"1s\" }";
    let report = check_with_change(from, "", &["S0-29", "S1-37"]).await;
    assert_eq!(report.failed(), ["S0-29", "S1-37"], "{}", report.failures());
}

#[tokio::test(flavor = "multi_thread")]
async fn another_default_retention_fails_its_item() {
    let report = check_with_change(
        "[server]",
        "[store]\nretention = { max_age = \"7d\" }\n[server]",
        &["S0-29", "S1-37"],
    )
    .await;
    assert_eq!(report.failed(), ["S0-29"], "{}", report.failures());
    assert_eq!(report.passed(), ["S1-37"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_tool_fails_its_items() {
    let report = check_with_change(r#""weather-lookup", "#, "", &["S0-1", "S0-6", "S0-11", "S0-12"]).await;
    assert_eq!(report.failed(), ["S0-1", "S0-6", "S0-11"], "{}", report.failures());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_private_skill_that_is_not_private_fails_its_items() {
    let private = "mcp__user_5f2c9a_notes";
    let report = check_with_change(private, "mcp__user__notes", &["S3-9", "S3-10"]).await;
    assert_eq!(report.failed(), ["S3-9"], "{}", report.failures());
    let report = check_with_change(r#""protected""#, r#""open""#, &["S3-9", "S3-10"]).await;
    assert_eq!(report.failed(), ["S3-9"], "{}", report.failures());
    let report = check_with_change("skills_allow = [\"search\"]", "", &["S2-8"]).await;
    assert_eq!(report.failed(), ["S2-8"], "{}", report.failures());
}

/// Each change in the configurations about credentials makes the items fail that are about it.
#[tokio::test(flavor = "multi_thread")]
async fn wrong_credentials_fail_their_items() {
    let keyed = "[agents.keyed]\nprofile = \"pinkfish\"\nauth = [\"api-key\"]";
    let anonymous = keyed.replace("[\"api", "[\"anonymous\", \"api");
    let main = "[agents.main]\nprofile = \"agent-native\"";
    let open = format!("{main}\nauth = [\"anonymous\"]");
    for (from, to, only, failed) in [
        (keyed, anonymous.as_str(), &["S2-31", "S2-45", "S2-7"][..], &["S2-31", "S2-45"][..]),
        ("end_user = \"required\"", "", &["S2-10", "S2-29", "S2-33", "S2-28"], &["S2-10", "S2-29", "S2-33"]),
        ("{ prefix = \"pf_a2a_\" }", "{ prefix = \"key_\" }", &["S2-4", "S2-31"], &["S2-4"]),
        ("\"pf_a2a_\" }", "\"pf_a2a_\", max_per_agent = 21 }", &["S2-6", "S2-4"], &["S2-6"]),
        ("skills_allow = [\"echo\"]", "", &["S2-8"], &["S2-8"]),
        ("https://selftest.example", "another", &["S3-37", "S3-46", "S3-47"], &["S3-46", "S3-47"]),
        (
            "bearer_env = \"SELFTEST_BEARER\"",
            "",
            &["S3-8", "S3-37", "S3-38", "S3-39"],
            &["S3-8", "S3-38", "S3-39"],
        ),
        ("\"acme.example\"", "\"other.example\"", &["S3-37", "S3-45"], &["S3-45"]),
        ("extended_skills = [\"greet\"]", "", &["S3-12"], &["S3-12"]),
        (
            main,
            &open,
            &["S3-8", "S3-37", "S3-41", "S3-42", "S3-44", "S3-48", "S4-37"],
            &["S3-8", "S3-37", "S3-41", "S3-42", "S3-44", "S3-48", "S4-37"],
        ),
    ] {
        let report = check_with_change(from, to, only).await;
        assert_eq!(report.failed(), failed, "{from} -> {to}: {}", report.failures());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_settings_of_webhooks_fail_their_items() {
    for (from, to, only, failed) in [
        ("challenge = true", "", &["S1-43", "S1-44"][..], &["S1-44"][..]),
        ("push = false", "", &["S1-45", "S1-46", "S1-67"], &["S1-46", "S1-67"]),
        ("[agents.main]", "[agents.main]\npush = false", &["S1-1", "S1-42", "S1-46"], &["S1-1", "S1-42"]),
    ] {
        let report = check_with_change(from, to, only).await;
        assert_eq!(report.failed(), failed, "{from} -> {to}: {}", report.failures());
    }
}

/// `/broken` ends before its second piece.
#[tokio::test(flavor = "multi_thread")]
async fn a_function_that_breaks_off_fails_its_item() {
    let report = check_with_change("1:1/events", "1:1/broken", &["S0-46"]).await;
    assert_eq!(report.failed(), ["S0-46"], "{}", report.failures());
}

/// If another process uses the sample's port, everything except the port is checked, and the item's line has a note.
#[tokio::test(flavor = "multi_thread")]
async fn a_port_in_use_is_noted() {
    // If another test holds the port now, it may have released it when the sample starts.
    let held = tokio::net::TcpListener::bind("127.0.0.1:10000").await;
    let report = check(SelftestOptions { only: vec!["S1-80".into()], ..SelftestOptions::default() }).await;
    assert_eq!(report.passed(), ["S1-80"], "{}", report.failures());
    let note = "is in use by another process; checked at 127.0.0.1:";
    assert!(held.is_err() || report.lines().contains(note), "{}", report.lines());
}

/// Items about streaming are not applicable to a server at a URL that does not offer streaming.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_at_a_url_may_lack_streaming() {
    let card = a2ad::Card::new("echo").skill("echo", "Returns its input").streaming(false);
    let card = card.input_modes(["*/*"]).output_modes(["*/*"]);
    let (url, _serving) = serve(a2ad::Server::builder().agent(card, a2ad::agents::Echo)).await;
    let report = check(SelftestOptions { url: Some(url), ..SelftestOptions::default() }).await;
    assert!(report.is_success(), "{}", report.failures());
    let passed = report.passed();
    let has = |id: &str| passed.iter().any(|passed| passed == id);
    assert!(has("S1-12") && has("S0-20") && !has("S1-47") && !has("S1-53"), "{passed:?}");
}

/// Serves until the returned `JoinSet` is dropped.
async fn serve(builder: a2ad::Builder) -> (String, tokio::task::JoinSet<()>) {
    let server = builder.build().unwrap();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let mut serving = tokio::task::JoinSet::new();
    let (caps, drain) = (inbound::listen::Caps::default(), tokio_util::sync::CancellationToken::new());
    serving.spawn(inbound::listen::serve(listener, server.router(), caps, drain));
    (url, serving)
}

#[tokio::test(flavor = "multi_thread")]
async fn items_without_a_fixture_are_not_applicable_at_a_url() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("a2ad.db");
    let (url, _serving) = serve(a2ad::Server::builder().store(store).agent("echo", a2ad::agents::Echo)).await;
    let only = ["S3-1", "S3-24", "S2-22", "S1-80", "S2-7", "S3-44"].map(String::from).into();
    let report = check(SelftestOptions { url: Some(url), only, ..SelftestOptions::default() }).await;
    assert!(report.is_success(), "{}", report.failures());
    assert_eq!(report.passed(), ["S3-1"]);
    assert!(report.summary().contains("S2 0/49 (2 n/a, 47 left out)\n"), "{}", report.summary());
}

/// The selftest has no credential for a server at a URL: only what is public can be checked.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_at_a_url_may_require_credentials() {
    let card = a2ad::Card::new("echo").skill("echo", "Returns its input");
    let card = card.auth([a2ad::server::AuthMethod::ApiKey]);
    let (url, _serving) = serve(a2ad::Server::builder().agent(card, a2ad::agents::Echo)).await;
    let report = check(SelftestOptions { url: Some(url), ..SelftestOptions::default() }).await;
    assert!(report.is_success(), "{}", report.failures());
    let passed = report.passed();
    let has = |id: &str| passed.iter().any(|passed| passed == id);
    assert!(has("S1-9") && has("S3-1") && !has("S1-34"), "{passed:?}");
    assert!(!report.verdict_line().contains("left open"), "{}", report.verdict_line());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_or_unreachable_url_is_an_error() {
    for (url, reason) in [("https://127.0.0.1:1", "without TLS"), ("http://127.0.0.1:1", "cannot check")] {
        let options = SelftestOptions { url: Some(url.into()), ..SelftestOptions::default() };
        let error = run_checks(&options).await.unwrap_err();
        assert!(error.to_string().contains(reason), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_item_is_an_error() {
    let options = SelftestOptions { only: vec!["S1-90".into()], ..SelftestOptions::default() };
    assert!(run_checks(&options).await.unwrap_err().to_string().contains("S1-90"));
}

/// Every ordinary test that the catalogue names exists.
#[tokio::test(flavor = "multi_thread")]
async fn every_named_test_exists() {
    let report = check(SelftestOptions { only: vec!["S4-28".into()], ..SelftestOptions::default() }).await;
    assert!(!report.tests().is_empty());
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for (item, name) in report.tests() {
        let (file, function) = name.split_once("::").unwrap();
        let text = fs::read_to_string(root.join(file)).unwrap();
        assert!(text.contains(&format!("fn {function}(")), "{item}: {name}");
    }
}
