//! The startup message: URL, agents, callers, database file and an example command.
//!
//! On a terminal it is text. Otherwise it is one log line with the same fields, so that every line on stderr is
//! JSON.

use std::{
    fmt::{self, Display, Formatter},
    io::{IsTerminal as _, Write as _},
    path::{Path, PathBuf},
};

use engine::{AgentSettings, AuthMethod, AuthMethods, Catalog, DEFAULT_TENANT, EndUser, RegisteredAgent};
use inbound::ServerOptions;

use crate::listeners::{self, ListenAddress};

/// What callers without a credential may do.
const CALLERS: &str =
    "anonymous; everybody who can reach this address is the same caller and sees the same tasks";

/// The same where every agent requires a credential.
const KNOWN_CALLERS: &str = "those with a credential that the agent accepts; each sees its own tasks";

/// The same where only an application could identify callers.
const APPLICATION_CALLERS: &str = "none: every agent requires a caller that the application has identified";

/// The same in production without authentication.
const NO_CALLERS: &str =
    "none: every call gets 503, because no authentication is configured; set A2A_SECRET or [auth]";

/// Appended to an agent that nobody can call.
const UNCONFIGURED: &str = " (every call gets 503: no authentication is configured)";

/// What the startup message is made of.
#[derive(Clone, Copy)]
pub(crate) struct Banner<'a> {
    /// The bound addresses; at least one for callers.
    pub(crate) addresses: &'a [ListenAddress],
    pub(crate) catalog: &'a Catalog,
    /// The accepted versions.
    pub(crate) server_options: &'a ServerOptions,
    /// The database file.
    pub(crate) store: &'a Path,
    /// The configuration file; `None` for the demo and for a server built with the library.
    pub(crate) config: Option<&'a Path>,
}

impl Banner<'_> {
    /// Writes text to a terminal, or where the process has no log; else one log line.
    pub(crate) fn show(&self) {
        let mut stderr = std::io::stderr();
        if stderr.is_terminal() || !tracing::dispatcher::has_been_set() {
            // In one write, so that no log line is interleaved.
            let _ = stderr.write_all(self.to_string().as_bytes());
            return;
        }
        let ids = |open: bool| -> Vec<&str> {
            self.served()
                .filter(|agent| agent.settings().is_open() == open)
                .map(|agent| agent.info().id.as_str())
                .collect()
        };
        let closed = ids(false);
        tracing::info!(
            url = self.url(),
            other_urls = self.urls().get(1..).filter(|rest| !rest.is_empty()).map(|rest| rest.join(", ")),
            operators = self.operators(),
            agents = ids(true).join(", "),
            // Agents that require a credential.
            closed_agents = (!closed.is_empty()).then(|| closed.join(", ")),
            default_agent = self.default_agent(),
            versions = self.server_options.accepted_versions.labels().join(", "),
            store = %absolute(self.store).display(),
            config = self.config.map(|file| absolute(file).display().to_string()),
            callers = self.callers(),
            try_it = self.command(),
            version = env!("CARGO_PKG_VERSION"),
            "a2ad serves"
        );
    }

    /// The enabled agents.
    fn served(&self) -> impl Iterator<Item = &RegisteredAgent> {
        let agents = self.catalog.agents(DEFAULT_TENANT).map(|registered| &**registered);
        agents.filter(|registered| registered.settings().enabled)
    }

    /// The agents that accept calls without a credential.
    fn open(&self) -> impl Iterator<Item = &RegisteredAgent> {
        self.served().filter(|registered| registered.settings().is_open())
    }

    /// The agents that accept some caller.
    fn callable(&self) -> impl Iterator<Item = &RegisteredAgent> {
        let accepts = |auth: AuthMethods| auth.permit_anonymous() || auth.verify_credentials();
        self.served().filter(move |registered| accepts(registered.settings().auth))
    }

    /// The id of the agent at `/`.
    fn default_agent(&self) -> &str {
        self.catalog.default_agent(DEFAULT_TENANT).unwrap_or_default()
    }

    fn callers(&self) -> &'static str {
        match (self.open().next(), self.callable().next()) {
            (Some(_), _) => CALLERS,
            (None, Some(_)) => KNOWN_CALLERS,
            (None, None) if self.served().any(|agent| agent.settings().auth.is_unconfigured()) => NO_CALLERS,
            (None, None) => APPLICATION_CALLERS,
        }
    }

    /// The URLs for callers.
    fn urls(&self) -> Vec<String> {
        listeners::caller_urls(self.addresses)
    }

    /// The URL for callers that examples use.
    fn url(&self) -> String {
        self.urls().into_iter().next().unwrap_or_default()
    }

    /// The URL that only operators use.
    fn operators(&self) -> Option<String> {
        listeners::operators_only(self.addresses).map(ListenAddress::url)
    }

    /// A command that calls an agent, if possible one that needs no credential; `None` if nobody can call any.
    fn command(&self) -> Option<String> {
        let is_default = |registered: &&RegisteredAgent| registered.info().id == self.default_agent();
        let found = self.open().find(is_default).or_else(|| self.open().next());
        let found = found.or_else(|| self.callable().find(is_default)).or_else(|| self.callable().next())?;
        let headers: String = inbound::example_headers(found.settings())
            .into_iter()
            .map(|(name, value)| format!(" -H \"{name}: {value}\""))
            .collect();
        let agent = found.info();
        let example = found.skill_cards().find_map(|skill| skill.examples.first());
        let example = example.map_or("hello", String::as_str);
        // Escaped for a single-quoted shell string.
        let example = example.replace('\'', r"'\''");
        let (url, agent) = (self.url(), &agent.id);
        Some(format!("curl -s {url}/a2a/{agent}{headers} -H 'Content-Type: text/plain' -d '{example}'"))
    }
}

