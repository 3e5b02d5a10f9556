//! `a2ad audit`: prints the audit log of a store, and follows it. Reads its files, whether or not a server runs.

use std::time::Duration;

use a2ad::internal::{AuditFiles, AuditOptions, default_audit_file};
use clap::Args;
use protocol::{
    Timestamp,
    json::read::{Object, Read},
};

use crate::cli::failure::{Failure, code};

use crate::cli::operators::{OperatorFlags, read_document, read_time};

use crate::cli::output::Output;

use crate::cli::runtime;

/// How often a followed log is looked at.
const INTERVAL: Duration = Duration::from_millis(250);
/// How many entries are read at a time.
const READ: usize = 1_000;

#[derive(Debug, Args)]
pub(super) struct AuditFlags {
    /// Go on printing entries as they are written, until Ctrl-C.
    #[arg(short, long)]
    follow: bool,
    /// Only entries of this time or later, such as 2026-01-02T03:04:05Z.
    #[arg(long, value_name = "TIME", value_parser = read_time)]
    since: Option<Timestamp>,
    #[command(flatten)]
    operate: OperatorFlags,
}

pub(super) fn run(flags: &AuditFlags) -> Result<u8, Failure> {
    let output = Output::new();
    let files = AuditFiles::new(options(&flags.operate)?);
    if !files.path().exists() && !flags.follow {
        let text = format!("there is no audit log {}", files.path().display());
        return Err(Failure::new(code::ERROR, text).with_next("name its store with --store or --config"));
    }
    output.message(&format!("a2ad: the audit log {}", files.path().display()));
    let print = |after| print_after(&files, after, flags, &output);
    let mut last = print(0)?;
    if flags.follow {
        runtime()?.block_on(async {
            loop {
                tokio::time::sleep(INTERVAL).await;
                match print(last) {
                    Ok(printed) => last = printed,
                    Err(failure) => return Err(failure),
                }
            }
        })?;
    }
    Ok(code::SUCCESS)
}

/// Where the log is; an error if the configuration has none.
fn options(operate: &OperatorFlags) -> Result<AuditOptions, Failure> {
    match operate.config()? {
        Some(config) if !operate.names_store() => config.audit.ok_or_else(|| {
            Failure::new(code::ERROR, "the configuration has no audit log")
                .with_next("remove audit.file = \"off\"")
        }),
        Some(config) => {
            let default = AuditOptions::at(default_audit_file(&operate.store_path()?));
            // A file that the configuration names is used whatever the store is.
            Ok(config.audit.filter(|own| own.file != default_audit_file(&config.store)).unwrap_or(default))
        }
        None => Ok(AuditOptions::at(default_audit_file(&operate.store_path()?))),
    }
}

/// Prints the entries after a number; returns that of the last one.
fn print_after(
    files: &AuditFiles,
    mut after: u64,
    flags: &AuditFlags,
    output: &Output,
) -> Result<u64, Failure> {
    loop {
        let unreadable =
            |error| Failure::new(code::ERROR, format!("{} cannot be read: {error}", files.path().display()));
        let entries = files.read(after, READ).map_err(unreadable)?;
        for entry in &entries {
            let (number, time, line) = read_document(entry.as_bytes(), |object| {
                let number = object.need("seq", "a number", |node| Ok(node.text().to_owned()))?;
                Ok((number, object.need_text("time")?, describe(object)?))
            })?;
            after = number.parse().unwrap_or(after + 1).max(after + 1);
            let is_older = |since: Timestamp| Timestamp::parse(&time).is_some_and(|time| time < since);
            if flags.since.is_some_and(is_older) {
                continue;
            }
            if flags.operate.json {
                output.document(entry.as_bytes())?;
            } else {
                output.text(&line)?;
            }
        }
        if entries.is_empty() {
            return Ok(after);
        }
    }
}

/// Time, outcome, action, who, from where, and what it is about.
fn describe(object: &Object<'_, '_>) -> Read<String> {
    let mut columns = Vec::new();
    for name in ["time", "outcome", "action", "who"] {
        columns.push(object.need_text(name)?);
    }
    columns.push(object.text("peer")?.unwrap_or_else(|| "-".to_owned()));
    for name in ["agent", "task", "key", "route", "reason"] {
        columns.extend(object.text(name)?.map(|value| format!("{name}={value}")));
    }
    columns.extend(object.maybe("count", |node| Ok(format!("count={}", node.text())))?);
    columns.extend(object.text("network")?.map(|network| format!("network={network}")));
    columns.extend(object.maybe("networks", |networks| {
        let counts = networks.list(|network| {
            let network = network.object()?;
            let count = network.need("count", "a number", |node| Ok(node.text().to_owned()))?;
            Ok(format!("{} ({count})", network.need_text("network")?))
        })?;
        Ok(format!("networks={}", counts.join(", ")))
    })?);
    Ok(columns.join("  ") + "\n")
}
