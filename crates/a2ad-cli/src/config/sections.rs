//! The sections with a fixed set of keys: `[server]`, `[store]`, `[card]`, `[protocol]`, `[limits]`, `[push]`.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use a2ad::internal::{AuditOptions, FileLimits, ListenAddress, SHUTDOWN_LIMIT, default_audit_file};
use engine::{Limits, MemoryBudget, PrincipalCaps, Retention, push::PushPolicy};
use inbound::{CardShape, RateLimits};
use protocol::ErrorTable;

use super::{
    CardConfig, Generation, Mode, ProtocolConfig, ServerConfig, StoreConfig, listen, mode,
    read::{Parsed, Section},
    skills_folder,
    tree::Item,
    values,
};

/// Everything except the default agent, which depends on the configured agents.
pub(super) fn server(
    section: &Section<'_>,
    directory: &Path,
    in_use: Option<&[ListenAddress]>,
) -> ServerConfig {
    ServerConfig {
        mode: mode::mode(section.get("mode", |item| item.one_of(&Mode::NAMES))),
        listen: listen::addresses(section, directory, in_use),
        public_url: section.get("public_url", values::url).flatten(),
        trusted_proxies: section.each("trusted_proxies", values::network).unwrap_or_default(),
        allowed_hosts: section.each("allowed_hosts", values::parsed).unwrap_or_default(),
        cors_origins: section.each("cors_origins", values::parsed).unwrap_or_default(),
        default_agent: String::new(),
        keep_alive: section.get("keep_alive", values::positive_duration).unwrap_or(Duration::from_secs(15)),
        drain_delay: section.get("drain_delay", drain_delay).flatten(),
        skills_dir: section.get("skills_dir", |item| skills_dir(item, directory)).flatten(),
    }
}

/// An empty string selects the default.
fn drain_delay(item: &Item) -> Parsed<Option<Duration>> {
    if item.text()?.is_empty() {
        return Ok(None);
    }
    let delay = values::duration(item)?;
    if delay > SHUTDOWN_LIMIT {
        return Err(format!("expected at most {} s, the time limit of a shutdown", SHUTDOWN_LIMIT.as_secs()));
    }
    Ok(Some(delay))
}

/// An empty string is no folder.
fn skills_dir(item: &Item, directory: &Path) -> Parsed<Option<PathBuf>> {
    let text = item.text()?;
    if text.is_empty() {
        return Ok(None);
    }
    let folder = directory.join(text);
    skills_folder::problem(&folder).map_or(Ok(Some(folder)), Err)
}

/// The audit log; its default place is beside the store.
pub(super) fn audit(section: &Section<'_>, directory: &Path, store: &Path) -> Option<AuditOptions> {
    /// Less would be renamed for every few lines.
    const MIN_SIZE: u64 = 64 << 10;
    const MAX_FILES: usize = 1_000;
    let file = section.get("file", |item| item.text().map(str::to_owned)).unwrap_or_default();
    let default = AuditOptions::at(default_audit_file(store));
    let size = |item: &Item| match values::size(item)? {
        size if size < MIN_SIZE => Err(format!("expected at least {}", values::show_size(MIN_SIZE))),
        size => Ok(size),
    };
    let count = |item: &Item| match values::count(item)? {
        count if count > MAX_FILES => Err(format!("expected at most {MAX_FILES}")),
        count => Ok(count),
    };
    let limits = |max_size: &str, max_files: &str, default: FileLimits| FileLimits {
        max_size: section.get(max_size, size).unwrap_or(default.max_size),
        max_files: section.get(max_files, count).unwrap_or(default.max_files),
    };
    let changes = limits("max_size", "max_files", default.changes);
    let options = AuditOptions {
        file: if file.is_empty() { default.file } else { directory.join(&file) },
        changes,
        refusals: limits("refused_max_size", "refused_max_files", changes),
    };
    (file != "off").then_some(options)
}

pub(super) fn store(section: &Section<'_>) -> StoreConfig {
    let url = |item: &Item| match item.text()? {
        "" => Err("expected the path of a file".into()),
        text if text.contains("://") => {
            Err(format!("{text:?}: this version of a2ad stores its tasks in a file; give its path"))
        }
        text => Ok(text.into()),
    };
    StoreConfig {
        url: section.get("url", url).unwrap_or_else(|| "a2ad.db".into()),
        retention: retention(&section.open("retention"), Retention::default()),
    }
}

/// Absent keys keep their value from `defaults`.
pub(super) fn retention(section: &Section<'_>, defaults: Retention) -> Retention {
    let max_tasks = section.get("max_tasks", Item::count);
    Retention {
        max_age: section.get("max_age", values::duration).unwrap_or(defaults.max_age),
        // 0 is no limit.
        max_tasks: max_tasks.map_or(defaults.max_tasks, |max| Some(max).filter(|max| *max > 0)),
        keys: section.get("keys", values::duration).unwrap_or(defaults.keys),
    }
}

pub(crate) const CARD_NAMES: [(&str, CardShape); 3] =
    [("merged", CardShape::Merged), ("v1", CardShape::V1), ("v03", CardShape::V03)];

pub(super) fn card(section: &Section<'_>) -> CardConfig {
    CardConfig {
        style: section.get("style", |item| item.one_of(&CARD_NAMES)).unwrap_or_default(),
        max_age: section.get("max_age", values::duration).unwrap_or(Duration::from_secs(60)),
        grpc_scheme: section.get("grpc_scheme", Item::boolean).unwrap_or(false),
    }
}

