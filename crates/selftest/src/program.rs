//! What the checks need from the program that runs the selftest: its client, and apps that embed its library.
//!
//! The program passes these in, so that this crate depends on none of the code that it checks.

use std::net::SocketAddr;

use futures_util::future::BoxFuture;
use tokio::task::JoinSet;

/// The program under test.
pub trait Program: Send + Sync {
    /// The URL of a server address as users type it, such as `127.0.0.1:4242`; `None` if it is no address.
    fn url(&self, typed: &str) -> Option<String>;

    /// Why no call to the server at this URL can succeed, if that is known.
    fn diagnose<'a>(&'a self, url: &'a str) -> BoxFuture<'a, Option<String>>;

    /// The card of the agent at this URL as the program's client reads it, in the JSON of A2A 1.0.
    fn read_card<'a>(&'a self, url: &'a str) -> BoxFuture<'a, anyhow::Result<String>>;

    /// The endpoint that the program's client selects for the agent at this URL.
    fn endpoint<'a>(&'a self, url: &'a str) -> BoxFuture<'a, anyhow::Result<String>>;

    /// Sends a text to the agent at this URL and returns the text of the result.
    fn call_agent<'a>(&'a self, url: &'a str, text: &'a str) -> BoxFuture<'a, anyhow::Result<String>>;

    /// Serves an app that embeds the library, on a free loopback port.
    fn serve(&self, app: App) -> BoxFuture<'_, anyhow::Result<AppServer>>;
}

/// An app that embeds the library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum App {
    /// The agent `echo` as the fallback of an app with a page at [`App::OWN_PAGE`].
    Fallback,
    /// The same below [`App::NESTED_PATH`].
    Nested,
    /// The agent `private` at its own path, whose card has these instructions for credentials.
    Credentials(&'static str),
}

impl App {
    /// The path of the app's own page.
    pub const OWN_PAGE: &'static str = "/own";
    /// The text of the app's own page.
    pub const OWN_PAGE_TEXT: &'static str = "the app's own page";
    /// The path of the library's routes in [`App::Nested`].
    pub const NESTED_PATH: &'static str = "/agents";
}

/// An app that is served until this value is dropped.
#[derive(Debug)]
pub struct AppServer {
    /// The bound address.
    pub address: SocketAddr,
    /// Serves the connections.
    pub serving: JoinSet<()>,
}
