//! `a2ad add`: puts a backend into the configuration file, after a trial start that shows the tools it has. Comments and
//! the order of the file are kept; on any problem the file stays as it is.

use std::{
    fs::{OpenOptions, Permissions},
    io::{self, IsTerminal as _, Write as _},
    os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

use a2ad::internal::assembly::{Backends, Provider, SkillAgent};
use clap::{Args, Subcommand};
use outbound::skill::BackendSkill;
use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, Value};

use crate::cli::failure::{Failure, code};

use crate::cli::output::Output;

use crate::cli::runtime;

use crate::cli::variables;
use crate::config::{self, Config, ConfigFile};

#[derive(Debug, Args)]
pub(super) struct AddFlags {
    #[command(subcommand)]
    kind: Kind,
}

#[derive(Debug, Subcommand)]
enum Kind {
    /// Add an MCP server: a2ad add mcp NAME -- COMMAND…, or a2ad add mcp NAME --url URL.
    Mcp(McpFlags),
    /// Add an HTTP function as a skill.
    Http(HttpFlags),
    /// Add an OpenAPI document; each operation is a skill.
    Openapi(OpenApiFlags),
    /// Add a command as a skill: a2ad add command NAME -- COMMAND…
    Command(CommandFlags),
}

/// The arguments of every kind.
#[derive(Debug, Args)]
struct FileFlags {
    /// Name of the server, document or skill.
    #[arg(value_name = "NAME")]
    name: String,
    /// Configuration file; created if it does not exist [default: ./a2ad.toml; env: A2AD_CONFIG].
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Do not start or fetch anything before writing.
    #[arg(long)]
    no_trial: bool,
}

