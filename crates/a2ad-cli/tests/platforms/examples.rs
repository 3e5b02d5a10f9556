//! The requests that platforms print in their documentation work where they say: at the `url` of the agent card, and at the
//! platform's own paths. Behind each agent is a tool of a user, once an HTTP function and once a command.
//!
//! `examples.json` has the requests and responses as they are printed. Every printed field of a response is compared. A
//! field that differs is listed with the reason, and one that is listed has to differ. `beside` has fields that are not
//! printed.

use std::{collections::BTreeMap, fs, path::Path};

use serde_json::Value;

use crate::own_tools::{self, Function, Served};

const EXAMPLES: &str = include_str!("examples.json");

/// What does the work of an agent's skill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Backend {
    HttpFunction,
    Command,
}

#[tokio::test(flavor = "multi_thread")]
async fn printed_examples_work_at_the_url_of_their_card() {
    let platforms: Vec<Value> = serde_json::from_str(EXAMPLES).unwrap();
    let mut problems = Vec::new();
    for platform in &platforms {
        for backend in [Backend::HttpFunction, Backend::Command] {
            // Only commands that speak lines can ask.
            if backend == Backend::HttpFunction && platform["tool"]["asks"].is_string() {
                continue;
            }
            let label = format!("{} ({backend:?})", text(platform, "platform"));
            let agent = Agent::start(platform, backend).await;
            problems
                .extend(agent.check(platform).await.into_iter().map(|problem| format!("{label}: {problem}")));
        }
    }
    assert!(problems.is_empty(), "{} differences:\n{}", problems.len(), problems.join("\n"));
}

/// An agent of a platform with its server.
struct Agent {
    served: Served,
    /// The header with the credential of the caller.
    credential: Option<(&'static str, String)>,
}

impl Agent {
    async fn start(platform: &Value, backend: Backend) -> Self {
        let agent = &platform["agent"];
        let folder = own_tools::configured(&configuration(platform, backend));
        write_results(folder.path(), &platform["tool"]);
        let credential = match agent["auth"].as_str() {
            Some("bearer") => Some(("authorization", format!("Bearer {}", own_tools::TOKEN))),
            Some("api-key") => Some(("x-api-key", own_tools::new_key(&folder, text(agent, "id")).await)),
            _ => None,
        };
        Self { served: Served::start_in(folder).await, credential }
    }

    /// Compares the card, then the examples at its URL and at the other paths.
    async fn check(&self, platform: &Value) -> Vec<String> {
        let card = self.served.get(text(platform, "card_at")).await;
        let mut problems = Vec::new();
        compare("card", &platform["card"], &card, &platform["card_differs"], &mut problems);
        let url = text(&card, "url");
        let path = url
            .strip_prefix(&self.served.server.url())
            .unwrap_or_else(|| panic!("{url} is not of this server"));
        let own = if path.is_empty() { "/" } else { path };
        let others = platform["also_at"].as_array().into_iter().flatten().map(|path| path.as_str().unwrap());
        for (number, path) in std::iter::once(own).chain(others).enumerate() {
            let mut known = BTreeMap::from([("$path".to_owned(), number.to_string())]);
            for example in platform["examples"].as_array().unwrap() {
                let at = format!("{} at {path}", text(example, "name"));
                let response = self.post(path, &filled(&example["request"], &known)).await;
                let mut found = Vec::new();
                compare(
                    "",
                    &filled(&example["response"], &known),
                    &response,
                    &example["differs"],
                    &mut found,
                );
                for (field, value) in example["beside"].as_object().into_iter().flatten() {
                    if lookup(&response, field) != Some(value) {
                        found.push(format!("{field} is not {value}"));
                    }
                }
                if !found.is_empty() {
                    problems.push(format!("{at}: {}\n    {response}", found.join("; ")));
                }
                for (name, member) in [("$task", "id"), ("$session", "sessionId")] {
                    if let Some(id) = response["result"][member].as_str() {
                        known.insert(name.to_owned(), id.to_owned());
                    }
                }
            }
        }
        problems
    }

