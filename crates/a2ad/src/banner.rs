//! The startup message: URL, agents, callers, database file and an example command.
//!
//! On a terminal it is text. Otherwise it is one log line with the same fields, so that every line on stderr is
//! JSON.

use std::{
    fmt::{self, Display, Formatter},
    io::{IsTerminal as _, Write as _},
    net::SocketAddr,
    path::{Path, PathBuf},
};

use engine::{Catalog, DEFAULT_TENANT, RegisteredAgent};
use inbound::ServerOptions;

/// What callers without a credential may do.
const CALLERS: &str =
    "anonymous; everybody who can reach this address is the same caller and sees the same tasks";

/// The same where no agent accepts anonymous callers.
const NO_CALLERS: &str = "none: every agent requires credentials, and this version cannot check any";

/// Appended to an agent that accepts no caller.
const CLOSED: &str = " (refuses every call: this version cannot check credentials)";

/// What the startup message is made of.
#[derive(Clone, Copy)]
pub(crate) struct Banner<'a> {
    /// The bound address.
    pub(crate) address: SocketAddr,
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
                .filter(|agent| agent.settings().anonymous == open)
                .map(|agent| agent.info().id.as_str())
                .collect()
        };
        let closed = ids(false);
        tracing::info!(
            url = self.url(),
            agents = ids(true).join(", "),
            // Agents that accept no caller.
            closed_agents = (!closed.is_empty()).then(|| closed.join(", ")),
            default_agent = self.default_agent(),
            generations = self.server_options.accepted_versions.labels().join(", "),
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

    /// The agents that accept anonymous callers; no other credential can be checked yet.
    fn open(&self) -> impl Iterator<Item = &RegisteredAgent> {
        self.served().filter(|registered| registered.settings().anonymous)
    }

    /// The id of the agent at `/`.
    fn default_agent(&self) -> &str {
        self.catalog.default_agent(DEFAULT_TENANT).unwrap_or_default()
    }

    fn callers(&self) -> &'static str {
        if self.open().next().is_some() { CALLERS } else { NO_CALLERS }
    }

    fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// A command that calls an agent; `None` if no agent accepts anonymous callers.
    fn command(&self) -> Option<String> {
        let default = self.open().find(|registered| registered.info().id == self.default_agent());
        let agent = default.or_else(|| self.open().next())?.info();
        let example = agent.skills.iter().find_map(|skill| skill.examples.first());
        let example = example.map_or("hello", String::as_str);
        // Escaped for a single-quoted shell string.
        let example = example.replace('\'', r"'\''");
        let (url, agent) = (self.url(), &agent.id);
        Some(format!("curl -s {url}/a2a/{agent} -H 'Content-Type: text/plain' -d '{example}'"))
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
            "\na2ad {version} serves A2A {} at {url}\n",
            self.server_options.accepted_versions.labels().join(", ")
        )?;
        let width = self.served().map(|agent| agent.info().id.len()).max().unwrap_or_default();
        for agent in self.served() {
            let id = &agent.info().id;
            let at = if *id == self.default_agent() { ", also at /" } else { "" };
            let closed = if agent.settings().anonymous { "" } else { CLOSED };
            writeln!(out, "  {id:width$}  /a2a/{id}{at}: {}{closed}", agent.info().description)?;
        }
        writeln!(out, "\n  data     {}", absolute(self.store).display())?;
        if let Some(file) = self.config {
            writeln!(out, "  config   {}", absolute(file).display())?;
        }
        writeln!(out, "  callers  {}", self.callers())?;
        writeln!(out, "  page     {url}/\n")?;
        match self.command() {
            Some(command) => writeln!(out, "Try it:\n\n  {command}\n"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use engine::AgentSettings;
    use outbound::agents;

    use super::*;

    #[test]
    fn the_text_shows_the_address_the_agents_and_an_example() {
        let mut info = agents::info("echo").unwrap();
        info.skills[0].examples[0] = "it's me".into();
        let echo = RegisteredAgent::new(info, agents::builtin("echo").unwrap());
        let catalog = Catalog::new("echo", [echo.clone()]);
        let server_options = ServerOptions {
            accepted_versions: inbound::AcceptedVersions {
                draft: false,
                ..inbound::AcceptedVersions::default()
            },
            ..ServerOptions::default()
        };
        let banner = Banner {
            address: SocketAddr::from(([127, 0, 0, 1], 4242)),
            catalog: &catalog,
            server_options: &server_options,
            store: Path::new("/data/a2ad.db"),
            config: None,
        };
        let configured = Banner { config: Some(Path::new("/etc/a2ad.toml")), ..banner }.to_string();
        assert!(configured.contains("a2ad.db\n  config   /etc/a2ad.toml\n"), "{configured}");
        let version = env!("CARGO_PKG_VERSION");
        let settings = AgentSettings { anonymous: false, ..AgentSettings::default() };
        let closed = Catalog::new("echo", [echo.with_settings(settings)]);
        let text = Banner { catalog: &closed, ..banner }.to_string();
        assert!(text.contains("  callers  none: every agent "), "{text}");
        assert!(text.ends_with("  page     http://127.0.0.1:4242/\n\n"), "{text}");
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
