//! The configuration: what the file, the environment and the flags say, and a default for all they leave open.
//!
//! A flag counts before the environment, and that before the file. Everything that is wrong is found at once and
//! named with its file, line and key. What a later version will serve is known by name and refused until then, so
//! that nothing is believed to hold that does not.

mod agents;
mod extensions;
mod host;
mod keys;
mod read;
mod sections;
mod server_options;
mod tree;
mod values;
mod variables;

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use engine::{Dedupe, Limits, Retention};
use inbound::{CardShape, ExtendedCard, IpNet, ReplyForm};
use protocol::{ErrorTable, model::AgentExtension};

pub(crate) use agents::{DEDUPE_NAMES, EXTENDED_CARD_NAMES, REPLY_NAMES};
pub(crate) use sections::{CARD_NAMES, ERROR_NAMES};

use read::{Problems, Section};
use tree::Place;
pub(crate) use variables::unknown as unknown_variables;

/// What a server is to do.
#[derive(Debug)]
pub(crate) struct Config {
    pub(crate) server: ServerConfig,
    pub(crate) store: StoreConfig,
    pub(crate) card: CardConfig,
    pub(crate) protocol: ProtocolConfig,
    pub(crate) limits: Limits,
    /// The largest body that is read.
    pub(crate) max_body_bytes: usize,
    /// At least one; ids are unique.
    pub(crate) agents: Vec<AgentConfig>,
}

/// `[server]`
#[derive(Debug)]
pub(crate) struct ServerConfig {
    pub(crate) listen: SocketAddr,
    /// Scheme and host as clients see them, without a slash at the end.
    pub(crate) public_url: Option<String>,
    /// Whose `Forwarded` headers count.
    pub(crate) trusted_proxies: Vec<IpNet>,
    /// The agent at `/`; it is one of the agents and enabled.
    pub(crate) default_agent: String,
    /// How long an event stream is quiet before it sends a comment.
    pub(crate) keep_alive: Duration,
    /// For how long the server is not ready before it shuts down; `None` depends on where it listens.
    pub(crate) drain_delay: Option<Duration>,
}

/// `[store]`
#[derive(Debug)]
pub(crate) struct StoreConfig {
    pub(crate) url: PathBuf,
    /// For agents that say nothing of their own.
    pub(crate) retention: Retention,
}

/// `[card]`
#[derive(Debug)]
pub(crate) struct CardConfig {
    pub(crate) style: CardShape,
    /// How long clients may keep a card.
    pub(crate) max_age: Duration,
    /// Whether 0.3's gRPC address has a scheme.
    pub(crate) grpc_scheme: bool,
}

/// `[protocol]`
#[derive(Debug)]
pub(crate) struct ProtocolConfig {
    /// Which generations are spoken; at least one, none twice.
    pub(crate) dialects: Vec<Generation>,
    /// Whose table of statuses answers errors outside JSON-RPC.
    pub(crate) errors: ErrorTable,
    /// A method of 1.0 without `A2A-Version` is served.
    pub(crate) lenient_version: bool,
}

/// A generation of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Generation {
    Draft,
    /// 0.2 and 0.3, in all their bindings.
    V03,
    V1,
}

/// `[agents.ID]`
#[derive(Debug)]
pub(crate) struct AgentConfig {
    pub(crate) id: String,
    pub(crate) name: Option<String>,
    pub(crate) description: Option<String>,
    /// At least one; ids are unique.
    pub(crate) skills: Vec<SkillConfig>,
    pub(crate) enabled: bool,
    pub(crate) streaming: bool,
    pub(crate) push: bool,
    pub(crate) extended_card: ExtendedCard,
    /// The skills that only the extended card shows.
    pub(crate) extended_skills: Vec<String>,
    pub(crate) extensions: Vec<AgentExtension>,
    /// Whether a part of a media type that the card does not name is refused.
    pub(crate) check_media_types: bool,
    pub(crate) profile: ProfileName,
    /// `None` is as the profile has it.
    pub(crate) reply: Option<ReplyForm>,
    /// Any of them lets a caller in.
    pub(crate) auth: Vec<AuthWay>,
    pub(crate) dedupe: Dedupe,
    pub(crate) retention: Retention,
}

/// `[skills.ID]`
#[derive(Clone, Debug)]
pub(crate) struct SkillConfig {
    pub(crate) id: String,
    /// The name of the built-in agent behind it.
    pub(crate) builtin: &'static str,
    /// `None` is as the agent behind it has it.
    pub(crate) description: Option<String>,
    pub(crate) tags: Option<Vec<String>>,
    pub(crate) examples: Option<Vec<String>>,
}

/// The house style of an agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ProfileName {
    #[default]
    Neutral,
    Fold,
    Pinkfish,
    AgentNative,
    Agentos,
}

/// A way to be known to an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AuthWay {
    Anonymous,
    ApiKey,
    Jwt,
    Oidc,
    Bearer,
    Mtls,
}

