//! `a2ad backup` and `a2ad restore`: copy a whole store.

use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use clap::Args;
use protocol::json::write::Writer;
use store::StoreCopy;

use crate::cli::failure::code;

use crate::cli::print;

use crate::cli::store_path;

#[derive(Debug, Args)]
pub(super) struct BackupFlags {
    /// New file to write, or a directory, in which the file gets a name with the date.
    #[arg(value_name = "TO")]
    to: PathBuf,
    #[command(flatten)]
    store: StoreFlags,
    /// Print the result as JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(super) struct RestoreFlags {
    /// Backup to read.
    #[arg(value_name = "FROM")]
    from: PathBuf,
    #[command(flatten)]
    store: StoreFlags,
    /// Print the result as JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct StoreFlags {
    /// Database file [default: that of the configuration, else ./a2ad.db; env: A2AD_STORE].
    #[arg(long, value_name = "PATH")]
    store: Option<PathBuf>,
    /// Configuration file that names the store [default: ./a2ad.toml if it exists; env: A2AD_CONFIG].
    #[arg(long, value_name = "FILE", conflicts_with = "store")]
    config: Option<PathBuf>,
}

impl StoreFlags {
    fn path(&self) -> anyhow::Result<PathBuf> {
        store_path(self.store.as_deref(), self.config.as_deref())
    }
}

/// Writes a backup and returns the exit code.
pub(super) fn run_backup(flags: &BackupFlags) -> anyhow::Result<u8> {
    let store = flags.store.path()?;
    let begun = Instant::now();
    let copy = store::backup(&store, &flags.to)?;
    CopyReport { verb: "backed up", from: &store, copy, elapsed: begun.elapsed() }.show(flags.json)
}

/// Creates a store from a backup and returns the exit code.
pub(super) fn run_restore(flags: &RestoreFlags) -> anyhow::Result<u8> {
    let store = flags.store.path()?;
    let begun = Instant::now();
    let copy = store::restore(&flags.from, &store)?;
    CopyReport { verb: "restored", from: &flags.from, copy, elapsed: begun.elapsed() }.show(flags.json)
}

/// What was copied.
struct CopyReport<'a> {
    verb: &'static str,
    from: &'a Path,
    copy: StoreCopy,
    elapsed: Duration,
}

impl CopyReport<'_> {
    fn show(&self, json: bool) -> anyhow::Result<u8> {
        print(&if json { self.as_json() } else { self.as_text() })?;
        Ok(code::SUCCESS)
    }

    fn as_text(&self) -> String {
        let Self { verb, from, copy, elapsed } = self;
        let tasks = if copy.tasks == 1 { "1 task".to_owned() } else { format!("{} tasks", copy.tasks) };
        let keys = match copy.key_files {
            0 => String::new(),
            1 => " and 1 key file".to_owned(),
            files => format!(" and {files} key files"),
        };
        let (from, to) = (from.display(), copy.path.display());
        let mib = copy.bytes as f64 / f64::from(1 << 20);
        format!("{verb} {tasks}{keys} from {from} to {to} ({mib:.1} MiB in {:.1} s)", elapsed.as_secs_f64())
    }

    fn as_json(&self) -> String {
        let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        let mut writer = Writer::new();
        writer.object(|out| {
            out.text("from", &self.from.display().to_string());
            out.text("to", &self.copy.path.display().to_string());
            out.key("tasks").int(number(self.copy.tasks));
            out.key("bytes").int(number(self.copy.bytes));
            out.key("keyFiles").int(number(self.copy.key_files as u64));
            out.key("elapsedMs").int(i64::try_from(self.elapsed.as_millis()).unwrap_or(i64::MAX));
        });
        String::from_utf8(writer.finish()).expect("the writer was given UTF-8 only")
    }
}
