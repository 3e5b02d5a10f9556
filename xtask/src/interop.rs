//! Tests against other A2A implementations: the SDKs of every protocol generation, each at a pinned version, and against
//! web pages in a browser.
//!
//! The tests are in `tests/interop`: those of our server are written in the client's language, one folder for each
//! suite; those of our client are in `servers`, with one sample agent for each SDK; those of backends in `backends`,
//! those of MCP clients in `mcp`, those of credentials in `auth`, those of TLS in `tls`, those of push
//! notifications in `push`, and those of metrics and traces in `telemetry`. This module provides what they need: an
//! environment that is installed once and kept, a server, and a time limit. Deliberately not here: any knowledge of the
//! protocol.
#![allow(
    clippy::print_stderr,
    reason = "messages to stderr; the client's own report goes to stdout unchanged"
)]

mod auth;
mod backends;
mod chromium;
pub(crate) mod debian;
mod javascript;
mod mcp;
mod push;
pub(crate) mod python;
mod rust;
mod servers;
mod telemetry;
mod tls;

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use tokio::process::Command;
use tokio::time::timeout;

use self::python::Release;
use self::servers::Sample;
use crate::program;
use testkit::process::{Launch, Server};

/// The configuration file of the server under test: all A2A clients are tested against the same agents.
const CONFIG: &str = "server.toml";

const INSTALL_LIMIT: Duration = Duration::from_secs(600);
const TEST_LIMIT: Duration = Duration::from_secs(180);
const STOP_LIMIT: Duration = Duration::from_secs(60);

struct Suite {
    name: &'static str,
    /// The other implementation, as printed.
    peer: &'static str,
    side: Side,
}

/// The role of the other implementation.
#[derive(Clone, Copy)]
enum Side {
    /// A client of our server; its tests are in the folder named like the suite.
    Client(Language),
    /// A client of our server; its tests are in the folder `streams`, which all releases of the Python SDK share.
    Streams(Release),
    /// A server that our client calls.
    Server(Sample),
    /// MCP servers and an OpenAPI document behind our server; the tests are in the folder `backends`.
    Backends,
    /// MCP clients of our server; the tests are in the folder `mcp`.
    Mcp,
    /// What issues credentials to callers, and clients that send them; the tests are in the folder `auth`.
    Auth,
    /// Clients that use TLS; the tests are in the folder `tls`.
    Tls,
    /// What receives push notifications, and clients that register for them; the tests are in the folder `push`.
    Push,
    /// What reads metrics and traces; the tests are in the folder `telemetry`.
    Telemetry,
}

#[derive(Clone, Copy)]
enum Language {
    Python,
    /// In Node.js and in Chromium.
    JavaScript,
    /// JavaScript in Node.js only.
    Node,
    Rust,
}

