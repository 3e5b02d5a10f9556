//! `a2ad check`: shows what a configuration would run, or checks the integrity of a store.

use std::{
    fmt::{self, Display, Formatter},
    path::{Path, PathBuf},
};

use a2ad::internal::{
    ListenAddress,
    assembly::{Backends, SkillAgent, SkillBackend, SkillConfig, SkillSource},
};
use engine::{EndUser, RunPolicy, RunSettings};
use inbound::{RouteSet, tls::TlsFiles};
use outbound::backends::mcp::Transport;
use protocol::json::write::Writer;
use rustix::fs::{Access, access};

use crate::config::{
    self, AUTH_NAMES, AgentAuth, AgentConfig, AuthConfig, CARD_NAMES, Config, ConfigFile, DEDUPE_NAMES,
    END_USER_NAMES, ERROR_NAMES, EXTENDED_CARD_NAMES, ListenCheck, Mode, ON_CRASH_NAMES, ProfileName,
    ProtocolVersion, REPLY_NAMES, ServerMode, is_open_ended,
};

/// What `a2ad check` prints for a configuration file with this path and content, or its problems, one line each. For
/// the fuzzer.
pub fn check_config(path: &Path, content: &str) -> Result<String, Vec<String>> {
    let file = ConfigFile::named(path);
    let source = config::Source { file: Some(&file), ..config::Source::default() };
    match config::load_text(content, source, ListenCheck::Checked) {
        Ok(config) => Ok(describe(&config) + &describe_as_json(&config)),
        Err(config::Error::Invalid(problems)) => Err(problems),
        Err(other) => Err(vec![other.to_string()]),
    }
}

/// What a configuration would run, as text.
pub(crate) fn describe(config: &Config) -> String {
    let dialects: Vec<&str> =
        config.protocol.dialects.iter().map(|one| name(&ProtocolVersion::NAMES, *one)).collect();
    let mut out = format!(
        "mode      {}\nlisten    {}\nstore     {}\ndialects  {}\n",
        mode(config.server.mode),
        listen(&config.server.listen),
        config.store.url.display(),
        dialects.join(", ")
    );
    out += &config.default_agent_notice().map(|line| format!("notice    {line}\n")).unwrap_or_default();
    for line in config.plain_http_warning().into_iter().chain(store_folder_warning(&config.store.url)) {
        out += &format!("warning   {line}\n");
    }
    out += &config.tls_warnings().iter().map(|line| format!("warning   {line}\n")).collect::<String>();
    for (name, server) in &config.backends.mcp {
        out += &format!("mcp       {name}: {}\n", transport(&server.transport));
    }
    if let Some(folder) = &config.folder {
        out += &format!("folder    {}\n", folder.listing.folder().display());
        out += &folder.skipped.iter().map(|line| format!("  skipped {line}\n")).collect::<String>();
    }
    let backends = Backends::not_started(&config.backends.openapi);
    for agent in &config.agents {
        let registered = agent.definition.registered(&backends);
        let name_and_path = format!("{} at /a2a/{}", registered.info().name, agent.id());
        if !agent.is_enabled() {
            out += &format!("agent     {name_and_path}, disabled: not served\n");
            continue;
        }
        let at_root = if agent.id() == config.server.default_agent { ", also at /" } else { "" };
        out += &format!("agent     {name_and_path}{at_root}\n");
        out += &format!(
            "  profile {}\n  auth    {}\n",
            name(&ProfileName::NAMES, agent.profile),
            auth(agent, &config.auth)
        );
        for warning in agent.warnings(&config.auth) {
            out += &format!("  warning {warning}\n");
        }
        for skill in registered.skill_cards() {
            out += &format!("  skill   {}: {}\n", skill.id, skill.description);
        }
        for source in
            agent.definition.skills.iter().filter(|source| is_open_ended(source, &config.backends.openapi))
        {
            out += &format!("  skills  {source}: listed when the server starts\n");
        }
        for skill in own_skills(&agent.definition).filter(|skill| lacks_description(skill)) {
            let id = &skill.id;
            out +=
                &format!("  warning skills.{id} has no description, by which clients and models choose it\n");
        }
        for skill in own_skills(&agent.definition).filter(|skill| skill.runs != RunSettings::default()) {
            let policy = registered.policy(Some(&skill.id), &config.limits);
            out += &format!("  runs    {}: {}\n", skill.id, runs(policy));
        }
    }
    out
}

