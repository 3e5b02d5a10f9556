//! Parses which agent or server a command addresses: a URL, host and port, or the name of an agent.

use super::connection;

use crate::address;
use crate::cli::failure::Failure;

/// The default server.
pub(crate) const SERVER: &str = "http://127.0.0.1:4242";

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// The URL of an agent or of its card.
    Url(String),
    /// An agent by its name on a server.
    Local {
        /// The server's URL.
        server: String,
        /// The agent's id.
        name: String,
    },
    /// The URL of a server.
    Server(String),
}

/// Parses a server address; `source` is the flag or variable it comes from.
pub(crate) fn server(source: &str, typed: &str) -> Result<String, Failure> {
    let url = address::url(typed).map(|url| url.trim_end_matches('/').to_owned());
    url.ok_or_else(|| {
        Failure::usage(format!("{source}: {typed:?} is neither a URL nor host:port, such as 127.0.0.1:4242"))
    })
}

impl Target {
    /// Parses an agent argument. `server` is the URL from a flag or the environment.
    pub(crate) fn read(agent: &str, server: Option<String>) -> Result<Self, Failure> {
        if let Some(url) = address::url(agent) {
            return Ok(Self::Url(url));
        }
        let is_name = |character: char| character.is_ascii_alphanumeric() || "._-".contains(character);
        if agent.is_empty() || !agent.chars().all(is_name) || agent.starts_with('.') {
            let text = format!(
                "{agent:?} is neither a URL, host:port nor a name; begin a URL with http:// or https://"
            );
            return Err(Failure::usage(text));
        }
        let server = server.unwrap_or_else(|| SERVER.to_owned());
        Ok(Self::Local { server, name: agent.to_owned() })
    }

    /// The flags for `a2ad serve` to listen at this address; `None` if that is not on this machine.
    pub(crate) fn serve_flags(&self) -> Option<Vec<String>> {
        let url = self.url();
        let (scheme, authority) = connection::origin_of(&url)?;
        if format!("{scheme}://{authority}") == SERVER {
            return Some(Vec::new());
        }
        let address: std::net::SocketAddr = authority.replace("localhost", "127.0.0.1").parse().ok()?;
        let local = scheme == "http" && address.ip().is_loopback() && self.is_at_root();
        local.then(|| vec!["--listen".to_owned(), address.to_string()])
    }

    /// Whether the server's paths begin at the root of its origin, as those of `a2ad serve` do.
    fn is_at_root(&self) -> bool {
        match self {
            Self::Local { server, .. } | Self::Server(server) => connection::path_of(server).is_empty(),
            Self::Url(_) => true,
        }
    }

    pub(crate) fn url(&self) -> String {
        match self {
            Self::Url(url) | Self::Server(url) => url.clone(),
            Self::Local { server, name } => format!("{server}/a2a/{name}"),
        }
    }

    /// The server and name of an agent given by name or by its a2ad URL.
    pub(crate) fn name(&self) -> Option<(&str, &str)> {
        match self {
            Self::Local { server, name } => Some((server, name)),
            Self::Url(url) => {
                let (server, name) = url.split_once("/a2a/")?;
                let name = name.trim_end_matches('/');
                (!name.is_empty() && !name.contains(['/', '?', '#'])).then_some((server, name))
            }
            Self::Server(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_and_names_are_distinguished() {
        let url = |agent: &str, given: Option<&str>| {
            let given = given.map(|given| server("--server", given).unwrap());
            Target::read(agent, given).unwrap().url()
        };
        assert_eq!(url("https://h/a", Some("http://s")), "https://h/a");
        assert_eq!(url("localhost:4242", None), "http://localhost:4242");
        assert_eq!(url("echo", Some("localhost:9/")), "http://localhost:9/a2a/echo");
        assert_eq!(url("echo", None), "http://127.0.0.1:4242/a2a/echo");
        assert_eq!(url("slow-writer", Some("http://s:1/")), "http://s:1/a2a/slow-writer");
        for agent in ["", "h/a", "..", "a b", "a?b", "é"] {
            assert_eq!(Target::read(agent, None).unwrap_err().code, 2, "{agent}");
        }
    }

    #[test]
    fn serve_flags_exist_only_for_this_machine() {
        let args = |given: Option<&str>| {
            Target::read("echo", given.map(|given| server("--server", given).unwrap())).unwrap().serve_flags()
        };
        assert_eq!(args(None), Some(vec![]));
        let listen = Some(vec!["--listen".to_owned(), "127.0.0.1:9".to_owned()]);
        assert_eq!(args(Some("http://localhost:9/")), listen);
        assert_eq!(args(Some("http://127.0.0.1:9")), listen);
        for server in ["https://127.0.0.1:9", "http://10.0.0.1:9", "http://127.0.0.1:9/x", "http://h"] {
            assert_eq!(args(Some(server)), None, "{server}");
        }
    }
}
