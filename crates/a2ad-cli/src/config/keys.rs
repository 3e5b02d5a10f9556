//! The catalogue of configuration keys: one row for each key, with its values, its default and what it does.
//!
//! The names decide which keys a file may contain and which names are suggested for a mistyped one, and
//! [`Effect`] which keys a reload applies. The other columns are documentation: docs/configuration.md is generated from
//! them, and a test compares the defaults with the real ones. The values of an enumeration come from the list that parses
//! them.

use super::{
    AUTH_NAMES, Generation, Mode, ProfileName,
    agents::{DEDUPE_NAMES, END_USER_NAMES, EXTENDED_CARD_NAMES, REPLY_NAMES},
    backends::{ISOLATION_NAMES, PROTOCOL_NAMES},
    run_settings::ON_CRASH_NAMES,
    sections::{CARD_NAMES, ERROR_NAMES},
};

/// The keys of one table of the file.
pub(super) struct KeyTable {
    /// The keys that lead to the table, separated by dots. `ID` is a name that the author of the file chooses; `[]`
    /// at the end means a list of tables.
    pub(super) path: &'static str,
    pub(super) keys: &'static [Key],
    /// Names that a later version will use; rejected until then.
    pub(super) reserved: &'static [&'static str],
}

#[cfg_attr(not(test), expect(dead_code, reason = "only the generated documentation has the description"))]
pub(super) struct Key {
    pub(super) name: &'static str,
    pub(super) values: Values,
    pub(super) default: DefaultValue,
    /// One sentence for docs/configuration.md, in Markdown.
    pub(super) about: &'static str,
    pub(super) effect: Effect,
    pub(super) visibility: Visibility,
}

/// Whether operators see the value of a key.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Visibility {
    Shown,
    /// It may be a secret, or a table of them, of which the names are shown.
    Secret,
}

/// When a changed value of a key takes effect.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    /// When the configuration is reloaded.
    Reload,
    /// At the next start.
    Start,
}

