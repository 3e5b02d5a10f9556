//! The agents that come with a2ad. Each is one small file and an example of [`engine::Agent`].

#[cfg(feature = "fault-agents")]
mod abort;
mod approver;
mod echo;
mod slow_writer;

use std::sync::Arc;

use engine::{Agent, Hosted, Profile};
use protocol::model::AgentSkill;

pub use approver::Approver;
pub use echo::Echo;
pub use slow_writer::SlowWriter;

/// The agents of the demo.
pub fn demo() -> Vec<Hosted> {
    let agents = vec![
        present("echo", "Echo", "Gives back what it is given", &["hello", "hold on"], Arc::new(Echo)),
        present(
            "approver",
            "Approver",
            "Asks before it proceeds: say what to do, then approve or deny",
            &["delete the old backups", "approve"],
            Arc::new(Approver),
        ),
        present(
            "slow-writer",
            "Slow writer",
            "Writes a text section by section and picks up where it was after a crash",
            &["the sea", "the sea sections=10 delay=100ms"],
            Arc::new(SlowWriter),
        ),
    ];
    #[cfg(feature = "fault-agents")]
    let agents = {
        let description = "Aborts the whole process when told to";
        let abort = present("abort", "Abort", description, &["abort"], Arc::new(abort::Abort));
        agents.into_iter().chain([abort]).collect()
    };
    agents
}

fn present(id: &str, name: &str, description: &str, examples: &[&str], agent: Arc<dyn Agent>) -> Hosted {
    let skill = AgentSkill {
        id: id.into(),
        name: name.into(),
        description: description.into(),
        tags: vec!["demo".into()],
        examples: examples.iter().map(|&example| example.into()).collect(),
        input_modes: Vec::new(),
        output_modes: Vec::new(),
        security_requirements: Vec::new(),
    };
    let profile = Profile {
        id: id.into(),
        name: name.into(),
        description: description.into(),
        version: env!("CARGO_PKG_VERSION").into(),
        skills: vec![skill],
        input_modes: vec!["text/plain".into(), "application/json".into(), "*/*".into()],
        output_modes: vec!["text/plain".into(), "application/json".into(), "*/*".into()],
    };
    Hosted::new(profile, agent)
}
