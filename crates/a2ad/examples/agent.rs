//! A custom agent with its own server: `cargo run --example agent`, then
//! `curl -s localhost:4243/a2a/shout -H 'Content-Type: text/plain' -d hello`

use a2ad::{Agent, Artifact, Card, Outcome, Part, ServeError, Server, Turn, Updates, agent::BoxFuture};

/// Returns the text in upper case.
pub(crate) struct Shout;

impl Agent for Shout {
    fn run(&self, turn: Turn, out: Updates) -> BoxFuture<'static, Outcome> {
        Box::pin(async move {
            let text = turn.message.text();
            if text.is_empty() {
                return Outcome::NeedInput { message: turn.reply_text("what shall I shout?") };
            }
            out.artifact(Artifact::new("shout", vec![Part::text(text.to_uppercase())])).await;
            Outcome::done()
        })
    }
}

#[tokio::main]
async fn main() -> Result<(), ServeError> {
    let _log = a2ad::logging::start();
    let card = Card::new("shout")
        .name("Shout")
        .description("Returns text in upper case")
        .skill("shout", "Converts a text to upper case");
    Server::builder().agent(card, Shout).store("shout.db").serve(([127, 0, 0, 1], 4243).into()).await
}
