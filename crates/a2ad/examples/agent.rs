//! A custom agent with its own server: `cargo run -p a2ad --example agent`, then
//! `curl -s localhost:4243/a2a/shout -H 'Content-Type: text/plain' -d hello`

use a2ad::{Outcome, Result, Server, Turn, agent_fn};

async fn shout(turn: Turn) -> Result<Outcome> {
    let text = turn.text();
    if text.is_empty() {
        return Ok(Outcome::ask("What shall I shout?"));
    }
    turn.progress("shouting").await?;
    Ok(Outcome::artifact("shout", text.to_uppercase()))
}

#[tokio::main]
async fn main() -> Result<()> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:4243".into());
    Server::builder().agent("shout", agent_fn(shout)).serve(address).await
}
