//! The page at `/`: which agents there are, and how each is called in each generation.
//!
//! A browser gets HTML without scripts and without anything from elsewhere; everybody else gets the same facts as JSON.
//! Names and descriptions come from a configuration, so every text is escaped on its way into the page, and the policy
//! sent along lets a browser run nothing even if one were not.

use std::{
    fmt::{self, Display, Formatter},
    sync::LazyLock,
};

use axum::{body::Body, response::Response};
use http::{HeaderMap, HeaderValue, header};
use protocol::{Dialect, Message, Operation, Part, Role, SendMessage, TaskId, json::write::Writer, rest};
use sha2::{Digest as _, Sha256};

use crate::{respond, server_state::AgentSettings, version::AcceptedVersions};

/// What there is to tell.
pub(crate) struct Facts<'a> {
    /// Scheme and host as the client sees them.
    pub(crate) origin: String,
    pub(crate) accepted_versions: AcceptedVersions,
    /// The agent at `/`.
    pub(crate) default_agent: &'a str,
    /// Every agent that takes calls.
    pub(crate) agents: Vec<(&'a engine::AgentInfo, &'a AgentSettings)>,
}

/// Answers with the page, or with its facts where HTML is not asked for.
pub(crate) fn respond(facts: &Facts<'_>, headers: &HeaderMap) -> Response {
    let mut response = if wants_html(headers) { html(facts) } else { respond::json(facts.json()) };
    let out = response.headers_mut();
    out.insert(header::VARY, HeaderValue::from_static("Accept"));
    out.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    out.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

/// Whether the client names HTML, as browsers do. One that takes anything is a program.
fn wants_html(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT).into_iter().filter_map(|value| value.to_str().ok());
    accepted.flat_map(|value| value.split(',')).any(|range| {
        let mut pieces = range.split(';').map(str::trim);
        let html = pieces.next().is_some_and(|essence| essence.eq_ignore_ascii_case("text/html"));
        html && !pieces.any(|piece| matches!(piece, "q=0" | "q=0.0" | "q=0.00" | "q=0.000"))
    })
}

fn html(facts: &Facts<'_>) -> Response {
    let mut response = Response::new(Body::from(facts.to_string()));
    let out = response.headers_mut();
    out.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    out.insert(header::CONTENT_SECURITY_POLICY, POLICY.clone());
    out.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    response
}

const STYLE: &str = "\
:root{color-scheme:light dark}\
body{font:16px/1.5 system-ui,sans-serif;max-width:52rem;margin:2.5rem auto;padding:0 1rem}\
h1{font-size:1.6rem;margin:0}h2{font-size:1.15rem;margin:2rem 0 0}h3{font-size:.9rem;margin:1rem 0 .25rem}\
p{margin:.25rem 0}.quiet{opacity:.7}\
pre{overflow-x:auto;padding:.75rem;border:1px solid #8886;border-radius:.4rem;font-size:.82rem;margin:0;user-select:all}\
summary{cursor:pointer;margin:.5rem 0}";

/// Nothing but the one style of the page, known by its hash.
static POLICY: LazyLock<HeaderValue> = LazyLock::new(|| {
    let mut writer = Writer::new();
    writer.base64(&Sha256::digest(STYLE));
    let hash = String::from_utf8_lossy(&writer.finish()).replace('"', "");
    let policy = format!(
        "default-src 'none'; style-src 'sha256-{hash}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    );
    HeaderValue::try_from(policy).expect("base64 and plain words make a header value")
});

const CALLERS: &str =
    "Callers without a credential are all the same anonymous caller: each sees the others' tasks.";

impl Facts<'_> {
    fn endpoint(&self, agent: &engine::AgentInfo) -> String {
        format!("{}/a2a/{}", self.origin, agent.id)
    }

    fn json(&self) -> Vec<u8> {
        let mut writer = Writer::new();
        writer.object(|out| {
            out.text("name", "a2ad");
            out.text("version", env!("CARGO_PKG_VERSION"));
            out.texts("generations", &self.accepted_versions.versions());
            out.text("callers", CALLERS);
            out.text("defaultAgent", self.default_agent);
            out.key("agents").array(&self.agents, |out, (agent, settings)| {
                let endpoint = self.endpoint(agent);
                out.object(|out| {
                    out.text("id", &agent.id);
                    out.text("name", &agent.name);
                    out.text("description", &agent.description);
                    out.text("url", &endpoint);
                    out.text("card", &format!("{endpoint}/.well-known/agent-card.json"));
                    out.key("anonymous").boolean(settings.anonymous);
                });
            });
        });
        writer.finish()
    }
}

