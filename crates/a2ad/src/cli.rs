//! The command line: what was typed becomes what is needed, once, here.
//!
//! The server's verbs are below; each verb of the client is a file of its own. With `--json`, data is JSON on stdout and
//! an error is one JSON document on stderr, for every verb.

mod agents;
mod card;
mod compose;
pub(crate) mod connection;
mod credentials;
mod directory;
mod named;
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

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::{Args, CommandFactory as _, Parser, Subcommand};
use clap_complete::Shell;
use engine::Agents;

use self::{
    screen::Screen,
    stop::{EXIT_CODES, Stop, code},
};
use crate::{
    check,
    config::{self, AgentConfig, Config, ConfigFile},
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
  0    stopped when asked, or all is well
  1    could not, or something is wrong with what was checked
  2    typed or configured wrong
  70   the disk failed
Those of agents, card, skills, send, stream, reply and tasks are in their own help. With --json, an error
of any verb is one document on stderr.

Environment:
  A2AD_CONFIG         configuration file, as --config
  A2AD_LISTEN         address to listen on, as --listen
  A2AD_STORE          database file, as --store
  A2AD_SECTION__KEY   any key of the configuration file
  A2AD_LOG            what is logged: off, error, warn, info, debug, trace, or TARGET=LEVEL
  A2AD_URL            the server whose agents are meant by name, as --server of the client's verbs";

#[derive(Debug, Subcommand)]
enum Command {
    /// Start the server; also what a bare `a2ad` does.
    Serve(ServeFlags),
    /// Show what a configuration file would run, or check the integrity of a store.
    Check(CheckFlags),
    /// Check a server against everything it is meant to do; without a URL, servers of its own.
    Selftest(selftest::Flags),
    /// Show a message, task, event, call, card or error in every generation, and what is lost on the way.
    Explain(ExplainFlags),
    /// Print a script that completes a2ad's commands in a shell.
    #[command(after_help = COMPLETION_HELP)]
    Completions(CompletionFlags),
    /// List the agents of a server with their skills.
    #[command(after_help = EXIT_CODES)]
    Agents(agents::AgentsFlags),
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
    /// Look at an agent's tasks, follow them and end them.
    #[command(subcommand, after_help = EXIT_CODES)]
    Tasks(tasks::TasksCommand),
}

/// Where the scripts go.
const COMPLETION_HELP: &str = "\
For example:
  a2ad completions bash > ~/.local/share/bash-completion/completions/a2ad
  a2ad completions zsh > ~/.zfunc/_a2ad        (a folder of $fpath)
  a2ad completions fish > ~/.config/fish/completions/a2ad.fish";

#[derive(Debug, Args)]
struct CompletionFlags {
    #[arg(value_enum)]
    shell: Shell,
}

#[derive(Debug, Args)]
struct ExplainFlags {
    /// File to read; `-` is stdin.
    #[arg(value_name = "FILE", default_value = "-")]
    file: PathBuf,
}

#[derive(Debug, Args)]
struct CheckFlags {
    /// Configuration file [default: ./a2ad.toml if there is one; env: A2AD_CONFIG].
    #[arg(value_name = "FILE", conflicts_with = "store")]
    file: Option<PathBuf>,
    /// Check the integrity of a database file instead; its server must be stopped [default: ./a2ad.db, env: A2AD_STORE].
    #[arg(long, value_name = "PATH")]
    store: Option<Option<PathBuf>>,
    /// Print the result as JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct ServeFlags {
    /// Configuration file [default: ./a2ad.toml if there is one, else the built-in demo; env: A2AD_CONFIG].
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Address to listen on [default: 127.0.0.1:4242, env: A2AD_LISTEN].
    #[arg(long, value_name = "ADDR")]
    listen: Option<String>,
    /// Database file [default: ./a2ad.db, env: A2AD_STORE].
    #[arg(long, value_name = "PATH")]
    store: Option<String>,
}

/// Runs the command and gives its exit code, which the help of the verb lists.
pub fn run() -> ExitCode {
    let typed = match Typed::try_parse() {
        Ok(typed) => typed,
        Err(error) if error.use_stderr() => return typed_wrong(&error),
        Err(help) => {
            let _ = help.print();
            return ExitCode::SUCCESS;
        }
    };
    if !matches!(typed.command, None | Some(Command::Serve(_))) {
        // The server logs these.
        warn(&warnings(&variables()));
    }
    let result = match typed.command {
        Some(Command::Serve(flags)) => done(start(&flags)),
        Some(Command::Check(flags)) => check(&flags).map_err(Stop::from),
        Some(Command::Selftest(flags)) => selftest::run(&flags.into()).map_err(Stop::from),
        Some(Command::Explain(flags)) => done(explain_file(&flags.file)),
        Some(Command::Completions(flags)) => done(complete(flags.shell)),
        Some(Command::Agents(flags)) => agents::run(flags),
        Some(Command::Card(flags)) => card::run(flags),
        Some(Command::Skills(flags)) => skills::run(flags),
        Some(Command::Send(flags)) => send::run(flags),
        Some(Command::Stream(flags)) => stream::run(flags),
        Some(Command::Reply(flags)) => reply::run(flags),
        Some(Command::Tasks(command)) => tasks::run(command),
        None => done(start(&typed.serve)),
    };
    let code = result.unwrap_or_else(|stop| {
        Screen::new().fail(&stop);
        stop.code
    });
    ExitCode::from(code)
}

/// The exit code of a verb that has no other outcome than being done.
fn done(result: anyhow::Result<()>) -> Result<u8, Stop> {
    result.map(|()| code::DONE).map_err(Stop::from)
}

/// Reports what the parser of the command line refuses.
fn typed_wrong(error: &clap::Error) -> ExitCode {
    if screen::json_is_asked() {
        let text = error.render().to_string();
        Screen::new().fail(&Stop::usage(text.strip_prefix("error: ").unwrap_or(&text).trim_end()));
    } else {
        let _ = error.print();
    }
    ExitCode::from(code::USAGE)
}

/// One sentence for each environment variable that has no effect.
fn warnings(variables: &[(String, String)]) -> Vec<String> {
    [config::unknown_variables(variables), logging::problems()].concat()
}

fn warn(warnings: &[String]) {
    let screen = Screen::new();
    warnings.iter().for_each(|warning| screen.say(&format!("a2ad: {warning}")));
}

fn start(flags: &ServeFlags) -> anyhow::Result<()> {
    let variables = variables();
    let file = ConfigFile::find(flags.config.as_deref(), &variables);
    let warnings = warnings(&variables);
    let config = config::load(config::Source {
        file: file.as_ref(),
        variables,
        listen: flags.listen.as_deref(),
        store: flags.store.as_deref(),
    });
    let config = config.inspect_err(|_| warn(&warnings))?;
    let settings = settings(&config, file.map(|file| file.path));
    // Dropped last, however this ends: what is still queued is written then.
    let _log = logging::start_with(&warnings);
    let runtime = runtime()?;
    let served = runtime.block_on(serve(settings));
    if matches!(served, Err(ServeError::StoreFailed(_))) {
        // Nothing that is still under way can be kept; waiting for it would only delay the restart.
        runtime.shutdown_background();
    }
    Ok(served?)
}

fn check(flags: &CheckFlags) -> anyhow::Result<u8> {
    if let Some(store) = &flags.store {
        let named = store.clone().or_else(|| std::env::var_os("A2AD_STORE").map(PathBuf::from));
        let looked_over = check::look_over(named.unwrap_or(Settings::default().store))?;
        give(&if flags.json { looked_over.as_json() } else { looked_over.to_string() })?;
        return Ok(if looked_over.is_whole() { code::DONE } else { code::COULD_NOT });
    }
    let variables = variables();
    let file = ConfigFile::find(flags.file.as_deref(), &variables).ok_or(NothingToCheck)?;
    let source = config::Source { file: Some(&file), variables, ..config::Source::default() };
    let config = config::load_unless(source, check::refused)?;
    let text = if flags.json { check::describe_as_json(&config) } else { check::describe(&config) };
    give(&text)?;
    Ok(code::DONE)
}

fn explain_file(path: &Path) -> anyhow::Result<()> {
    let text = if path == Path::new("-") {
        std::io::read_to_string(std::io::stdin())?
    } else {
        std::fs::read_to_string(path).map_err(|reason| Unreadable { path: path.to_owned(), reason })?
    };
    Ok(give(&explain::run(&text)?)?)
}

/// `check` without an argument where there is no configuration file.
#[derive(Debug, thiserror::Error)]
#[error("there is no ./a2ad.toml to check; name a configuration file with FILE or a database with --store")]
struct NothingToCheck;

/// A file that was named on the command line and cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{} cannot be read: {reason}", path.display())]
struct Unreadable {
    path: PathBuf,
    reason: std::io::Error,
}

fn complete(shell: Shell) -> anyhow::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Typed::command(), "a2ad", &mut script);
    Ok(give(&String::from_utf8_lossy(&script))?)
}

/// The environment, as far as it is text.
fn variables() -> Vec<(String, String)> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect()
}

/// What the server is to do, as its parts want it.
fn settings(config: &Config, file: Option<PathBuf>) -> Settings {
    Settings {
        config: file,
        listen: config.server.listen,
        store: config.store.url.clone(),
        agents: Agents::new(config.agents.iter().map(AgentConfig::host))
            .with_left_over(config.store.retention),
        limits: config.limits,
        server_options: config.server_options(),
        drain_delay: config.server.drain_delay,
    }
}

fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_multi_thread().enable_all().build()?)
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
