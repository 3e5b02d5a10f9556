//! The page at `/`: lists the agents, commands that call them, and for each agent a box that sends it text and streams
//! the result.
//!
//! A browser gets one HTML document that includes its style and its script and loads nothing else; every other client
//! gets the same data as JSON. Names and descriptions come from the configuration, so every text is escaped. Should an
//! escape be missed, the content security policy runs no script but the page's own (`home_page/page.js`), which it
//! identifies by its hash.

mod commands;

use std::{
    fmt::{self, Display, Formatter},
    sync::{Arc, LazyLock},
};

use aws_lc_rs::digest::{SHA256, digest};
use axum::{body::Body, response::Response};
use bytes::Bytes;
use engine::{AgentSettings, RegisteredAgent, Reservation};
use http::{HeaderMap, HeaderValue, header};
use protocol::{Dialect, json::write::Writer};

use self::commands::{CommandTarget, client_command, examples, text_command};
use crate::{
    access::auth::example_headers,
    documents::agent_list,
    request::{exchange::Exchange, version::AcceptedVersions},
    response::respond,
    routes,
};

/// The data shown on the page.
pub(crate) struct PageContent<'a> {
    /// Scheme and host as the client sees them.
    pub(crate) origin: String,
    pub(crate) accepted_versions: AcceptedVersions,
    /// The agent at `/`, if it is enabled.
    pub(crate) default_agent: Option<&'a str>,
    /// The enabled agents.
    pub(crate) agents: Vec<&'a RegisteredAgent>,
}

/// Handles a request for the page.
pub(crate) fn handle(exchange: &Exchange) -> Response {
    let catalog = &exchange.catalog;
    let agents =
        catalog.agents(exchange.endpoint.tenant.id()).filter(|registered| registered.settings().enabled);
    let content = PageContent {
        origin: exchange.origin(),
        accepted_versions: exchange.server.accepted_versions,
        default_agent: catalog.enabled_default_agent(exchange.endpoint.tenant.id()),
        agents: agents.map(|registered| &**registered).collect(),
    };
    respond(&content, &exchange.head.headers, &exchange.memory)
}

/// Responds with the page, or with its data as JSON if the client does not accept HTML.
fn respond(content: &PageContent<'_>, headers: &HeaderMap, memory: &Arc<Reservation>) -> Response {
    let hold = |body| Arc::clone(memory).hold(body);
    let mut response = match wants_html(headers) {
        true => html(hold(content.to_string().into_bytes())),
        false => respond::json(hold(content.json())),
    };
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

fn html(page: Bytes) -> Response {
    let mut response = Response::new(Body::from(page));
    let out = response.headers_mut();
    out.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    out.insert(header::CONTENT_SECURITY_POLICY, POLICY.clone());
    out.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    response
}

const STYLE: &str = include_str!("home_page/page.css");
const SCRIPT: &str = include_str!("home_page/page.js");

/// Content security policy: permits only the page's own style and script, by their hashes, and calls to this server.
/// Scripts cannot create markup from text.
static POLICY: LazyLock<HeaderValue> = LazyLock::new(|| {
    let (style, script) = (hash(STYLE), hash(SCRIPT));
    let policy = format!(
        "default-src 'none'; style-src '{style}'; script-src '{script}'; connect-src 'self'; \
         require-trusted-types-for 'script'; trusted-types 'none'; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    );
    HeaderValue::try_from(policy).expect("base64 and ASCII text form a header value")
});

/// The hash of an inline style or script, as the policy names it.
fn hash(text: &str) -> String {
    let mut writer = Writer::new();
    writer.base64(digest(&SHA256, text.as_bytes()).as_ref());
    format!("sha256-{}", String::from_utf8_lossy(&writer.finish()).replace('"', ""))
}

/// The skills of an agent that are shown.
const MAX_SKILLS: usize = 50;

const CALLERS: &str =
    "Callers without a credential are all the same anonymous caller: each sees the others' tasks.";
/// The same where every agent requires a credential.
const KNOWN_CALLERS: &str = "Every agent requires a credential: each caller sees its own tasks only.";

impl PageContent<'_> {
    fn callers(&self) -> &'static str {
        if self.agents.iter().any(|agent| agent.settings().is_open()) { CALLERS } else { KNOWN_CALLERS }
    }

    fn endpoint(&self, agent: &engine::AgentInfo) -> String {
        format!("{}{}", self.origin, routes::agent_path(&agent.id))
    }

    fn json(&self) -> Vec<u8> {
        let mut writer = Writer::new();
        writer.object(|out| {
            out.text("name", "a2ad");
            out.text("version", env!("CARGO_PKG_VERSION"));
            out.texts("generations", &self.accepted_versions.labels());
            out.text("callers", self.callers());
            out.maybe_text("defaultAgent", self.default_agent);
            out.key("agents").array(&self.agents, |out, agent| {
                out.object(|out| agent_list::encode_agent(out, agent.info(), agent.settings(), &self.origin));
            });
        });
        writer.finish()
    }
}