/// When push notifications are delivered.
pub(super) fn push(section: &Section<'_>) -> PushPolicy {
    let defaults = PushPolicy::default();
    let duration = |key, default| section.get(key, values::positive_duration).unwrap_or(default);
    PushPolicy {
        waits: section.each("retry_after", values::positive_duration).unwrap_or(defaults.waits),
        timeout: duration("timeout", defaults.timeout),
        probe_interval: duration("probe_after", defaults.probe_interval),
        dead_letters: duration("dead_letters", defaults.dead_letters),
        challenge: section.get("challenge", Item::boolean).unwrap_or(defaults.challenge),
    }
}

/// The address of an OpenTelemetry collector.
pub(super) fn otlp(section: &Section<'_>) -> Option<String> {
    let endpoint = section.get("otlp", values::url).flatten()?;
    if cfg!(not(feature = "otel")) {
        section.report(
            "otlp",
            "expected an empty text: this program was built without the feature otel; build it with --features otel",
        );
        return None;
    }
    if !endpoint.starts_with("http://") {
        section.report(
            "otlp",
            "expected http://HOST:PORT of a collector that speaks OTLP over gRPC, such as http://127.0.0.1:4317; for TLS, \
             run a collector beside the server",
        );
        return None;
    }
    Some(endpoint)
}

impl Generation {
    pub(crate) const NAMES: [(&'static str, Self); 3] =
        [("draft", Self::Draft), ("0.3", Self::V03), ("1.0", Self::V1)];
}

pub(crate) const ERROR_NAMES: [(&str, ErrorTable); 2] =
    [("1.0.1", ErrorTable::V1_0_1), ("1.0.0", ErrorTable::V1_0_0)];

pub(super) fn protocol(section: &Section<'_>) -> ProtocolConfig {
    let dialects = section.each("dialects", |item| item.one_of(&Generation::NAMES));
    if dialects.as_ref().is_some_and(Vec::is_empty) {
        section.report("dialects", "expected at least one of draft, 0.3, 1.0");
    }
    let is_accepted =
        |generation: &Generation| dialects.as_ref().is_none_or(|some| some.contains(generation));
    ProtocolConfig {
        dialects: Generation::NAMES.into_iter().map(|name| name.1).filter(is_accepted).collect(),
        errors: section.get("errors", |item| item.one_of(&ERROR_NAMES)).unwrap_or_default(),
        lenient_version: section.get("lenient_version", Item::boolean).unwrap_or(true),
    }
}

/// The engine's limits, and the largest accepted request body.
pub(super) fn limits(section: &Section<'_>) -> (Limits, usize) {
    let defaults = Limits::default();
    let count = |item: &Item| values::non_zero(values::count(item)?);
    let size = |item: &Item| values::non_zero(values::size(item)?);
    let limits = Limits {
        concurrent: section.get("concurrent", count).unwrap_or(defaults.concurrent),
        queued: section.get("queued", values::count).unwrap_or(defaults.queued),
        run_time: section.get("run_time", values::positive_duration).unwrap_or(defaults.run_time),
        interrupted_ttl: section
            .get("interrupted_ttl", values::positive_duration)
            .unwrap_or(defaults.interrupted_ttl),
        // 0 is no limit.
        wait: section.get("wait", values::duration).filter(|wait| !wait.is_zero()),
        max_task: section.get("max_task", size).unwrap_or(defaults.max_task),
        max_saved: section.get("max_saved", size).unwrap_or(defaults.max_saved),
        max_journal: section.get("max_journal", size).unwrap_or(defaults.max_journal),
        memory: section.get("memory", size).unwrap_or(defaults.memory),
        min_free_disk: section.get("min_free_disk", values::size).unwrap_or(256 << 20),
        per_principal: principal_caps(&section.open("per_principal")),
        ..defaults
    };
    let max_body = section.get("max_body", size).unwrap_or(16 << 20);
    let needed = MemoryBudget::needed_for(max_body);
    if limits.memory < needed {
        let [memory, needed, body] = [limits.memory, needed, max_body].map(values::show_size);
        if section.has("memory") {
            let text = format!("expected at least {needed}, four times max_body ({body})");
            section.report("memory", text);
        } else {
            let text = format!(
                "limits.memory is {memory} and must be at least {needed}, four times max_body; set it, or choose a \
                 smaller max_body"
            );
            section.report("max_body", text);
        }
    }
    (limits, usize::try_from(max_body).unwrap_or(usize::MAX))
}

/// `[limits.per_principal]`; 0 is no limit.
fn principal_caps(section: &Section<'_>) -> PrincipalCaps {
    PrincipalCaps {
        tasks: section.get("tasks", Item::count).unwrap_or(1_000),
        streams: section.get("streams", Item::count).unwrap_or(1_000),
        interrupted: section.get("interrupted", Item::count).unwrap_or(100),
        stored: section.get("stored", values::size).unwrap_or(1 << 30),
    }
}

/// `[limits.rate]`; an empty string is no limit.
pub(super) fn rate_limits(section: &Section<'_>) -> RateLimits {
    let rate = |item: &Item| match item.text()? {
        "" => Ok(None),
        _ => values::parsed(item).map(Some),
    };
    let default = DEFAULT_RATE.parse().ok();
    RateLimits {
        per_key: section.get("per_key", rate).unwrap_or(default),
        per_tenant: section.get("per_tenant", rate).flatten(),
        per_agent: section.get("per_agent", rate).flatten(),
    }
}

/// Of each principal.
const DEFAULT_RATE: &str = "600/min";
