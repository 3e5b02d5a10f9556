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

use engine::Agents;
use inbound::Spoken;

/// Who callers without a credential are.
const CALLERS: &str =
    "anonymous; everybody who can reach this address is the same caller and sees the same tasks";

/// What a start has to say.
pub(crate) struct Banner<'a> {
    /// Where it listens.
    pub(crate) address: SocketAddr,
    pub(crate) agents: &'a Agents,
    /// The agent at `/`.
    pub(crate) default_agent: &'a str,
    pub(crate) spoken: Spoken,
    /// The database file.
    pub(crate) store: &'a Path,
}

impl Banner<'_> {
    /// Says it: to a person as text, otherwise to the log.
    pub(crate) fn show(&self) {
        let mut stderr = std::io::stderr();
        if stderr.is_terminal() {
            let _ = write!(stderr, "{self}");
            return;
        }
        let agents: Vec<&str> = self.agents.iter().map(|hosted| hosted.profile().id.as_str()).collect();
        tracing::info!(
            url = self.url(),
            agents = agents.join(", "),
            default_agent = self.default_agent,
            generations = self.generations().join(", "),
            store = %self.store().display(),
            callers = CALLERS,
            try_it = self.command(),
            version = env!("CARGO_PKG_VERSION"),
            "a2ad serves"
        );
    }

    fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The generations as people call them, newest first.
    fn generations(&self) -> Vec<&'static str> {
        let Spoken { draft, v03, v1, .. } = self.spoken;
        let all = [(v1, "1.0"), (v03, "0.3"), (v03, "0.2"), (draft, "0.1")];
        all.into_iter().filter(|row| row.0).map(|row| row.1).collect()
    }

    fn store(&self) -> PathBuf {
        std::path::absolute(self.store).unwrap_or_else(|_| self.store.to_owned())
    }

    /// One command that shows it at work.
    fn command(&self) -> String {
        let agent = self.agents.get(self.default_agent);
        let skills = agent.map(|hosted| hosted.profile().skills.as_slice()).unwrap_or_default();
        let say = skills.iter().find_map(|skill| skill.examples.first()).map_or("hello", String::as_str);
        // A quote inside quotes, as shells want it.
        let say = say.replace('\'', r"'\''");
        let (url, agent) = (self.url(), self.default_agent);
        format!("curl -s {url}/a2a/{agent} -H 'Content-Type: text/plain' -d '{say}'")
    }
}

impl Display for Banner<'_> {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let (version, url) = (env!("CARGO_PKG_VERSION"), self.url());
        writeln!(out, "\na2ad {version} serves A2A {} at {url}\n", self.generations().join(", "))?;
        let width = self.agents.iter().map(|hosted| hosted.profile().id.len()).max().unwrap_or_default();
        for hosted in self.agents.iter() {
            let profile = hosted.profile();
            let at = if profile.id == self.default_agent { ", also at /" } else { "" };
            writeln!(out, "  {:width$}  /a2a/{}{at}: {}", profile.id, profile.id, profile.description)?;
        }
        writeln!(out, "\n  data     {}", self.store().display())?;
        writeln!(out, "  callers  {CALLERS}")?;
        writeln!(out, "  page     {url}/\n")?;
        writeln!(out, "Try it:\n\n  {}\n", self.command())
    }
}

#[cfg(test)]
mod tests {
    use engine::Hosted;
    use outbound::agents;

    use super::*;

    #[test]
    fn the_text_tells_what_runs_where_and_what_to_try() {
        let mut profile = agents::profile("echo").unwrap();
        profile.skills[0].examples[0] = "it's me".into();
        let agents = Agents::new([Hosted::new(profile, agents::builtin("echo").unwrap())]);
        let banner = Banner {
            address: SocketAddr::from(([127, 0, 0, 1], 4242)),
            agents: &agents,
            default_agent: "echo",
            spoken: Spoken { draft: false, ..Spoken::default() },
            store: Path::new("/data/a2ad.db"),
        };
        let version = env!("CARGO_PKG_VERSION");
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
