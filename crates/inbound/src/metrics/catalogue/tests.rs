//! The page has the metrics of the catalogue and no others, and the document is generated from it.

use std::{collections::BTreeSet, fmt::Write as _, fs, path::Path, sync::Arc};

use engine::{Catalog, Clock, Engine, Feed, Limits};

use super::*;
use crate::{
    documents::ready::Ready,
    metrics::{exposition::Format, page},
    server_state::{ServerOptions, ServerState},
};

/// The page of a server that has served nothing yet.
async fn page(format: Format) -> String {
    let folder = tempfile::tempdir().unwrap();
    let (feed, clock) = (Feed::default(), Clock::system());
    let options = store::SqliteOptions::at(folder.path().join("a2ad.db"));
    let store = Arc::new(store::Sqlite::open(&options, feed.clone(), &clock).unwrap());
    let catalog = Catalog::new("echo", outbound::agents::demo());
    let engine = Engine::start(store, feed, catalog, clock, Limits::default());
    let server = ServerState::new(engine, ServerOptions::default(), Ready::default());
    // A sample of each label that is shown only after use.
    let metrics = Arc::clone(&server.metrics);
    drop(crate::metrics::calls::MeasuredCall::begin(metrics, BindingLabel::JsonRpc));
    page::render(&server, format).await
}

/// The labels of a sample, without those that every histogram has.
fn labels(sample: &str) -> Vec<(&str, &str)> {
    let Some((_, rest)) = sample.split_once('{') else { return Vec::new() };
    let inside = rest.split_once('}').unwrap().0;
    let pairs = inside.split(',').map(|pair| pair.split_once('=').unwrap());
    pairs.map(|(name, value)| (name, value.trim_matches('"'))).filter(|(name, _)| *name != "le").collect()
}

#[tokio::test]
async fn the_page_has_exactly_the_metrics_of_the_catalogue() {
    let text = page(Format::Text).await;
    let printed: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")).collect();
    let expected: Vec<String> =
        ALL.iter().map(|metric| format!("{} {}", metric.name, metric.kind.label())).collect();
    assert_eq!(printed, expected);
    let mut current: Option<&Metric> = None;
    for line in text.lines() {
        if let Some(named) = line.strip_prefix("# TYPE ") {
            let name = named.split(' ').next().unwrap();
            current = ALL.iter().copied().find(|metric| metric.name == name);
        }
        if line.starts_with('#') {
            continue;
        }
        let metric = current.unwrap();
        assert!(line.starts_with(metric.name), "{line}");
        let labels = labels(line);
        let names: Vec<&str> = labels.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, metric.labels.iter().map(|label| label.name).collect::<Vec<_>>(), "{line}");
        for ((_, value), label) in labels.iter().zip(metric.labels) {
            assert!(label.has(value), "{line}");
        }
        let value = line.rsplit(' ').next().unwrap();
        assert!(value.parse::<f64>().is_ok(), "{line}");
    }
}

#[tokio::test]
async fn open_metrics_names_counters_without_their_suffix_and_ends_with_a_mark() {
    let text = page(Format::OpenMetrics).await;
    assert!(text.contains("# TYPE a2ad_requests counter\na2ad_requests_total{"), "{text}");
    assert!(text.ends_with("# EOF\n"));
}

#[test]
fn names_are_unique_and_follow_the_conventions() {
    let mut names = BTreeSet::new();
    for metric in ALL {
        assert!(names.insert(metric.name), "{}", metric.name);
        assert_eq!(metric.name.ends_with("_total"), metric.kind == Kind::Counter, "{}", metric.name);
        assert!(metric.help.ends_with('.') && !metric.help.contains(['\n', '\\']), "{}", metric.name);
    }
}

fn document() -> String {
    let mut text = "<!-- Made by `cargo xtask gen` from crates/inbound/src/metrics/catalogue.rs; not to be edited. -->\n\
        # Metrics\n\n\
        `GET /metrics` prints these in the text format of Prometheus (0.0.4), and in OpenMetrics 1.0 for clients whose \
        `Accept` names it. Who may read it is in [security.md](security.md). No label has ids, agents or texts of \
        callers, so the number of series is bounded. Counters begin at 0 with the process; `a2ad_requests_total` has the \
        series of a binding and dialect after its first call.\n\n\
        | name | type | labels | meaning |\n|---|---|---|---|\n"
        .to_owned();
    for metric in ALL {
        let label = |label: &Label| {
            let shown = match label.name {
                "version" => "that of the program".into(),
                _ if label.values.is_empty() => "the names in the configuration".into(),
                _ => label.values.join(", "),
            };
            format!("`{}`: {shown}", label.name)
        };
        let labels: Vec<String> = metric.labels.iter().map(label).collect();
        let (name, kind, help) = (metric.name, metric.kind.label(), metric.help);
        writeln!(text, "| `{name}` | {kind} | {} | {help} |", labels.join("; ")).unwrap();
    }
    text
}

#[test]
fn the_documentation_of_the_metrics_is_fresh() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/metrics.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, document()).unwrap();
    }
    let committed = fs::read_to_string(&path).unwrap_or_default();
    assert!(committed == document(), "docs/metrics.md is stale; run `cargo xtask gen`");
}
