//! The built-in agents. Each is one small file and an example of [`engine::Agent`]. This module is their
//! catalogue: the names used in the configuration, and their card data.

#[cfg(feature = "fault-agents")]
mod abort;
mod adder;
mod approver;
mod clerk;
mod currency;
mod demo;
mod echo;
mod plotter;
mod reminder;
mod router;
mod slow_writer;
mod tck;

use std::sync::Arc;

use engine::{Agent, AgentInfo, RegisteredAgent, Turn};
use protocol::{Artifact, Part, model::AgentSkill};

pub use adder::Adder;
pub use approver::Approver;
pub use clerk::Clerk;
pub use currency::Currency;
pub use echo::Echo;
pub use plotter::Plotter;
pub use reminder::Reminder;
pub use router::{Route, Router};
pub use slow_writer::SlowWriter;
pub use tck::Tck;

/// The names of the built-in agents.
pub const BUILTIN: &[&str] = &[
    "adder",
    "approver",
    "clerk",
    "currency",
    "demo",
    "echo",
    "plotter",
    "reminder",
    "slow-writer",
    "tck",
    #[cfg(feature = "fault-agents")]
    "abort",
];

/// The agents that run without a configuration; the first is the default agent, served at `/`.
pub const DEMO: &[&str] = &[
    "demo",
    "currency",
    "echo",
    "slow-writer",
    "approver",
    #[cfg(feature = "fault-agents")]
    "abort",
];

/// Looks up a built-in agent by name.
pub fn builtin(name: &str) -> Option<Arc<dyn Agent>> {
    Some(match name {
        "adder" => Arc::new(Adder),
        "approver" => Arc::new(Approver),
        "clerk" => Arc::new(Clerk),
        "currency" => Arc::new(Currency),
        "demo" => Arc::new(demo::router()),
        "echo" => Arc::new(Echo),
        "plotter" => Arc::new(Plotter),
        "reminder" => Arc::new(Reminder),
        "slow-writer" => Arc::new(SlowWriter),
        "tck" => Arc::new(Tck::from_environment()),
        #[cfg(feature = "fault-agents")]
        "abort" => Arc::new(abort::Abort),
        _ => return None,
    })
}

/// Card data of a built-in agent; its id is the name.
pub fn info(name: &str) -> Option<AgentInfo> {
    let (title, description, skills, modes) = match name {
        "adder" => ("Adder", adder::ABOUT, adder::skills(), TEXT),
        "approver" => ("Approver", approver::ABOUT, approver::skills(), TEXT_AND_DATA),
        "clerk" => ("Clerk", clerk::ABOUT, clerk::skills(), TEXT_AND_DATA),
        "currency" => ("Currency", currency::ABOUT, currency::skills(), TEXT_AND_DATA),
        "demo" => ("Demo", demo::ABOUT, demo::skills(), ANYTHING),
        "echo" => ("Echo", echo::ABOUT, echo::skills(), ANYTHING),
        "plotter" => ("Plotter", plotter::ABOUT, plotter::skills(), TEXT),
        "reminder" => ("Reminder", reminder::ABOUT, reminder::skills(), ANYTHING),
        "slow-writer" => ("Slow writer", slow_writer::ABOUT, slow_writer::skills(), TEXT),
        "tck" => ("TCK", tck::ABOUT, tck::skills(), tck::MODES),
        #[cfg(feature = "fault-agents")]
        "abort" => ("Abort", abort::ABOUT, abort::skills(), TEXT),
        _ => return None,
    };
    let modes: Vec<String> = modes.iter().map(|&mode| mode.into()).collect();
    let output_modes = match name {
        "plotter" => plotter::FORMATS.iter().map(|&format| format.into()).collect(),
        _ => modes.clone(),
    };
    Some(AgentInfo {
        id: name.into(),
        name: title.into(),
        description: description.into(),
        version: env!("CARGO_PKG_VERSION").into(),
        skills,
        input_modes: modes,
        output_modes,
    })
}

const TEXT: &[&str] = &["text/plain"];
const TEXT_AND_DATA: &[&str] = &["text/plain", "application/json"];

/// Media types of an agent that accepts everything. The first two are for clients that do not support
/// wildcards.
const ANYTHING: &[&str] = &["text/plain", "application/json", "*/*"];

/// Keywords that route a message to a built-in agent, beside its name and its skills' tags.
pub fn words(name: &str) -> Vec<String> {
    match name {
        "currency" => currency::words().collect(),
        "echo" => ["repeat", "say", "hold"].map(String::from).into(),
        _ => Vec::new(),
    }
}

/// The agents that run without a configuration.
pub fn demo() -> Vec<RegisteredAgent> {
    let host = |name: &&str| Some(RegisteredAgent::new(info(name)?, builtin(name)?));
    DEMO.iter().filter_map(host).collect()
}

/// The result artifact of a turn. It has no name when the client requested a skill (the engine then names it
/// after the skill); otherwise its name is the id.
fn result(turn: &Turn, id: &str, parts: Vec<Part>) -> Artifact {
    let named = Artifact::new(id, parts);
    if turn.skill.is_some() { Artifact { name: None, ..named } } else { named }
}

/// Card entry of a built-in agent's skill; the tags are also its routing keywords.
fn skill(id: &str, name: &str, description: &str, tags: &[&str], examples: &[&str]) -> AgentSkill {
    let texts = |texts: &[&str]| texts.iter().map(|&text| text.into()).collect();
    AgentSkill {
        id: id.into(),
        name: name.into(),
        description: description.into(),
        tags: texts(tags),
        examples: texts(examples),
        input_modes: Vec::new(),
        output_modes: Vec::new(),
        security_requirements: Vec::new(),
    }
}
