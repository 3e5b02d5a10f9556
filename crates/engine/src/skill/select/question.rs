//! The question which skill a message is for, and its answer.

use protocol::{Json, Message, Part, Role, json::write::Writer};

use crate::{agent::Outcome, skill::Skill};

const QUESTION: &str = "Which skill do you want?";
/// Of descriptions and examples only the first line is shown, up to this number of bytes.
const MAX_SHOWN: usize = 300;

/// Asks with a list of skills: as text, and their ids as data. `more` is how many others there are.
pub(super) fn ask(listed: &[&Skill], more: usize) -> Outcome {
    let mut text = String::from(QUESTION);
    for Skill { card, .. } in listed {
        text += &format!("\n{}: {}", card.id, shortened(&card.description));
        if let Some(example) = card.examples.first() {
            text += &format!(" (such as: {})", shortened(example));
        }
    }
    if more > 0 {
        text += &format!("\nand {more} more: see the agent card");
    }
    let mut writer = Writer::new();
    writer.object(|out| out.key("skills").array(listed, |out, skill| out.string(skill.id())));
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

/// The message after which the client was asked, if this one only names a skill: that is what the skill is for.
pub(super) fn answered<'a>(history: &'a [Message], message: &Message, skill: &str) -> Option<&'a Message> {
    let (question, before) = history.split_last()?;
    let is_answer = question.role == Role::Agent && question.text().starts_with(QUESTION);
    if !is_answer || message.text().trim() != skill {
        return None;
    }
    before.iter().rev().find(|message| message.role == Role::User)
}
