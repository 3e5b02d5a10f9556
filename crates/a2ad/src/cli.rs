//! The command line: what was typed becomes what is needed, once, here.

use std::{net::SocketAddr, path::PathBuf, process::ExitCode};

use clap::{Args, Parser, Subcommand};

use crate::serve::{ServeError, Settings, serve};

/// Where the server listens when nobody says otherwise.
const DEFAULT_LISTEN: &str = "127.0.0.1:4242";
/// Where it keeps its tasks.
const DEFAULT_STORE: &str = "a2ad.db";

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
    let flags = match typed.command {
        Some(Command::Serve(flags)) => flags,
        None => typed.serve,
    };
    let result = settings(flags).and_then(|settings| {
        start_logging();
        runtime()?.block_on(serve(settings)).map_err(anyhow::Error::from)
    });
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&format!("a2ad: {error:#}"));
            let failed_store = matches!(error.downcast_ref(), Some(ServeError::StoreFailed(_)));
            ExitCode::from(if failed_store { 70 } else { 1 })
        }
    }
}

/// Decides every default.
fn settings(flags: ServeFlags) -> anyhow::Result<Settings> {
    if let Some(path) = flags.config {
        // Reading the file comes first: one that is missing or cannot be read is the more useful thing to say.
        let text = std::fs::read_to_string(&path).map_err(|error| {
            anyhow::anyhow!("the configuration file {} cannot be read: {error}", path.display())
        })?;
        check_config(&path, &text)?;
    }
    let listen = flags.listen.as_deref().unwrap_or(DEFAULT_LISTEN);
    let listen: SocketAddr = listen.parse().map_err(|_| {
        anyhow::anyhow!(
            "--listen {listen:?} is not an address with a port, such as {DEFAULT_LISTEN} or [::1]:4242"
        )
    })?;
    Ok(Settings { listen, store: flags.store.unwrap_or_else(|| DEFAULT_STORE.into()), ..Settings::default() })
}

/// No key of a configuration file is known yet, so a file may hold comments only; anything else is named.
fn check_config(path: &std::path::Path, text: &str) -> anyhow::Result<()> {
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        if !line.is_empty() && !line.starts_with('#') {
            let path = path.display();
            anyhow::bail!(
                "{path}:{number}: {line:?} is not known; this version takes --listen and --store only"
            );
        }
    }
    Ok(())
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