const SUITES: &[Suite] = &[
    client("python", "the official Python SDK 1.3.0", Language::Python),
    client("javascript", "the official JavaScript SDKs 1.3.0 and 0.3.14, and Chromium", Language::JavaScript),
    client("python03", "the official Python SDK 0.3.26", Language::Python),
    client("rust", "the official Rust client 0.2.9", Language::Rust),
    client("agent-native", "the client of @agent-native/core 0.133.3", Language::Node),
    client("python02", "the official Python SDK 0.2.16", Language::Python),
    client("draft", "a2a-json-rpc and python-a2a", Language::Python),
    streams("streams-1.3.0", "streams of the official Python SDK 1.3.0", "1.3.0", "python"),
    streams("streams-0.3.26", "streams of the official Python SDK 0.3.26", "0.3.26", "python03"),
    streams("streams-0.3.22", "streams of the official Python SDK 0.3.22", "0.3.22", "python03"),
    streams("streams-0.3.10", "streams of the official Python SDK 0.3.10", "0.3.10", "python03"),
    streams("streams-0.2.16", "streams of the official Python SDK 0.2.16", "0.2.16", "python02"),
    agent("server-python", "an agent on the official Python SDK 1.3.0", Sample::Python("python")),
    agent("server-python03", "an agent on the official Python SDK 0.3.26", Sample::Python("python03")),
    agent(
        "server-javascript",
        "an agent on the official JavaScript SDK 1.3.0",
        Sample::JavaScript("javascript"),
    ),
    Suite {
        name: "backends",
        peer: "MCP servers of npm and PyPI, and the OpenAPI document of GitHub",
        side: Side::Backends,
    },
    Suite {
        name: "mcp",
        peer: "MCP clients: the Python SDK 2.3.0, the TypeScript SDKs 2.3.1 and 1.32.2, and the Inspector 2.12.0",
        side: Side::Mcp,
    },
    Suite {
        name: "auth",
        peer: "credentials of oidc-provider 9.13.3, jose 6.2.17 and PyJWT 2.15.1, and the authentication of the SDKs",
        side: Side::Auth,
    },
    Suite { name: "tls", peer: "TLS with curl, openssl and the official Python SDK 1.3.0", side: Side::Tls },
    Suite {
        name: "push",
        peer: "push notifications with standardwebhooks 1.1.0, PyJWT 2.15.1 and the official Python SDKs 1.3.0 and 0.3.26",
        side: Side::Push,
    },
    Suite {
        name: "telemetry",
        peer: "metrics in Prometheus of Debian, and traces in a collector on opentelemetry-proto 1.45.2",
        side: Side::Telemetry,
    },
];

const fn client(name: &'static str, peer: &'static str, language: Language) -> Suite {
    Suite { name, peer, side: Side::Client(language) }
}

const fn streams(
    name: &'static str,
    peer: &'static str,
    version: &'static str,
    environment: &'static str,
) -> Suite {
    Suite { name, peer, side: Side::Streams(Release { version, environment }) }
}

const fn agent(name: &'static str, peer: &'static str, sample: Sample) -> Suite {
    Suite { name, peer, side: Side::Server(sample) }
}

/// The names of all suites.
#[cfg(test)]
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    SUITES.iter().map(|suite| suite.name)
}

/// Runs every suite, or only the one named by the first argument; further arguments go to its test runner.
pub(crate) fn run(args: &[String]) -> Result<()> {
    let suites = chosen(args.first())?;
    let options = args.get(1..).unwrap_or_default();
    let program = program::build()?;
    let dir = program::target()?.join("interop");
    fs::create_dir_all(&dir).context("cannot create the directory of the clients")?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    for suite in suites {
        let started = Instant::now();
        runtime.block_on(test(suite, &program, &dir, options))?;
        eprintln!("{}: passed in {} s", suite.peer, started.elapsed().as_secs());
    }
    Ok(())
}

fn chosen(name: Option<&String>) -> Result<Vec<&'static Suite>> {
    let Some(name) = name else { return Ok(SUITES.iter().collect()) };
    let suite = SUITES.iter().find(|suite| suite.name == name);
    let names = || SUITES.iter().map(|suite| suite.name).collect::<Vec<_>>().join(", ");
    Ok(vec![suite.with_context(|| format!("no suite is named {name}; there are {}", names()))?])
}

async fn test(suite: &Suite, program: &Path, dir: &Path, options: &[String]) -> Result<()> {
    let command = match suite.side {
        Side::Client(language) => client_tests(suite, language, dir).await?,
        Side::Streams(release) => python::tests_of_release(&file("streams"), release, dir).await?,
        Side::Server(sample) => return servers::test(sample, program, dir, options).await,
        Side::Backends => return backends::test(program, dir, options).await,
        Side::Mcp => mcp::tests(dir).await?,
        Side::Auth => return auth::test(program, dir, options).await,
        Side::Tls => return tls::test(program, dir, options).await,
        Side::Push => return push::test(program, dir, options).await,
        Side::Telemetry => return telemetry::test(dir, options).await,
    };
    test_server(suite, command, program, dir, options).await
}

