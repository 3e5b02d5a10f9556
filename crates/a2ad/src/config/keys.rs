//! The catalogue of configuration keys: what each table may contain, and which names are reserved for later
//! versions.

/// The keys of one kind of table.
pub(super) struct Keys {
    pub(super) supported: &'static [&'static str],
    /// Reserved for a later version and rejected until then.
    pub(super) reserved: &'static [&'static str],
}

/// The keys of the table at a path; `None` where the author of the file chooses the names.
pub(super) fn at(path: &[String]) -> Option<&'static Keys> {
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    Some(match path.as_slice() {
        [] => &FILE,
        ["server"] => &SERVER,
        ["store"] => &STORE,
        ["store", "retention"] | ["agents", _, "retention"] => &RETENTION,
        ["card"] => &CARD,
        ["protocol"] => &PROTOCOL,
        ["limits"] => &LIMITS,
        ["skills", _] => &SKILL,
        ["agents", _] => &AGENT,
        ["agents", _, element] if element.starts_with("extensions[") => &EXTENSION,
        _ => return None,
    })
}

/// The tables with fixed names and keys.
pub(super) fn fixed_sections() -> impl Iterator<Item = (&'static str, &'static Keys)> {
    [("server", &SERVER), ("store", &STORE), ("card", &CARD), ("protocol", &PROTOCOL), ("limits", &LIMITS)]
        .into_iter()
}

static FILE: Keys = Keys {
    supported: &["server", "store", "card", "protocol", "limits", "skills", "agents"],
    reserved: &["auth", "outbound", "mcp", "pipelines", "guardrails", "tenants", "peers"],
};

static SERVER: Keys = Keys {
    supported: &["listen", "public_url", "trusted_proxies", "default_agent", "drain_delay", "keep_alive"],
    reserved: &["base_host", "mode", "allowed_hosts", "admin_listen"],
};

static STORE: Keys = Keys { supported: &["url", "retention"], reserved: &[] };

static RETENTION: Keys = Keys { supported: &["max_age", "max_tasks", "keys"], reserved: &[] };

static CARD: Keys = Keys { supported: &["style", "max_age", "grpc_scheme"], reserved: &["sign"] };

static PROTOCOL: Keys = Keys { supported: &["dialects", "errors", "lenient_version"], reserved: &[] };

static LIMITS: Keys = Keys {
    supported: &["max_body", "max_task", "concurrent", "memory", "run_time", "wait"],
    reserved: &["rate", "max_hops"],
};

static SKILL: Keys = Keys {
    supported: &["builtin", "description", "tags", "examples"],
    reserved: &[
        "mcp",
        "http",
        "command",
        "llm",
        "a2a",
        "input_schema",
        "output_schema",
        "on_crash",
        "guardrails",
    ],
};

static AGENT: Keys = Keys {
    supported: &[
        "name",
        "description",
        "skills",
        "enabled",
        "streaming",
        "push",
        "extended_card",
        "extended_skills",
        "extensions",
        "check_media_types",
        "profile",
        "reply",
        "auth",
        "dedupe",
        "retention",
    ],
    reserved: &["end_user", "skills_allow", "approve", "guardrails"],
};

static EXTENSION: Keys = Keys { supported: &["uri", "description", "required", "params"], reserved: &[] };
