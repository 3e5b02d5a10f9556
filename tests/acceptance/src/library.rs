//! The client and the library, which some items are about: cards as the client reads them, and an app that embeds the
//! library.

use a2ad::{Server as Library, agents::Echo, profile::Profile};
use client::{ClientOptions, find_card};
use inbound::listen;
use protocol::{dialect::v1, json::write::Writer};
use serde_json::Value;
use tokio::{net::TcpListener, task::JoinSet};
use tokio_util::sync::CancellationToken;

use crate::{CheckError, http::Server, json, mismatch};

/// The card of the agent at this URL as the client reads it, in the JSON of A2A 1.0.
pub(crate) async fn read_card(url: &str) -> Result<Value, CheckError> {
    let found = find_card(url, &ClientOptions::default()).await;
    let found = found.map_err(|error| mismatch("a card that our client reads", error))?;
    let mut writer = Writer::new();
    v1::card::encode(&mut writer, &found.card);
    json::parse(&String::from_utf8_lossy(&writer.finish()))
}

/// The endpoint that the client selects for the agent at this URL.
pub(crate) async fn endpoint(url: &str) -> Result<String, CheckError> {
    let selected = async {
        let found = find_card(url, &ClientOptions::default()).await?;
        anyhow::Ok(found.client(ClientOptions::default())?.endpoint().to_owned())
    };
    selected.await.map_err(|error| mismatch("an agent that our client reaches", format!("{error:#}")))
}

/// Sends a text to the agent at this URL and returns the text of the result.
pub(crate) async fn call_agent(url: &str, text: &str) -> Result<String, CheckError> {
    a2ad::call_agent(url, text).await.map_err(|error| mismatch("an agent that our client reaches", error))
}

/// Serves an app that embeds the library, with the agent `private`, whose card has these instructions for credentials.
pub(crate) async fn serve_private(instructions: &str) -> Result<ServedApp, CheckError> {
    let mut profile = Profile::neutral();
    profile.card.style.credentials = Some(instructions.into());
    let started = async {
        let builder = Library::builder().agent("private", Echo).profile("private", profile);
        let router = builder.build()?.router();
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let server = Server::at(listener.local_addr()?.to_string());
        let mut serving = JoinSet::new();
        serving.spawn(listen::serve(listener, router, listen::Caps::default(), CancellationToken::new()));
        anyhow::Ok(ServedApp { server, _serving: serving })
    };
    started.await.map_err(|error| mismatch("an app that starts", error))
}

/// An app that is served until this value is dropped.
pub(crate) struct ServedApp {
    pub(crate) server: Server,
    _serving: JoinSet<()>,
}
