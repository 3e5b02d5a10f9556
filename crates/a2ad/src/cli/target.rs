//! Which agent is meant: a URL, or the name of one on this machine.

use super::stop::Stop;

/// Where this machine's server is unless somebody says otherwise.
const SERVER: &str = "http://127.0.0.1:4242";

/// An agent as it was named.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// By its URL, or that of its card.
    Url(String),
    /// By its name at a server.
    Local {
        /// The server's URL.
        server: String,
        /// The name.
        name: String,
    },
}

impl Target {
    /// Reads what was typed. `server` is what a flag or the environment say.
    pub(super) fn read(agent: &str, server: Option<&str>) -> Result<Self, Stop> {
        if agent.contains("://") {
            return Ok(Self::Url(agent.to_owned()));
        }
        let is_name = |character: char| character.is_ascii_alphanumeric() || "._-".contains(character);
        if agent.is_empty() || !agent.chars().all(is_name) || agent.starts_with('.') {
            let text = format!("{agent:?} is neither a URL nor a name; begin a URL with http:// or https://");
            return Err(Stop::usage(text));
        }
        let server = server.unwrap_or(SERVER).trim_end_matches('/').to_owned();
        Ok(Self::Local { server, name: agent.to_owned() })
    }

    /// What a server has to be started with to be found where it was looked for; `None` if it is not for this machine.
    pub(super) fn starts_with(&self) -> Option<Vec<String>> {
        let Self::Local { server, .. } = self else { return None };
        if server == SERVER {
            return Some(Vec::new());
        }
        let address = server.strip_prefix("http://")?.replace("localhost", "127.0.0.1");
        let address: std::net::SocketAddr = address.parse().ok()?;
        address.ip().is_loopback().then(|| vec!["--listen".to_owned(), address.to_string()])
    }

    pub(super) fn url(&self) -> String {
        match self {
            Self::Url(url) => url.clone(),
            Self::Local { server, name } => format!("{server}/a2a/{name}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_a_url_and_a_word_is_a_name() {
        let url = |agent: &str, server| Target::read(agent, server).unwrap().url();
        assert_eq!(url("https://h/a", Some("http://s")), "https://h/a");
        assert_eq!(url("echo", None), "http://127.0.0.1:4242/a2a/echo");
        assert_eq!(url("slow-writer", Some("http://s:1/")), "http://s:1/a2a/slow-writer");
        for agent in ["", "localhost:4242", "h/a", "..", "a b", "a?b", "é"] {
            assert_eq!(Target::read(agent, None).unwrap_err().code, 2, "{agent}");
        }
    }

    #[test]
    fn a_server_of_this_machine_can_be_started() {
        let words = |server| Target::read("echo", server).unwrap().starts_with();
        assert_eq!(words(None), Some(vec![]));
        let listen = Some(vec!["--listen".to_owned(), "127.0.0.1:9".to_owned()]);
        assert_eq!(words(Some("http://localhost:9/")), listen);
        assert_eq!(words(Some("http://127.0.0.1:9")), listen);
        for server in ["https://127.0.0.1:9", "http://10.0.0.1:9", "http://127.0.0.1:9/x", "http://h"] {
            assert_eq!(words(Some(server)), None, "{server}");
        }
    }
}
