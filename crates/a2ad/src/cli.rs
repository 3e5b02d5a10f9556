//! The command line: what was typed becomes what is needed, once, here.
//!
//! The server's verbs are below; each verb of the client is a file of its own.

mod card;
mod compose;
mod credentials;
mod outcome;
mod printer;
mod reply;
mod screen;
mod send;
mod session;
mod skills;
mod span;
mod stop;
mod stream;
mod suggest;
mod target;
mod tasks;

use std::{path::PathBuf, process::ExitCode};

use clap::{Args, Parser, Subcommand};
use engine::Agents;

use self::stop::EXIT_CODES;
use crate::{
    check,
    config::{self, AgentConfig, Config},
    explain, logging, selftest,
    serve::{ServeError, Settings, serve},
};

/// Serves A2A agents: durable tasks, one binary, no key and no network needed.
#[derive(Debug, Parser)]
#[command(name = "a2ad", version, about, args_conflicts_with_subcommands = true, after_help = SERVER_CODES)]
struct Typed {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    serve: ServeFlags,
}

/// The exit codes of the server's verbs.
const SERVER_CODES: &str = "\
Exit codes:
  0    stopped as told, or all is well
  1    could not, or something is wrong with what was checked
  2    typed or configured wrong
  70   the disk failed
Those of card, skills, send, stream, reply and tasks are in their own help.";

#[derive(Debug, Subcommand)]
enum Command {
    /// Start the server; also what a bare `a2ad` does.
    Serve(ServeFlags),
    /// Say what a configuration file would run, or look a store over from end to end.
    Check(CheckFlags),
    /// Check a server against everything it is meant to do; without a URL, servers of its own.
    Selftest(selftest::Flags),
    /// Show a message, task, event, call, card or error from stdin in every generation, and what is lost on the way.
    Explain,
    /// Show what an agent says about itself.
    #[command(after_help = EXIT_CODES)]
    Card(card::CardFlags),
    /// Show what an agent is good at.
    #[command(after_help = EXIT_CODES)]
    Skills(skills::SkillsFlags),
    /// Say something to an agent and print what becomes of it.
    #[command(after_help = EXIT_CODES)]
    Send(send::SendFlags),
    /// Say something to an agent and print what it makes as it makes it; survives lost connections.
    #[command(after_help = EXIT_CODES)]
    Stream(stream::StreamFlags),
    /// Say more to a task that waits for it.
    #[command(after_help = EXIT_CODES)]
    Reply(reply::ReplyFlags),
    /// Look at an agent's tasks and end them.
    #[command(subcommand, after_help = EXIT_CODES)]
    Tasks(tasks::TasksCommand),
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
    #[arg(long)]
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
/// The client's verbs have more to say: 3 the task failed, 4 it waits for its client, 5 credentials are missing or
/// wrong, 6 not found, 7 no answer in time, 8 the agent refused the call or does not speak the protocol.
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
        Some(Command::Check(flags)) => match check(&flags) {
            Ok(code) => return code,
            Err(error) => Err(error),
        },
        Some(Command::Selftest(flags)) => match selftest::run(&flags.into()) {
            Ok(code) => return code,
            Err(error) => Err(error),
        },
        Some(Command::Explain) => explain_stdin(),
        Some(Command::Card(flags)) => return ended(card::run(flags)),
        Some(Command::Skills(flags)) => return ended(skills::run(flags)),
        Some(Command::Send(flags)) => return ended(send::run(flags)),
        Some(Command::Stream(flags)) => return ended(stream::run(flags)),
        Some(Command::Reply(flags)) => return ended(reply::run(flags)),
        Some(Command::Tasks(command)) => return ended(tasks::run(command)),
        None => start(&typed.serve),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            if let Some(config::Error::Wrong(lines)) = error.downcast_ref() {
                lines.iter().for_each(|line| say(line));
                return ExitCode::from(2);
            }
            if !error.downcast_ref().is_some_and(Unwritten::is_unread) {
                say(&format!("a2ad: {error:#}"));
            }
            let unreadable = matches!(error.downcast_ref(), Some(config::Error::Unreadable { .. }));
            let failed_store = matches!(error.downcast_ref(), Some(ServeError::StoreFailed(_)));
            ExitCode::from(if failed_store { 70 } else { 1 + u8::from(unreadable) })
        }
    }
}

/// How a verb of the client went.
fn ended(result: Result<u8, stop::Stop>) -> ExitCode {
    match result {
        Ok(code) => ExitCode::from(code),
        Err(stop) => {
            let (screen, text) = (screen::Screen::new(), format!("a2ad: {}", stop.text));
            match &stop.next {
                Some(next) => screen.say_with(&text, next),
                None if stop.text.is_empty() => {}
                None => screen.say(&text),
            }
            ExitCode::from(stop.code)
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
    logging::start();
    let runtime = runtime()?;
    let served = runtime.block_on(serve(settings));
    if matches!(served, Err(ServeError::StoreFailed(_))) {
        // Nothing that is still under way can be kept; waiting for it would only delay the restart.
        runtime.shutdown_background();
    }
    Ok(served?)
}

fn check(flags: &CheckFlags) -> anyhow::Result<ExitCode> {
    let Some(file) = flags.file.as_deref() else {
        let named = flags.store.clone().or_else(|| std::env::var_os("A2AD_STORE").map(PathBuf::from));
        let looked_over = check::look_over(named.unwrap_or(Settings::default().store))?;
        give(&if flags.json { looked_over.as_json() } else { looked_over.to_string() })?;
        return Ok(ExitCode::from(u8::from(!looked_over.is_whole())));
    };
    let source = config::Source { file: Some(file), variables: variables(), ..config::Source::default() };
    let config = config::load_unless(source, check::refused)?;
    let text = if flags.json { check::describe_as_json(&config) } else { check::describe(&config) };
    give(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn explain_stdin() -> anyhow::Result<()> {
    let text = std::io::read_to_string(std::io::stdin())?;
    Ok(give(&explain::run(&text)?)?)
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
        agents: Agents::new(config.agents.iter().map(AgentConfig::host))
            .with_left_over(config.store.retention),
        limits: config.limits,
        doors: config.doors(),
        drain_delay: config.server.drain_delay,
    }
}

fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_multi_thread().enable_all().build()?)
}

/// Talk goes to stderr.
fn say(text: &str) {
    use std::io::Write as _;
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// Data goes to stdout.
fn give(text: &str) -> Result<(), Unwritten> {
    use std::io::Write as _;
    let mut out = std::io::stdout().lock();
    writeln!(out, "{}", text.trim_end()).and_then(|()| out.flush()).map_err(Unwritten)
}

/// What was to be given did not get out, or not all of it.
#[derive(Debug, thiserror::Error)]
#[error("the output cannot be written: {0}")]
struct Unwritten(std::io::Error);

impl Unwritten {
    /// Whoever read it has left, and needs no telling.
    fn is_unread(&self) -> bool {
        self.0.kind() == std::io::ErrorKind::BrokenPipe
    }
}