/// Whether the card says nothing about a skill but what it is made of.
fn lacks_description(skill: &SkillConfig) -> bool {
    matches!(skill.backend, SkillBackend::Ready { .. })
        && skill.description.as_ref().is_none_or(|text| text.trim().is_empty())
}

/// Says that a server could not create the files of its store, as far as this user can tell.
fn store_folder_warning(store: &Path) -> Option<String> {
    let folder = store.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let problem = match std::fs::read_dir(folder) {
        Err(error) => error.to_string(),
        Ok(_) => access(folder, Access::WRITE_OK | Access::EXEC_OK).err()?.to_string(),
    };
    let (store, folder) = (store.display(), folder.display());
    Some(format!("the store {store} cannot be written by this user: {folder}: {problem}"))
}

/// All addresses, those with TLS as URLs.
fn listen(addresses: &[ListenAddress]) -> String {
    let shown = |one: &ListenAddress| {
        let address = if one.tls.is_some() { one.url() } else { one.address.to_string() };
        match one.routes {
            RouteSet::All | RouteSet::Callers => address,
            RouteSet::Operators => format!("{address} (operators)"),
        }
    };
    addresses.iter().map(shown).collect::<Vec<_>>().join(", ")
}

fn listener(out: &mut Writer, one: &ListenAddress) {
    out.text("address", &one.address.to_string());
    out.text("url", &one.url());
    out.text(
        "serves",
        match one.routes {
            RouteSet::All => "all",
            RouteSet::Callers => "callers",
            RouteSet::Operators => "operators",
        },
    );
    let Some(tls) = &one.tls else { return };
    let TlsFiles { cert, key, client_ca } = tls.files();
    out.key("tls").object(|out| {
        out.text("cert", &cert.display().to_string());
        out.text("key", &key.display().to_string());
        out.maybe_text("client_ca", client_ca.as_ref().map(|path| path.display().to_string()).as_deref());
    });
}

/// How an MCP server is reached.
fn transport(transport: &Transport) -> String {
    match transport {
        Transport::Stdio(launch) => launch.argv.join(" "),
        Transport::Http { url, .. } => url.clone(),
    }
}

/// The agent's skills that the file defines.
fn own_skills(agent: &SkillAgent) -> impl Iterator<Item = &SkillConfig> {
    agent.skills.iter().filter_map(|source| match source {
        SkillSource::Own(skill) => Some(skill),
        SkillSource::Provided { .. } => None,
    })
}

/// The execution settings of a skill, as the file names them.
fn runs(policy: RunPolicy) -> String {
    let RunPolicy { on_crash, run_time, attempts, deadline, interrupted_ttl, .. } = policy;
    let deadline = deadline.map_or_else(|| "none".into(), |deadline| format!("{deadline:?}"));
    format!(
        "on_crash {}, run_time {run_time:?}, attempts {attempts}, deadline {deadline}, \
         interrupted_ttl {interrupted_ttl:?}",
        name(&ON_CRASH_NAMES, on_crash)
    )
}

fn mode(mode: ServerMode) -> String {
    let decided_by = mode.decided_by.map(|variable| format!(", because {variable} is set"));
    format!("{}{}", name(&Mode::NAMES, mode.mode), decided_by.unwrap_or_default())
}

