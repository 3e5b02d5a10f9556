//! Backends of skills: HTTP functions, commands, MCP servers and OpenAPI documents.
//!
//! ```no_run
//! use a2ad::{
//!     Server,
//!     backend::{HttpConfig, Skill, command, http, skills},
//! };
//! # use std::time::Duration;
//!
//! # #[tokio::main]
//! # async fn main() -> a2ad::Result<()> {
//! let quick = HttpConfig { timeout: Duration::from_secs(5), ..http("http://127.0.0.1:9000/stock/{item}") };
//! # #[cfg(feature = "mcp")]
//! Server::builder()
//!     .skill("fx", http("http://127.0.0.1:9000/fx"))
//!     .skill("stock", Skill::from(quick).description("How many there are"))
//!     .mcp("files", command(["npx", "-y", "@modelcontextprotocol/server-filesystem", "."]))
//!     .agent("helper", skills(["fx", "mcp:files/*"]))
//!     .serve("127.0.0.1:4242")
//!     .await?;
//! # Ok(())
//! # }
//! ```
//!
//! Without any agent, all of them make one agent, `main`:
//!
//! ```
//! use a2ad::{Server, backend::command, testing::TestServer};
//!
//! # #[tokio::main]
//! # async fn main() -> a2ad::Result<()> {
//! let server = TestServer::start(Server::builder().skill("hello", command(["printf", "hi"]))).await?;
//! assert_eq!(server.call("say hello").await?, "hi");
//! # Ok(())
//! # }
//! ```
//!
//! Rust agents call skills by their ids, inside their own task:
//!
//! ```
//! use a2ad::{
//!     Outcome, Result, Server, Turn,
//!     agent::IntoOutcome,
//!     agent_fn,
//!     backend::command,
//!     testing::TestServer,
//! };
//!
//! async fn greet(turn: Turn) -> Result<Outcome> {
//!     let hello = turn.call("hello", &turn.text()).await?;
//!     if !hello.is_done() {
//!         return hello.into_outcome();
//!     }
//!     Ok(Outcome::artifact("greeting", format!("{}!", hello.text())))
//! }
//!
//! # #[tokio::main]
//! # async fn main() -> a2ad::Result<()> {
//! let builder = Server::builder().skill("hello", command(["printf", "hi"])).agent("greeter", agent_fn(greet));
//! let server = TestServer::start(builder).await?;
//! assert_eq!(server.call("say hello").await?, "hi!");
//! # Ok(())
//! # }
//! ```
//!
//! A function gets the arguments of a call as JSON and returns the result; `docs/commands.md` describes it for
//! commands. Settings are fields: `HttpConfig { timeout, ..http(url) }`. [`Builder::supervisor`] says what happens to
//! processes when this one is killed.
//!
//! [`Builder::supervisor`]: crate::Builder::supervisor

pub use crate::server::backends::{Skill, Skills};
pub use outbound::{
    backends::{
        command::{CommandTool, Protocol},
        http::HttpConfig,
    },
    process::{Launch, Launcher, supervise},
    schema::{InvalidSchema, Schema},
    skill::{InputForm, Interface},
};
#[cfg(feature = "openapi")]
pub use {
    crate::server::backends::OpenApi,
    outbound::backends::openapi::{Credential, OpenApiConfig},
};
#[cfg(feature = "mcp")]
pub use {
    http::HeaderName,
    outbound::backends::mcp::{Isolation, McpConfig, Pool, Transport},
};

/// An HTTP function. `{name}` in the URL is an argument.
pub fn http(url: impl Into<String>) -> HttpConfig {
    HttpConfig::new(url)
}

/// A program with its arguments: a function that gets the arguments of a call on standard input, or an MCP server.
pub fn command<S: Into<String>>(argv: impl IntoIterator<Item = S>) -> Launch {
    Launch { argv: argv.into_iter().map(Into::into).collect(), ..Launch::default() }
}

/// An MCP server with streamable HTTP.
#[cfg(feature = "mcp")]
pub fn mcp_http(url: impl Into<String>) -> Transport {
    Transport::Http { url: url.into(), headers: Vec::new() }
}

/// What an agent consists of: the ids of skills, `mcp:SERVER/TOOL`, `openapi:DOCUMENT/OPERATION`, `*` for everything that a
/// server or a document has, or `*` for everything.
pub fn skills<S: Into<String>>(selectors: impl IntoIterator<Item = S>) -> Skills {
    Skills::new(selectors)
}
