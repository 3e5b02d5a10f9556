//! The command line: what was typed becomes what is needed, once, here.

use std::{path::PathBuf, process::ExitCode};

use clap::{Args, Parser, Subcommand};
use engine::Agents;

use crate::{
    check,
    config::{self, AgentConfig, Config},
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
    /// Say what a configuration file would run, or look a store over from end to end.
    Check(CheckFlags),
}

#[derive(Debug, Args)]
struct CheckFlags {
    /// Configuration file.
    #[arg(value_name = "FILE", conflicts_with = "store")]
    file: Option<PathBuf>,
    /// Look over this database file instead; the server must be stopped [default: ./a2ad.db, env: A2AD_STORE].
    #[arg(long, value_name = "PATH")]
    store: Option<PathBuf>,
    /// Say it as JSON.
    #[arg(long, requires = "file")]
    json: bool,
}

#[derive(Debug, Args)]
struct ServeFlags {
    /// Configuration file.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Address to listen on [default: 127.0.0.1:4242, env: A2AD_LISTEN].
    #[arg(long, value_name = "ADDR")]
    listen: Option<String>,
    /// Database file [default: ./a2ad.db, env: A2AD_STORE].
    #[arg(long, value_name = "PATH")]
    store: Option<String>,
}

/// Runs the command and says how it went: 0 well, 1 could not, 2 typed or configured wrong, 70 the store failed.
pub fn run() -> ExitCode {
    let typed = match Typed::try_parse() {
        Ok(typed) => typed,
        Err(error) => {
            let _ = error.print();
            return if error.use_stderr() { ExitCode::from(2) } else { ExitCode::SUCCESS };
        }
    };
    let result = match typed.command {
        Some(Command::Serve(flags)) => start(&flags),
        Some(Command::Check(flags)) => check(&flags),
        None => start(&typed.serve),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            if let Some(config::Error::Wrong(lines)) = error.downcast_ref() {
                lines.iter().for_each(|line| say(line));
                return ExitCode::from(2);
            }
            say(&format!("a2ad: {error:#}"));
            let failed_store = matches!(error.downcast_ref(), Some(ServeError::StoreFailed(_)));
            ExitCode::from(if failed_store { 70 } else { 1 })
        }
    }
}

fn start(flags: &ServeFlags) -> anyhow::Result<()> {
    let config = config::load(config::Source {
        file: flags.config.as_deref(),
        variables: variables(),
        listen: flags.listen.as_deref(),
        store: flags.store.as_deref(),
    })?;
    let settings = settings(&config);
    start_logging();
    let runtime = runtime()?;
    let served = runtime.block_on(serve(settings));
    if matches!(served, Err(ServeError::StoreFailed(_))) {
        // Nothing that is still under way can be kept; waiting for it would only delay the restart.
        runtime.shutdown_background();
    }
    Ok(served?)
}

fn check(flags: &CheckFlags) -> anyhow::Result<()> {
    let Some(file) = flags.file.as_deref() else {
        let named = flags.store.clone().or_else(|| std::env::var_os("A2AD_STORE").map(PathBuf::from));
        say(&check::check_store(&named.unwrap_or(Settings::default().store))?);
        return Ok(());
    };
    let source = config::Source { file: Some(file), variables: variables(), ..config::Source::default() };
    let config = config::load_unless(source, check::refused)?;
    let text = if flags.json { check::describe_as_json(&config) } else { check::describe(&config) };
    give(text.trim_end());
    Ok(())
}

/// The environment, as far as it is text.
fn variables() -> Vec<(String, String)> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect()
}

/// What the server is to do, as its parts want it.
fn settings(config: &Config) -> Settings {
    Settings {
        listen: config.server.listen,
        store: config.store.url.clone(),
        agents: Agents::new(config.agents.iter().map(AgentConfig::host)),
        limits: config.limits,
        doors: config.doors(),
    }
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

/// Data goes to stdout.
fn give(text: &str) {
    use std::io::Write as _;
    let _ = writeln!(std::io::stdout(), "{text}");
}