/// Who may call an agent.
fn auth(agent: &AgentConfig, config: &AuthConfig) -> String {
    let methods: Vec<&str> = agent.auth.list().iter().map(|method| name(&AUTH_NAMES, *method)).collect();
    let methods = methods.join(", ");
    let end_user = match agent.definition.settings.end_user {
        EndUser::Off => "",
        EndUser::Required => ", with the token of the end user",
    };
    let closed = if agent.refuses_every_call(config) { ": refuses every call" } else { "" };
    match agent.auth {
        AgentAuth::Listed(_) => format!("{methods}{end_user}{closed}"),
        AgentAuth::Configured(_) => format!("{methods}, as [auth] configures{end_user}{closed}"),
        AgentAuth::Open => format!("{methods}, because nothing is configured{end_user}{closed}"),
        AgentAuth::Unconfigured => "none: every call gets 503, because nothing is configured".to_owned(),
    }
}

/// Where the methods of an agent come from.
fn auth_source(auth: &AgentAuth) -> &'static str {
    match auth {
        AgentAuth::Listed(_) => "agent",
        AgentAuth::Configured(_) => "auth",
        AgentAuth::Open | AgentAuth::Unconfigured => "mode",
    }
}

/// What a configuration would run, as one JSON object.
pub(crate) fn describe_as_json(config: &Config) -> String {
    let Config { server, store, card, protocol, limits, max_body_bytes, agents, .. } = config;
    let backends = Backends::not_started(&config.backends.openapi);
    let mut writer = Writer::new();
    writer.object(|out| {
        out.key("server").object(|out| {
            out.text("mode", name(&Mode::NAMES, server.mode.mode));
            out.maybe_text("mode_decided_by", server.mode.decided_by);
            out.text("listen", &listen(&server.listen));
            out.key("listeners").array(&server.listen, |out, one| out.object(|out| listener(out, one)));
            out.maybe_text("public_url", server.public_url.as_deref());
            out.key("trusted_proxies")
                .array(&server.trusted_proxies, |out, network| out.string(&network.to_string()));
            out.key("allowed_hosts").array(&server.allowed_hosts, |out, host| out.string(&host.to_string()));
            out.key("cors_origins")
                .array(&server.cors_origins, |out, origin| out.string(&origin.to_string()));
            out.text("default_agent", &server.default_agent);
            if let Some(folder) = &config.folder {
                out.text("skills_dir", &folder.listing.folder().display().to_string());
                out.key("skipped").array(&folder.skipped, |out, line| out.string(line));
            }
        });
        out.key("store").object(|out| {
            out.text("url", &store.url.display().to_string());
            out.key("retention").object(|out| retention(out, store.retention));
        });
        out.key("card").object(|out| {
            out.text("style", name(&CARD_NAMES, card.style));
            out.key("max_age_ms").int(millis(card.max_age));
            out.key("grpc_scheme").boolean(card.grpc_scheme);
        });
        out.key("protocol").object(|out| {
            out.key("dialects")
                .array(&protocol.dialects, |out, one| out.string(name(&ProtocolVersion::NAMES, *one)));
            out.text("errors", name(&ERROR_NAMES, protocol.errors));
            out.key("lenient_version").boolean(protocol.lenient_version);
        });
        out.key("auth").object(|out| describe_auth(out, config));
        out.key("limits").object(|out| {
            out.key("max_body_bytes").int(to_i64(*max_body_bytes as u64));
            out.key("max_task_bytes").int(to_i64(limits.max_task));
            out.key("max_saved_bytes").int(to_i64(limits.max_saved));
            out.key("max_journal_bytes").int(to_i64(limits.max_journal));
            out.key("history").object(|out| {
                out.key("messages").int(to_i64(limits.history.messages as u64));
                out.key("size_bytes").int(to_i64(limits.history.size as u64));
            });
            out.key("concurrent").int(to_i64(limits.concurrent as u64));
            out.key("queued").int(to_i64(limits.queued as u64));
            out.key("run_time_ms").int(millis(limits.run_time));
            out.key("interrupted_ttl_ms").int(millis(limits.interrupted_ttl));
            out.key("wait_ms").int(millis(limits.wait.unwrap_or_default()));
            out.key("min_free_disk_bytes").int(to_i64(limits.min_free_disk));
            out.key("per_principal").object(|out| {
                let engine::PrincipalCaps { tasks, streams, interrupted, stored } = limits.per_principal;
                out.key("tasks").int(to_i64(tasks));
                out.key("streams").int(to_i64(streams));
                out.key("interrupted").int(to_i64(interrupted));
                out.key("stored_bytes").int(to_i64(stored));
            });
            out.key("rate").object(|out| {
                let inbound::RateLimits { per_key, per_tenant, per_agent } = config.rate_limits;
                for (key, rate) in
                    [("per_key", per_key), ("per_tenant", per_tenant), ("per_agent", per_agent)]
                {
                    out.maybe_text(key, rate.map(|rate| rate.to_string()).as_deref());
                }
            });
        });
        out.key("agents").array(agents, |out, agent| {
            out.object(|out| describe_agent(out, agent, &backends, config));
        });
    });
    String::from_utf8(writer.finish()).expect("the writer was given UTF-8 only")
}