impl Display for PageContent<'_> {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let (version, versions) = (env!("CARGO_PKG_VERSION"), self.accepted_versions.labels().join(", "));
        write!(
            out,
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width\">\n<title>a2ad</title>\n\
             <style>{STYLE}</style>\n</head>\n<body>\n<h1>a2ad</h1>\n\
             <p>A server for A2A agents: programs call the agents below over the Agent2Agent protocol.</p>\n\
             <p>Try one here or copy a command. Version {version}, serving A2A {versions} at <code>{}</code>.</p>\n\
             <p class=\"quiet\">{}</p>\n\
             <noscript><p>The text fields need JavaScript; the commands work without it.</p></noscript>\n",
            Escaped(&self.origin),
            Escaped(self.callers()),
        )?;
        let (mut agents, others): (Vec<&RegisteredAgent>, Vec<_>) =
            self.agents.iter().partition(|agent| Some(agent.info().id.as_str()) == self.default_agent);
        agents.extend(others);
        out.write_str("<nav aria-label=\"Agents\">\n")?;
        for (number, agent) in agents.iter().enumerate() {
            writeln!(out, "<a href=\"#agent-{number}\">{}</a>", Escaped(&agent.info().id))?;
        }
        out.write_str("</nav>\n")?;
        for (number, agent) in agents.into_iter().enumerate() {
            self.section(out, number, agent)?;
        }
        paths(out)?;
        write!(out, "<script type=\"module\">{SCRIPT}</script>\n</body>\n</html>\n")
    }
}

impl PageContent<'_> {
    fn section(&self, out: &mut Formatter<'_>, number: usize, registered: &RegisteredAgent) -> fmt::Result {
        let (agent, settings) = (registered.info(), registered.settings());
        let endpoint = self.endpoint(agent);
        let at_root =
            if Some(agent.id.as_str()) == self.default_agent { " · also at <code>/</code>" } else { "" };
        let known = match settings.auth {
            auth if auth.is_unconfigured() => " · not available: no authentication is configured",
            _ if settings.is_open() => "",
            _ => " · requires a credential",
        };
        // Agents can have the same name; the path is unique.
        write!(
            out,
            "<section aria-labelledby=\"agent-{number}\">\n\
             <h2 id=\"agent-{number}\">{} <code>/a2a/{}</code></h2>\n<p>{}</p>\n\
             <p class=\"quiet\"><a href=\"{}/.well-known/agent-card.json\">card</a>{at_root}{known}</p>\n",
            Escaped(&agent.name),
            Escaped(&agent.id),
            Escaped(&agent.description),
            Escaped(&endpoint),
        )?;
        let skills: Vec<_> = registered.public_skills().take(MAX_SKILLS).collect();
        // The only skill of an agent often has the same description.
        let is_repeated = matches!(skills[..], [only] if only.description == agent.description);
        for skill in skills.iter().filter(|_| !is_repeated) {
            let (id, description) = (Escaped(&skill.id), Escaped(&skill.description));
            writeln!(out, "<p class=\"quiet\"><code>{id}</code> {description}</p>")?;
        }
        // Not counted: there may be many.
        if registered.public_skills().nth(MAX_SKILLS).is_some() {
            out.write_str("<p class=\"quiet\">More skills are on the card.</p>\n")?;
        }
        let example = skills.iter().find_map(|skill| skill.examples.first());
        let example = example.map_or("hello", String::as_str);
        self.call_box(out, number, agent, settings, example)?;
        out.write_str("<div class=\"commands\">\n")?;
        let target = CommandTarget { endpoint: &endpoint, headers: &example_headers(settings) };
        for (title, command) in [
            ("a2ad", client_command(target, example, settings.offers_streaming())),
            ("curl", text_command(target, example)),
        ] {
            writeln!(out, "<div><h3>{title}</h3>\n<pre><code>{}</code></pre></div>", Escaped(&command))?;
        }
        out.write_str("</div>\n<details><summary>Calls in each version of A2A</summary>\n")?;
        for (title, command) in examples(target, example, self.accepted_versions) {
            writeln!(out, "<h3>{title}</h3>\n<pre><code>{}</code></pre>", Escaped(&command))?;
        }
        out.write_str("</details>\n</section>\n")
    }

    /// The form with which the script calls the agent. Its path is relative to the page, which may have another origin
    /// than the configured one, and below another path.
    fn call_box(
        &self,
        out: &mut Formatter<'_>,
        number: usize,
        agent: &engine::AgentInfo,
        settings: &AgentSettings,
        example: &str,
    ) -> fmt::Result {
        if settings.auth.is_unconfigured() {
            let text = "<p>This page cannot call the agent: the server requires authentication, and its operator has \
                        not configured any.</p>\n";
            return out.write_str(text);
        }
        if !settings.is_open() {
            return out.write_str(
                "<p>This page cannot call the agent: it sends no credential. The commands below send the one in the \
                 shell variable that they name.</p>\n",
            );
        }
        if !self.accepted_versions.accepts(Dialect::V1) {
            return out.write_str("<p>This page cannot call the agent: it uses A2A 1.0, which is off.</p>\n");
        }
        let (id, name, example) = (Escaped(&agent.id), Escaped(&agent.name), Escaped(example));
        let streaming = settings.offers_streaming();
        write!(
            out,
            "<form data-path=\"a2a/{id}\" data-streaming=\"{streaming}\">\n\
             <label for=\"text-{number}\">Text for {name}</label>\n\
             <div class=\"row\">\
             <input id=\"text-{number}\" value=\"{example}\" autocomplete=\"off\" enterkeyhint=\"send\">\
             <button disabled>Send</button><button type=\"button\" disabled>Cancel</button></div>\n\
             <p role=\"status\"></p>\n\
             <div role=\"log\" aria-label=\"Result of {name}\"></div>\n</form>\n"
        )
    }
}

