//! The selftest: everything that should be green is, and what is broken on purpose is found.

#![allow(clippy::unwrap_used, reason = "a test that meets an error is to fail")]

use std::{fs, path::Path};

use a2ad::selftest::{Options, Report, examine};

/// What the selftest has to find in order, by seed.
const GREEN: [(&str, &[(u16, u16)]); 5] = [
    ("S0", &[(14, 15), (17, 35)]),
    ("S1", &[(2, 3), (9, 39), (47, 56), (59, 75), (77, 77), (80, 86), (89, 89)]),
    ("S2", &[(1, 1), (11, 12), (14, 23), (26, 27), (34, 37), (40, 44)]),
    ("S3", &[(1, 2), (4, 4), (6, 7), (13, 20), (23, 24), (33, 36), (60, 62), (68, 68)]),
    ("S4", &[(2, 5), (7, 7), (17, 22), (33, 33)]),
];

async fn examined(options: Options) -> Report {
    let program = Some(env!("CARGO_BIN_EXE_a2ad").into());
    examine(&Options { program, ..options }).await.unwrap()
}

/// Checks these items after a change of the server's configuration.
async fn changed(from: &str, to: &str, only: &[&str]) -> Report {
    let only = only.iter().map(|&id| id.into()).collect();
    examined(Options { only, changes: vec![(from.into(), to.into())], ..Options::default() }).await
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_that_should_be_green_is() {
    let report = examined(Options::default()).await;
    assert!(report.is_good(), "{}", report.failures());
    let expected: Vec<String> = GREEN
        .iter()
        .flat_map(|(seed, ranges)| {
            ranges.iter().flat_map(|range| range.0..=range.1).map(move |n| format!("{seed}-{n}"))
        })
        .collect();
    assert_eq!(report.passed(), expected);
    assert_eq!(
        report.summary(),
        "S0 21/46 (25 not yet)\nS1 69/89 (20 not yet)\nS2 24/49 (25 not yet)\nS3 23/68 (45 not yet)\n\
         S4 12/42 (1 by test, 29 not yet)\n"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn another_house_style_is_found() {
    let from = "[agents.pinkfish]\nprofile = \"pinkfish\"";
    let report = changed(from, "[agents.pinkfish]", &["S2-22", "S2-34", "S2-44", "S2-20", "S0-14"]).await;
    assert_eq!(report.failed(), ["S2-20", "S2-22", "S2-34", "S2-44"], "{}", report.failures());
    assert_eq!(report.passed(), ["S0-14"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_generation_that_is_not_spoken_is_found() {
    let report = changed(
        "[server]",
        "[protocol]\ndialects = [\"0.3\", \"1.0\"]\n[server]",
        &["S0-19", "S1-81", "S4-19", "S2-22", "S3-13"],
    )
    .await;
    assert_eq!(report.failed(), ["S0-19", "S1-81", "S4-19"], "{}", report.failures());
    assert_eq!(report.passed(), ["S2-22", "S3-13"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn streaming_that_is_switched_off_is_found() {
    let off = "[agents.main]\nstreaming = false";
    let report = changed("[agents.main]", off, &["S0-31", "S1-12", "S1-47", "S1-52", "S3-17", "S0-22"]).await;
    assert_eq!(report.failed(), ["S0-31", "S1-12", "S1-47", "S1-52", "S3-17"], "{}", report.failures());
    assert_eq!(report.passed(), ["S0-22"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_kept_too_long_is_found() {
    let from = "retention = { max_age = \"1s\", keys = \"1s\" }";
    let report = changed(from, "", &["S0-29", "S1-37"]).await;
    assert_eq!(report.failed(), ["S0-29", "S1-37"], "{}", report.failures());
}

#[tokio::test(flavor = "multi_thread")]
async fn another_default_of_keeping_is_found() {
    let report =
        changed("[server]", "[store]\nretention = { max_age = \"7d\" }\n[server]", &["S0-29", "S1-37"]).await;
    assert_eq!(report.failed(), ["S0-29"], "{}", report.failures());
    assert_eq!(report.passed(), ["S1-37"]);
}

/// Somebody else has the port of the sample: everything but the port is checked, and the line says so.
#[tokio::test(flavor = "multi_thread")]
async fn a_port_that_is_taken_is_told() {
    // Where another test has it at the moment, that one may be gone again when ours is asked for.
    let held = tokio::net::TcpListener::bind("127.0.0.1:10000").await;
    let report = examined(Options { only: vec!["S1-80".into()], ..Options::default() }).await;
    assert_eq!(report.passed(), ["S1-80"], "{}", report.failures());
    let taken = "is taken by somebody else; checked at 127.0.0.1:";
    assert!(held.is_err() || report.lines().contains(taken), "{}", report.lines());
}

/// What somebody else's agent does not offer is no fault of its server.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_elsewhere_need_not_stream() {
    let card = a2ad::Card::new("echo").skill("echo", "Gives back what it is given").streaming(false);
    let card = card.input_modes(["*/*"]).output_modes(["*/*"]);
    let (url, _serving) = served(a2ad::Server::builder().agent(card, a2ad::agents::Echo)).await;
    let report = examined(Options { url: Some(url), ..Options::default() }).await;
    assert!(report.is_good(), "{}", report.failures());
    let passed = report.passed();
    let has = |id: &str| passed.iter().any(|passed| passed == id);
    assert!(has("S1-12") && has("S0-20") && !has("S1-47") && !has("S1-53"), "{passed:?}");
}

/// Serves until what it gives is dropped.
async fn served(builder: a2ad::Builder) -> (String, tokio::task::JoinSet<()>) {
    let server = builder.build().unwrap();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let mut serving = tokio::task::JoinSet::new();
    let (caps, drain) = (inbound::listen::Caps::default(), tokio_util::sync::CancellationToken::new());
    serving.spawn(inbound::listen::serve(listener, server.router(), caps, drain));
    (url, serving)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_at_a_url_is_taken_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("a2ad.db");
    let (url, _serving) =
        served(a2ad::Server::builder().store(store).agent("echo", a2ad::agents::Echo)).await;
    let only = ["S3-1", "S3-24", "S2-22", "S1-80"].map(String::from).into();
    let report = examined(Options { url: Some(url), only, ..Options::default() }).await;
    assert!(report.is_good(), "{}", report.failures());
    assert_eq!(report.passed(), ["S3-1"]);
    assert!(report.summary().contains("S2 0/49 (1 n/a, 48 left out)\n"), "{}", report.summary());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_url_that_is_no_server_is_an_error() {
    for (url, word) in [("https://127.0.0.1:1", "without TLS"), ("http://127.0.0.1:1", "cannot check")] {
        let options = Options { url: Some(url.into()), ..Options::default() };
        let error = examine(&options).await.unwrap_err();
        assert!(error.to_string().contains(word), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_item_that_is_not_in_the_catalogue_is_an_error() {
    let options = Options { only: vec!["S1-90".into()], ..Options::default() };
    assert!(examine(&options).await.unwrap_err().to_string().contains("S1-90"));
}

/// The tests that the catalogue names are there.
#[tokio::test(flavor = "multi_thread")]
async fn every_named_test_exists() {
    let report = examined(Options { only: vec!["S4-28".into()], ..Options::default() }).await;
    assert!(!report.tests().is_empty());
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for (item, name) in report.tests() {
        let (file, function) = name.split_once("::").unwrap();
        let text = fs::read_to_string(root.join(file)).unwrap();
        assert!(text.contains(&format!("fn {function}(")), "{item}: {name}");
    }
}
