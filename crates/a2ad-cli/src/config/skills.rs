//! `[skills.ID]`: a skill with exactly one backend.

use std::{collections::BTreeMap, path::Path};

use a2ad::internal::assembly::{SkillBackend, SkillConfig};
use outbound::{
    backends::{http::HttpConfig, mcp::McpConfig},
    dial::Dialer,
    skill::{InputForm, Interface},
};
use protocol::hint;

use super::{
    agents::check_name,
    backends,
    read::Section,
    run_settings::run_settings,
    schemas::schema,
    values::{self, text},
};
use crate::builtins;

/// The keys of which a skill has exactly one.
pub(super) const BACKENDS: [&str; 4] = ["builtin", "mcp", "http", "command"];

/// What the backends of skills refer to.
pub(super) struct Environment<'a> {
    /// Paths are relative to it.
    pub(super) directory: &'a Path,
    pub(super) dialer: &'a Dialer,
    pub(super) mcp: &'a BTreeMap<String, McpConfig>,
}

pub(super) fn skills(section: &Section<'_>, environment: &Environment<'_>) -> Vec<SkillConfig> {
    section.names().map(|id| skill(section, id, environment)).collect()
}

fn skill(skills: &Section<'_>, id: &str, environment: &Environment<'_>) -> SkillConfig {
    check_name(skills, id);
    let section = skills.open(id);
    let given: Vec<&str> = BACKENDS.into_iter().filter(|key| section.has(key)).collect();
    match given.as_slice() {
        [_] => {}
        [] => section.report(
            "builtin",
            format!(
                "expected what does the work, one of: {}; such as builtin = \"echo\"",
                BACKENDS.join(", ")
            ),
        ),
        [_, second, ..] => {
            section.report(second, format!("a skill has one backend, not {}", given.join(" and ")))
        }
    }
    let backend = match given.first() {
        Some(&"mcp") => mcp(&section, environment),
        Some(&"http") => backends::http(&section.open("http"), environment),
        Some(&"command") => backends::command(&section.open("command"), environment),
        _ => builtin(&section),
    };
    let schema = |key| section.get(key, |item| schema(item, environment.directory)).flatten();
    let (input_schema, output_schema) = (schema("input_schema"), schema("output_schema"));
    let interface = tool_interface(&section);
    check_interface(&section, &interface, given.first().copied());
    if let Some(SkillBackend::Mcp { server, .. }) = &backend
        && let Some(server) = environment.mcp.get(server)
        && let Interface { message_argument: None, .. } = interface.clone().or(&server.interface)
        && interface.takes_message()
    {
        section
            .report("input", "expected message_argument too: the name of the argument that gets the message");
    }
    let is_builtin = matches!(backend, Some(SkillBackend::Builtin(_)));
    if is_builtin && (input_schema.is_some() || output_schema.is_some()) {
        let key = if input_schema.is_some() { "input_schema" } else { "output_schema" };
        section.report(key, "a built-in agent has no schemas; remove the key");
    }
    // The problem is already reported. The skill is kept, so that references to it cause no further errors.
    let backend = backend.or_else(|| builtins::find(builtins::names()[0]).map(SkillBackend::Builtin));
    SkillConfig {
        name: section.get("name", |item| match item.text()? {
            "" => Err("expected a name for people, such as \"Run Query\"".to_owned()),
            name => Ok(name.to_owned()),
        }),
        description: section.get("description", text),
        tags: section.each("tags", text),
        examples: section.each("examples", text),
        input_schema,
        output_schema,
        interface,
        runs: run_settings(&section),
        ..SkillConfig::new(id, backend.expect("there are built-in agents"))
    }
}

pub(crate) const INPUT_NAMES: [(&str, InputForm); 2] =
    [("arguments", InputForm::Arguments), ("message", InputForm::Message)];

/// `input`, `message_argument`, `input_modes` and `output_modes` of a skill, a server or a document.
pub(super) fn interface(section: &Section<'_>) -> Interface {
    Interface {
        input: section.get("input", |item| item.one_of(&INPUT_NAMES)),
        message_argument: None,
        input_modes: section.each("input_modes", values::media_type),
        output_modes: section.each("output_modes", values::media_type),
    }
}

/// The same of what has tools of MCP servers.
pub(super) fn tool_interface(section: &Section<'_>) -> Interface {
    let message_argument = section.get("message_argument", text).filter(|name| !name.is_empty());
    Interface { message_argument, ..interface(section) }
}

/// Reports keys that do not fit the backend of a skill.
fn check_interface(section: &Section<'_>, interface: &Interface, backend: Option<&str>) {
    match backend {
        Some("builtin") if interface.input.is_some() => {
            section.report("input", "a built-in agent always gets the message; remove the key");
        }
        Some("builtin" | "http" | "command") if section.has("message_argument") => {
            section.report("message_argument", "only tools of MCP servers have it; remove the key");
        }
        Some("http") if interface.takes_message() => {
            let function = section.open("http");
            let method = function.value("method", |item| Ok(item.text()?.to_ascii_uppercase()));
            if let Err(problem) = (HttpConfig { method, ..HttpConfig::new("") }).check_message_input() {
                function.report("method", problem.trim_start_matches("method: "));
            }
        }
        _ => {}
    }
}

fn builtin(section: &Section<'_>) -> Option<SkillBackend> {
    let names = builtins::names();
    let builtins: Vec<(&str, &str)> = names.iter().map(|name| (*name, *name)).collect();
    let name = section.get("builtin", |item| item.one_of(&builtins))?;
    builtins::find(name).map(SkillBackend::Builtin)
}

fn mcp(section: &Section<'_>, environment: &Environment<'_>) -> Option<SkillBackend> {
    let table = section.open("mcp");
    let expected = "expected a name, as in mcp = { server = \"clock\", tool = \"get_current_time\" }";
    let server = table.required("server", expected, |item| {
        let name = item.text()?;
        if environment.mcp.contains_key(name) {
            return Ok(name.to_owned());
        }
        let known = environment.mcp.keys().map(String::as_str);
        if environment.mcp.is_empty() {
            return Err(format!("there is no MCP server {name:?}; define it as [mcp.{name}]"));
        }
        Err(format!("there is no MCP server {name:?}; {}", hint(name, known)))
    });
    let tool = table.required("tool", expected, text);
    Some(SkillBackend::Mcp { server: server?, tool: tool? })
}
