//! Compatibility profiles: each option of each preset, over a socket.

mod agent_native;
mod agentos;
mod fold;
mod pinkfish;

use a2ad_inbound::{AgentSettings, Profile};
use engine::RegisteredAgent;

use crate::common::{Answer, Server, Setup, agents, request};

/// A server whose agents all have this profile, and some agents that fail.
async fn server_with_profile(profile: &Profile) -> Server {
    server_with(profile, |settings| settings).await
}

async fn server_with(profile: &Profile, change: impl Fn(AgentSettings) -> AgentSettings) -> Server {
    let more = vec![agents::panics(), agents::fails(), agents::chats()];
    let mut setup = Setup { agents: more, ..Setup::default() };
    let names = outbound::agents::demo_names().into_iter().map(str::to_owned);
    let misbehaved = setup.agents.iter().map(|registered: &RegisteredAgent| registered.info().id.clone());
    for name in names.chain(misbehaved).collect::<Vec<_>>() {
        setup
            .options
            .agents
            .insert(name, change(AgentSettings { profile: profile.clone(), ..AgentSettings::default() }));
    }
    setup.open().await
}

/// Calls a method at an agent's own path without a version, as older clients do.
async fn call(server: &Server, agent: &str, method: &str, params: &str) -> Answer {
    server.post(&format!("/a2a/{agent}"), &request(method, params)).await
}

/// The error object of a response.
fn error(answer: &Answer) -> &str {
    let (_, rest) = answer.body.split_once(r#""error":"#).unwrap_or_else(|| panic!("{}", answer.body));
    rest.strip_suffix('}').unwrap()
}

/// The result of a response.
fn result(answer: &Answer) -> &str {
    let (_, rest) = answer.body.split_once(r#""result":"#).unwrap_or_else(|| panic!("{}", answer.body));
    rest.strip_suffix('}').unwrap()
}