/// Appended to an agent that not everybody can call.
fn access(settings: &AgentSettings) -> String {
    let end_user = match settings.end_user {
        EndUser::Off => None,
        EndUser::Required => Some("a token of the end user"),
    };
    let any_of: Vec<&str> = settings.auth.iter().filter_map(credential).collect();
    let caller =
        if any_of.is_empty() || settings.auth.permit_anonymous() { None } else { Some(any_of.join(" or ")) };
    match (caller, end_user) {
        _ if settings.auth.is_unconfigured() => UNCONFIGURED.to_owned(),
        (None, None) if settings.auth.permit_anonymous() => String::new(),
        (None, None) => " (requires a caller that the application has identified)".to_owned(),
        (Some(caller), None) => format!(" (requires {caller})"),
        (None, Some(end_user)) => format!(" (requires {end_user})"),
        (Some(caller), Some(end_user)) => format!(" (requires {caller}, and {end_user})"),
    }
}

fn credential(method: AuthMethod) -> Option<&'static str> {
    match method {
        AuthMethod::Anonymous => None,
        AuthMethod::ApiKey => Some("an API key"),
        AuthMethod::Jwt => Some("a token of a shared secret"),
        AuthMethod::Oidc => Some("a token of an issuer"),
        AuthMethod::Bearer => Some("the static token"),
        AuthMethod::Mtls => Some("a client certificate"),
    }
}

/// The absolute path, or the path itself if the working directory is unknown.
fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

impl Display for Banner<'_> {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let (version, url) = (env!("CARGO_PKG_VERSION"), self.url());
        writeln!(
            out,
            "\na2ad {version} serves A2A {} at {}\n",
            self.server_options.accepted_versions.labels().join(", "),
            self.urls().join(", ")
        )?;
        let width = self.served().map(|agent| agent.info().id.len()).max().unwrap_or_default();
        for agent in self.served() {
            let id = &agent.info().id;
            let at = if *id == self.default_agent() { ", also at /" } else { "" };
            let access = access(agent.settings());
            writeln!(out, "  {id:width$}  /a2a/{id}{at}: {}{access}", agent.info().description)?;
        }
        writeln!(out, "\n  data     {}", absolute(self.store).display())?;
        if let Some(file) = self.config {
            writeln!(out, "  config   {}", absolute(file).display())?;
        }
        writeln!(out, "  callers  {}", self.callers())?;
        if let Some(operators) = self.operators() {
            writeln!(out, "  admin    {operators}")?;
        }
        writeln!(out, "  page     {url}/\n")?;
        match self.command() {
            Some(command) => writeln!(out, "Try it:\n\n  {command}\n"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use outbound::agents;

    use super::*;

    #[test]
    fn the_text_shows_the_address_the_agents_and_an_example() {
        let echo = agents::builtin("echo").unwrap();
        let echo = echo.with_skill("echo", |skill| skill.card.examples[0] = "it's me".into());
        let catalog = Catalog::new("echo", [echo.clone()]);
        let server_options = ServerOptions {
            accepted_versions: inbound::AcceptedVersions {
                draft: false,
                ..inbound::AcceptedVersions::default()
            },
            ..ServerOptions::default()
        };
        let addresses = [ListenAddress::plain(([127, 0, 0, 1], 4242).into())];
        let banner = Banner {
            addresses: &addresses,
            catalog: &catalog,
            server_options: &server_options,
            store: Path::new("/data/a2ad.db"),
            config: None,
        };
        let configured = Banner { config: Some(Path::new("/etc/a2ad.toml")), ..banner }.to_string();
        assert!(configured.contains("a2ad.db\n  config   /etc/a2ad.toml\n"), "{configured}");
        let version = env!("CARGO_PKG_VERSION");
        let text = |settings: AgentSettings| {
            let catalog = Catalog::new("echo", [echo.clone().with_settings(settings)]);
            Banner { catalog: &catalog, ..banner }.to_string()
        };
        let unconfigured =
            text(AgentSettings { auth: AuthMethods::UNCONFIGURED, ..AgentSettings::default() });
        assert!(unconfigured.contains("  callers  none: every call gets 503"), "{unconfigured}");
        assert!(unconfigured.ends_with("  page     http://127.0.0.1:4242/\n\n"), "{unconfigured}");
        let methods = [AuthMethod::ApiKey, AuthMethod::Jwt];
        let closed = text(AgentSettings {
            auth: methods.into_iter().collect(),
            end_user: EndUser::Required,
            security: inbound::security_schemes(methods, &[]),
            ..AgentSettings::default()
        });
        for part in [
            " (requires an API key or a token of a shared secret, and a token of the end user)\n",
            "  callers  those with a credential that the agent accepts; each sees its own tasks\n",
            "/a2a/echo -H \"X-Api-Key: $API_KEY\" -H \"X-End-User-Token: $END_USER_TOKEN\" -H 'Content-Type",
        ] {
            assert!(closed.contains(part), "{part} in {closed}");
        }
        let none = text(AgentSettings { auth: AuthMethods::NONE, ..AgentSettings::default() });
        assert!(none.contains(" (requires a caller that the application has identified)"), "{none}");
        assert_eq!(
            banner.to_string(),
            format!(
                r"
a2ad {version} serves A2A 1.0, 0.3 at http://127.0.0.1:4242

  echo  /a2a/echo, also at /: Gives back what it is given

  data     /data/a2ad.db
  callers  anonymous; everybody who can reach this address is the same caller and sees the same tasks
  page     http://127.0.0.1:4242/

Try it:

  curl -s http://127.0.0.1:4242/a2a/echo -H 'Content-Type: text/plain' -d 'it'\''s me'

"
            )
        );
    }
}
