//! The question which skill a message is for, and its answer.

use std::sync::Arc;

use engine::{Outcome, Turn};
use protocol::{Json, Message, Part, Role, json::write::Writer};

use super::Route;

const QUESTION: &str = "Which skill do you want?";
/// Of descriptions and examples only the first line is shown, up to this number of bytes.
const MAX_SHOWN: usize = 300;

/// Asks with a list of skills: as text, and their ids as data. `more` is how many others there are.
pub(super) fn ask(listed: &[&Route], more: usize) -> Outcome {
    let mut text = String::from(QUESTION);
    for Route { skill, .. } in listed {
        text += &format!("\n{}: {}", skill.id, shortened(&skill.description));
        if let Some(example) = skill.examples.first() {
            text += &format!(" (such as: {})", shortened(example));
        }
    }
    if more > 0 {
        text += &format!("\nand {more} more: see the agent card");
    }
    let mut writer = Writer::new();
    writer.object(|out| out.key("skills").array(listed, |out, route| out.string(&route.skill.id)));
    let skills = String::from_utf8(writer.finish()).ok().and_then(|text| Json::parse(&text).ok());
    Outcome::ask([Part::text(text)].into_iter().chain(skills.map(Part::data)).collect::<Vec<_>>())
}

fn shortened(text: &str) -> String {
    let text = text.trim().lines().next().unwrap_or_default();
    match text.floor_char_boundary(MAX_SHOWN) {
        end if end < text.len() => format!("{}…", &text[..end]),
        _ => text.to_owned(),
    }
}

/// The message that made the router ask, if the message of this turn only names a skill: that is what the skill is for.
pub(super) fn answered(turn: &Turn, skill: &str) -> Option<Arc<Message>> {
    let (question, before) = turn.history.split_last()?;
    let is_answer = question.role == Role::Agent && question.text().starts_with(QUESTION);
    if !is_answer || turn.message.text().trim() != skill {
        return None;
    }
    before.iter().rev().find(|message| message.role == Role::User).cloned().map(Arc::new)
}