/// Where a configuration comes from.
#[derive(Default)]
pub(crate) struct Source<'a> {
    pub(crate) file: Option<&'a ConfigFile>,
    /// The environment; what does not begin with `A2AD_` is passed over.
    pub(crate) variables: Vec<(String, String)>,
    /// `--listen`
    pub(crate) listen: Option<&'a str>,
    /// `--store`
    pub(crate) store: Option<&'a str>,
}

/// A configuration file and how it was chosen.
#[derive(Debug)]
pub(crate) struct ConfigFile {
    pub(crate) path: PathBuf,
    /// For errors; empty where the file was named on the command line.
    origin: &'static str,
}

impl ConfigFile {
    /// A file that was named on the command line.
    pub(crate) fn named(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), origin: "" }
    }

    /// The file to use: the named one, else that of `A2AD_CONFIG`, else `./a2ad.toml` if it exists.
    pub(crate) fn find(named: Option<&Path>, variables: &[(String, String)]) -> Option<Self> {
        if let Some(path) = named {
            return Some(Self::named(path));
        }
        let variable = variables.iter().find(|(name, value)| name == variables::CONFIG && !value.is_empty());
        if let Some((_, path)) = variable {
            return Some(Self { path: path.into(), origin: " (named by A2AD_CONFIG)" });
        }
        let usual = PathBuf::from("a2ad.toml");
        usual.exists().then_some(Self { path: usual, origin: " (found in the current directory)" })
    }
}

/// Why there is no configuration.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The file cannot be had.
    #[error("the configuration file {file}{origin} cannot be read: {reason}")]
    Unreadable { file: String, origin: &'static str, reason: std::io::Error },
    /// What was configured is wrong; one line for each problem, naming its place.
    #[error("{}", .0.join("\n"))]
    Wrong(Vec<String>),
}

/// Reads everything and decides every default.
pub(crate) fn load(source: Source<'_>) -> Result<Config, Error> {
    load_unless(source, |_| None)
}

/// The same, but where it is to listen may be refused.
pub(crate) fn load_unless(
    source: Source<'_>,
    refused: impl FnOnce(SocketAddr) -> Option<String>,
) -> Result<Config, Error> {
    let file = source.file.map(|file| file.path.display().to_string());
    let text = source.file.map(read_file).transpose()?;
    let problems = Problems::default();
    let mut tree = tree::parse(text.as_deref().unwrap_or_default(), &problems);
    if !problems.is_empty() {
        // What could be made of a text that is no TOML is anybody's guess.
        return Err(Error::Wrong(problems.into_lines(file.as_deref())));
    }
    for (path, place, value) in overrides(source) {
        tree.set(&path, place, value, &problems);
    }
    let root = Section::root(&tree, &problems);
    let config = read_all(&root);
    if let Some(text) = refused(config.server.listen) {
        root.open("server").wrong("listen", text);
    }
    let lines = problems.into_lines(file.as_deref());
    if lines.is_empty() { Ok(config) } else { Err(Error::Wrong(lines)) }
}

fn read_file(file: &ConfigFile) -> Result<String, Error> {
    let ConfigFile { path, origin } = file;
    std::fs::read_to_string(path).map_err(|reason| Error::Unreadable {
        file: path.display().to_string(),
        origin,
        reason,
    })
}

/// What the environment and the flags say, the last word last: `A2AD_SECTION__KEY` sets one key of the file.
fn overrides(source: Source<'_>) -> Vec<(Vec<String>, Place, String)> {
    let mut long = Vec::new();
    let mut short = Vec::new();
    for (name, value) in source.variables {
        let Some(key) = name.strip_prefix("A2AD_") else { continue };
        match key {
            "LISTEN" => short.push((["server", "listen"].map(String::from).into(), Place::Name(name), value)),
            "STORE" => short.push((["store", "url"].map(String::from).into(), Place::Name(name), value)),
            key if key.contains("__") => {
                let path = key.split("__").map(str::to_lowercase).collect();
                long.push((path, Place::Name(name), value));
            }
            _ => {}
        }
    }
    let flag = |path: [&str; 2], name: &str, value: Option<&str>| {
        value.map(|value| (path.map(String::from).into(), Place::Name(name.into()), value.to_owned()))
    };
    let flags = [
        flag(["server", "listen"], "--listen", source.listen),
        flag(["store", "url"], "--store", source.store),
    ];
    long.into_iter().chain(short).chain(flags.into_iter().flatten()).collect()
}

fn read_all(file: &Section<'_>) -> Config {
    let store = sections::store(&file.open("store"));
    let (limits, max_body_bytes) = sections::limits(&file.open("limits"));
    let agents = agents::agents(file, store.retention);
    let server = file.open("server");
    Config {
        card: sections::card(&file.open("card")),
        protocol: sections::protocol(&file.open("protocol")),
        server: ServerConfig {
            default_agent: agents::default_agent(&server, &agents),
            ..sections::server(&server)
        },
        store,
        limits,
        max_body_bytes,
        agents,
    }
}
