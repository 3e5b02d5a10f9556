//! An HTTP function and an MCP server as the skills of an agent:
//! `cargo run -- 127.0.0.1:4245 http://127.0.0.1:9000/fx npx -y SERVER` in this folder, then
//! `a2ad send http://127.0.0.1:4245 --skill fx --data '{"amount": 3}'`

use a2ad::{
    Card, Result, Server,
    backend::{Skill, command, http, skills},
};

#[tokio::main]
async fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let address = arguments.next().unwrap_or_else(|| "127.0.0.1:4245".into());
    let function = arguments.next().unwrap_or_else(|| "http://127.0.0.1:9000/fx".into());
    let mut server: Vec<String> = arguments.collect();
    if server.is_empty() {
        server = ["npx", "-y", "@modelcontextprotocol/server-everything"].map(String::from).into();
    }
    let fx = Skill::from(http(function)).description("Converts an amount of money");
    Server::builder()
        .skill("fx", fx)
        .mcp("tools", command(server))
        .agent(
            Card::new("helper").description("Converts money, and has tools"),
            skills(["fx", "mcp:tools/*"]),
        )
        .serve(address)
        .await
}
