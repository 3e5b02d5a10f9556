//! Backends outside the process: `[mcp.ID]`, `[openapi.ID]`, `[outbound]`, and the tables `http` and `command` of a
//! skill. Reading them starts nothing and opens no connection.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use a2ad::internal::assembly::{Document, SkillBackend, document_skills};
use engine::OnCrash;
use http::HeaderName;
use outbound::{
    backends::{
        command::{CommandTool, Protocol},
        http::{HttpConfig, HttpFunction},
        mcp::{Isolation, McpConfig, Pool, Transport},
        openapi::{Credential, OpenApiConfig},
    },
    dial::{DialPolicy, Dialer},
    process::{Launch, Launcher},
};
use protocol::model::Secret;

use super::{
    agents::check_name,
    files,
    read::{Parsed, Section},
    skills::{Environment, interface, tool_interface},
    tree::Item,
    values::{self, text},
};

pub(crate) const ISOLATION_NAMES: [(&str, Isolation); 3] =
    [("shared", Isolation::Shared), ("context", Isolation::Context), ("call", Isolation::Call)];

pub(crate) const PROTOCOL_NAMES: [(&str, Protocol); 2] =
    [("plain", Protocol::Plain), ("jsonl", Protocol::Jsonl)];

/// The methods that an HTTP function may have.
const METHODS: [&str; 6] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"];

/// Maximum size of a file with an OpenAPI document; that of its parser is the same.
const MAX_DOCUMENT: u64 = 32 << 20;

/// `[outbound]`
pub(super) fn dial_policy(section: &Section<'_>) -> DialPolicy {
    DialPolicy {
        allow: section.list("allow", values::network),
        allow_http: section.value("allow_http", Item::boolean),
        // The server adds them when it has bound them.
        own_addresses: Vec::new(),
    }
}

/// `[mcp.ID]`
pub(super) fn mcp_servers(servers: &Section<'_>, directory: &Path) -> BTreeMap<String, McpConfig> {
    let server = |name: &str| {
        check_name(servers, name);
        (name.to_owned(), mcp_server(&servers.open(name), name, directory))
    };
    servers.names().map(server).collect()
}

fn mcp_server(section: &Section<'_>, name: &str, directory: &Path) -> McpConfig {
    let transport = match (section.has("command"), section.has("url")) {
        (true, true) => {
            section.report("url", "a server has either a command or a url, not both");
            None
        }
        (false, false) => {
            section.report(
                "command",
                "expected how to reach the server: command = [\"PROGRAM\", …] or url = \"…\"",
            );
            None
        }
        (true, false) => {
            for key in ["headers", "headers_env", "bearer_env"] {
                if section.has(key) {
                    section.report(
                        key,
                        "a server with a command has no request headers; use env or inherit_env",
                    );
                }
            }
            launch(section, "command", directory).map(Transport::Stdio)
        }
        (false, true) => {
            for key in ["env", "inherit_env", "cwd", "pool"] {
                if section.has(key) {
                    section.report(key, "a server with a url has no process; remove the key");
                }
            }
            let headers = headers(section);
            section.get("url", http_url).map(|url| Transport::Http { url, headers })
        }
    };
    let pool_section = section.open("pool");
    let pool = Pool {
        min: pool_section.value("min", values::count),
        max: pool_section.value("max", |item| values::non_zero(values::count(item)?)),
        idle_stop: pool_section.value("idle_stop", values::positive_duration),
    };
    if pool.min > pool.max {
        pool_section.report("min", format!("expected at most max, which is {}", pool.max));
    }
    // Without a transport a problem is already reported. The server is kept, so that references to it cause no further
    // errors.
    let transport = transport.unwrap_or_else(|| Transport::Stdio(Launch::default()));
    let interface = tool_interface(section);
    if interface.takes_message() && interface.message_argument.is_none() {
        section
            .report("input", "expected message_argument too: the name of the argument that gets the message");
    }
    McpConfig {
        pool,
        interface,
        tools: section.list("tools", text),
        isolation: section.value("isolation", |item| item.one_of(&ISOLATION_NAMES)),
        timeout: section.value("timeout", values::positive_duration),
        elicitation: section.value("elicitation", Item::boolean),
        ..McpConfig::new(name, transport)
    }
}

/// `[openapi.ID]`
pub(super) fn documents(
    documents: &Section<'_>,
    directory: &Path,
    dialer: &Dialer,
) -> BTreeMap<String, Document> {
    let document = |name: &str| {
        check_name(documents, name);
        (name.to_owned(), document(&documents.open(name), name, directory, dialer))
    };
    documents.names().map(document).collect()
}

