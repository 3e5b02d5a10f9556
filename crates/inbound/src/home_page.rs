//! The page at `/`: lists the agents and example calls for each protocol generation.
//!
//! A browser gets HTML without scripts and external resources; every other client gets the same data as JSON. Names and
//! descriptions come from the configuration, so every text is escaped, and the content security policy prevents scripts
//! from running should an escape be missed.

use std::{
    fmt::{self, Display, Formatter},
    sync::LazyLock,
};

use aws_lc_rs::digest::{SHA256, digest};
use axum::{body::Body, response::Response};
use http::{HeaderMap, HeaderValue, header};
use protocol::{Dialect, Message, Operation, Part, Role, SendMessage, TaskId, json::write::Writer, rest};

use crate::{respond, server_state::AgentSettings, version::AcceptedVersions};

/// The data shown on the page.
pub(crate) struct PageContent<'a> {
    /// Scheme and host as the client sees them.
    pub(crate) origin: String,
    pub(crate) accepted_versions: AcceptedVersions,
    /// The agent at `/`.
    pub(crate) default_agent: &'a str,
    /// The enabled agents.
    pub(crate) agents: Vec<(&'a engine::AgentInfo, &'a AgentSettings)>,
}

/// Responds with the page, or with its data as JSON if the client does not accept HTML.
pub(crate) fn respond(content: &PageContent<'_>, headers: &HeaderMap) -> Response {
    let mut response = if wants_html(headers) { html(content) } else { respond::json(content.json()) };
    let out = response.headers_mut();
    out.insert(header::VARY, HeaderValue::from_static("Accept"));
    out.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    out.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

/// Whether `Accept` names HTML, as browsers do. A client that only accepts `*/*` is a program.
fn wants_html(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT).into_iter().filter_map(|value| value.to_str().ok());
    accepted.flat_map(|value| value.split(',')).any(|range| {
        let mut pieces = range.split(';').map(str::trim);
        let html = pieces.next().is_some_and(|essence| essence.eq_ignore_ascii_case("text/html"));
        html && !pieces.any(|piece| matches!(piece, "q=0" | "q=0.0" | "q=0.00" | "q=0.000"))
    })
}