    async fn post(&self, path: &str, body: &Value) -> Value {
        let credential = self.credential.as_ref().map(|(name, value)| (*name, value.as_str()));
        let response = self.served.respond(path, credential.as_slice(), body).await;
        response.json().unwrap_or_else(|_| panic!("{path}: {} {}", response.status, response.text()))
    }
}

/// One agent, which is the default one, with one skill.
fn configuration(platform: &Value, backend: Backend) -> String {
    let (agent, skill, tool) = (&platform["agent"], &platform["skill"], &platform["tool"]);
    let mut out = String::new();
    if agent["auth"] == "bearer" {
        out += "[auth]\nbearer_env = \"A2A_API_KEY\"\n";
    }
    out += &format!("[agents.{}]\nskills = [{:?}]\n", text(agent, "id"), text(skill, "id"));
    for key in ["profile", "name", "description", "push"] {
        if let Some(value) = agent.get(key) {
            out += &format!("{key} = {value}\n");
        }
    }
    if let Some(method) = agent.get("auth") {
        out += &format!("auth = [{method}]\n");
    }
    out += &format!("[skills.{}]\n", text(skill, "id"));
    for key in ["name", "description", "tags", "examples"] {
        if let Some(value) = skill.get(key) {
            out += &format!("{key} = {value}\n");
        }
    }
    out + &match backend {
        Backend::HttpFunction => format!("http = {{ url = {:?} }}\n", function(tool).url),
        Backend::Command => command(tool),
    }
}

fn function(tool: &Value) -> Function {
    if tool["hangs"] == true {
        return Function::hanging();
    }
    Function::returning(text(tool, "type"), text(tool, "returns"))
}

fn command(tool: &Value) -> String {
    if tool["hangs"] == true {
        return "command = { argv = [\"sleep\", \"60\"] }\n".to_owned();
    }
    if tool["asks"].is_string() {
        let script = "if [ -z \"$A2AD_CALL_ANSWER\" ]; then cat question; else cat result; fi";
        return format!("command = {{ argv = [\"sh\", \"-c\", {script:?}], protocol = \"jsonl\" }}\n");
    }
    "command = { argv = [\"cat\", \"result\"] }\n".to_owned()
}

/// The files that the command prints.
fn write_results(folder: &Path, tool: &Value) {
    let line = |kind: &str, text: &str| serde_json::json!({"type": kind, "text": text}).to_string() + "\n";
    let Some(result) = tool["returns"].as_str() else { return };
    match tool["asks"].as_str() {
        Some(question) => {
            fs::write(folder.join("question"), line("ask", question)).unwrap();
            fs::write(folder.join("result"), line("result", result)).unwrap();
        }
        None => fs::write(folder.join("result"), result).unwrap(),
    }
}

/// Compares every field of a printed document with the real one, and the differences with the list of those.
fn compare(at: &str, printed: &Value, real: &Value, differs: &Value, problems: &mut Vec<String>) {
    let mut fields = Vec::new();
    leaves(printed, &mut String::new(), &mut fields);
    for (path, value) in &fields {
        let is_listed = differs.get(path).is_some();
        let same = lookup(real, path) == Some(*value);
        let shown = lookup(real, path).map_or("nothing".to_owned(), Value::to_string);
        match (same, is_listed) {
            (false, false) => problems.push(format!("{at} {path}: {value} is printed, and there is {shown}")),
            (true, true) => problems.push(format!("{at} {path}: it is listed as different and is not")),
            (true, false) | (false, true) => {}
        }
    }
    for path in differs.as_object().into_iter().flat_map(|listed| listed.keys()) {
        if !fields.iter().any(|(field, _)| field == path) {
            problems.push(format!("{at} {path}: it is listed as different and is not printed"));
        }
    }
}

/// The values of a document that have no members, with their paths.
fn leaves<'v>(value: &'v Value, path: &mut String, out: &mut Vec<(String, &'v Value)>) {
    let mut below = |name: &str, value: &'v Value| {
        let length = path.len();
        if !path.is_empty() {
            path.push('.');
        }
        path.push_str(name);
        leaves(value, path, out);
        path.truncate(length);
    };
    match value {
        Value::Object(members) => members.iter().for_each(|(name, value)| below(name, value)),
        Value::Array(items) => items.iter().enumerate().for_each(|(at, value)| below(&at.to_string(), value)),
        Value::Null => {}
        _ => out.push((path.clone(), value)),
    }
}

fn lookup<'v>(value: &'v Value, path: &str) -> Option<&'v Value> {
    path.split('.').try_fold(value, |value, name| match name.parse::<usize>() {
        Ok(at) if value.is_array() => value.get(at),
        _ => value.get(name),
    })
}

/// A document with the ids of earlier responses in the place of their names.
fn filled(value: &Value, known: &BTreeMap<String, String>) -> Value {
    let text = known.iter().fold(value.to_string(), |text, (name, id)| text.replace(name.as_str(), id));
    serde_json::from_str(&text).unwrap()
}

fn text<'v>(value: &'v Value, member: &str) -> &'v str {
    value[member].as_str().unwrap_or_else(|| panic!("{member} is missing in {value}"))
}
