//! The catalogue of keys: what each table of the file may hold, now and in a later version.

/// The keys of one kind of table.
pub(super) struct Keys {
    /// What is served.
    pub(super) served: &'static [&'static str],
    /// What has its name already and is refused until it is served.
    pub(super) later: &'static [&'static str],
}

/// The keys of the table at a path; `None` where the file's author chooses the names.
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

/// The tables whose names and keys are fixed.
pub(super) fn fixed_sections() -> impl Iterator<Item = (&'static str, &'static Keys)> {
    [("server", &SERVER), ("store", &STORE), ("card", &CARD), ("protocol", &PROTOCOL), ("limits", &LIMITS)]
        .into_iter()
}

static FILE: Keys = Keys {
    served: &["server", "store", "card", "protocol", "limits", "skills", "agents"],
    later: &["auth", "outbound", "mcp", "pipelines", "guardrails", "tenants", "peers"],
};

static SERVER: Keys = Keys {
    served: &["listen", "public_url", "trusted_proxies", "default_agent", "drain_delay", "keep_alive"],
    later: &["base_host", "mode", "allowed_hosts", "admin_listen"],
};

static STORE: Keys = Keys { served: &["url", "retention"], later: &[] };

static RETENTION: Keys = Keys { served: &["max_age", "max_tasks", "keys"], later: &[] };

static CARD: Keys = Keys { served: &["style", "max_age", "grpc_scheme"], later: &["sign"] };

static PROTOCOL: Keys = Keys { served: &["dialects", "errors", "lenient_version"], later: &[] };

static LIMITS: Keys = Keys {
    served: &["max_body", "max_task", "concurrent", "memory", "run_time", "wait"],
    later: &["rate", "max_hops"],
};

static SKILL: Keys = Keys {
    served: &["builtin", "description", "tags", "examples"],
    later: &[
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
    served: &[
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
    later: &["end_user", "skills_allow", "approve", "guardrails"],
};

static EXTENSION: Keys = Keys { served: &["uri", "description", "required", "params"], later: &[] };
