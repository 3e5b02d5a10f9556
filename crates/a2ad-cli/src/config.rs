//! The configuration: the file, the environment and the flags, with a default for everything else.
//!
//! Precedence: flags, then the environment, then the file. All problems are reported together, each with its file,
//! line and key. Keys reserved for later versions are rejected, so that nobody relies on a setting that has no
//! effect.

mod agents;
mod auth;
mod backends;
mod extensions;
mod files;
mod json_value;
mod keys;
mod listen;
mod mode;
mod operator_view;
mod read;
#[cfg(test)]
mod reference;
mod report;
mod run_settings;
mod schemas;
mod sections;
mod server_options;
mod skills;
mod skills_folder;
mod start_values;
mod tree;
mod values;
mod variables;
mod warnings;

use std::{
    fmt,
    path::{Path, PathBuf},
    time::Duration,
};

use a2ad::internal::{
    AuditOptions, ListenAddress,
    assembly::{BackendConfigs, SkillAgent},
};
use engine::{Catalog, Limits, RegisteredAgent, Retention, push::PushPolicy};
use inbound::{AllowedHost, CardShape, ConfigReport, CorsOrigin, IpNet, RateLimits, ReplyForm};
use outbound::dial::{DialPolicy, Dialer};
use protocol::ErrorTable;

pub(crate) use agents::{DEDUPE_NAMES, END_USER_NAMES, EXTENDED_CARD_NAMES, REPLY_NAMES, is_open_ended};
pub(crate) use auth::{AUTH_NAMES, AgentAuth, AuthConfig};
pub(crate) use inbound::tls::FileStamp;
pub(crate) use mode::{Mode, ServerMode};
pub(crate) use operator_view::{AgentView, OperatorView, operator_view};
pub(crate) use report::StartReport;
pub(crate) use run_settings::ON_CRASH_NAMES;
pub(crate) use sections::{CARD_NAMES, ERROR_NAMES};
pub(crate) use skills_folder::Listing;
pub(crate) use start_values::StartValues;

use backends::launcher;
use read::{Problems, Section};
use tree::Location;
pub(crate) use variables::{environment, unknown as unknown_variables};

/// The complete configuration of a server.
#[derive(Debug)]
pub(crate) struct Config {
    pub(crate) server: ServerConfig,
    pub(crate) store: StoreConfig,
    pub(crate) card: CardConfig,
    pub(crate) protocol: ProtocolConfig,
    pub(crate) auth: AuthConfig,
    /// Where spans are sent.
    pub(crate) otlp: Option<String>,
    pub(crate) limits: Limits,
    /// `None`: there is no audit log.
    pub(crate) audit: Option<AuditOptions>,
    /// The largest accepted request body.
    pub(crate) max_body_bytes: usize,
    pub(crate) rate_limits: RateLimits,
    /// When push notifications are delivered.
    pub(crate) push: PushPolicy,
    /// At least one; ids are unique.
    pub(crate) agents: Vec<AgentConfig>,
    /// MCP servers, OpenAPI documents, and the dialler of every request to another server. A reload keeps the dialler, and
    /// changes its policy when it is applied.
    pub(crate) backends: BackendConfigs,
    /// Which addresses peers may choose.
    pub(crate) dial_policy: DialPolicy,
    /// The files of the skills folder, and one line for each problem of those that are not used.
    pub(crate) folder: Option<FolderReport>,
    /// What a reload cannot change.
    pub(crate) start_values: StartValues,
    /// For operators.
    pub(crate) report: Report,
}

/// A [`ConfigReport`] that is not part of the values that tests compare.
#[derive(Clone, Default)]
pub(crate) struct Report(pub(crate) ConfigReport);

impl fmt::Debug for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Report")
    }
}

/// What was found in the skills folder.
#[derive(Debug)]
pub(crate) struct FolderReport {
    pub(crate) listing: Listing,
    pub(crate) skipped: Vec<String>,
}