#[derive(Debug, Args)]
struct McpFlags {
    #[command(flatten)]
    file: FileFlags,
    /// URL of a server with streamable HTTP.
    #[arg(long, value_name = "URL", conflicts_with = "command")]
    url: Option<String>,
    /// Environment variable with a bearer token for the URL.
    #[arg(long, value_name = "NAME", requires = "url")]
    bearer_env: Option<String>,
    /// Environment variable that the process gets too; can be repeated.
    #[arg(long, value_name = "NAME", conflicts_with = "url")]
    inherit_env: Vec<String>,
    /// Program and arguments.
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

#[derive(Debug, Args)]
struct HttpFlags {
    #[command(flatten)]
    file: FileFlags,
    /// URL of the function; {name} in it is an argument.
    #[arg(value_name = "URL")]
    url: String,
    /// Method of the request.
    #[arg(long, value_name = "METHOD")]
    method: Option<String>,
    /// Environment variable with a bearer token.
    #[arg(long, value_name = "NAME")]
    bearer_env: Option<String>,
    #[command(flatten)]
    skill: SkillFlags,
}

#[derive(Debug, Args)]
struct OpenApiFlags {
    #[command(flatten)]
    file: FileFlags,
    /// File or URL of the document.
    #[arg(value_name = "DOCUMENT")]
    document: String,
    /// Where requests are sent, if not to the first server of the document.
    #[arg(long, value_name = "URL")]
    base_url: Option<String>,
    /// Operation to use; can be repeated [default: all].
    #[arg(long, value_name = "ID")]
    operation: Vec<String>,
    /// Environment variable with a bearer token.
    #[arg(long, value_name = "NAME")]
    bearer_env: Option<String>,
}

#[derive(Debug, Args)]
struct CommandFlags {
    #[command(flatten)]
    file: FileFlags,
    /// The command reports progress, questions and checkpoints as lines of JSON.
    #[arg(long)]
    jsonl: bool,
    #[command(flatten)]
    skill: SkillFlags,
    /// Program and arguments.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// What the card shows about a skill.
#[derive(Debug, Args)]
struct SkillFlags {
    /// Description on the card.
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// File with the JSON Schema of the arguments.
    #[arg(long, value_name = "FILE")]
    input_schema: Option<String>,
}

/// The permissions of a file that did not exist.
const NEW_FILE: u32 = 0o644;

/// What to add: a table of the file.
struct Addition {
    /// `mcp`, `openapi` or `skills`.
    section: &'static str,
    table: Table,
    /// How an agent lists it.
    selector: String,
}

pub(super) fn run(flags: AddFlags) -> Result<u8, Failure> {
    let (file, addition) = match flags.kind {
        Kind::Mcp(flags) => mcp(flags)?,
        Kind::Http(flags) => http(flags),
        Kind::Openapi(flags) => openapi(flags),
        Kind::Command(flags) => command(flags),
    };
    add(&file, addition)
}

fn mcp(flags: McpFlags) -> Result<(FileFlags, Addition), Failure> {
    let McpFlags { file, url, bearer_env, inherit_env, command } = flags;
    let mut table = Table::new();
    match url {
        Some(url) => set(&mut table, "url", url),
        None if command.is_empty() => {
            return Err(Failure::usage("name the server's command after --, or its address with --url"));
        }
        None => set(&mut table, "command", list(command)),
    }
    set_if(&mut table, "bearer_env", bearer_env);
    if !inherit_env.is_empty() {
        set(&mut table, "inherit_env", list(inherit_env));
    }
    let selector = format!("mcp:{}/*", file.name);
    Ok((file, Addition { section: "mcp", table, selector }))
}

fn http(flags: HttpFlags) -> (FileFlags, Addition) {
    let HttpFlags { file, url, method, bearer_env, skill } = flags;
    let mut backend = InlineTable::new();
    backend.insert("url", url.into());
    for (key, value) in [("method", method), ("bearer_env", bearer_env)] {
        if let Some(value) = value {
            backend.insert(key, value.into());
        }
    }
    skill_addition(file, "http", backend, skill)
}

fn command(flags: CommandFlags) -> (FileFlags, Addition) {
    let CommandFlags { file, jsonl, skill, command } = flags;
    let mut backend = InlineTable::new();
    backend.insert("argv", list(command));
    if jsonl {
        backend.insert("protocol", "jsonl".into());
    }
    skill_addition(file, "command", backend, skill)
}

fn skill_addition(
    file: FileFlags,
    kind: &str,
    backend: InlineTable,
    skill: SkillFlags,
) -> (FileFlags, Addition) {
    let mut table = Table::new();
    set(&mut table, kind, backend);
    set_if(&mut table, "description", skill.description.or_else(|| asked_description(&file.name)));
    set_if(&mut table, "input_schema", skill.input_schema);
    let selector = file.name.clone();
    (file, Addition { section: "skills", table, selector })
}

/// Asks the terminal for the description of a skill; `None` without one, or if nothing is typed.
fn asked_description(skill: &str) -> Option<String> {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return None;
    }
    let _ = write!(io::stderr(), "What does {skill} do, for those who choose it? (Enter: no description) ");
    let mut line = String::new();
    io::stdin().read_line(&mut line).ok()?;
    Some(line.trim().to_owned()).filter(|line| !line.is_empty())
}

fn openapi(flags: OpenApiFlags) -> (FileFlags, Addition) {
    let OpenApiFlags { file, document, base_url, operation, bearer_env } = flags;
    let mut table = Table::new();
    let key = if document.contains("://") { "url" } else { "file" };
    set(&mut table, key, document);
    set_if(&mut table, "base_url", base_url);
    if !operation.is_empty() {
        set(&mut table, "operations", list(operation));
    }
    set_if(&mut table, "bearer_env", bearer_env);
    let selector = format!("openapi:{}/*", file.name);
    (file, Addition { section: "openapi", table, selector })
}

fn set(table: &mut Table, key: &str, value: impl Into<Value>) {
    table.insert(key, Item::Value(value.into()));
}

fn set_if(table: &mut Table, key: &str, value: Option<String>) {
    if let Some(value) = value {
        set(table, key, value);
    }
}

fn list(texts: Vec<String>) -> Value {
    Value::Array(texts.into_iter().collect::<Array>())
}

/// Writes the file with the addition, if it is valid and the trial start succeeds.
fn add(flags: &FileFlags, addition: Addition) -> Result<u8, Failure> {
    let variables = variables();
    let found = ConfigFile::find(flags.config.as_deref(), &variables);
    let path = found.map_or_else(|| PathBuf::from("a2ad.toml"), |file| file.path);
    // A link stays a link to the changed file.
    let path = if path.is_symlink() { path.canonicalize().unwrap_or(path) } else { path };
    let Addition { section, table, selector } = addition;
    let before = read(&path)?;
    let after = insert(&before, section, &flags.name, table)
        .map_err(|problem| Failure::usage(format!("{}: {problem}", path.display())))?;
    // Checked as a file beside the other, because paths in it are relative to its directory.
    let candidate = Candidate::write(&path, &after)?;
    let config = candidate.load(&path, variables)?;
    let output = Output::new();
    if !flags.no_trial {
        for skill in trial(&config, section, &flags.name)? {
            output.message(&format!("  {}: {}", skill.id, first_line(&skill.description)));
        }
    }
    candidate.replace(&path)?;
    output.message(&format!("{}: added [{section}.{}]", path.display(), flags.name));
    report_agents(&output, &config, &selector);
    Ok(code::SUCCESS)
}

fn read(path: &Path) -> Result<String, Failure> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        Err(error) => Err(cannot("read", path, &error)),
    }
}

/// The text of the file with the new table at its end.
fn insert(text: &str, section: &str, name: &str, table: Table) -> Result<String, String> {
    let mut document: DocumentMut = text.parse().map_err(|error| format!("invalid TOML: {error}"))?;
    let parent = document.entry(section).or_insert_with(|| {
        let mut parent = Table::new();
        parent.set_implicit(true);
        Item::Table(parent)
    });
    let parent = parent.as_table_mut().ok_or_else(|| format!("[{section}] is not a table"))?;
    if parent.contains_key(name) {
        return Err(format!("[{section}.{name}] exists already; choose another name, or edit the file"));
    }
    parent.insert(name, Item::Table(table));
    Ok(document.to_string())
}

