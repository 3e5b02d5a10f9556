//! The built-in agents. Each is one small file and an example of [`engine::Agent`]. This module is their
//! catalogue, with one row for each: everything that lists, finds or describes them is derived from it.

mod adder;
mod approver;
mod clerk;
mod currency;
mod demo;
mod echo;
mod plotter;
mod reminder;
mod slow_writer;
mod tck;

use engine::{AgentInfo, DynAgent, RegisteredAgent, Skill, SkillSet};
use protocol::model::AgentSkill;

pub use adder::Adder;
pub use approver::Approver;
pub use clerk::Clerk;
pub use currency::Currency;
pub use echo::Echo;
pub use plotter::Plotter;
pub use reminder::Reminder;
pub use slow_writer::SlowWriter;
pub use tck::Tck;

/// A row of the catalogue.
struct Builtin {
    /// The name in the configuration, and the id of the agent.
    name: &'static str,
    /// The name on the card.
    title: &'static str,
    /// The description on the card.
    about: &'static str,
    create: fn() -> DynAgent,
    skills: fn() -> Vec<AgentSkill>,
    input_modes: &'static [&'static str],
    output_modes: &'static [&'static str],
    /// Keywords that route a message to the agent, beside its name and its skills' tags.
    keywords: fn() -> Vec<String>,
    demo: Demo,
}

/// An agent's part in the demo, which runs without a configuration.
#[derive(Clone, Copy)]
enum Demo {
    /// Not served.
    Absent,
    /// Served under its name.
    Served,
    /// Served under its name, and a skill of the agent `demo`.
    Skill,
}

/// Every built-in agent. Those of the demo are in the order in which they are served; the first is the default agent,
/// at `/`.
static CATALOGUE: &[Builtin] = &[
    Builtin {
        name: "demo",
        title: "Demo",
        about: demo::ABOUT,
        create: || DynAgent::new(demo::Demo::new()),
        skills: demo::skills,
        input_modes: ANYTHING,
        output_modes: ANYTHING,
        keywords: Vec::new,
        demo: Demo::Served,
    },
    Builtin {
        name: "currency",
        title: "Currency",
        about: currency::ABOUT,
        create: || DynAgent::new(Currency),
        skills: currency::skills,
        input_modes: TEXT_AND_DATA,
        output_modes: TEXT_AND_DATA,
        keywords: || currency::words().collect(),
        demo: Demo::Skill,
    },
    Builtin {
        name: "echo",
        title: "Echo",
        about: echo::ABOUT,
        create: || DynAgent::new(Echo),
        skills: echo::skills,
        input_modes: ANYTHING,
        output_modes: ANYTHING,
        keywords: || ["repeat", "say", "hold"].map(String::from).into(),
        demo: Demo::Skill,
    },
    Builtin {
        name: "slow-writer",
        title: "Slow writer",
        about: slow_writer::ABOUT,
        create: || DynAgent::new(SlowWriter),
        skills: slow_writer::skills,
        input_modes: TEXT,
        output_modes: TEXT,
        keywords: Vec::new,
        demo: Demo::Skill,
    },
    Builtin {
        name: "approver",
        title: "Approver",
        about: approver::ABOUT,
        create: || DynAgent::new(Approver),
        skills: approver::skills,
        input_modes: TEXT_AND_DATA,
        output_modes: TEXT_AND_DATA,
        keywords: Vec::new,
        demo: Demo::Skill,
    },
    Builtin {
        name: "adder",
        title: "Adder",
        about: adder::ABOUT,
        create: || DynAgent::new(Adder),
        skills: adder::skills,
        input_modes: TEXT,
        output_modes: TEXT,
        keywords: Vec::new,
        demo: Demo::Absent,
    },
    Builtin {
        name: "clerk",
        title: "Clerk",
        about: clerk::ABOUT,
        create: || DynAgent::new(Clerk),
        skills: clerk::skills,
        input_modes: TEXT_AND_DATA,
        output_modes: TEXT_AND_DATA,
        keywords: Vec::new,
        demo: Demo::Absent,
    },
    Builtin {
        name: "plotter",
        title: "Plotter",
        about: plotter::ABOUT,
        create: || DynAgent::new(Plotter),
        skills: plotter::skills,
        input_modes: TEXT,
        output_modes: plotter::FORMATS,
        keywords: Vec::new,
        demo: Demo::Absent,
    },
    Builtin {
        name: "reminder",
        title: "Reminder",
        about: reminder::ABOUT,
        create: || DynAgent::new(Reminder),
        skills: reminder::skills,
        input_modes: ANYTHING,
        output_modes: ANYTHING,
        keywords: Vec::new,
        demo: Demo::Absent,
    },
    Builtin {
        name: "tck",
        title: "TCK",
        about: tck::ABOUT,
        create: || DynAgent::new(Tck::from_environment()),
        skills: tck::skills,
        input_modes: tck::MODES,
        output_modes: tck::MODES,
        keywords: Vec::new,
        demo: Demo::Absent,
    },
];