fn html(content: &PageContent<'_>) -> Response {
    let mut response = Response::new(Body::from(content.to_string()));
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

/// Content security policy: permits only the page's own style, by its hash.
static POLICY: LazyLock<HeaderValue> = LazyLock::new(|| {
    let mut writer = Writer::new();
    writer.base64(digest(&SHA256, STYLE.as_bytes()).as_ref());
    let hash = String::from_utf8_lossy(&writer.finish()).replace('"', "");
    let policy = format!(
        "default-src 'none'; style-src 'sha256-{hash}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    );
    HeaderValue::try_from(policy).expect("base64 and ASCII text form a header value")
});

const CALLERS: &str =
    "Callers without a credential are all the same anonymous caller: each sees the others' tasks.";

impl PageContent<'_> {
    fn endpoint(&self, agent: &engine::AgentInfo) -> String {
        format!("{}/a2a/{}", self.origin, agent.id)
    }

    fn json(&self) -> Vec<u8> {
        let mut writer = Writer::new();
        writer.object(|out| {
            out.text("name", "a2ad");
            out.text("version", env!("CARGO_PKG_VERSION"));
            out.texts("generations", &self.accepted_versions.labels());
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

impl Display for PageContent<'_> {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let (version, generations) = (env!("CARGO_PKG_VERSION"), self.accepted_versions.labels().join(", "));
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

impl PageContent<'_> {
    fn section(
        &self,
        out: &mut Formatter<'_>,
        agent: &engine::AgentInfo,
        settings: &AgentSettings,
    ) -> fmt::Result {
        let (endpoint, default) = (self.endpoint(agent), agent.id == self.default_agent);
        let at_root = if default { ", also at <code>/</code>" } else { "" };
        let known = if settings.anonymous { "" } else { "; requires a credential" };
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
        let example = agent.skills.iter().find_map(|skill| skill.examples.first());
        for (title, command) in
            examples(&endpoint, example.map_or("hello", String::as_str), self.accepted_versions)
        {
            writeln!(out, "<h3>{title}</h3>\n<pre><code>{}</code></pre>", Escaped(&command))?;
        }
        out.write_str("</details>\n</section>\n")
    }
}

/// An example command for each way to send a message. The request bodies are encoded by the generation's own codec.
fn examples(
    endpoint: &str,
    example: &str,
    accepted_versions: AcceptedVersions,
) -> Vec<(&'static str, String)> {
    let mut examples =
        vec![("Text", format!("curl -s {endpoint} -H 'Content-Type: text/plain' -d {}", quoted(example)))];
    for (dialect, title) in
        [(Dialect::V1, "A2A 1.0"), (Dialect::V03, "A2A 0.2 and 0.3"), (Dialect::Draft, "A2A draft (0.1)")]
    {
        if accepted_versions.accepts(dialect) {
            let version = match dialect {
                Dialect::V1 => " -H 'A2A-Version: 1.0'",
                Dialect::Draft | Dialect::V03 | Dialect::V03Proto => "",
            };
            let body = quoted(&request(dialect, example));
            let command =
                format!("curl -s {endpoint} -H 'Content-Type: application/json'{version} \\\n  -d {body}");
            examples.push((title, command));
        }
    }
    for (dialect, title) in
        [(Dialect::V1, "A2A 1.0 over HTTP+JSON"), (Dialect::V03Proto, "A2A 0.3 over HTTP+JSON")]
    {
        let operation = send(dialect, example);
        if let Some((_, target)) =
            rest::target(dialect, &operation).filter(|_| accepted_versions.accepts(dialect))
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

fn send(dialect: Dialect, example: &str) -> Operation {
    let mut send = SendMessage::new(Message::new("try-1", Role::User, vec![Part::text(example)]));
    if dialect.clients_choose_task_ids() {
        send.message.task_id = Some(TaskId::from("try-1"));
        send.message.id = "".into();
        send.history_length = Some(0);
    }
    Operation::SendMessage(send)
}

/// The JSON-RPC request that sends this text.
fn request(dialect: Dialect, example: &str) -> String {
    let operation = send(dialect, example);
    let mut writer = Writer::new();
    writer.object(|writer| {
        writer.text("jsonrpc", "2.0");
        writer.key("id").int(1);
        writer.maybe_text("method", dialect.method(operation.kind()));
        dialect.encode_operation(writer.key("params"), &operation);
    });
    String::from_utf8_lossy(&writer.finish()).into_owned()
}

/// A text as one quoted shell argument.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Escapes a text for HTML elements and attributes.
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
    fn html_is_sent_only_to_clients_that_name_it() {
        assert!(wants("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"));
        assert!(wants("application/json, Text/HTML; q=0.5"));
        for accept in ["*/*", "application/json", "text/*", "text/html;q=0", "text/plain, text/html; q=0.0"] {
            assert!(!wants(accept), "{accept}");
        }
        assert!(!wants_html(&HeaderMap::new()));
    }

    #[test]
    fn configured_texts_are_escaped() {
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
        let content = PageContent {
            origin: "http://x\"><script>".into(),
            accepted_versions: AcceptedVersions::default(),
            default_agent: "a",
            agents: vec![(&agent, &settings)],
        };
        let page = content.to_string();
        for markup in ["<script", "<b>", "<i>", "<img", "</pre><img", "x\">"] {
            assert!(!page.contains(markup), "{markup} in {page}");
        }
        assert_eq!(page.matches("</code>").count(), page.matches("<code>").count());
        assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;"), "{page}");
        assert!(page.contains("it&#39;\\&#39;&#39;s"), "{page}");
    }
}