/// `[server]`
#[derive(Debug)]
pub(crate) struct ServerConfig {
    pub(crate) mode: ServerMode,
    /// The addresses; at least one for callers.
    pub(crate) listen: Vec<ListenAddress>,
    /// Scheme and host as clients see them, without a slash at the end.
    pub(crate) public_url: Option<String>,
    /// The proxies whose `Forwarded` and `X-Forwarded-*` headers are trusted.
    pub(crate) trusted_proxies: Vec<IpNet>,
    /// The hosts that requests may name, beside loopback names and that of `public_url`.
    pub(crate) allowed_hosts: Vec<AllowedHost>,
    /// The origins whose web pages may call.
    pub(crate) cors_origins: Vec<CorsOrigin>,
    /// The agent at `/`, one of the enabled agents; empty if several are and none is the default.
    pub(crate) default_agent: String,
    /// Interval of the comments that keep an idle event stream open.
    pub(crate) keep_alive: Duration,
    /// How long `/readyz` fails before the shutdown begins; `None`: 0 s on loopback, else 5 s.
    pub(crate) drain_delay: Option<Duration>,
    /// The folder whose files are skills.
    pub(crate) skills_dir: Option<PathBuf>,
}

/// `[store]`
#[derive(Debug)]
pub(crate) struct StoreConfig {
    pub(crate) url: PathBuf,
    /// The default for agents without their own.
    pub(crate) retention: Retention,
}

/// `[card]`
#[derive(Debug)]
pub(crate) struct CardConfig {
    pub(crate) style: CardShape,
    /// The `max-age` of cards.
    pub(crate) max_age: Duration,
    /// Whether the gRPC address on a 0.3 card has a scheme.
    pub(crate) grpc_scheme: bool,
}

/// `[protocol]`
#[derive(Debug)]
pub(crate) struct ProtocolConfig {
    /// The accepted versions; at least one, no duplicates.
    pub(crate) dialects: Vec<ProtocolVersion>,
    /// The table of HTTP and gRPC statuses for errors.
    pub(crate) errors: ErrorTable,
    /// Whether a 1.0 method without an `A2A-Version` header is accepted.
    pub(crate) lenient_version: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProtocolVersion {
    Draft,
    /// 0.2 and 0.3, in all their bindings.
    V03,
    V1,
}

/// `[agents.ID]`
#[derive(Debug)]
pub(crate) struct AgentConfig {
    pub(crate) definition: SkillAgent,
    pub(crate) profile: ProfileName,
    /// `None`: the profile's default.
    pub(crate) reply: Option<ReplyForm>,
    pub(crate) auth: AgentAuth,
}

/// The name of an agent's compatibility profile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ProfileName {
    #[default]
    Neutral,
    Fold,
    Pinkfish,
    AgentNative,
    Agentos,
}

impl Config {
    /// All configured agents, made by `make` of their definitions.
    pub(crate) fn catalog(&self, make: impl Fn(&SkillAgent) -> RegisteredAgent) -> Catalog {
        let agents = self.definitions().map(make);
        Catalog::new(&self.server.default_agent, agents).with_unregistered_retention(self.store.retention)
    }

    /// What the agents consist of.
    pub(crate) fn definitions(&self) -> impl Iterator<Item = &SkillAgent> {
        self.agents.iter().map(|agent| &agent.definition)
    }
}

impl AgentConfig {
    pub(crate) fn id(&self) -> &str {
        &self.definition.id
    }

    pub(crate) fn is_enabled(&self) -> bool {
        self.definition.settings.enabled
    }
}

/// The inputs of a configuration.
#[derive(Default)]
pub(crate) struct Source<'a> {
    pub(crate) file: Option<&'a ConfigFile>,
    /// The environment; variables without the prefix `A2AD_` are ignored.
    pub(crate) variables: Vec<(String, String)>,
    /// `--listen`
    pub(crate) listen: Option<&'a str>,
    /// `--store`
    pub(crate) store: Option<&'a str>,
    /// The configuration in use, for a reload: the address and unchanged parts of it are kept.
    pub(crate) in_use: Option<&'a Config>,
    /// The files of the skills folder to read; `None`: all.
    pub(crate) listing: Option<&'a Listing>,
}

/// A configuration file and how it was chosen.
#[derive(Debug)]
pub(crate) struct ConfigFile {
    pub(crate) path: PathBuf,
    /// For error messages; empty if the file was given on the command line.
    origin: &'static str,
}