/// Which credentials can be verified; secrets by their names only.
fn describe_auth(out: &mut Writer, config: &Config) {
    let options = config.server_options(&config.server.listen).auth;
    out.maybe_text("secret", options.secret.as_ref().map(|secret| secret.name.as_str()));
    out.texts("audiences", &options.audiences);
    out.key("org_secrets").array(options.org_secrets.keys(), |out, domain| out.string(domain));
    out.key("bearer").boolean(options.bearer.is_some());
    out.key("issuers").array(&options.issuers, |out, issuer| {
        out.object(|out| {
            out.text("issuer", &issuer.issuer);
            out.text("audience", &issuer.audience);
            out.maybe_text("jwks_uri", issuer.jwks_uri.as_deref());
        });
    });
    out.key("api_keys").object(|out| {
        out.text("prefix", &options.api_keys.prefix);
        out.key("max_per_agent").int(to_i64(options.api_keys.max_per_agent as u64));
    });
}

fn describe_agent(out: &mut Writer, agent: &AgentConfig, backends: &Backends, config: &Config) {
    let (limits, definition) = (&config.limits, &agent.definition);
    let settings = &definition.settings;
    let registered = definition.registered(backends);
    let info = registered.info();
    out.text("id", &definition.id);
    out.text("name", &info.name);
    out.text("description", &info.description);
    out.key("skills").array(registered.skill_cards(), |out, skill| {
        out.object(|out| {
            out.text("id", &skill.id);
            out.text("description", &skill.description);
        });
    });
    let selectors = definition.skills.iter().filter(|source| !matches!(source, SkillSource::Own(_)));
    out.key("selectors").array(selectors, |out, source| out.string(&source.to_string()));
    out.key("backends").array(own_skills(definition), |out, skill| {
        out.object(|out| {
            out.text("skill", &skill.id);
            out.text("kind", skill.backend.kind());
            if let SkillBackend::Builtin(builtin) = &skill.backend {
                out.text("builtin", builtin.id());
            }
            let policy = registered.policy(Some(&skill.id), limits);
            out.text("on_crash", name(&ON_CRASH_NAMES, policy.on_crash));
            out.key("run_time_ms").int(millis(policy.run_time));
            out.key("attempts").int(policy.attempts.into());
            // 0 is no deadline.
            out.key("deadline_ms").int(millis(policy.deadline.unwrap_or_default()));
            out.key("interrupted_ttl_ms").int(millis(policy.interrupted_ttl));
        });
    });
    out.key("enabled").boolean(settings.enabled);
    out.key("streaming").boolean(settings.streaming);
    out.key("push").boolean(settings.push);
    out.text("extended_card", name(&EXTENDED_CARD_NAMES, settings.extended_card));
    out.key("extended_skills").array(&definition.extended_skills, |out, skill| out.string(skill));
    out.key("extensions").array(&settings.extensions, |out, extension| {
        out.object(|out| {
            out.text("uri", &extension.uri);
            out.maybe_text("description", extension.description.as_deref());
            out.key("required").boolean(extension.required);
            if let Some(params) = &extension.params {
                out.key("params").raw(params.as_str());
            }
        });
    });
    out.key("check_media_types").boolean(settings.check_media_types);
    out.key("keep_alive").boolean(settings.keep_alive);
    out.text("profile", name(&ProfileName::NAMES, agent.profile));
    out.maybe_text("reply", agent.reply.map(|reply| name(&REPLY_NAMES, reply)));
    out.key("auth").array(agent.auth.list(), |out, method| out.string(name(&AUTH_NAMES, *method)));
    out.text("auth_source", auth_source(&agent.auth));
    out.text("end_user", name(&END_USER_NAMES, settings.end_user));
    out.key("warnings").array(agent.warnings(&config.auth), |out, warning| out.string(&warning));
    out.text("dedupe", name(&DEDUPE_NAMES, definition.dedupe));
    out.key("concurrent").int(to_i64(settings.concurrent as u64));
    out.key("retention").object(|out| retention(out, definition.retention));
}

