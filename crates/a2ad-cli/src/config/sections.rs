//! The sections with a fixed set of keys: `[server]`, `[store]`, `[card]`, `[protocol]`, `[limits]`, `[push]`.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use a2ad::internal::{AuditOptions, FileLimits, ListenAddress, SHUTDOWN_LIMIT, default_audit_file};
use engine::{HistoryLimit, Limits, MemoryBudget, PrincipalCaps, Retention, push::PushPolicy};
use inbound::{CardShape, RateLimits};
use protocol::ErrorTable;

use super::{
    CardConfig, Mode, ProtocolConfig, ProtocolVersion, ServerConfig, StoreConfig, listen, mode,
    read::{Parsed, Section},
    skills_folder,
    tree::Item,
    values::{self, text},
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
        public_url: section.value("public_url", values::url),
        trusted_proxies: section.list("trusted_proxies", values::network),
        allowed_hosts: section.list("allowed_hosts", values::parsed),
        cors_origins: section.list("cors_origins", values::parsed),
        default_agent: String::new(),
        keep_alive: section.value("keep_alive", values::positive_duration),
        drain_delay: section.value("drain_delay", drain_delay),
        skills_dir: section.value("skills_dir", |item| skills_dir(item, directory)),
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
    let file = section.value("file", text);
    let size = |item: &Item| match values::size(item)? {
        size if size < MIN_SIZE => Err(format!("expected at least {}", values::show_size(MIN_SIZE))),
        size => Ok(size),
    };
    let count = |item: &Item| match values::count(item)? {
        count if count > MAX_FILES => Err(format!("expected at most {MAX_FILES}")),
        count => Ok(count),
    };
    let changes = FileLimits {
        max_size: section.value("max_size", size),
        max_files: section.value("max_files", count),
    };
    let refusals = FileLimits {
        max_size: section.get("refused_max_size", size).unwrap_or(changes.max_size),
        max_files: section.get("refused_max_files", count).unwrap_or(changes.max_files),
    };
    let file_or_default = if file.is_empty() { default_audit_file(store) } else { directory.join(&file) };
    let options = AuditOptions { file: file_or_default, changes, refusals };
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
        url: section.value("url", url),
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
        style: section.value("style", |item| item.one_of(&CARD_NAMES)),
        max_age: section.value("max_age", values::duration),
        grpc_scheme: section.value("grpc_scheme", Item::boolean),
    }
}

/// When push notifications are delivered.
pub(super) fn push(section: &Section<'_>) -> PushPolicy {
    PushPolicy {
        waits: section.list("retry_after", values::positive_duration),
        timeout: section.value("timeout", values::positive_duration),
        probe_interval: section.value("probe_after", values::positive_duration),
        dead_letters: section.value("dead_letters", values::positive_duration),
        challenge: section.value("challenge", Item::boolean),
    }
}

/// The address of an OpenTelemetry collector.
pub(super) fn otlp(section: &Section<'_>) -> Option<String> {
    let endpoint = section.value("otlp", values::url)?;
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

impl ProtocolVersion {
    pub(crate) const NAMES: [(&'static str, Self); 3] =
        [("draft", Self::Draft), ("0.3", Self::V03), ("1.0", Self::V1)];
}

pub(crate) const ERROR_NAMES: [(&str, ErrorTable); 2] =
    [("1.0.1", ErrorTable::V1_0_1), ("1.0.0", ErrorTable::V1_0_0)];

pub(super) fn protocol(section: &Section<'_>) -> ProtocolConfig {
    let dialects = section.list("dialects", |item| item.one_of(&ProtocolVersion::NAMES));
    if dialects.is_empty() {
        section.report("dialects", "expected at least one of draft, 0.3, 1.0");
    }
    let is_accepted = |version: &ProtocolVersion| dialects.contains(version);
    ProtocolConfig {
        dialects: ProtocolVersion::NAMES.into_iter().map(|name| name.1).filter(is_accepted).collect(),
        errors: section.value("errors", |item| item.one_of(&ERROR_NAMES)),
        lenient_version: section.value("lenient_version", Item::boolean),
    }
}

/// The engine's limits, and the largest accepted request body.
pub(super) fn limits(section: &Section<'_>) -> (Limits, usize) {
    let count = |item: &Item| values::non_zero(values::count(item)?);
    let size = |item: &Item| values::non_zero(values::size(item)?);
    let limits = Limits {
        concurrent: section.value("concurrent", count),
        queued: section.value("queued", values::count),
        run_time: section.value("run_time", values::positive_duration),
        interrupted_ttl: section.value("interrupted_ttl", values::positive_duration),
        // 0 is no limit.
        wait: Some(section.value("wait", values::duration)).filter(|wait| !wait.is_zero()),
        max_task: section.value("max_task", size),
        max_saved: section.value("max_saved", size),
        max_journal: section.value("max_journal", size),
        history: history_limit(&section.open("history")),
        memory: section.value("memory", size),
        min_free_disk: section.value("min_free_disk", values::size),
        per_principal: principal_caps(&section.open("per_principal")),
        ..Limits::default()
    };
    let max_body = section.value("max_body", size);
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

/// `[limits.history]`
fn history_limit(section: &Section<'_>) -> HistoryLimit {
    let size = section.value("size", values::size);
    HistoryLimit {
        messages: section.value("messages", values::count),
        size: usize::try_from(size).unwrap_or(usize::MAX),
    }
}

/// `[limits.per_principal]`; 0 is no limit.
fn principal_caps(section: &Section<'_>) -> PrincipalCaps {
    PrincipalCaps {
        tasks: section.value("tasks", Item::count),
        streams: section.value("streams", Item::count),
        interrupted: section.value("interrupted", Item::count),
        stored: section.value("stored", values::size),
    }
}

/// `[limits.rate]`; an empty string is no limit.
pub(super) fn rate_limits(section: &Section<'_>) -> RateLimits {
    let rate = |item: &Item| match item.text()? {
        "" => Ok(None),
        _ => values::parsed(item).map(Some),
    };
    RateLimits {
        per_key: section.value("per_key", rate),
        per_tenant: section.value("per_tenant", rate),
        per_agent: section.value("per_agent", rate),
    }
}