impl ConfigFile {
    /// A file given on the command line.
    pub(crate) fn named(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), origin: "" }
    }

    /// The file to use: `named`, else that of `A2AD_CONFIG`, else `./a2ad.toml` if it exists.
    pub(crate) fn find(named: Option<&Path>, variables: &[(String, String)]) -> Option<Self> {
        Some(Self::choose(named, variables)).filter(Self::is_used)
    }

    /// The same; `./a2ad.toml` may not exist.
    pub(crate) fn choose(named: Option<&Path>, variables: &[(String, String)]) -> Self {
        if let Some(path) = named {
            return Self::named(path);
        }
        let variable = variables.iter().find(|(name, value)| name == variables::CONFIG && !value.is_empty());
        if let Some((_, path)) = variable {
            return Self { path: path.into(), origin: " (named by A2AD_CONFIG)" };
        }
        Self { path: "a2ad.toml".into(), origin: FOUND }
    }

    /// Whether it exists, or has to because somebody has named it.
    pub(crate) fn is_used(&self) -> bool {
        self.origin != FOUND || self.path.exists()
    }
}

/// The origin of a file that nobody has named.
const FOUND: &str = " (found in the current directory)";

/// Why a configuration cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The file cannot be read.
    #[error("the configuration file {file}{origin} cannot be read: {reason}")]
    Unreadable { file: String, origin: &'static str, reason: std::io::Error },
    /// The configuration is invalid; one line for each problem, with its location.
    #[error("{}", .0.join("\n"))]
    Invalid(Vec<String>),
}

/// Maximum size of the file.
const MAX_CONFIG: u64 = 1 << 20;

/// Whether the address is checked on which a server would listen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListenCheck {
    /// Refused if others can reach it and somebody has yet to decide who may call an agent.
    Checked,
    /// Not checked: nothing listens there.
    Unchecked,
}

/// Parses and validates everything and applies the defaults, for a command that does not listen.
pub(crate) fn load(source: Source<'_>) -> Result<Config, Error> {
    let text = source.file.map(read_file).transpose()?.unwrap_or_default();
    load_text(&text, source, ListenCheck::Unchecked)
}

/// The same for a server.
pub(crate) fn load_checked(source: Source<'_>) -> Result<Config, Error> {
    let text = source.file.map(read_file).transpose()?.unwrap_or_default();
    load_text(&text, source, ListenCheck::Checked)
}

/// The same with the content of the file, which is not read.
pub(crate) fn load_text(text: &str, source: Source<'_>, check: ListenCheck) -> Result<Config, Error> {
    let file = source.file.map(|file| file.path.display().to_string());
    let source_path = source.file.map(|file| file.path.clone());
    let (in_use, listing) = (source.in_use, source.listing);
    let problems = Problems::default();
    let mut tree = tree::parse(text, &problems);
    if !problems.is_empty() {
        // The rest of an invalid file cannot be interpreted.
        return Err(Error::Invalid(problems.into_lines(file.as_deref())));
    }
    for (path, location, value) in overrides(source) {
        tree.set(&path, location, value, &problems);
    }
    let root = Section::root(&tree, &problems);
    let directory = source_directory(source_path.as_deref());
    let mut config = read_all(&root, &directory, in_use, listing);
    config.start_values = StartValues::of(&tree);
    config.report = Report(report::report(&tree, file.clone()));
    if check == ListenCheck::Checked
        && let Some(text) = config.unprotected_listener()
    {
        root.open("server").report("listen", text);
    }
    let lines = problems.into_lines(file.as_deref());
    if lines.is_empty() { Ok(config) } else { Err(Error::Invalid(lines)) }
}

/// The directory that paths in the file are relative to: its own.
fn source_directory(file: Option<&Path>) -> PathBuf {
    file.and_then(Path::parent).map(Path::to_owned).unwrap_or_default()
}

/// The content of a configuration file.
pub(crate) fn read_file(file: &ConfigFile) -> Result<String, Error> {
    let ConfigFile { path, origin } = file;
    let text = std::fs::File::open(path).and_then(|file| files::read_at_most(file, MAX_CONFIG));
    text.map_err(|reason| Error::Unreadable { file: path.display().to_string(), origin, reason })
}