fn retention(out: &mut Writer, kept: engine::Retention) {
    out.key("max_age_ms").int(millis(kept.max_age));
    out.key("max_tasks").int(to_i64(kept.max_tasks.unwrap_or(0)));
    out.key("keys_ms").int(millis(kept.keys));
}

/// The configured name of a value, from the table that parses it.
fn name<T: Copy + PartialEq>(names: &[(&'static str, T)], value: T) -> &'static str {
    names.iter().find(|name| name.1 == value).map_or("", |name| name.0)
}

fn millis(span: std::time::Duration) -> i64 {
    i64::try_from(span.as_millis()).unwrap_or(i64::MAX)
}

fn to_i64(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// The result of a store's integrity check.
pub(crate) struct IntegrityReport {
    path: PathBuf,
    /// One line for each problem.
    findings: Vec<String>,
}

/// Checks the whole store; its server must be stopped.
pub(crate) fn check_integrity(path: PathBuf) -> anyhow::Result<IntegrityReport> {
    Ok(IntegrityReport { findings: store::check(&path)?, path })
}

impl IntegrityReport {
    pub(crate) fn is_intact(&self) -> bool {
        self.findings.is_empty()
    }

    /// What to do about a damaged store.
    fn advice(&self) -> String {
        // The other files are beside the file that a symbolic link leads to.
        let real = self.path.canonicalize().ok().filter(|_| self.path.is_symlink());
        let real = real.as_ref().unwrap_or(&self.path).display();
        let path = self.path.display();
        format!(
            "move {real}, {real}-wal and {real}.keys, those that exist, to another directory and keep them, then run: \
             a2ad restore BACKUP --store {path}; without a backup, sqlite3 DIRECTORY/STORE .recover of a copy of \
             them may save a part"
        )
    }

    pub(crate) fn as_json(&self) -> String {
        let mut writer = Writer::new();
        writer.object(|out| {
            out.text("store", &self.path.display().to_string());
            out.key("whole").boolean(self.is_intact());
            out.key("findings").array(&self.findings, |out, finding| out.string(finding));
            if !self.is_intact() {
                out.text("advice", &self.advice());
            }
        });
        String::from_utf8(writer.finish()).expect("the writer was given UTF-8 only")
    }
}

impl Display for IntegrityReport {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        if self.is_intact() {
            return write!(out, "the store {path} is intact");
        }
        write!(out, "the store {path} is damaged; restore a backup:\n{}\n", self.findings.join("\n"))?;
        out.write_str(&self.advice())
    }
}
