//! `a2ad skills`: prints an agent's skills.

use clap::Args;
use protocol::{
    AgentCard,
    dialect::v1,
    json::{
        Json,
        read::{Node, Path},
        write::Writer,
    },
};

use crate::cli::calls::card::title;

use crate::cli::failure::{Failure, code};

use crate::cli::calls::session::{Session, SessionFlags};

#[derive(Debug, Args)]
pub(super) struct SkillsFlags {
    #[command(flatten)]
    session: SessionFlags,
}

pub(super) fn run(flags: SkillsFlags) -> Result<u8, Failure> {
    Session::run(flags.session, |session| async move {
        let card = session.card().await?.card;
        if session.json() {
            session.output.document(as_json(&card).as_bytes())?;
        } else {
            session.output.text(&describe(&card))?;
        }
        Ok(code::SUCCESS)
    })
}

fn describe(card: &AgentCard) -> String {
    let mut out = String::new();
    for skill in &card.skills {
        out += &format!("{}\n", title(skill));
        for example in &skill.examples {
            out += &format!("  example: {example}\n");
        }
    }
    out
}

/// The skills as a JSON array, in the form of the 1.0 card.
fn as_json(card: &AgentCard) -> String {
    let mut writer = Writer::new();
    v1::card::encode(&mut writer, card);
    let document = String::from_utf8(writer.finish()).unwrap_or_default();
    let skills = Json::parse(&document).ok().and_then(|card| {
        let object = Node::new(card.as_raw(), &Path::Root).object().ok()?;
        Some(object.present("skills")?.get().to_owned())
    });
    skills.unwrap_or_else(|| "[]".to_owned())
}