/// The keys set by the environment and the flags, in ascending precedence: `A2AD_SECTION__KEY` sets one key of the
/// file.
fn overrides(source: Source<'_>) -> Vec<(Vec<String>, Location, String)> {
    let mut long = Vec::new();
    let mut short = Vec::new();
    for (name, value) in source.variables {
        let Some(key) = name.strip_prefix("A2AD_") else { continue };
        match key {
            "LISTEN" => {
                short.push((["server", "listen"].map(String::from).into(), Location::Name(name), value))
            }
            "STORE" => short.push((["store", "url"].map(String::from).into(), Location::Name(name), value)),
            key if key.contains("__") => {
                let path = key.split("__").map(str::to_lowercase).collect();
                long.push((path, Location::Name(name), value));
            }
            _ => {}
        }
    }
    let flag = |path: [&str; 2], name: &str, value: Option<&str>| {
        value.map(|value| (path.map(String::from).into(), Location::Name(name.into()), value.to_owned()))
    };
    let flags = [
        flag(["server", "listen"], "--listen", source.listen),
        flag(["store", "url"], "--store", source.store),
    ];
    long.into_iter().chain(short).chain(flags.into_iter().flatten()).collect()
}

fn read_all(
    file: &Section<'_>,
    directory: &Path,
    in_use: Option<&Config>,
    listing: Option<&Listing>,
) -> Config {
    let store = sections::store(&file.open("store"));
    let limits_section = file.open("limits");
    let (limits, max_body_bytes) = sections::limits(&limits_section);
    let rate_limits = sections::rate_limits(&limits_section.open("rate"));
    let listen_in_use = in_use.map(|config| config.server.listen.as_slice());
    let mut server = sections::server(&file.open("server"), directory, listen_in_use);
    let mut auth = auth::auth(&file.open("auth"));
    auth.options.client_certificates = server.listen.iter().any(ListenAddress::verifies_clients);
    if let Some(in_use) = in_use {
        // These take effect at a start only, also where the agents depend on them.
        server.mode = in_use.server.mode;
        auth = AuthConfig { org_secrets: auth.org_secrets, ..in_use.auth.clone() };
    }
    let dial_policy = backends::dial_policy(&file.open("outbound"));
    let dialer = match in_use {
        Some(in_use) => in_use.backends.dialer.clone(),
        None => Dialer::builder().policy(dial_policy.clone()).build(),
    };
    let mut mcp = backends::mcp_servers(&file.open("mcp"), directory);
    let mut openapi = backends::documents(&file.open("openapi"), directory, &dialer);
    let skills =
        skills::skills(&file.open("skills"), &skills::Environment { directory, dialer: &dialer, mcp: &mcp });
    let folder = server.skills_dir.as_deref().map(|folder| {
        let listing = skills_folder::listing(folder, listing);
        let main = skills_folder::Main { skills: &skills, mcp: &mcp, openapi: &openapi, dialer: &dialer };
        (skills_folder::read(folder, &listing, &main), listing)
    });
    let known = agents::Sources {
        skills: &skills,
        mcp: &mcp,
        openapi: &openapi,
        folder: folder.as_ref().map(|(found, _)| found),
    };
    let defaults = agents::Defaults {
        retention: store.retention,
        auth: auth.of_agents(server.mode.mode),
        options: &auth.options,
    };
    let agents = agents::agents(file, &known, &defaults);
    let folder = folder.map(|(found, listing)| {
        mcp.extend(found.mcp);
        openapi.extend(found.openapi);
        FolderReport { listing, skipped: found.skipped }
    });
    Config {
        card: sections::card(&file.open("card")),
        protocol: sections::protocol(&file.open("protocol")),
        server: ServerConfig {
            default_agent: agents::default_agent(
                &file.open("server"),
                &agents.iter().map(|agent| (agent.id(), agent.is_enabled())).collect::<Vec<_>>(),
            ),
            ..server
        },
        auth,
        otlp: sections::otlp(&file.open("telemetry")),
        audit: sections::audit(&file.open("audit"), directory, &store.url),
        store,
        limits,
        max_body_bytes,
        rate_limits,
        push: sections::push(&file.open("push")),
        agents,
        backends: BackendConfigs { mcp, openapi, dialer, launcher: launcher() },
        dial_policy,
        folder,
        start_values: StartValues::default(),
        report: Report::default(),
    }
}