fn document(section: &Section<'_>, name: &str, directory: &Path, dialer: &Dialer) -> Document {
    let config = OpenApiConfig {
        base_url: section.get("base_url", http_url),
        operations: section.list("operations", text),
        headers: headers(section),
        security: security(&section.open("security")),
        document_url: section.get("url", http_url),
        timeout: section.value("timeout", values::positive_duration),
        interface: interface(section),
        ..OpenApiConfig::new(name)
    };
    match (section.has("file"), section.has("url")) {
        (true, false) => {
            let read = |item: &Item| files::read(&directory.join(item.text()?), MAX_DOCUMENT);
            let text = section.get("file", read);
            if let Some(read) = text.and_then(|text| read_document(section, &text, &config, dialer)) {
                return read;
            }
        }
        (false, true) => {}
        (true, true) => section.report("url", "a document has either a file or a url, not both"),
        (false, false) => {
            section.report("file", "expected where the document is: file = \"…\" or url = \"…\"");
        }
    }
    // Without a valid URL a problem is already reported. The name is kept, so that references to it cause no further
    // errors.
    let url = config.document_url.clone().unwrap_or_default();
    Document::Fetched { url, config: Box::new(config) }
}

fn read_document(
    section: &Section<'_>,
    text: &str,
    config: &OpenApiConfig,
    dialer: &Dialer,
) -> Option<Document> {
    match document_skills(text, config, dialer) {
        Ok(skills) => Some(Document::Read(skills)),
        Err(error) => {
            report_at_key(section, "file", &error.to_string());
            None
        }
    }
}

/// Reports a problem whose text may begin with the key that it is about, which may be one of a table.
fn report_at_key(section: &Section<'_>, default: &str, problem: &str) {
    let known = |key: &str| section.has(key.split('.').next().unwrap_or_default());
    let (key, text) = problem.split_once(": ").filter(|(key, _)| known(key)).unwrap_or((default, problem));
    match key.split_once('.') {
        Some((table, name)) => section.open(table).report(name, text),
        None => section.report(key, text),
    }
}

/// `security = { SCHEME = { … } }` of a document: a token, or a user name and a password.
fn security(schemes: &Section<'_>) -> Vec<(String, Credential)> {
    let credential = |name: &str| {
        let scheme = schemes.open(name);
        let secret = |key: &str| scheme.get(key, |item| variable(item.text()?)).map(Secret::new);
        let credential = match (scheme.has("token_env"), scheme.has("password_env")) {
            (true, false) => Credential::Token(secret("token_env")?),
            (false, true) => {
                let user =
                    scheme.required("user", "expected the user name that belongs to the password", text);
                let password = secret("password_env");
                Credential::Basic { user: user?, password: password? }
            }
            _ => {
                schemes
                    .report(name, "expected { token_env = \"…\" } or { user = \"…\", password_env = \"…\" }");
                return None;
            }
        };
        Some((name.to_owned(), credential))
    };
    schemes.names().filter_map(credential).collect()
}

/// `http = { … }` of a skill.
pub(super) fn http(section: &Section<'_>, environment: &Environment<'_>) -> Option<SkillBackend> {
    let method = section.value("method", |item| {
        let method = item.text()?;
        let known = METHODS.into_iter().find(|known| known.eq_ignore_ascii_case(method));
        known.ok_or_else(|| format!("{method:?} is not one of {}", METHODS.join(", ")))
    });
    let config = HttpConfig {
        url: section.required(
            "url",
            "expected the URL of the function, such as http://127.0.0.1:9000/fx",
            text,
        )?,
        method: method.into(),
        query: pairs(&section.open("query")),
        headers: pairs(&section.open("headers")),
        headers_env: pairs(&section.open("headers_env")).into_iter().collect(),
        bearer_env: section.get("bearer_env", text).filter(|name| !name.is_empty()),
        timeout: section.value("timeout", values::positive_duration),
        max_response: section.value("max_response", bytes),
    };
    match HttpFunction::new(&config, environment.dialer.clone()) {
        Ok(function) => {
            Some(SkillBackend::Ready { kind: "http", backend: Arc::new(function), on_crash: OnCrash::Retry })
        }
        Err(problem) => {
            report_at_key(section, "url", &problem);
            None
        }
    }
}

/// A size that fits into memory.
fn bytes(item: &Item) -> Parsed<usize> {
    let size = values::size(item)?;
    usize::try_from(size).map_err(|_| format!("{size} bytes are too many"))
}

