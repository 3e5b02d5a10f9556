//! The command line: parses arguments once and dispatches to the commands.
//!
//! Short commands are here; every other command has its own file. With `--json`, data is JSON on stdout
//! and an error is one JSON document on stderr, for every command.

mod add;
mod agents;
mod audit;
mod backup;
pub(crate) mod calls;
mod deliveries;
mod duration;
mod failure;
mod help;
mod keys;
mod mcp;
mod named_value;
mod operators;
mod ops;
mod output;
mod serve;
mod skills;
mod suggest;
mod table;
mod tls;
mod token;
mod try_skill;

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::{Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use clap_complete::Shell;
use engine::Clock;
use protocol::explain::explain;

pub(crate) use self::output::changes_direction;
use self::{
    calls::{card, inbox, reply, send, stream, tasks},
    failure::{EXIT_CODES, Failure, code},
    output::Output,
};
use crate::{
    check,
    config::{self, ConfigFile, environment as variables},
    logging, selftest,
};

/// The command line of the program.
#[derive(Debug, Parser)]
#[command(name = "a2ad", version, about = help::ABOUT, args_conflicts_with_subcommands = true, after_help = SERVER_HELP)]
struct CommandLine {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    serve: serve::ServeFlags,
}

/// The exit codes of the server's commands, and the environment variables.
const SERVER_HELP: &str = "\
Exit codes:
  0    success, or stopped by a signal
  1    failed, or the check found problems
  2    invalid arguments or configuration
  70   the disk failed
  75   the server did not shut down in time and was ended
Exit codes of agents, card, skills, send, stream, reply, tasks, inbox, keys, ops and audit: see their help. With --json, an
error of any command is one JSON document on stderr.

Environment:
  A2AD_CONFIG         configuration file, as --config
  A2AD_LISTEN         address to listen on, as --listen
  A2AD_STORE          database file, as --store
  A2AD_SECTION__KEY   any key of the configuration file
  A2AD_LOG            log level: off, error, warn, info, debug, trace, or TARGET=LEVEL
  A2AD_URL            server of agents given by name, as --server of the client commands
  A2A_SECRET          secret of the tokens that agents accept; see [auth] in the configuration";

#[derive(Debug, Subcommand)]
enum Command {
    /// Start the server (the default command).
    Serve(serve::ServeFlags),
    /// Show what a configuration file would run, or check the integrity of a store.
    Check(CheckFlags),
    /// Add an MCP server, an HTTP function, an OpenAPI document or a command to the configuration file.
    Add(add::AddFlags),
    /// Run one skill without a server and print the result.
    #[command(after_help = EXIT_CODES)]
    Try(try_skill::TryFlags),
    /// Offer all agents as tools to an MCP client that starts this program.
    #[command(after_help = MCP_HELP)]
    Mcp(mcp::McpFlags),
    /// Copy a store to a new file, beside the server that uses it.
    Backup(backup::BackupFlags),
    /// Create a store from a backup.
    Restore(backup::RestoreFlags),
    /// Make, list or revoke the API keys of agents.
    #[command(subcommand, after_help = operators::OPERATOR_EXIT_CODES)]
    Keys(keys::KeysCommand),
    /// See what a server does, and cancel tasks, whoever owns them.
    #[command(subcommand, after_help = operators::OPERATOR_EXIT_CODES)]
    Ops(ops::OpsCommand),
    /// List push notifications that were not delivered, and send them again.
    #[command(subcommand, after_help = operators::OPERATOR_EXIT_CODES)]
    Deliveries(deliveries::DeliveriesCommand),
    /// Print the audit log: changes by operators, and refused requests.
    #[command(after_help = operators::OPERATOR_EXIT_CODES)]
    Audit(audit::AuditFlags),
    /// Print a token (JWT) that is signed with a shared secret, for agents that accept such tokens.
    #[command(after_help = token::TOKEN_HELP)]
    Token(token::TokenFlags),
    /// Receive push notifications (webhooks), verify and print them.
    #[command(after_help = inbox::INBOX_HELP)]
    Inbox(inbox::InboxFlags),
    /// Test a server against the list of required behaviours; without a URL, test servers it starts itself.
    Selftest(selftest::Flags),
    /// Convert a message, task, event, call, card or error to every version of A2A and report what is lost.
    Explain(ExplainFlags),
    /// Print a shell completion script.
    #[command(after_help = COMPLETION_HELP)]
    Completions(CompletionFlags),
    /// List the agents of a server and their skills, or enable and disable agents.
    #[command(after_help = EXIT_CODES)]
    Agents(agents::AgentsFlags),
    /// Print an agent's card.
    #[command(after_help = EXIT_CODES)]
    Card(card::CardFlags),
    /// Print an agent's skills.
    #[command(after_help = EXIT_CODES)]
    Skills(skills::SkillsFlags),
    /// Send a message to an agent and print the result.
    #[command(after_help = EXIT_CODES)]
    Send(send::SendFlags),
    /// Send a message to an agent and print the output as it arrives; reconnects when the connection is lost.
    #[command(after_help = EXIT_CODES)]
    Stream(stream::StreamFlags),
    /// Send a message to a task that waits for input.
    #[command(after_help = EXIT_CODES)]
    Reply(reply::ReplyFlags),
    /// List, print, follow or cancel an agent's tasks.
    #[command(subcommand, after_help = EXIT_CODES)]
    Tasks(tasks::TasksCommand),
}

/// How an MCP client starts this program.
const MCP_HELP: &str = "\
MCP clients start a program that speaks MCP on standard input and output, for example:
  {\"mcpServers\": {\"a2ad\": {\"command\": \"a2ad\", \"args\": [\"mcp\"]}}}
A tool is named AGENT__SKILL. A running server offers the same to MCP clients over HTTP at /mcp (the default
agent) and /a2a/AGENT/mcp.";

/// Where shells look for completion scripts.
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
    /// File to read; `-` reads stdin.
    #[arg(value_name = "FILE", default_value = "-")]
    file: PathBuf,
}

#[derive(Debug, Args)]
struct CheckFlags {
    /// Configuration file [default: ./a2ad.toml if it exists; env: A2AD_CONFIG].
    #[arg(value_name = "FILE", conflicts_with = "store")]
    file: Option<PathBuf>,
    /// Check the integrity of a database file instead; stop its server first [default: that of the configuration, else
    /// ./a2ad.db; env: A2AD_STORE].
    #[arg(long, value_name = "PATH")]
    store: Option<Option<PathBuf>>,
    /// Print the result as JSON.
    #[arg(long)]
    json: bool,
}

/// Runs the command and returns its exit code.
pub(crate) fn run() -> ExitCode {
    let matches = help::with_groups_and_examples(CommandLine::command()).try_get_matches();
    let parsed = match matches.and_then(|matches| CommandLine::from_arg_matches(&matches)) {
        Ok(parsed) => parsed,
        Err(error) if error.use_stderr() => return report_parse_error(&error),
        Err(help) => {
            let _ = help.print();
            return ExitCode::SUCCESS;
        }
    };
    if !matches!(parsed.command, None | Some(Command::Serve(_))) {
        // The server logs its warnings instead.
        warn(&warnings(&variables()));
    }
    let result = match parsed.command {
        Some(Command::Serve(flags)) => done(serve::run(flags)),
        Some(Command::Check(flags)) => check(&flags).map_err(Failure::from),
        Some(Command::Add(flags)) => add::run(flags),
        Some(Command::Try(flags)) => try_skill::run(flags),
        Some(Command::Mcp(flags)) => mcp::run(&flags),
        Some(Command::Backup(flags)) => backup::run_backup(&flags).map_err(Failure::from),
        Some(Command::Restore(flags)) => backup::run_restore(&flags).map_err(Failure::from),
        Some(Command::Keys(command)) => keys::run(command),
        Some(Command::Ops(command)) => ops::run(command),
        Some(Command::Deliveries(command)) => deliveries::run(command),
        Some(Command::Audit(flags)) => audit::run(&flags),
        Some(Command::Token(flags)) => token::run(&flags),
        Some(Command::Inbox(flags)) => inbox::run(&flags),
        Some(Command::Selftest(flags)) => selftest::run(flags).map_err(Failure::from),
        Some(Command::Explain(flags)) => done(explain_file(&flags.file)),
        Some(Command::Completions(flags)) => done(print_completions(flags.shell)),
        Some(Command::Agents(flags)) => agents::run(flags),
        Some(Command::Card(flags)) => card::run(flags),
        Some(Command::Skills(flags)) => skills::run(flags),
        Some(Command::Send(flags)) => send::run(flags),
        Some(Command::Stream(flags)) => stream::run(flags),
        Some(Command::Reply(flags)) => reply::run(flags),
        Some(Command::Tasks(command)) => tasks::run(command),
        None => done(serve::run(parsed.serve)),
    };
    let code = result.unwrap_or_else(|failure| {
        Output::new().report(&failure);
        failure.code
    });
    ExitCode::from(code)
}

/// The exit code of a command that either succeeds or returns an error.
fn done(result: anyhow::Result<()>) -> Result<u8, Failure> {
    result.map(|()| code::SUCCESS).map_err(Failure::from)
}

/// Reports an error of the argument parser.
fn report_parse_error(error: &clap::Error) -> ExitCode {
    if output::json_requested() {
        let text = error.render().to_string();
        Output::new().report(&Failure::usage(text.strip_prefix("error: ").unwrap_or(&text).trim_end()));
    } else {
        let _ = error.print();
    }
    ExitCode::from(code::USAGE)
}

/// One message for each environment variable that has no effect.
fn warnings(variables: &[(String, String)]) -> Vec<String> {
    [config::unknown_variables(variables), logging::problems()].concat()
}

fn warn(warnings: &[String]) {
    let output = Output::new();
    warnings.iter().for_each(|warning| output.message(&format!("a2ad: {warning}")));
}

fn check(flags: &CheckFlags) -> anyhow::Result<u8> {
    if let Some(store) = &flags.store {
        let report = check::check_integrity(store_path(store.as_deref(), None)?)?;
        print(&if flags.json { report.as_json() } else { report.to_string() })?;
        return Ok(if report.is_intact() { code::SUCCESS } else { code::ERROR });
    }
    let variables = variables();
    let file = ConfigFile::find(flags.file.as_deref(), &variables).ok_or(NoConfigFile)?;
    let source = config::Source { file: Some(&file), variables, ..config::Source::default() };
    let config = config::load_checked(source)?;
    let text = if flags.json { check::describe_as_json(&config) } else { check::describe(&config) };
    print(&text)?;
    Ok(code::SUCCESS)
}

/// The store of a command: the file that was given, else that of the configuration.
fn store_path(named: Option<&Path>, config: Option<&Path>) -> anyhow::Result<PathBuf> {
    if let Some(path) = named {
        return Ok(path.to_owned());
    }
    let variables = variables();
    let file = ConfigFile::find(config, &variables);
    let source = config::Source { file: file.as_ref(), variables, ..config::Source::default() };
    Ok(config::operator_view(source)?.store)
}

fn explain_file(path: &Path) -> anyhow::Result<()> {
    let text = if path == Path::new("-") {
        std::io::read_to_string(std::io::stdin())?
    } else {
        std::fs::read_to_string(path).map_err(|reason| UnreadableFile { path: path.to_owned(), reason })?
    };
    Ok(print(&explain(&text, Clock::system().now())?)?)
}

/// `check` without an argument where there is no configuration file.
#[derive(Debug, thiserror::Error)]
#[error("there is no ./a2ad.toml to check; name a configuration file with FILE or a database with --store")]
struct NoConfigFile;

/// A file given on the command line that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{} cannot be read: {reason}", path.display())]
struct UnreadableFile {
    path: PathBuf,
    reason: std::io::Error,
}

fn print_completions(shell: Shell) -> anyhow::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut CommandLine::command(), "a2ad", &mut script);
    Ok(print(&String::from_utf8_lossy(&script))?)
}

fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_multi_thread().enable_all().build()?)
}

/// Writes data to stdout.
fn print(text: &str) -> Result<(), OutputError> {
    Output::new().text(&format!("{}\n", text.trim_end())).map_err(OutputError)
}

/// Writing to stdout failed.
#[derive(Debug, thiserror::Error)]
#[error("the output cannot be written: {0}")]
struct OutputError(std::io::Error);

impl OutputError {
    /// Whether the reader closed the pipe. That is not reported.
    fn is_broken_pipe(&self) -> bool {
        self.0.kind() == std::io::ErrorKind::BrokenPipe
    }
}
