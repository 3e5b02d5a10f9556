//! `a2ad selftest`: its arguments, and what the checks need from this program.

use std::sync::Arc;

use a2ad::{Card, Server, agents::Echo, profile::Profile, server::Router};
use axum::routing::get;
use client::{ClientOptions, find_card};
use futures_util::future::{BoxFuture, FutureExt as _};
use inbound::listen;
use protocol::{dialect::v1, json::write::Writer};
use selftest::{App, AppServer, Program, SelftestOptions};
use tokio::{net::TcpListener, task::JoinSet};
use tokio_util::sync::CancellationToken;

use crate::{address, cli::calls::connection};

/// The command-line arguments of `a2ad selftest`.
#[derive(Debug, clap::Args)]
pub(crate) struct Flags {
    /// Origin of the server to check, such as http://127.0.0.1:4242 or 127.0.0.1:4242 [default: start servers for the check].
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// Print a line for every item.
    #[arg(long, short)]
    verbose: bool,
    /// Print the report as JSON.
    #[arg(long)]
    json: bool,
    /// Check only these items, such as S1-49 [default: all].
    #[arg(value_name = "ITEM")]
    only: Vec<String>,
}

impl From<Flags> for SelftestOptions {
    fn from(flags: Flags) -> Self {
        let Flags { url, verbose, json, only } = flags;
        Self { url, verbose, json, only, ..Self::default() }
    }
}

/// Runs the checks and returns the exit code.
pub(crate) fn run(flags: Flags) -> anyhow::Result<u8> {
    selftest::run(Arc::new(ThisProgram), &flags.into())
}

/// This program, as the checks use it: the client of the command line, and apps that embed the library.
#[derive(Debug)]
pub struct ThisProgram;

impl Program for ThisProgram {
    fn url(&self, typed: &str) -> Option<String> {
        address::url(typed)
    }

    fn diagnose<'a>(&'a self, url: &'a str) -> BoxFuture<'a, Option<String>> {
        connection::advice_before_calls(url).boxed()
    }

    fn read_card<'a>(&'a self, url: &'a str) -> BoxFuture<'a, anyhow::Result<String>> {
        async move {
            let found = find_card(url, &ClientOptions::default()).await?;
            let mut writer = Writer::new();
            v1::card::encode(&mut writer, &found.card);
            Ok(String::from_utf8(writer.finish())?)
        }
        .boxed()
    }

    fn endpoint<'a>(&'a self, url: &'a str) -> BoxFuture<'a, anyhow::Result<String>> {
        async move {
            let found = find_card(url, &ClientOptions::default()).await?;
            Ok(found.client(ClientOptions::default())?.endpoint().to_owned())
        }
        .boxed()
    }

    fn call_agent<'a>(&'a self, url: &'a str, text: &'a str) -> BoxFuture<'a, anyhow::Result<String>> {
        async move { Ok(a2ad::call_agent(url, text).await?) }.boxed()
    }

    fn serve(&self, app: App) -> BoxFuture<'_, anyhow::Result<AppServer>> {
        async move {
            let router = router(app)?;
            let listener = TcpListener::bind("127.0.0.1:0").await?;
            let address = listener.local_addr()?;
            let mut serving = JoinSet::new();
            serving.spawn(listen::serve(listener, router, listen::Caps::default(), CancellationToken::new()));
            Ok(AppServer { address, serving })
        }
        .boxed()
    }
}

fn router(app: App) -> Result<Router, a2ad::ServeError> {
    let echo = || {
        let card = Card::new("echo").skill("echo", "Returns its input");
        Server::builder().agent(card, Echo).build()
    };
    let own_page = || Router::new().route(App::OWN_PAGE, get(|| async { App::OWN_PAGE_TEXT }));
    match app {
        App::Fallback => Ok(own_page().fallback_service(echo()?.router())),
        App::Nested => Ok(own_page().nest(App::NESTED_PATH, echo()?.router())),
        App::Credentials(instructions) => {
            let mut profile = Profile::neutral();
            profile.card.style.credentials = Some(instructions.into());
            Ok(Server::builder().agent("private", Echo).profile("private", profile).build()?.router())
        }
    }
}
