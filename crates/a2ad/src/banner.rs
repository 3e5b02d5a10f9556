//! The first thing a start says: what runs, where, for whom, where its data lies, and what to try.
//!
//! A person at a terminal gets a few lines of text. Anything else gets the same facts as one line of the log, so that
//! every line of it is JSON.

use std::{
    fmt::{self, Display, Formatter},
    io::{IsTerminal as _, Write as _},
    net::SocketAddr,
    path::{Path, PathBuf},
};

use engine::{AgentInfo, Agents};
use inbound::{AcceptedVersions, Options};

/// Who callers without a credential are.
const CALLERS: &str =
    "anonymous; everybody who can reach this address is the same caller and sees the same tasks";

/// The same where no agent lets them in.
const NOBODY: &str = "nobody is let in: every agent wants credentials, and none can be checked yet";

/// Said of an agent that lets nobody in.
const CLOSED: &str = " (refuses everybody: no credentials can be checked yet)";

/// What a start has to say.
#[derive(Clone, Copy)]
pub(crate) struct Banner<'a> {
    /// Where it listens.
    pub(crate) address: SocketAddr,
    pub(crate) agents: &'a Agents,
    /// How they are served.
    pub(crate) server_options: &'a Options,
    /// The database file.
    pub(crate) store: &'a Path,
    /// The configuration file; none for the demo and for a library's server.
    pub(crate) config: Option<&'a Path>,
}

impl Banner<'_> {
    /// Says it: to a person as text, otherwise to the log.
    pub(crate) fn show(&self) {
        let mut stderr = std::io::stderr();
        if stderr.is_terminal() {
            // In one piece, so that no line of the log gets between.
            let _ = stderr.write_all(self.to_string().as_bytes());
            return;
        }
        let ids = |open: bool| -> Vec<&str> {
            self.served().filter(|agent| self.lets_in(agent) == open).map(|agent| agent.id.as_str()).collect()
        };
        let closed = ids(false);
        tracing::info!(
            url = self.url(),
            agents = ids(true).join(", "),
            // Those that let nobody in are named apart, if there are any.
            closed_agents = (!closed.is_empty()).then(|| closed.join(", ")),
            default_agent = self.server_options.default_agent,
            generations = self.generations().join(", "),
            store = %whole(self.store).display(),
            config = self.config.map(|file| whole(file).display().to_string()),
            callers = self.callers(),
            try_it = self.command(),
            version = env!("CARGO_PKG_VERSION"),
            "a2ad serves"
        );
    }

    /// The agents that are served.
    fn served(&self) -> impl Iterator<Item = &AgentInfo> {
        let enabled = |agent: &&AgentInfo| {
            self.server_options.agents.get(&agent.id).is_none_or(|settings| settings.enabled)
        };
        self.agents.iter().map(|registered| registered.info()).filter(enabled)
    }

    /// Whether an agent lets anybody in.
    fn lets_in(&self, agent: &AgentInfo) -> bool {
        self.server_options.agents.get(&agent.id).is_none_or(|settings| settings.anonymous)
    }

    fn callers(&self) -> &'static str {
        if self.served().any(|agent| self.lets_in(agent)) { CALLERS } else { NOBODY }
    }

    fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The generations as people call them, newest first.
    fn generations(&self) -> Vec<&'static str> {
        let AcceptedVersions { draft, v03, v1, .. } = self.server_options.accepted_versions;
        let all = [(v1, "1.0"), (v03, "0.3"), (v03, "0.2"), (draft, "0.1")];
        all.into_iter().filter(|row| row.0).map(|row| row.1).collect()
    }

    /// One command that shows it at work, if there is an agent that would answer it.
    fn command(&self) -> Option<String> {
        let open = || self.served().filter(|agent| self.lets_in(agent));
        let agent =
            open().find(|agent| agent.id == self.server_options.default_agent).or_else(|| open().next())?;
        let say = agent.skills.iter().find_map(|skill| skill.examples.first());
        let say = say.map_or("hello", String::as_str);
        // A quote inside quotes, as shells want it.
        let say = say.replace('\'', r"'\''");
        let (url, agent) = (self.url(), &agent.id);
        Some(format!("curl -s {url}/a2a/{agent} -H 'Content-Type: text/plain' -d '{say}'"))
    }
}

/// A path from the root.
fn whole(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

impl Display for Banner<'_> {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let (version, url) = (env!("CARGO_PKG_VERSION"), self.url());
        writeln!(out, "\na2ad {version} serves A2A {} at {url}\n", self.generations().join(", "))?;
        let width = self.served().map(|agent| agent.id.len()).max().unwrap_or_default();
        for agent in self.served() {
            let id = &agent.id;
            let at = if *id == self.server_options.default_agent { ", also at /" } else { "" };
            let closed = if self.lets_in(agent) { "" } else { CLOSED };
            writeln!(out, "  {id:width$}  /a2a/{id}{at}: {}{closed}", agent.description)?;
        }
        writeln!(out, "\n  data     {}", whole(self.store).display())?;
        if let Some(file) = self.config {
            writeln!(out, "  config   {}", whole(file).display())?;
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
    use engine::RegisteredAgent;
    use inbound::AgentSettings;
    use outbound::agents;

    use super::*;

    #[test]
    fn the_text_tells_what_runs_where_and_what_to_try() {
        let mut info = agents::info("echo").unwrap();
        info.skills[0].examples[0] = "it's me".into();
        let agents = Agents::new([RegisteredAgent::new(info, agents::builtin("echo").unwrap())]);
        let server_options = Options {
            accepted_versions: AcceptedVersions { draft: false, ..AcceptedVersions::default() },
            ..Options::new("echo")
        };
        let banner = Banner {
            address: SocketAddr::from(([127, 0, 0, 1], 4242)),
            agents: &agents,
            server_options: &server_options,
            store: Path::new("/data/a2ad.db"),
            config: None,
        };
        let configured = Banner { config: Some(Path::new("/etc/a2ad.toml")), ..banner }.to_string();
        assert!(configured.contains("a2ad.db\n  config   /etc/a2ad.toml\n"), "{configured}");
        let version = env!("CARGO_PKG_VERSION");
        let mut closed = server_options.clone();
        closed.agents.insert("echo".into(), AgentSettings { anonymous: false, ..AgentSettings::default() });
        let text = Banner { server_options: &closed, ..banner }.to_string();
        assert!(text.contains("  callers  nobody is let in: "), "{text}");
        assert!(text.ends_with("  page     http://127.0.0.1:4242/\n\n"), "{text}");
        assert_eq!(
            banner.to_string(),
            format!(
                r"
a2ad {version} serves A2A 1.0, 0.3, 0.2 at http://127.0.0.1:4242

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