#[cfg_attr(not(test), expect(dead_code, reason = "names are only read for the generated documentation"))]
pub(super) enum Values {
    /// The type, such as `duration`.
    Type(&'static str),
    /// One of these strings.
    OneOf(fn() -> Vec<&'static str>),
    /// A list of these strings.
    ListOf(fn() -> Vec<&'static str>),
    /// A table or a list of tables, with rows of its own.
    Table,
}

#[cfg_attr(not(test), expect(dead_code, reason = "examples are only read for the generated documentation"))]
pub(super) enum DefaultValue {
    /// A value, as the file would have it.
    Fixed(&'static str),
    /// Not a fixed value: where it comes from.
    Derived(&'static str),
    /// The key must be present; an example of its value.
    Required(&'static str),
}

/// The keys of the table at a path; `None` where the author of the file chooses the names.
pub(super) fn at(path: &[String]) -> Option<&'static KeyTable> {
    TABLES.iter().find(|table| table.is_at(path))
}

/// The table with this path in the catalogue, such as `agents.ID`.
pub(super) fn with_path(path: &str) -> Option<&'static KeyTable> {
    TABLES.iter().find(|table| table.path == path)
}

/// The tables whose path has no chosen name and no list, except the root.
pub(super) fn fixed_tables() -> impl Iterator<Item = &'static KeyTable> {
    let is_fixed = |segment: &str| segment != CHOSEN && !segment.ends_with("[]");
    TABLES.iter().filter(move |table| !table.path.is_empty() && table.segments().all(is_fixed))
}

/// A segment of a path that stands for any name.
pub(super) const CHOSEN: &str = "ID";

impl Key {
    /// Takes effect at a start only.
    const fn at_start(self) -> Self {
        Self { effect: Effect::Start, ..self }
    }

    /// Operators do not see the value.
    const fn secret(self) -> Self {
        Self { visibility: Visibility::Secret, ..self }
    }
}

impl KeyTable {
    /// The names of the supported keys.
    pub(super) fn names(&self) -> impl Iterator<Item = &'static str> + Clone {
        self.keys.iter().map(|key| key.name)
    }

    pub(super) fn segments(&self) -> impl Iterator<Item = &'static str> {
        self.path.split('.').filter(|segment| !segment.is_empty())
    }

    /// Elements of a list of tables have their position in the path: `extensions[0]`.
    fn is_at(&self, path: &[String]) -> bool {
        let matches = |(pattern, segment): (&str, &String)| match pattern.strip_suffix("[]") {
            Some(list) => {
                // The table of `admin_listen` has the keys of `listen`.
                let segment = segment.strip_prefix("admin_").unwrap_or(segment);
                segment.strip_prefix(list).is_some_and(|position| position.starts_with('['))
            }
            None => pattern == CHOSEN || pattern == segment,
        };
        self.segments().count() == path.len() && self.segments().zip(path).all(matches)
    }
}

const TLS_KEYS: &[Key] = &[
    key(
        "cert",
        "path",
        r#""""#,
        "The certificate of the server, then those of its issuers, in PEM. Relative to the configuration file, as the others; \
         empty: no TLS.",
    )
    .at_start(),
    key("key", "path", r#""""#, "The private key of the certificate, in PEM (PKCS#8, PKCS#1 or SEC1), not encrypted.").at_start(),
    key(
        "client_ca",
        "path",
        r#""""#,
        "The authorities of client certificates, in PEM. A certificate that a client sends has to be valid, and identifies the \
         caller to agents that accept `\"mtls\"`: its principal is `mtls:uri:` and the first URI among its alternative names, else \
         `mtls:dn:` and its subject. Empty: clients are not asked for one.",
    )
    .at_start(),
];

pub(super) static TABLES: &[KeyTable] = &[
    KeyTable {
        path: "",
        keys: &[
            table("server", "The listener, and how clients reach it."),
            table("store", "Where tasks are stored, and for how long."),
            table("card", "The form of agent cards."),
            table("protocol", "The accepted versions of A2A."),
            table("limits", "Sizes, times and concurrency."),
            table(
                "skills",
                "The skills of the agents; `ID` is 1 to 64 letters, digits, `-`, `_`, `.` or `~`. A file with \
                 skills and without agents has one agent, `main`, with all of them. The settings from `on_crash` on apply \
                 to tasks that request the skill, and to all tasks of an agent that has no other skill; other tasks have \
                 the defaults.",
            ),
            table(
                "agents",
                "The agents; `ID` is the name in `/a2a/ID`, with the same characters as that of a skill. A file \
                 without agents, skills, MCP servers and OpenAPI documents runs the demo agents.",
            ),
            table(
                "mcp",
                "MCP servers; each of their tools can be a skill: `\"mcp:ID/TOOL\"`, or all of them as `\"mcp:ID/*\"`.",
            ),
            table(
                "openapi",
                "OpenAPI documents; each operation can be a skill: `\"openapi:ID/OPERATION\"`, or all of them as \
                 `\"openapi:ID/*\"`.",
            ),
            table("telemetry", "Where traces are sent."),
            table("outbound", "Which addresses may be called, where a peer has chosen the URL."),
            table("push", "When push notifications are delivered to webhooks."),
            table("audit", "The audit log: changes by operators, and refused requests."),
            table(
                "auth",
                "Which credentials the server verifies. Secrets are in environment variables, which the keys name; each has at \
                 least 16 bytes. Which credentials an agent accepts is its key `auth`.",
            ),
        ],
        reserved: &["pipelines", "guardrails", "tenants", "peers"],
    },
    KeyTable {
        path: "server",
        keys: &[
            derived(
                "listen",
                "address, or list of addresses and tables",
                "`\"127.0.0.1:4242\"`",
                "The addresses to listen on: `[\"127.0.0.1:4242\", { address = \"0.0.0.0:4443\", tls = { cert = \"cert.pem\", key = \
                 \"key.pem\" } }]`. `[::]` accepts IPv4 too, unless an address of IPv4 has the same port. One that \
                 others can reach is refused while an agent has no `auth` and `[auth]` configures nothing, except in production.",
            )
            .at_start(),
            key(
                "admin_listen",
                "address, or table as in `listen`",
                r#""""#,
                "An address that serves the operators' API and health and nothing else; no other address serves the operators' \
                 API then. One that others can reach needs TLS. Empty: none, the API is on all addresses.",
            )
            .at_start(),
            table(
                "tls",
                "TLS of every address that has no `tls` of its own. The files are read again when they change, and on SIGHUP; open \
                 connections go on.",
            ),
            one_of(
                "mode",
                || names(&Mode::NAMES),
                DefaultValue::Derived(
                    "`\"dev\"`; `\"prod\"` where a hosting provider has set `NETLIFY`, `AWS_LAMBDA_FUNCTION_NAME`, `CF_PAGES`, \
                     `CLOUDFLARE_WORKERS`, `VERCEL`, `RENDER`, `FLY_APP_NAME` or `K_SERVICE`",
                ),
                "In production, an agent without `auth` answers every call with 503 while `[auth]` configures nothing; in \
                 development it accepts everybody.",
            )
            .at_start(),
            key(
                "public_url",
                "URL",
                r#""""#,
                "The base of the URLs in cards; empty: the request's Host, or what a trusted proxy forwards.",
            )
            .at_start(),
            key(
                "trusted_proxies",
                "list of addresses or networks",
                "[]",
                "The proxies whose `Forwarded` and `X-Forwarded-*` headers are used.",
            )
            .at_start(),
            key(
                "allowed_hosts",
                "list of hosts",
                "[]",
                "The hosts that requests may name beside loopback names and the host of `public_url`, with any port \
                 unless they have one; requests that name others are rejected.",
            )
            .at_start(),
            key(
                "cors_origins",
                "list of origins",
                "[]",
                "The origins whose web pages may call, such as `\"https://app.example.com\"`, beside the server's own.",
            )
            .at_start(),
            key(
                "default_agent",
                "agent id",
                r#""""#,
                "The agent at `/`; empty: the only enabled one, else `main`, else `demo`.",
            ),
            key(
                "drain_delay",
                "duration",
                r#""""#,
                "How long `/readyz` answers 503 before a shutdown closes anything, at most 25s; empty: 0s on \
                 loopback, else 5s.",
            )
            .at_start(),
            key(
                "keep_alive",
                "duration",
                r#""15s""#,
                "The interval of the comments on an idle event stream; clients with shorter read timeouts need less.",
            )
            .at_start(),
            key(
                "skills_dir",
                "path",
                r#""""#,
                "A folder whose files are skills, see [Skills folder](#skills-folder); empty: none.",
            ),
        ],
        reserved: &["base_host"],
    },
    KeyTable {
        path: "server.tls",
        keys: TLS_KEYS,
        reserved: &[],
    },
    KeyTable {
        path: "server.listen[]",
        keys: &[
            required("address", "address", r#""127.0.0.1:4242""#, "The address to listen on.").at_start(),
            table("tls", "TLS of this address; empty: plain HTTP. Default: that of `[server.tls]`."),
        ],
        reserved: &[],
    },
    KeyTable {
        path: "server.listen[].tls",
        keys: TLS_KEYS,
        reserved: &[],
    },
    KeyTable {
        path: "store",
        keys: &[
            key("url", "path", r#""a2ad.db""#, "The database file.").at_start(),
            table("retention", "How long tasks are kept, for agents without their own retention."),
        ],
        reserved: &[],
    },
    KeyTable {
        path: "store.retention",
        keys: &[
            key("max_age", "duration", r#""24h""#, "How long a finished task is kept."),
            key(
                "max_tasks",
                "number",
                "0",
                "How many finished tasks of an agent are kept; with as many open ones, new tasks are rejected. 0: no \
                 limit.",
            ),
            key(
                "keys",
                "duration",
                r#""24h""#,
                "How long the idempotency keys of a purged task are kept, counted from the purge.",
            ),
        ],
        reserved: &[],
    },
    KeyTable {
        path: "card",
        keys: &[
            one_of(
                "style",
                || names(&CARD_NAMES),
                DefaultValue::Fixed(r#""merged""#),
                "The form of a card for clients that name no version: 1.0 and 0.3 in one document, or one of them.",
            )
            .at_start(),
            key("max_age", "duration", r#""60s""#, "How long clients may cache a card.").at_start(),
            key(
                "grpc_scheme",
                "boolean",
                "false",
                "Whether the gRPC address on a 0.3 card is a URL instead of `host:port`.",
            )
            .at_start(),
        ],
        reserved: &["sign"],
    },
    KeyTable {
        path: "protocol",
        keys: &[
            list_of(
                "dialects",
                || names(&Generation::NAMES),
                r#"["draft", "0.3", "1.0"]"#,
                "The accepted versions; `\"0.3\"` includes 0.2.",
            )
            .at_start(),
            one_of(
                "errors",
                || names(&ERROR_NAMES),
                DefaultValue::Fixed(r#""1.0.1""#),
                "The edition of the specification whose HTTP and gRPC statuses errors have.",
            )
            .at_start(),
            key(
                "lenient_version",
                "boolean",
                "true",
                "Whether methods of 1.0 work without the `A2A-Version` header.",
            )
            .at_start(),
        ],
        reserved: &[],
    },
    KeyTable {
        path: "limits",
        keys: &[
            key("max_body", "size", r#""16MiB""#, "The largest request body.").at_start(),
            key(
                "max_task",
                "size",
                r#""64MiB""#,
                "The messages and artifacts of one task, without progress messages: a larger message is rejected, a larger result fails the task. More progress messages than this are dropped.",
            )
            .at_start(),
            key(
                "max_saved",
                "size",
                r#""1MiB""#,
                "The checkpoint that an agent saves between attempts and turns: saving a larger one is an error.",
            )
            .at_start(),
            key(
                "max_journal",
                "size",
                r#""16MiB""#,
                "The outputs of the steps of one turn: more of them fail the task.",
            )
            .at_start(),
            key("concurrent", "number", "256", "Concurrent runs; further tasks wait as submitted.").at_start(),
            key(
                "queued",
                "number",
                "10000",
                "How many tasks may wait for a run; beyond it, sends that would have to wait get 503.",
            )
            .at_start(),
            key(
                "memory",
                "size",
                r#""1GiB""#,
                "Requests and responses in flight, at least four times `max_body`; beyond it, calls get 503.",
            )
            .at_start(),
            key(
                "run_time",
                "duration",
                r#""10m""#,
                "The timeout of one attempt at a turn, for skills without their own.",
            )
            .at_start(),
            key(
                "interrupted_ttl",
                "duration",
                r#""24h""#,
                "How long a task waits for its client before it fails, for skills without their own.",
            )
            .at_start(),
            key(
                "wait",
                "duration",
                r#""0s""#,
                "How long a blocking send waits before it returns the unfinished task. 0s: no limit.",
            )
            .at_start(),
            key(
                "min_free_disk",
                "size",
                r#""256MiB""#,
                "With less free space beside the store, new messages get 503; reads, cancellations, running tasks and purging \
                 go on. `0B`: no limit.",
            )
            .at_start(),
            table(
                "rate",
                "How often calls are permitted; beyond it they get 429 with `Retry-After`. A rate is `N/s`, `N/min` or `N/h`: \
                 N calls at once, and the next ones as time passes; empty is no limit.",
            ),
            table(
                "per_principal",
                "What one principal may have at a time, over all its agents and end users; beyond it, messages get 429 with \
                 `Retry-After`. What running tasks record is never refused. Callers without a credential are one principal, \
                 without limits on a loopback listener. 0 is no limit.",
            ),
        ],
        reserved: &["max_hops"],
    },
    KeyTable {
        path: "limits.rate",
        keys: &[
            key(
                "per_key",
                "rate",
                r#""600/min""#,
                "Calls of each principal; without a credential, of each address (of each /64 network of IPv6), and no limit \
                 on a loopback listener. Requests whose credentials are refused are counted by address too, apart from others.",
            ),
            key("per_tenant", "rate", r#""""#, "Calls of each tenant."),
            key("per_agent", "rate", r#""""#, "Calls of each agent."),
        ],
        reserved: &[],
    },
    KeyTable {
        path: "limits.per_principal",
        keys: &[
            key("tasks", "number", "1000", "Tasks that have not ended.").at_start(),
            key("streams", "number", "1000", "Open streams, also those of MCP that wait for notices.").at_start(),
            key(
                "interrupted",
                "number",
                "100",
                "Tasks that wait for input or credentials, and running or queued calls of MCP servers that may ask while they \
                 hold a process; with as many, new tasks are refused, and answers are not.",
            )
            .at_start(),
            key("stored", "size", r#""1GiB""#, "Messages, artifacts and events of stored tasks.").at_start(),
        ],
        reserved: &[],
    },
    KeyTable {
        path: "skills.ID",
        keys: &[
            Key {
                name: "builtin",
                values: Values::OneOf(outbound::agents::names),
                default: DefaultValue::Derived(ONE_BACKEND),
                about: "The built-in agent that does the work.",
                effect: Effect::Reload,
                visibility: Visibility::Shown,
            },
            table("mcp", "A tool of an MCP server does the work."),
            table("http", "An HTTP function does the work: it gets the arguments as JSON."),
            table("command", "A command does the work: it gets the arguments as JSON on standard input."),
            derived(
                "input_schema",
                "file name or table",
                "the tool's; none for `http` and `command`",
                "The JSON Schema of the arguments. Without one, the arguments are the data part of the message, or \
                 `{\"text\": …}`.",
            ),
            derived(
                "output_schema",
                "file name or table",
                "the tool's; none for `http` and `command`",
                "The JSON Schema of the result; one that does not match fails the task. A result that is streamed in pieces is not \
                 checked.",
            ),
            derived("description", "string", OF_BUILTIN, "The description on the card."),
            derived(
                "tags",
                "list of strings",
                OF_BUILTIN,
                "The tags on the card, which are also routing keywords.",
            ),
            derived("examples", "list of strings", OF_BUILTIN, "The examples on the card."),
            one_of(
                "on_crash",
                || names(&ON_CRASH_NAMES),
                DefaultValue::Derived(OF_BUILTIN),
                "What happens to a turn whose process crashed: it starts again, it goes on from its last checkpoint, or \
                 the task fails.",
            ),
            derived("run_time", "duration", OF_LIMITS, "The timeout of one attempt at a turn."),
            derived(
                "attempts",
                "number from 1 to 1000",
                "`6`",
                "How often a turn is tried, the first attempt included, when it fails in a way that may pass or its \
                 process crashes.",
            ),
            key(
                "deadline",
                "duration",
                r#""""#,
                "How long the whole task may take, from the message that starts or reopens it, the time that it waits \
                 for its client included; empty: no limit. A task keeps the deadline that it started with.",
            ),
            derived(
                "interrupted_ttl",
                "duration",
                OF_LIMITS,
                "How long a task waits for its client before it fails.",
            ),
        ],
        reserved: &["llm", "a2a", "guardrails"],
    },
    KeyTable {
        path: "skills.ID.mcp",
        keys: &[
            required("server", "name of an MCP server", r#""clock""#, "The server, from `[mcp]`."),
            required("tool", "string", r#""get_current_time""#, "The name of the tool."),
        ],
        reserved: &[],
    },
    KeyTable {
        path: "skills.ID.http",
        keys: &[
            required(
                "url",
                "URL",
                r#""http://127.0.0.1:9000/fx""#,
                "The function. `{name}` in the path is the argument `name`, encoded; it cannot change the host.",
            ),
            key(
                "method",
                "string",
                r#""POST""#,
                "`GET`, `HEAD` and `DELETE` send arguments in the query, others as JSON.",
            ),
            derived("query", "table", "none", "Query parameters; values may contain `{name}`.").secret(),
            derived("headers", "table", "none", "Request headers; values may contain `{name}`.").secret(),
            derived(
                "headers_env",
                "table",
                "none",
                "Request headers with a secret: the value is the name of an environment variable.",
            ),
            derived("bearer_env", "string", "none", "The environment variable with a bearer token."),
            key("timeout", "duration", r#""30s""#, "How long the function may be silent."),
            key("max_response", "size", r#""16MiB""#, "The largest response."),
        ],
        reserved: &[],
    },
    KeyTable {
        path: "skills.ID.command",
        keys: &[
            required(
                "argv",
                "list of strings",
                r#"["sh", "lint.sh"]"#,
                "The program and its arguments. There is no shell.",
            ),
            derived("env", "table", "none", "Environment variables of the process.").secret(),
            key(
                "inherit_env",
                "list of strings",
                "[]",
                "Variables of the server that the process gets too, beside `PATH`, `HOME`, `LANG` and `TMPDIR`.",
            ),
            key("cwd", "path", r#""""#, "The working directory; empty: that of the configuration file."),
            key("timeout", "duration", r#""60s""#, "How long the process may run."),
            key("max_output", "size", r#""16MiB""#, "The largest output."),
            derived("memory", "size", "no limit", "How much memory for data the process may use."),
            one_of(
                "protocol",
                || names(&PROTOCOL_NAMES),
                DefaultValue::Fixed(r#""plain""#),
                "`jsonl`: each line of the output is a JSON object that reports progress, parts of the result, questions \
                 or checkpoints.",
            ),
        ],
        reserved: &[],
    },
    KeyTable {
        path: "mcp.ID",
        keys: &[
            derived(
                "command",
                "list of strings",
                "–",
                "The program of a server on standard input and output.",
            ),
            derived("url", "URL", "–", "The URL of a server with streamable HTTP; instead of `command`."),
            derived("env", "table", "none", "Environment variables of the process.").secret(),
            key(
                "inherit_env",
                "list of strings",
                "[]",
                "Variables of the server that the process gets too, beside `PATH`, `HOME`, `LANG` and `TMPDIR`.",
            ),
            key(
                "cwd",
                "path",
                r#""""#,
                "The working directory of the process; empty: that of the configuration file.",
            ),
            derived("headers", "table", "none", "Request headers.").secret(),
            derived(
                "headers_env",
                "table",
                "none",
                "Request headers with a secret: the value is the name of an environment variable.",
            ),
            derived("bearer_env", "string", "none", "The environment variable with a bearer token."),
            key(
                "timeout",
                "duration",
                r#""60s""#,
                "How long a call may be silent; progress starts it anew. Also how long a question of the server keeps its \
                 process from calls of the same principal that wait for one; a call of another principal gets it at once.",
            ),
            table("pool", "How many processes run."),
            one_of(
                "isolation",
                || names(&ISOLATION_NAMES),
                DefaultValue::Fixed(r#""shared""#),
                "Whether calls share processes, each conversation has its own, or each call.",
            ),
            key(
                "elicitation",
                "boolean",
                "true",
                "Whether the server may ask the client. A process, or a session over HTTP, of a revision before 2026-07-28 \
                 then runs one call at a time.",
            ),
        ],
        reserved: &[],
    },
    KeyTable {
        path: "mcp.ID.pool",
        keys: &[
            key("min", "number", "1", "Processes that are kept running, without those that a question holds."),
            key(
                "max",
                "number",
                "4",
                "Processes at a time. Open questions of one principal hold at most half of them, but one at least.",
            ),
            key("idle_stop", "duration", r#""10m""#, "When a process beyond `min` that is not used ends."),
        ],
        reserved: &[],
    },
    KeyTable {
        path: "openapi.ID",
        keys: &[
            derived("file", "path", "–", "The document, OpenAPI 3.0 or 3.1 as JSON or YAML."),
            derived("url", "URL", "–", "Where the document is fetched at start; instead of `file`."),
            derived("base_url", "URL", "the first server of the document", "Where requests are sent."),
            key(
                "operations",
                "list of operation ids",
                r#"["*"]"#,
                "The operations to use, by id or as `METHOD /path`; `*` stands for any text.",
            ),
            derived("headers", "table", "none", "Request headers.").secret(),
            derived(
                "headers_env",
                "table",
                "none",
                "Request headers with a secret: the value is the name of an environment variable.",
            ),
            derived("bearer_env", "string", "none", "The environment variable with a bearer token."),
            table("security", "Credentials by name of a security scheme of the document."),
            key("timeout", "duration", r#""30s""#, "How long the server may be silent."),
        ],
        reserved: &[],
    },
    KeyTable {
        path: "openapi.ID.security.ID",
        keys: &[
            derived(
                "token_env",
                "string",
                "–",
                "The environment variable with an API key or a bearer token.",
            ),
            derived("user", "string", "–", "The user name of HTTP Basic; instead of `token_env`."),
            derived(
                "password_env",
                "string",
                "–",
                "The environment variable with the password of HTTP Basic.",
            ),
        ],
        reserved: &[],
    },
    KeyTable {
        path: "telemetry",
        keys: &[
            key(
                "otlp",
                "URL",
                r#""""#,
                "An OpenTelemetry collector that speaks OTLP over gRPC, such as `\"http://127.0.0.1:4317\"`; it gets the \
                 spans of sampled traces. Empty: none. Needs a program that was built with the feature `otel`.",
            )
            .at_start(),
        ],
        reserved: &[],
    },
    KeyTable {
        path: "audit",
        keys: &[
            key(
                "file",
                "path",
                "\"\"",
                "The file with changes; empty: the store's name with `.audit.jsonl`. Refused requests are in the same name with \
                 `.refused`. `\"off\"`: there is no audit log.",
            )
            .at_start(),
            key("max_size", "size", "\"16MiB\"", "Size at which the file is renamed and a new one begun.").at_start(),
            key("max_files", "number", "4", "How many renamed files are kept.").at_start(),
            derived("refused_max_size", "size", "`max_size`", "The same for the file with refused requests.").at_start(),
            derived("refused_max_files", "number", "`max_files`", "The same for the file with refused requests.")
                .at_start(),
        ],
        reserved: &[],
    },
    KeyTable {
        path: "push",
        keys: &[
            key(
                "retry_after",
                "list of durations",
                r#"["5s", "1m", "5m", "15m", "30m", "1h", "2h", "4h", "8h"]"#,
                "The waits between the attempts to deliver a notification, each with 20 % jitter. After the last one it \
                 becomes a dead letter.",
            )
            .at_start(),
            key("timeout", "duration", "\"15s\"", "How long a receiver may take to respond with a status of 2xx.").at_start(),
            key(
                "probe_after",
                "duration",
                "\"1m\"",
                "How long a host that has failed eight times in a row gets no notifications, except one that tests it.",
            )
            .at_start(),
            key("dead_letters", "duration", "\"7d\"", "How long notifications that were given up are kept.").at_start(),
            key(
                "challenge",
                "boolean",
                "false",
                "Whether receivers that were registered in the draft dialect have to confirm their URL: `GET` with \
                 `?validationToken=…`, answered with the token.",
            )
            .at_start(),
        ],
        reserved: &[],
    },
    KeyTable {
        path: "outbound",
        keys: &[
            key(
                "allow",
                "list of networks",
                "[]",
                "Networks that peers may choose although they are not public; there they may also choose any port and \
                 local names.",
            ),
            key("allow_http", "boolean", "false", "Whether peers may choose `http` URLs."),
        ],
        reserved: &[],
    },
    KeyTable {
        path: "auth",
        keys: &[
            derived(
                "secret_env",
                "string",
                "`\"A2A_SECRET\"`, which may be unset",
                "The environment variable with the secret of HS256 tokens (`\"jwt\"`); its name is part of the principal of \
                 their callers. Empty: none.",
            )
            .at_start(),
            key(
                "audience",
                "string",
                r#""""#,
                "What `aud` of an HS256 token must contain, if the token has one; empty: `server.public_url`, else the URL of \
                 the listen address.",
            )
            .at_start(),
            key(
                "allow_anonymous_tokens",
                "boolean",
                "false",
                "Whether HS256 tokens without `sub` are accepted. All such tokens of one secret are one principal, its name and \
                 `#`, and see each other's tasks.",
            )
            .at_start(),
            table(
                "org_secrets",
                "Secrets of HS256 tokens of organisations; `ID` is the value of the claim `org_domain`, such as \
                 `\"acme.example\"`. Removing or replacing one ends what is open with its tokens.",
            ),
            key(
                "bearer_env",
                "string",
                r#""""#,
                "The environment variable with a static token (`\"bearer\"`); all its callers are one principal. Empty: none.",
            )
            .at_start(),
            table("issuers", "Issuers of tokens with a public key (`\"oidc\"`).").at_start(),
            table("api_keys", "API keys (`\"api-key\"`); the keys themselves are in the store."),
        ],
        reserved: &[],
    },
    KeyTable {
        path: "auth.org_secrets.ID",
        keys: &[derived("env", "string", "required", "The environment variable with the secret.")],
        reserved: &[],
    },
    KeyTable {
        path: "auth.issuers[]",
        keys: &[
            required(
                "issuer",
                "URL",
                r#""https://id.example""#,
                "The issuer, exactly as its tokens name it in `iss`; `https`, or `http` on a loopback host.",
            )
            .at_start(),
            required("audience", "string", r#""a2ad""#, "What `aud` of its tokens must contain.").at_start(),
            key(
                "jwks_uri",
                "URL",
                r#""""#,
                "Where its keys are; empty: as its document `/.well-known/openid-configuration` states.",
            )
            .at_start(),
        ],
        reserved: &[],
    },
    KeyTable {
        path: "auth.api_keys",
        keys: &[
            key(
                "prefix",
                "1 to 32 letters, digits, `_`, `-`",
                r#""a2ad_""#,
                "The beginning of new keys, by which people and scanners recognise them.",
            )
            .at_start(),
            key("max_per_agent", "number from 1 to 1000", "20", "The most valid keys of an agent.").at_start(),
        ],
        reserved: &[],
    },
    KeyTable {
        path: "agents.ID",
        keys: &[
            derived(
                "name",
                "string",
                "the built-in agent's; with several skills the id",
                "The name on the card.",
            ),
            derived(
                "description",
                "string",
                "the built-in agent's; with several skills a list of them; with tools their number",
                "The description on the card.",
            ),
            derived(
                "skills",
                "list of skill ids",
                "`[\"*\"]`",
                "The agent's skills, at least one: ids of `[skills]`, `mcp:SERVER/TOOL`, `openapi:DOCUMENT/OPERATION`; \
                 `*` stands for all tools or operations, and alone for everything, also the skills of \
                 `server.skills_dir`.",
            ),
            key("enabled", "boolean", "true", "Whether the agent is served; its tasks stay in the store."),
            key("streaming", "boolean", "true", "Whether clients may stream."),
            key(
                "push",
                "boolean",
                "true",
                "Whether clients may register webhooks for their tasks; by default not where `profile` is `\"fold\"`, \
                 `\"pinkfish\"` or `\"agent-native\"`.",
            ),
            key(
                "push_events",
                "list of `status`, `progress`, `artifact`",
                r#"["status"]"#,
                "What webhooks are notified about: changes of the state, status updates that leave it as it is, updates of \
                 artifacts.",
            ),
            one_of(
                "extended_card",
                || names(&EXTENDED_CARD_NAMES),
                DefaultValue::Fixed(r#""off""#),
                "Which callers get the extended card: none, all, or those with credentials. `\"missing\"` declares \
                 one and has none, for tests of clients.",
            ),
            key(
                "extended_skills",
                "list of skill ids",
                "[]",
                "Skills that only the extended card shows, for callers who can get it.",
            ),
            key(
                "skills_allow",
                "list of skill ids",
                "[]",
                "The skills that every caller may use; empty: all. Others are not on the card and cannot be called.",
            ),
            table("extensions", "The protocol extensions that the agent declares."),
            key(
                "check_media_types",
                "boolean",
                "true",
                "Whether parts and accepted output modes have to match the card.",
            ),
            one_of(
                "profile",
                || names(&ProfileName::NAMES),
                DefaultValue::Fixed(r#""neutral""#),
                "The compatibility profile at the agent's own path.",
            ),
            one_of(
                "reply",
                || names(&REPLY_NAMES),
                DefaultValue::Derived("the profile's"),
                "The response to a send whose task completed, at the agent's own path.",
            ),
            Key {
                name: "auth",
                values: Values::ListOf(|| names(&AUTH_NAMES)),
                default: DefaultValue::Derived(
                    "what `[auth]` configures of `\"jwt\"`, `\"oidc\"` and `\"bearer\"`; if nothing, `[\"anonymous\"]` in \
                     development and no caller in production",
                ),
                about: "The accepted credentials; any one of them suffices. The card lists them. `\"anonymous\"` is none at all.",
                effect: Effect::Reload,
                visibility: Visibility::Shown,
            },
            one_of(
                "end_user",
                || names(&END_USER_NAMES),
                DefaultValue::Fixed(r#""off""#),
                "Whether each call needs the token of the person on whose behalf it is made, in `X-End-User-Token`; tasks then \
                 belong to the caller and that person together.",
            ),
            one_of(
                "dedupe",
                || names(&DEDUPE_NAMES),
                DefaultValue::Fixed(r#""auto""#),
                "Which message ids are idempotency keys: UUIDs, all, or none. The `Idempotency-Key` header always is.",
            ),
            key(
                "concurrent",
                "number",
                "0",
                "Concurrent runs of this agent. 0: a fair share of `limits.concurrent`; beside other agents at most \
                 three quarters.",
            ),
            table("retention", "How long tasks of this agent are kept."),
        ],
        reserved: &["approve", "guardrails"],
    },
    KeyTable {
        path: "agents.ID.retention",
        keys: &[
            derived("max_age", "duration", OF_STORE, "As in `[store.retention]`."),
            derived("max_tasks", "number", OF_STORE, "As in `[store.retention]`."),
            derived("keys", "duration", OF_STORE, "As in `[store.retention]`."),
        ],
        reserved: &[],
    },
    KeyTable {
        path: "agents.ID.extensions[]",
        keys: &[
            Key {
                name: "uri",
                values: Values::Type("URI"),
                default: DefaultValue::Required(r#""urn:example:mine""#),
                about: "The extension, once per agent.",
                effect: Effect::Reload,
                visibility: Visibility::Shown,
            },
            derived("description", "string", "none", "The description on the card."),
            key("required", "boolean", "false", "Whether clients that do not activate it are rejected."),
            derived("params", "table", "none", "Parameters on the card, of any form that JSON has."),
        ],
        reserved: &[],
    },
];

const OF_BUILTIN: &str = "the backend's";
const ONE_BACKEND: &str = "– (a skill has one of `builtin`, `mcp`, `http`, `command`)";
const OF_LIMITS: &str = "that of `[limits]`";
const OF_STORE: &str = "that of `[store.retention]`";

const fn key(name: &'static str, kind: &'static str, default: &'static str, about: &'static str) -> Key {
    Key {
        name,
        values: Values::Type(kind),
        default: DefaultValue::Fixed(default),
        about,
        effect: Effect::Reload,
        visibility: Visibility::Shown,
    }
}

/// A key whose default is not a fixed value.
const fn derived(name: &'static str, kind: &'static str, from: &'static str, about: &'static str) -> Key {
    Key {
        name,
        values: Values::Type(kind),
        default: DefaultValue::Derived(from),
        about,
        effect: Effect::Reload,
        visibility: Visibility::Shown,
    }
}

const fn one_of(
    name: &'static str,
    names: fn() -> Vec<&'static str>,
    default: DefaultValue,
    about: &'static str,
) -> Key {
    Key {
        name,
        values: Values::OneOf(names),
        default,
        about,
        effect: Effect::Reload,
        visibility: Visibility::Shown,
    }
}

const fn list_of(
    name: &'static str,
    names: fn() -> Vec<&'static str>,
    default: &'static str,
    about: &'static str,
) -> Key {
    Key {
        name,
        values: Values::ListOf(names),
        default: DefaultValue::Fixed(default),
        about,
        effect: Effect::Reload,
        visibility: Visibility::Shown,
    }
}

const fn required(name: &'static str, kind: &'static str, example: &'static str, about: &'static str) -> Key {
    Key {
        name,
        values: Values::Type(kind),
        default: DefaultValue::Required(example),
        about,
        effect: Effect::Reload,
        visibility: Visibility::Shown,
    }
}

const fn table(name: &'static str, about: &'static str) -> Key {
    Key {
        name,
        values: Values::Table,
        default: DefaultValue::Derived("–"),
        about,
        effect: Effect::Reload,
        visibility: Visibility::Shown,
    }
}

fn names<T>(list: &[(&'static str, T)]) -> Vec<&'static str> {
    list.iter().map(|row| row.0).collect()
}