/// The changed file under another name; deleted unless it replaces the original.
struct Candidate(Option<PathBuf>);

impl Candidate {
    fn write(path: &Path, text: &str) -> Result<Self, Failure> {
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{}.new", std::process::id()));
        let new = path.with_file_name(name);
        let written = || {
            // The file may have secrets; its own permissions follow when it replaces the original.
            let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
            file.write_all(text.as_bytes())
        };
        written().map_err(|error| cannot("write", &new, &error))?;
        Ok(Self(Some(new)))
    }

    /// Reads the changed file. Errors name the original.
    fn load(&self, path: &Path, variables: Vec<(String, String)>) -> Result<Config, Failure> {
        let file = self.0.clone().map(ConfigFile::named);
        let source = config::Source { file: file.as_ref(), variables, ..config::Source::default() };
        let name = self.0.as_deref().unwrap_or(path).display().to_string();
        config::load(source)
            .map_err(|error| Failure::usage(error.to_string().replace(&name, &path.display().to_string())))
    }

    /// The permissions of the original are kept; a new file gets those of any other.
    fn replace(mut self, path: &Path) -> Result<(), Failure> {
        let Some(new) = self.0.clone() else { return Ok(()) };
        let mode = match std::fs::metadata(path) {
            Ok(original) => original.permissions(),
            Err(_) => Permissions::from_mode(NEW_FILE),
        };
        std::fs::set_permissions(&new, mode)
            .and_then(|()| std::fs::rename(&new, path))
            .map_err(|error| cannot("write", path, &error))?;
        self.0 = None;
        Ok(())
    }
}

impl Drop for Candidate {
    fn drop(&mut self) {
        if let Some(new) = &self.0 {
            let _ = std::fs::remove_file(new);
        }
    }
}

fn cannot(verb: &str, path: &Path, error: &io::Error) -> Failure {
    Failure::new(code::ERROR, format!("cannot {verb} {}: {error}", path.display()))
}

/// Starts what was added and returns its skills. A function or a command is not called: it may have effects.
fn trial(config: &Config, section: &str, name: &str) -> Result<Vec<BackendSkill>, Failure> {
    let failed = |error: anyhow::Error| Failure::new(code::ERROR, format!("{error:#}"));
    match section {
        "mcp" => runtime().map_err(failed)?.block_on(async {
            let backends = Backends::start_one(&config.backends, name).await;
            let skills = backends.provided(&Provider::Mcp(name.to_owned()));
            let problem = backends.problem(name);
            backends.stop().await;
            skills.ok_or_else(|| {
                let text = format!("the MCP server {name} did not list its tools: {problem}");
                Failure::new(code::ERROR, format!("{text}; nothing was written (--no-trial skips this)"))
            })
        }),
        "openapi" => runtime().map_err(failed)?.block_on(async {
            let document = &config.backends.openapi[name];
            document.skills(&config.backends.dialer).await.map_err(|error| failed(error.into()))
        }),
        _ => Ok(Vec::new()),
    }
}

/// Reports which agents have the addition, or how to give it to one.
fn report_agents(output: &Output, config: &Config, selector: &str) {
    let has = |agent: &&SkillAgent| agent.skills.iter().any(|source| source.to_string() == selector);
    let agents: Vec<&str> = config.definitions().filter(has).map(|agent| agent.id.as_str()).collect();
    if agents.is_empty() {
        output.message(&format!("no agent has it yet: add {selector:?} to the skills of an agent"));
    } else {
        output.message(&format!("available to the agent {}; start it with: a2ad", agents.join(", ")));
    }
}

fn first_line(text: &str) -> &str {
    text.trim().lines().next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_order_are_kept() {
        let before =
            "# mine\n[limits] # here\nwait = \"1s\"\n\n[mcp.b] # second\nurl = \"http://127.0.0.1:1/\"\n";
        let mut table = Table::new();
        set(&mut table, "command", list(vec!["x".into(), "-y".into()]));
        let after = insert(before, "mcp", "a", table).unwrap();
        assert_eq!(after, format!("{before}\n[mcp.a]\ncommand = [\"x\", \"-y\"]\n"));
        assert!(insert(&after, "mcp", "a", Table::new()).unwrap_err().contains("exists already"));
    }

    #[test]
    fn file_that_is_not_there_gets_the_table_only() {
        let mut table = Table::new();
        set(&mut table, "url", "http://127.0.0.1:1/");
        assert_eq!(insert("", "mcp", "a", table).unwrap(), "[mcp.a]\nurl = \"http://127.0.0.1:1/\"\n");
    }
}