/// The table of the server's paths.
fn paths(out: &mut Formatter<'_>) -> fmt::Result {
    out.write_str("<details>\n<summary>All paths of this server</summary>\n<table>\n")?;
    for (methods, path, handler) in routes::listing() {
        let path = Escaped(&path);
        writeln!(out, "<tr><td>{methods}</td><td><code>{path}</code></td><td>{handler}</td></tr>")?;
    }
    out.write_str("</table>\n</details>\n")
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
    use engine::{AuthMethods, DynAgent, Profile, SkillSet, SkillVisibility};
    use protocol::model::AgentSkill;

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

    fn agent(id: &str) -> engine::AgentInfo {
        engine::AgentInfo {
            id: id.into(),
            name: id.to_uppercase(),
            description: "does something".into(),
            version: "1".into(),
            input_modes: Vec::new(),
            output_modes: Vec::new(),
        }
    }

    /// An agent with these skills.
    fn registered(info: engine::AgentInfo, skills: Vec<AgentSkill>) -> RegisteredAgent {
        let work = engine::agent_fn(|_| async { engine::Outcome::done() });
        RegisteredAgent::new(info, SkillSet::of_cards(DynAgent::new(work), skills))
    }

    fn skill(id: &str, description: &str, example: &str) -> AgentSkill {
        AgentSkill {
            id: id.into(),
            name: "n".into(),
            description: description.into(),
            tags: Vec::new(),
            examples: vec![example.into()],
            input_modes: Vec::new(),
            output_modes: Vec::new(),
            security_requirements: Vec::new(),
        }
    }

    /// The page of the agents `a` and `b`, of which `b` is the default one and has these settings.
    fn page(accepted_versions: AcceptedVersions, settings: &AgentSettings) -> String {
        let [a, b] = ["a", "b"].map(|id| registered(agent(id), Vec::new()));
        let b = b.with_settings(settings.clone());
        let content = PageContent {
            origin: "http://x".into(),
            accepted_versions,
            default_agent: Some("b"),
            agents: vec![&a, &b],
        };
        content.to_string()
    }

    #[test]
    fn configured_texts_are_escaped() {
        let agent = engine::AgentInfo {
            name: "<script>alert(1)</script>".into(),
            description: "\"quoted\" & 'more' <b>".into(),
            ..agent("a")
        };
        let agent = registered(agent, vec![skill("<i>", "</code>", "it's </pre><img src=x>\"")]);
        let content = PageContent {
            origin: "http://x\"><script>".into(),
            accepted_versions: AcceptedVersions::default(),
            default_agent: Some("a"),
            agents: vec![&agent],
        };
        let page = content.to_string();
        let own = format!("<script type=\"module\">{SCRIPT}</script>");
        assert_eq!(page.matches(&own).count(), 1);
        let page = page.replace(&own, "");
        for markup in ["<script", "<b>", "<i>", "<img", "</pre><img", "x\">"] {
            assert!(!page.contains(markup), "{markup} in {page}");
        }
        assert_eq!(page.matches("</code>").count(), page.matches("<code>").count());
        assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;"), "{page}");
        assert!(page.contains("it&#39;\\&#39;&#39;s"), "{page}");
        assert!(page.contains("value=\"it&#39;s &lt;/pre&gt;&lt;img src=x&gt;&quot;\""), "{page}");
    }

    #[test]
    fn policy_names_the_hashes_of_the_style_and_the_script() {
        let policy = POLICY.to_str().unwrap();
        let directives: Vec<&str> = policy.split("; ").collect();
        for directive in [
            "default-src 'none'".to_owned(),
            format!("style-src '{}'", hash(STYLE)),
            format!("script-src '{}'", hash(SCRIPT)),
            "connect-src 'self'".to_owned(),
            "require-trusted-types-for 'script'".to_owned(),
            "trusted-types 'none'".to_owned(),
            "base-uri 'none'".to_owned(),
            "form-action 'none'".to_owned(),
            "frame-ancestors 'none'".to_owned(),
        ] {
            assert!(directives.contains(&directive.as_str()), "{directive} is not in {policy}");
        }
        assert!(!policy.contains("unsafe"), "{policy}");
        // The SHA-256 hash of the empty text.
        assert_eq!(hash(""), "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=");
    }

    #[test]
    fn style_and_script_are_small_and_stay_in_their_elements() {
        assert!(STYLE.len() + SCRIPT.len() < 20 << 10, "{} and {} bytes", STYLE.len(), SCRIPT.len());
        // A browser converts other line ends before it compares the hash.
        for text in ["</style", "@import", "url(", "\r"] {
            assert!(!STYLE.contains(text), "{text}");
        }
        for text in ["<", "innerHTML", "outerHTML", "insertAdjacent", "document.write", "eval(", "\r"] {
            let script = SCRIPT.replace(" < ", " ");
            assert!(!script.contains(text), "{text}");
        }
    }

    #[test]
    fn default_agent_is_first() {
        let page = page(AcceptedVersions::default(), &AgentSettings::default());
        let at = |text: &str| page.find(text).unwrap_or_else(|| panic!("{text} is not in {page}"));
        assert!(
            at("<h2 id=\"agent-0\">B <code>/a2a/b</code></h2>")
                < at("<h2 id=\"agent-1\">A <code>/a2a/a</code></h2>")
        );
        assert!(page.contains("<a href=\"#agent-0\">b</a>\n<a href=\"#agent-1\">a</a>\n"), "{page}");
        assert_eq!(page.matches("also at <code>/</code>").count(), 1);
        for text in [
            "<form data-path=\"a2a/b\" data-streaming=\"true\">",
            "<label for=\"text-0\">Text for B</label>",
            "<input id=\"text-0\" value=\"hello\"",
            "<pre><code>a2ad stream http://x/a2a/b &#39;hello&#39;</code></pre>",
            "<pre><code>curl -s http://x/a2a/b \\\n  -H &#39;Content-Type: text/plain&#39; -d &#39;hello&#39;</code></pre>",
        ] {
            assert!(at(text) < at("<h2 id=\"agent-1\">A <code>/a2a/a</code></h2>"), "{text}");
        }
    }

    #[test]
    fn agents_without_streaming_are_called_without_it() {
        let send_only = Profile { send_only: true, ..Profile::neutral() };
        for settings in [
            AgentSettings { streaming: false, ..AgentSettings::default() },
            AgentSettings { profile: send_only, ..AgentSettings::default() },
        ] {
            let page = page(AcceptedVersions::default(), &settings);
            assert!(page.contains("<form data-path=\"a2a/b\" data-streaming=\"false\">"), "{page}");
            assert!(page.contains("<code>a2ad send http://x/a2a/b "), "{page}");
            assert!(page.contains("<form data-path=\"a2a/a\" data-streaming=\"true\">"), "{page}");
        }
    }

    #[test]
    fn agents_that_the_page_cannot_call_have_no_form() {
        let anonymous = AgentSettings::default();
        let protected = AgentSettings { auth: AuthMethods::NONE, ..AgentSettings::default() };
        let old = AcceptedVersions { v1: false, ..AcceptedVersions::default() };
        let reason = "This page cannot call the agent: ";
        let all = AcceptedVersions::default();
        for (accepted_versions, settings, forms) in
            [(all, &anonymous, 2), (all, &protected, 1), (old, &anonymous, 0)]
        {
            let page = page(accepted_versions, settings);
            assert_eq!(page.matches("<form ").count(), forms, "{page}");
            assert_eq!(page.matches(reason).count(), 2 - forms, "{page}");
        }
    }

    #[test]
    fn commands_send_the_credentials_that_the_agent_requires() {
        use engine::{AuthMethod, EndUser};
        let page_of = |methods: &[AuthMethod], end_user| {
            let settings = AgentSettings {
                auth: methods.iter().copied().collect(),
                end_user,
                security: crate::security_schemes(methods.iter().copied(), &[]),
                ..AgentSettings::default()
            };
            page(AcceptedVersions::default(), &settings).replace("&quot;", "\"").replace("&#39;", "'")
        };
        let key = page_of(&[AuthMethod::ApiKey, AuthMethod::Jwt], EndUser::Off);
        assert!(key.contains("a2ad stream http://x/a2a/b --api-key-env API_KEY 'hello'"), "{key}");
        assert!(
            key.contains("curl -s http://x/a2a/b -H \"X-Api-Key: $API_KEY\" \\\n  -H 'Content-Type"),
            "{key}"
        );
        // Every example of every version and binding; the other agent needs no credential.
        assert_eq!(key.matches("X-Api-Key: $API_KEY").count(), 6, "{key}");
        let token = page_of(&[AuthMethod::Bearer], EndUser::Required);
        assert!(
            token.contains(
                "a2ad stream http://x/a2a/b --bearer-env TOKEN --end-user-token-env END_USER_TOKEN 'hello'"
            ),
            "{token}"
        );
        let both = "-H \"Authorization: Bearer $TOKEN\" -H \"X-End-User-Token: $END_USER_TOKEN\"";
        assert_eq!(token.matches(both).count(), 6, "{token}");
        // A credential that is not required is not in the commands.
        let open = page_of(&[AuthMethod::Anonymous, AuthMethod::ApiKey], EndUser::Off);
        assert!(!open.contains("API_KEY") && open.matches("<form ").count() == 2, "{open}");
        let unconfigured = AgentSettings { auth: AuthMethods::UNCONFIGURED, ..AgentSettings::default() };
        let page = page(AcceptedVersions::default(), &unconfigured);
        assert!(page.contains("not available: no authentication is configured"), "{page}");
    }

    #[test]
    fn skills_of_the_extended_card_are_not_shown() {
        let skills =
            vec![skill("inner", "hidden skill", "hidden example"), skill("outer", "shown skill", "try")];
        let agent = registered(agent("a"), skills)
            .with_skill("inner", |skill| skill.visibility = SkillVisibility::Extended);
        let content = PageContent {
            origin: "http://x".into(),
            accepted_versions: AcceptedVersions::default(),
            default_agent: Some("a"),
            agents: vec![&agent],
        };
        let page = content.to_string();
        assert!(page.contains("shown skill") && page.contains("value=\"try\""), "{page}");
        assert!(!page.contains("hidden"), "{page}");
    }

    #[test]
    fn only_skill_with_the_description_of_its_agent_is_not_shown() {
        let one = skill("one", "does something", "x");
        let two = skill("two", "does more", "x");
        for (skills, shown) in [(vec![one.clone()], 0), (vec![two.clone()], 1), (vec![one, two], 2)] {
            let agent = registered(agent("a"), skills);
            let content = PageContent {
                origin: "http://x".into(),
                accepted_versions: AcceptedVersions::default(),
                default_agent: Some("a"),
                agents: vec![&agent],
            };
            let page = content.to_string();
            let lines = page.lines().filter(|line| line.starts_with("<p class=\"quiet\"><code>"));
            assert_eq!(lines.count(), shown, "{page}");
        }
    }

    #[test]
    fn texts_that_look_like_options_are_sent_as_text() {
        let target = CommandTarget { endpoint: "http://x", headers: &[] };
        assert_eq!(client_command(target, "-v", true), "a2ad stream http://x -- '-v'");
        assert_eq!(
            text_command(target, "@you"),
            "curl -s http://x \\\n  -H 'Content-Type: text/plain' --data-raw '@you'"
        );
    }
}