async fn client_tests(suite: &Suite, language: Language, dir: &Path) -> Result<Command> {
    let (tests, environment) = (file(suite.name), dir.join(suite.name));
    match language {
        Language::Python => python::tests(&tests, &environment).await,
        Language::JavaScript => javascript::tests(&tests, &environment).await,
        Language::Node => javascript::tests_without_browser(&tests, &environment).await,
        Language::Rust => rust::tests(&tests, &environment).await,
    }
}

/// Runs a client's tests against a server of their own. Tests that stop a server start another one themselves.
async fn test_server(
    suite: &Suite,
    mut command: Command,
    program: &Path,
    dir: &Path,
    options: &[String],
) -> Result<()> {
    let store = fresh_store(dir, suite.name)?;
    let config = file(match suite.side {
        Side::Mcp => mcp::CONFIG,
        Side::Client(_)
        | Side::Streams(_)
        | Side::Server(_)
        | Side::Backends
        | Side::Auth
        | Side::Tls
        | Side::Push
        | Side::Telemetry => CONFIG,
    });
    let launch = Launch::with_config(&store, &fs::read_to_string(&config)?)?;
    let server = Server::start_with(&launch, program, &store).await?;
    command
        .args(options)
        .env("A2AD_URL", format!("http://{}", server.address))
        .env("A2AD_PROGRAM", program)
        .env("A2AD_CONFIG", config);
    // The server is on loopback, which a proxy cannot reach.
    for name in ["NO_PROXY", "no_proxy"] {
        command.env(name, server.address.ip().to_string());
    }
    let tested = finish(command, TEST_LIMIT, suite.peer).await;
    if tested.is_err() {
        eprintln!("the end of the server's log:\n{}", server.log_tail());
    }
    let stopped = server.terminate(STOP_LIMIT).await;
    tested?;
    let status = stopped?;
    ensure!(status.success(), "the server exited with {status} on SIGTERM");
    Ok(())
}

/// A file shared by the suites of all languages.
fn file(name: &str) -> PathBuf {
    program::workspace().join("tests/interop").join(name)
}

/// An empty store directory.
fn fresh_store(dir: &Path, suite: &str) -> Result<PathBuf> {
    let store = dir.join("store").join(suite);
    if store.exists() {
        fs::remove_dir_all(&store).context("cannot clear the store of an earlier run")?;
    }
    fs::create_dir_all(&store)?;
    Ok(store.join("a2ad.db"))
}

/// Whether the installed environment matches `wanted`. The stamp is written last, so that a partly installed
/// environment never matches.
fn is_installed(environment: &Path, wanted: &str) -> bool {
    fs::read_to_string(environment.join("stamp")).is_ok_and(|made| made == wanted)
}

fn mark_installed(environment: &Path, wanted: &str) -> Result<()> {
    fs::write(environment.join("stamp"), wanted).context("cannot write the stamp of the environment")
}

/// Held during an installation: suites that run at the same time share environments, and Debian's package lists.
fn install_lock() -> Result<File> {
    let path = program::target()?.join("install.lock");
    let lock = File::create(&path).with_context(|| format!("cannot create {}", path.display()))?;
    lock.lock().context("cannot wait for another installation")?;
    Ok(lock)
}

/// Runs a command with a time limit; at the limit it is killed.
async fn finish(mut command: Command, limit: Duration, what: &str) -> Result<()> {
    let running = command.kill_on_drop(true).status();
    match timeout(limit, running).await {
        Ok(status) => {
            let status = status.with_context(|| format!("{what} could not be started"))?;
            ensure!(status.success(), "{what} failed ({status})");
            Ok(())
        }
        Err(_) => bail!("{what} did not end within {limit:?}"),
    }
}

/// The first line of a program's `--version` output; `None` if it cannot be run.
async fn version(program: &str) -> Option<String> {
    let output = Command::new(program).arg("--version").output().await.ok()?;
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    (output.status.success() && !text.is_empty()).then_some(text)
}
