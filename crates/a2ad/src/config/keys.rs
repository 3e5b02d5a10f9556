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

/// A hint for a name nobody knows: the nearest of those there are, or all of them.
pub(super) fn hint<'a>(name: &str, known: impl Iterator<Item = &'a str> + Clone) -> String {
    let close = |candidate: &&str| distance(name, candidate) <= 1 + candidate.len() / 4;
    match known.clone().filter(close).min_by_key(|candidate| distance(name, candidate)) {
        Some(nearest) => format!("did you mean {nearest}?"),
        None => format!("there are {}", known.collect::<Vec<_>>().join(", ")),
    }
}

/// How many letters have to be added, left out, changed or swapped with their neighbour.
fn distance(from: &str, to: &str) -> usize {
    let (from, to): (Vec<char>, Vec<char>) = (from.to_lowercase().chars().collect(), to.chars().collect());
    let mut before = Vec::new();
    let mut last: Vec<usize> = (0..=to.len()).collect();
    for row in 1..=from.len() {
        let mut this = vec![row];
        for column in 1..=to.len() {
            let same = usize::from(from[row - 1] != to[column - 1]);
            let mut best = (last[column - 1] + same).min(last[column] + 1).min(this[column - 1] + 1);
            if row > 1 && column > 1 && from[row - 1] == to[column - 2] && from[row - 2] == to[column - 1] {
                best = best.min(before[column - 2] + 1);
            }
            this.push(best);
        }
        before = std::mem::replace(&mut last, this);
    }
    last[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_count_single_slips() {
        for (from, to, expected) in [
            ("listen", "listen", 0),
            ("lissten", "listen", 1),
            ("lsiten", "listen", 1),
            ("liste", "listen", 1),
            ("Listen", "listen", 0),
            ("", "abc", 3),
            ("abc", "", 3),
        ] {
            assert_eq!(distance(from, to), expected, "{from} {to}");
        }
    }

    #[test]
    fn a_hint_is_the_nearest_name_or_all_of_them() {
        let known = ["listen", "public_url"];
        assert_eq!(hint("lisen", known.into_iter()), "did you mean listen?");
        assert_eq!(hint("colour", known.into_iter()), "there are listen, public_url");
    }
}