impl Display for Facts<'_> {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let (version, generations) =
            (env!("CARGO_PKG_VERSION"), self.accepted_versions.versions().join(", "));
        write!(
            out,
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width\">\n<title>a2ad</title>\n\
             <style>{STYLE}</style>\n</head>\n<body>\n\
             <h1>a2ad</h1>\n<p>Version {version}, serving A2A {generations} at <code>{}</code>.</p>\n\
             <p class=\"quiet\">{}</p>\n",
            Escaped(&self.origin),
            Escaped(CALLERS),
        )?;
        for (agent, settings) in &self.agents {
            self.section(out, agent, settings)?;
        }
        out.write_str("</body>\n</html>\n")
    }
}

impl Facts<'_> {
    fn section(
        &self,
        out: &mut Formatter<'_>,
        agent: &engine::AgentInfo,
        settings: &AgentSettings,
    ) -> fmt::Result {
        let (endpoint, default) = (self.endpoint(agent), agent.id == self.default_agent);
        let at_root = if default { ", also at <code>/</code>" } else { "" };
        let known = if settings.anonymous { "" } else { "; wants a credential" };
        write!(
            out,
            "<section>\n<h2>{}</h2>\n<p>{}</p>\n\
             <p class=\"quiet\"><code>/a2a/{}</code>{at_root}{known} · \
             <a href=\"{}/.well-known/agent-card.json\">card</a></p>\n",
            Escaped(&agent.name),
            Escaped(&agent.description),
            Escaped(&agent.id),
            Escaped(&endpoint),
        )?;
        for skill in &agent.skills {
            let (id, description) = (Escaped(&skill.id), Escaped(&skill.description));
            writeln!(out, "<p class=\"quiet\"><code>{id}</code> {description}</p>")?;
        }
        let open = if default { " open" } else { "" };
        writeln!(out, "<details{open}><summary>Call it</summary>")?;
        let say = agent.skills.iter().find_map(|skill| skill.examples.first());
        for (title, command) in
            examples(&endpoint, say.map_or("hello", String::as_str), self.accepted_versions)
        {
            writeln!(out, "<h3>{title}</h3>\n<pre><code>{}</code></pre>", Escaped(&command))?;
        }
        out.write_str("</details>\n</section>\n")
    }
}

/// A command for each way to say something to an agent. What it posts is written by the generation's own codec.
fn examples(endpoint: &str, say: &str, accepted_versions: AcceptedVersions) -> Vec<(&'static str, String)> {
    let mut examples =
        vec![("Text", format!("curl -s {endpoint} -H 'Content-Type: text/plain' -d {}", quoted(say)))];
    for (dialect, title) in [
        (Dialect::V1, "A2A 1.0"),
        (Dialect::V03, "A2A 0.2 and 0.3"),
        (Dialect::Draft, "A2A 0.1, the first draft"),
    ] {
        if accepted_versions.speaks(dialect) {
            let version = if dialect == Dialect::V1 { " -H 'A2A-Version: 1.0'" } else { "" };
            let body = quoted(&request(dialect, say));
            let command =
                format!("curl -s {endpoint} -H 'Content-Type: application/json'{version} \\\n  -d {body}");
            examples.push((title, command));
        }
    }
    for (dialect, title) in
        [(Dialect::V1, "A2A 1.0 over HTTP+JSON"), (Dialect::V03Proto, "A2A 0.3 over HTTP+JSON")]
    {
        let operation = send(dialect, say);
        if let Some((_, target)) =
            rest::target(dialect, &operation).filter(|_| accepted_versions.speaks(dialect))
        {
            let mut writer = Writer::new();
            dialect.encode_request(&mut writer, &operation);
            let body = quoted(&String::from_utf8_lossy(&writer.finish()));
            let command =
                format!("curl -s {endpoint}{target} -H 'Content-Type: application/json' \\\n  -d {body}");
            examples.push((title, command));
        }
    }
    examples
}

