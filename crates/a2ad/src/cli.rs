//! The command line: what was typed becomes what is needed, once, here.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::{Args, Parser, Subcommand};
use engine::{Agents, Limits, Retention};

use crate::{
    config,
    serve::{ServeError, Settings, serve},
};

/// Serves A2A agents: durable tasks, one binary, no key and no network needed.
#[derive(Debug, Parser)]
#[command(name = "a2ad", version, about, args_conflicts_with_subcommands = true)]
struct Typed {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    serve: ServeFlags,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Start the server; also what a bare `a2ad` does.
    Serve(ServeFlags),
    /// Look a store over from end to end; the server must be stopped.
    Check(CheckFlags),
}

#[derive(Debug, Args)]
struct CheckFlags {
    /// Database file [default: ./a2ad.db].
    #[arg(long, env = "A2AD_STORE", value_name = "PATH")]
    store: Option<PathBuf>,
}

#[derive(Debug, Args)]
struct ServeFlags {
    /// Configuration file.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Address to listen on [default: 127.0.0.1:4242].
    #[arg(long, env = "A2AD_LISTEN", value_name = "ADDR")]
    listen: Option<String>,
    /// Database file [default: ./a2ad.db].
    #[arg(long, env = "A2AD_STORE", value_name = "PATH")]
    store: Option<PathBuf>,
}

/// Runs the command and says how it went: 0 well, 1 could not, 2 typed wrong, 70 the store failed.
pub fn run() -> ExitCode {
    let typed = match Typed::try_parse() {
        Ok(typed) => typed,
        Err(error) => {
            let _ = error.print();
            return if error.use_stderr() { ExitCode::from(2) } else { ExitCode::SUCCESS };
        }
    };
    let result = match typed.command {
        Some(Command::Serve(flags)) => start(flags),
        Some(Command::Check(flags)) => check(flags),
        None => start(typed.serve),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&format!("a2ad: {error:#}"));
            let failed_store = matches!(error.downcast_ref(), Some(ServeError::StoreFailed(_)));
            ExitCode::from(if failed_store { 70 } else { 1 })
        }
    }
}

fn start(flags: ServeFlags) -> anyhow::Result<()> {
    let settings = settings(flags)?;
    start_logging();
    let runtime = runtime()?;
    let served = runtime.block_on(serve(settings));
    if matches!(served, Err(ServeError::StoreFailed(_))) {
        // Nothing that is still under way can be kept; waiting for it would only delay the restart.
        runtime.shutdown_background();
    }
    Ok(served?)
}

/// Says what is wrong with a store, if anything is.
fn check(flags: CheckFlags) -> anyhow::Result<()> {
    let path = flags.store.unwrap_or(Settings::default().store);
    let findings = store::check(&path)?;
    if findings.is_empty() {
        say(&format!("the store {} is whole", path.display()));
        return Ok(());
    }
    anyhow::bail!("the store {} is damaged; restore a backup:\n{}", path.display(), findings.join("\n"))
}

/// Decides every default: a flag, else the environment, else the file, else ours.
fn settings(flags: ServeFlags) -> anyhow::Result<Settings> {
    let file = flags.config.as_deref().map(read_config).transpose()?.unwrap_or_default();
    let defaults = Settings::default();
    let listen = match flags.listen.as_deref() {
        Some(listen) => listen.parse().map_err(|_| {
            anyhow::anyhow!(
                "--listen {listen:?} is not an address with a port, such as {} or [::1]:4242",
                defaults.listen
            )
        })?,
        None => file.server.listen.unwrap_or(defaults.listen),
    };
    let limits = Limits {
        concurrent: file.limits.concurrent.map_or(defaults.limits.concurrent, usize::from),
        run_time: file.limits.run_time.map_or(defaults.limits.run_time, |span| span.0),
        max_task: file.limits.max_task.map_or(defaults.limits.max_task, |size| size.0),
        ..defaults.limits
    };
    let max_body = file.limits.max_body.map(|size| usize::try_from(size.0).unwrap_or(usize::MAX));
    let kept = file.store.retention;
    let retention = Retention {
        max_age: kept.max_age.map_or(Retention::default().max_age, |span| span.0),
        max_tasks: kept.max_tasks.filter(|max| *max > 0),
        ..Retention::default()
    };
    let agents = outbound::agents::demo().into_iter().map(|hosted| hosted.with_retention(retention));
    Ok(Settings {
        listen,
        store: flags.store.or(file.store.url).unwrap_or(defaults.store),
        agents: Agents::new(agents),
        limits,
        max_body_bytes: max_body.unwrap_or(defaults.max_body_bytes),
        default_agent: defaults.default_agent,
    })
}

fn read_config(path: &Path) -> anyhow::Result<config::File> {
    let text = std::fs::read_to_string(path).map_err(|error| {
        anyhow::anyhow!("the configuration file {} cannot be read: {error}", path.display())
    })?;
    config::parse(&text)
        .map_err(|error| anyhow::anyhow!("{}: {}", path.display(), error.to_string().trim_end()))
}

fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_multi_thread().enable_all().build()?)
}

fn start_logging() {
    use std::io::IsTerminal as _;
    use tracing_subscriber::{EnvFilter, fmt};
    let filter = EnvFilter::try_from_env("A2AD_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    let builder = fmt().with_env_filter(filter).with_writer(std::io::stderr);
    // A second start in one process keeps the first one's logging.
    let _ = if std::io::stderr().is_terminal() { builder.try_init() } else { builder.json().try_init() };
}

/// Talk goes to stderr.
fn say(text: &str) {
    use std::io::Write as _;
    let _ = writeln!(std::io::stderr(), "{text}");
}