const TEXT: &[&str] = &["text/plain"];
const TEXT_AND_DATA: &[&str] = &["text/plain", "application/json"];

/// Media types of an agent that accepts everything. The first two are for clients that do not support
/// wildcards.
const ANYTHING: &[&str] = &["text/plain", "application/json", "*/*"];

/// The names of the built-in agents, sorted.
pub fn names() -> Vec<&'static str> {
    let mut names: Vec<&str> = CATALOGUE.iter().map(|row| row.name).collect();
    names.sort_unstable();
    names
}

/// The names of the agents that run without a configuration; the first is the default agent, served at `/`.
pub fn demo_names() -> Vec<&'static str> {
    let is_served = |row: &&Builtin| match row.demo {
        Demo::Absent => false,
        Demo::Served | Demo::Skill => true,
    };
    CATALOGUE.iter().filter(is_served).map(|row| row.name).collect()
}

/// The agents that run without a configuration.
pub fn demo() -> Vec<RegisteredAgent> {
    demo_names().into_iter().filter_map(builtin).collect()
}

/// Looks up a built-in agent by name, which is also its id.
pub fn builtin(name: &str) -> Option<RegisteredAgent> {
    find(name).map(|row| RegisteredAgent::new(row.info(), row.skill_set()))
}

/// A built-in agent as one skill of another agent: the skill with its name, or one that combines all its skills.
pub fn main_skill(name: &str) -> Option<Skill> {
    find(name).map(Builtin::main_skill)
}

/// Keywords that route a message to a skill of a built-in agent: its id, its tags and those of the agent.
pub fn routing_keywords(skill: &AgentSkill, builtin: &str) -> Vec<String> {
    let own = find(builtin).map(|row| (row.keywords)()).unwrap_or_default();
    own.into_iter().chain(skill.tags.iter().cloned()).chain([skill.id.clone()]).collect()
}

fn find(name: &str) -> Option<&'static Builtin> {
    CATALOGUE.iter().find(|row| row.name == name)
}

impl Builtin {
    /// Its skills. An agent with one is asked for nothing else; `demo` has those of others, and all others do the work of
    /// their skills themselves.
    fn skill_set(&self) -> SkillSet {
        match self.demo {
            Demo::Served => SkillSet::separate(demo::members()),
            Demo::Absent | Demo::Skill => SkillSet::of_cards((self.create)(), (self.skills)()),
        }
    }

    fn main_skill(&self) -> Skill {
        let AgentInfo { id, name, description, input_modes, output_modes, .. } = self.info();
        let skills = (self.skills)();
        let named = skills.iter().find(|skill| skill.id == id).cloned();
        let card = named.unwrap_or_else(|| AgentSkill {
            id,
            name,
            description,
            tags: skills.iter().flat_map(|skill| skill.tags.clone()).collect(),
            examples: skills.iter().flat_map(|skill| skill.examples.clone()).collect(),
            input_modes: Vec::new(),
            output_modes: Vec::new(),
            security_requirements: Vec::new(),
        });
        let card = AgentSkill { input_modes, output_modes, ..card };
        Skill { keywords: routing_keywords(&card, self.name), ..Skill::new(card, (self.create)()) }
    }

    fn info(&self) -> AgentInfo {
        let modes = |modes: &[&str]| modes.iter().map(|&mode| mode.into()).collect();
        AgentInfo {
            id: self.name.into(),
            name: self.title.into(),
            description: self.about.into(),
            version: env!("CARGO_PKG_VERSION").into(),
            input_modes: modes(self.input_modes),
            output_modes: modes(self.output_modes),
        }
    }
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
