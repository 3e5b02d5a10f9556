//! The schemas, and where the server has them from.

use std::fs;
use std::path::Path;

use anyhow::Result;
use serde_json::{Map, Value, json};

use super::mcp_server::COMMAND;

/// The only agent that has the skills.
pub(super) const AGENT: &str = "languages";

/// A schema of nested objects, each with the next one as `op0`. The innermost has `lit`, a number.
#[derive(Clone, Copy, Debug)]
pub(super) enum Language {
    /// One of so many operators, which refer to the whole again.
    Recursive(usize),
    /// So many levels, each of which refers to the next one twice.
    Doubling(usize),
}

impl Language {
    pub(super) const ALL: [Self; 5] = [
        Self::Recursive(2),
        Self::Recursive(5),
        Self::Recursive(10),
        Self::Recursive(20),
        Self::Doubling(40),
    ];

    pub(super) fn name(self) -> String {
        match self {
            Self::Recursive(operators) => format!("recursive{operators}"),
            Self::Doubling(levels) => format!("doubling{levels}"),
        }
    }

    /// `place` is where the definitions are.
    fn schema(self, place: &str) -> Value {
        let first = match self {
            Self::Recursive(_) => "e",
            Self::Doubling(_) => "d0",
        };
        json!({"type": "object", "allOf": [reference(place, first)], "$defs": self.definitions(place)})
    }

    fn definitions(self, place: &str) -> Map<String, Value> {
        let lit = json!({"type": "object", "required": ["lit"], "properties": {"lit": {"type": "number"}}});
        match self {
            Self::Recursive(operators) => {
                // The kind is left out of what is sent, so that every operator may apply at every depth.
                let operator = |number| {
                    let properties = json!({"kind": {"const": number}, "op0": reference(place, "e")});
                    json!({"type": "object", "required": ["op0"], "properties": properties})
                };
                let all: Vec<Value> = (0..operators).map(operator).chain([lit]).collect();
                Map::from_iter([("e".to_owned(), json!({"oneOf": all}))])
            }
            Self::Doubling(levels) => {
                let level = |number| {
                    let next = reference(place, &format!("d{}", number + 1));
                    let op0 = json!({"anyOf": [next, next]});
                    let level = json!({"properties": {"op0": op0, "lit": {"type": "number"}}});
                    (format!("d{number}"), level)
                };
                (0..levels).map(level).chain([(format!("d{levels}"), lit)]).collect()
            }
        }
    }
}

fn reference(place: &str, name: &str) -> Value {
    json!({"$ref": format!("{place}/{name}")})
}

/// Where a schema is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// `input_schema` in the configuration.
    Input,
    /// A tool of an MCP server.
    Mcp,
    /// The body of an operation of an OpenAPI document.
    OpenApi,
    /// `output_schema` in the configuration: the result is what was sent.
    Result,
}

impl Source {
    pub(super) const ALL: [Self; 4] = [Self::Input, Self::Mcp, Self::OpenApi, Self::Result];

    pub(super) fn skill(self, language: Language) -> String {
        format!("{self:?}-{}", language.name()).to_lowercase()
    }
}

/// A configuration with a skill for each source and language; its files are in this folder.
pub(super) fn configuration(folder: &Path) -> Result<String> {
    let path = |name: &str| folder.join(format!("schemas-{name}.json"));
    let write = |name: &str, value: &Value| fs::write(path(name), value.to_string());
    let (mut sections, mut tools, mut paths, mut components) =
        (String::new(), Vec::new(), Map::new(), Map::new());
    for language in Language::ALL {
        let schema = language.schema("#/$defs");
        write(&language.name(), &schema)?;
        let file = path(&language.name());
        for (source, key) in [(Source::Input, "input_schema"), (Source::Result, "output_schema")] {
            let skill = source.skill(language);
            sections += &format!("[skills.{skill}]\ncommand = {{ argv = [\"cat\"] }}\n{key} = {file:?}\n\n");
        }
        tools.push(json!({"name": Source::Mcp.skill(language), "inputSchema": schema}));
        let id = Source::OpenApi.skill(language);
        components.insert(id.clone(), language.schema(&format!("#/components/schemas/{id}/$defs")));
        let body = json!({"application/json": {"schema": reference("#/components/schemas", &id)}});
        let responses = json!({"200": {"description": "never"}});
        let operation = json!({"operationId": id, "requestBody": {"content": body}, "responses": responses});
        paths.insert(format!("/{id}"), json!({"post": operation}));
    }
    write("tools", &tools.into())?;
    let document = json!({
        "openapi": "3.1.0", "info": {"title": "languages", "version": "1"},
        "servers": [{"url": "http://127.0.0.1:9"}], "paths": paths, "components": {"schemas": components},
    });
    write("document", &document)?;
    let command = json!([std::env::current_exe()?, COMMAND, path("tools")]);
    let own = [Source::Input, Source::Result].map(|source| Language::ALL.map(|one| source.skill(one)));
    let skills: Vec<String> =
        own.concat().into_iter().chain(["mcp:listing/*".into(), "openapi:document/*".into()]).collect();
    Ok(format!(
        "[server]\ndefault_agent = \"echo\"\n\n[skills.echo]\nbuiltin = \"echo\"\n\n[agents.echo]\nskills = [\"echo\"]\n\n\
         {sections}[mcp.listing]\ncommand = {command}\n\n[openapi.document]\nfile = {:?}\n\n\
         [agents.{AGENT}]\nskills = {}\n",
        path("document"),
        json!(skills)
    ))
}