/// A send of this text.
fn send(dialect: Dialect, say: &str) -> Operation {
    let mut send = SendMessage::new(Message::new("try-1", Role::User, vec![Part::text(say)]));
    if dialect.clients_name_tasks() {
        send.message.task_id = Some(TaskId::from("try-1"));
        send.message.id = "".into();
        send.history_length = Some(0);
    }
    Operation::SendMessage(send)
}

/// A send of this text as a JSON-RPC request.
fn request(dialect: Dialect, say: &str) -> String {
    let operation = send(dialect, say);
    let mut writer = Writer::new();
    writer.object(|writer| {
        writer.text("jsonrpc", "2.0");
        writer.key("id").int(1);
        writer.maybe_text("method", dialect.method(operation.kind()));
        dialect.encode_operation(writer.key("params"), &operation);
    });
    String::from_utf8_lossy(&writer.finish()).into_owned()
}

/// A text as one word of a shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// A text as HTML shows it, in an element and in an attribute.
struct Escaped<'a>(&'a str);

impl Display for Escaped<'_> {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        for character in self.0.chars() {
            match character {
                '&' => out.write_str("&amp;")?,
                '<' => out.write_str("&lt;")?,
                '>' => out.write_str("&gt;")?,
                '"' => out.write_str("&quot;")?,
                '\'' => out.write_str("&#39;")?,
                plain => fmt::Write::write_char(out, plain)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wants(accept: &str) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT, accept.parse().unwrap());
        wants_html(&headers)
    }

    #[test]
    fn browsers_name_html_and_programs_do_not() {
        assert!(wants("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"));
        assert!(wants("application/json, Text/HTML; q=0.5"));
        for accept in ["*/*", "application/json", "text/*", "text/html;q=0", "text/plain, text/html; q=0.0"] {
            assert!(!wants(accept), "{accept}");
        }
        assert!(!wants_html(&HeaderMap::new()));
    }

    #[test]
    fn no_text_of_a_configuration_is_markup() {
        let agent = engine::AgentInfo {
            id: "a".into(),
            name: "<script>alert(1)</script>".into(),
            description: "\"quoted\" & 'more' <b>".into(),
            version: "1".into(),
            skills: vec![protocol::model::AgentSkill {
                id: "<i>".into(),
                name: "n".into(),
                description: "</code>".into(),
                tags: Vec::new(),
                examples: vec!["it's </pre><img src=x>".into()],
                input_modes: Vec::new(),
                output_modes: Vec::new(),
                security_requirements: Vec::new(),
            }],
            input_modes: Vec::new(),
            output_modes: Vec::new(),
        };
        let settings = AgentSettings::default();
        let facts = Facts {
            origin: "http://x\"><script>".into(),
            accepted_versions: AcceptedVersions::default(),
            default_agent: "a",
            agents: vec![(&agent, &settings)],
        };
        let page = facts.to_string();
        for markup in ["<script", "<b>", "<i>", "<img", "</pre><img", "x\">"] {
            assert!(!page.contains(markup), "{markup} in {page}");
        }
        assert_eq!(page.matches("</code>").count(), page.matches("<code>").count());
        assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;"), "{page}");
        assert!(page.contains("it&#39;\\&#39;&#39;s"), "{page}");
    }
}