/// `command = { … }` of a skill.
pub(super) fn command(section: &Section<'_>, environment: &Environment<'_>) -> Option<SkillBackend> {
    if !section.has("argv") {
        section.report("argv", "expected the program and its arguments, such as [\"lint\", \"--json\"]");
    }
    let protocol = section.value("protocol", |item| item.one_of(&PROTOCOL_NAMES));
    let launch = launch(section, "argv", environment.directory)?;
    let Launch { argv, env, cwd, memory } = launch;
    let tool = CommandTool {
        env,
        cwd,
        memory,
        timeout: section.value("timeout", values::positive_duration),
        max_output: section.value("max_output", values::size),
        protocol,
        ..CommandTool::new(launcher(), argv)
    };
    Some(SkillBackend::Ready { kind: "command", backend: Arc::new(tool), on_crash: protocol.on_crash() })
}

/// The program itself supervises the processes that it starts.
pub(super) fn launcher() -> Launcher {
    Launcher::supervised_by_this_program().unwrap_or_default()
}

/// A process: the command of a key, with the keys `env`, `inherit_env`, `cwd` and `memory` beside it.
fn launch(section: &Section<'_>, key: &str, directory: &Path) -> Option<Launch> {
    let argv = section.each(key, text)?;
    if argv.first().is_none_or(String::is_empty) {
        section.report(key, "expected at least the program");
        return None;
    }
    let mut env: BTreeMap<String, String> = pairs(&section.open("env")).into_iter().collect();
    let inherited = section.list("inherit_env", |item| {
        let name = item.text()?;
        Ok((name.to_owned(), variable(name)?))
    });
    env.extend(inherited);
    let named = Some(section.value("cwd", text)).filter(|cwd| !cwd.is_empty());
    let cwd = named.as_ref().map_or_else(|| directory.to_owned(), |cwd| directory.join(cwd));
    let cwd = Some(cwd).filter(|cwd| *cwd != PathBuf::new());
    let memory = if key == "argv" { section.get("memory", values::size) } else { None };
    let launch = Launch { argv, env, cwd, memory };
    if let Some(named) = named.filter(|_| launch.cwd.as_ref().is_some_and(|cwd| !cwd.is_dir())) {
        section.report("cwd", format!("{named:?} is not a directory"));
    } else if let Err(problem) = launch.program() {
        section.report(key, problem.to_string());
    }
    Some(launch)
}

/// The string values of a table, in file order.
fn pairs(section: &Section<'_>) -> Vec<(String, String)> {
    let pair = |name: &str| Some((name.to_owned(), section.get(name, text)?));
    section.names().filter_map(pair).collect()
}

/// Headers with fixed values and headers with secrets.
fn headers(section: &Section<'_>) -> Vec<(HeaderName, Secret)> {
    let table = section.open("headers");
    let named = |name: &str| {
        let value = table.get(name, text)?;
        Some((header_name(&table, name)?, Secret::new(value)))
    };
    let fixed: Vec<_> = table.names().filter_map(named).collect();
    fixed.into_iter().chain(secret_headers(section)).collect()
}

fn header_name(section: &Section<'_>, name: &str) -> Option<HeaderName> {
    let parsed = name.parse();
    if parsed.is_err() {
        section.report(name, "expected the name of a header, such as X-Api-Key");
    }
    parsed.ok()
}

/// `headers_env` and `bearer_env`.
fn secret_headers(section: &Section<'_>) -> Vec<(HeaderName, Secret)> {
    let table = section.open("headers_env");
    let named = |name: &str| {
        let value = table.get(name, |item| variable(item.text()?))?;
        Some((header_name(&table, name)?, Secret::new(value)))
    };
    let mut headers: Vec<_> = table.names().filter_map(named).collect();
    let bearer = section.get("bearer_env", |item| match item.text()? {
        "" => Ok(None),
        name => variable(name).map(Some),
    });
    headers.extend(
        bearer.flatten().map(|token| (http::header::AUTHORIZATION, Secret::new(format!("Bearer {token}")))),
    );
    headers
}

fn variable(name: &str) -> Parsed<String> {
    std::env::var(name)
        .map_err(|_| format!("the environment variable {name} is not set; set it before starting"))
}

fn http_url(item: &Item) -> Parsed<String> {
    let text = item.text()?;
    let is_http = text.starts_with("http://") || text.starts_with("https://");
    match url::Url::parse(text) {
        Ok(url) if is_http && url.host().is_some() => Ok(text.to_owned()),
        _ => Err(format!("{text:?} is not a URL such as http://127.0.0.1:8000/mcp")),
    }
}
