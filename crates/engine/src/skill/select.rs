//! Selects the skill that a message is for: the named one, else that of the task, else by the data or the text of the message
//! if they are clear; else the client is asked. Pure.
//!
//! A skill that the caller cannot see is neither selected for it nor shown to it, and does not change what is selected: such
//! callers have candidates and a search of their own.

mod text_match;

use std::{collections::HashSet, sync::Arc};

use protocol::{
    Content, Json, Message, Part, Role,
    json::{
        read::{Node, Path},
        write::Writer,
    },
};

use self::text_match::TextMatch;
use super::{Skill, SkillSchema, SkillSet};
use crate::agent::{Outcome, agent_message};

/// Up to this number of skills, a question lists all of them; of more skills, those that match best.
const MAX_LISTED: usize = 20;
/// The most skills that are listed because they match.
const MAX_SUGGESTED: usize = 10;
const QUESTION: &str = "Which skill do you want?";
/// Of descriptions and examples only the first line is shown, up to this number of bytes.
const MAX_SHOWN: usize = 300;
/// The most schemas that a data part is validated with.
const MAX_CANDIDATES: usize = 100;
/// The most bytes that are validated: the size of the data part for each schema after the first.
const MAX_VALIDATED: usize = 16 << 20;
/// What all checks together may cost, in steps of [`SkillSchema::allows`]: some milliseconds.
const MAX_STEPS: u64 = 100_000;

/// What the selection depends on.
#[derive(Clone, Copy)]
pub(super) struct Request<'a> {
    /// The skill that the client has named, with this message or an earlier one of the task.
    pub(super) named: Option<&'a str>,
    /// The skill that was selected for the task before.
    pub(super) before: Option<&'a str>,
    pub(super) message: &'a Message,
    /// Whether the skills that only the extended card shows exist for the caller.
    pub(super) sees_extended: bool,
}

/// The skill that a message is for.
pub(super) enum Selection<'a> {
    /// This one.
    Skill(Arc<Skill>),
    /// None: the agent decides. This is what it does without one.
    Shared(&'a Arc<Skill>),
    /// It cannot be selected, or the client is asked: this ends the turn.
    Verdict(Outcome),
    /// The skill may become known when its server has started.
    Starting,
}

/// The skills of a set that exist for some callers, by position.
pub(super) struct Candidates {
    members: Vec<usize>,
    /// Built with the set, so that no message waits for it.
    text_match: TextMatch,
}

impl Candidates {
    pub(super) fn new(skills: &[Arc<Skill>], members: impl Iterator<Item = usize>) -> Self {
        let members: Vec<usize> = members.collect();
        let text_match = TextMatch::new(members.iter().map(|position| &*skills[*position]));
        Self { members, text_match }
    }
}

/// Selects the skill of a turn.
pub(super) fn select<'a>(skills: &'a SkillSet, request: Request<'_>) -> Selection<'a> {
    let find = |id: &str| skills.find(id).filter(|skill| request.sees_extended || skill.is_public());
    let requested = request.named.or(request.before);
    if let Some(found) = requested.and_then(find) {
        return Selection::Skill(Arc::clone(found));
    }
    let candidates = match skills.candidates(request.sees_extended) {
        Ok(candidates) => candidates,
        Err(own) => {
            return requested.map_or(Selection::Shared(own), |unknown| Selection::Verdict(removed(unknown)));
        }
    };
    let is_starting = !skills.pending().is_empty();
    match requested {
        Some(_) if is_starting => return Selection::Starting,
        Some(unknown) => return Selection::Verdict(removed(unknown)),
        None if candidates.members.is_empty() && is_starting => return Selection::Starting,
        None if candidates.members.is_empty() => {
            return Selection::Verdict(Outcome::reject("this agent has no skill for this caller"));
        }
        None => {}
    }
    let list = List { skills, candidates };
    let selected = list
        .only()
        .or_else(|| only_match(request.message, list.iter()))
        .or_else(|| list.match_text(&request.message.text(), find));
    match selected {
        Some(skill) => Selection::Skill(Arc::clone(skill)),
        None => Selection::Verdict(list.ask(request.message)),
    }
}

/// What a selected skill gets: the message after which the client was asked, if this one only names the skill.
pub(super) fn message_for(history: &[Message], message: &Arc<Message>, skill: &str) -> Arc<Message> {
    answered(history, message, skill).map_or_else(|| Arc::clone(message), |asked| Arc::new(asked.clone()))
}

impl SkillSet {
    /// Selects a skill of this set for a turn, by the first message of the task that is clear, so that all turns have the same;
    /// and what that skill gets.
    ///
    /// # Errors
    ///
    /// No message is clear: the outcome asks the client.
    pub fn choose(
        &self,
        history: &[Message],
        message: &Arc<Message>,
    ) -> Result<(Arc<Skill>, Arc<Message>), Box<Outcome>> {
        let mut verdict = Outcome::reject("there is no skill to select");
        let earlier = history.iter().filter(|message| message.role == Role::User);
        for one in earlier.chain([&**message]) {
            match select(self, Request { named: None, before: None, message: one, sees_extended: true }) {
                Selection::Skill(skill) => {
                    let message = message_for(history, message, skill.id());
                    return Ok((skill, message));
                }
                Selection::Verdict(outcome) => verdict = outcome,
                Selection::Shared(_) | Selection::Starting => {}
            }
        }
        Err(Box::new(verdict))
    }
}

/// The skill was removed after the task was accepted.
fn removed(skill: &str) -> Outcome {
    let metadata = Json::parse(r#"{"a2ad":{"reason":"skill_removed"}}"#).ok();
    let text = format!("the agent no longer has the skill {skill}");
    Outcome::Failed { message: Some(Message { metadata, ..agent_message(text) }), retryable: false }
}

/// The skills that exist for one caller.
#[derive(Clone, Copy)]
struct List<'a> {
    skills: &'a SkillSet,
    candidates: &'a Candidates,
}

impl<'a> List<'a> {
    fn iter(self) -> impl Iterator<Item = &'a Arc<Skill>> + Clone {
        self.candidates.members.iter().map(move |position| self.skills.at(*position))
    }

    fn member(self, number: usize) -> &'a Arc<Skill> {
        self.skills.at(self.candidates.members[number])
    }

    /// The skill of an agent that has one, and will not have others in a moment.
    fn only(self) -> Option<&'a Arc<Skill>> {
        match self.candidates.members.as_slice() {
            [only] if self.skills.pending().is_empty() => Some(self.skills.at(*only)),
            _ => None,
        }
    }

    fn match_text(
        self,
        text: &str,
        find: impl FnOnce(&str) -> Option<&'a Arc<Skill>>,
    ) -> Option<&'a Arc<Skill>> {
        let text = text.trim();
        if text.is_empty() {
            return None;
        }
        let by_text = || self.candidates.text_match.choose(text).map(|number| self.member(number));
        find(text).or_else(by_text)
    }

    /// Asks which skill is wanted, with those first that match the message best.
    fn ask(self, message: &Message) -> Outcome {
        let count = self.candidates.members.len();
        let mut listed = self.candidates.text_match.best(&message.text(), MAX_SUGGESTED);
        if count <= MAX_LISTED || listed.is_empty() {
            let others: Vec<usize> =
                (0..count).filter(|number| !listed.contains(number)).take(MAX_LISTED).collect();
            listed.extend(others);
        }
        let listed: Vec<&Skill> = listed.into_iter().map(|number| &**self.member(number)).collect();
        question(&listed, count - listed.len())
    }
}

/// The only skill whose schema allows the data part of a message. Only schemas whose required properties are there are
/// validated. If they are too many, the data does not decide: a schema is compiled when it is first used, and keeps
/// that form, which is large. Nor does it decide when the checks together cost more than [`MAX_STEPS`].
fn only_match<'a>(message: &Message, skills: impl Iterator<Item = &'a Arc<Skill>>) -> Option<&'a Arc<Skill>> {
    let data = message.parts.iter().find_map(|part| match &part.content {
        Content::Data(data) => Some(data),
        _ => None,
    })?;
    let names = property_names(data);
    // A schema without properties would allow any data.
    let schemas = skills
        .filter_map(|skill| Some((skill, skill.input.schema()?)))
        .filter(|(_, schema)| schema.has_properties());
    let is_candidate = |schema: &dyn SkillSchema| schema.required().iter().all(|name| names.contains(name));
    let candidates = schemas.filter(|(_, schema)| is_candidate(*schema));
    let max = MAX_CANDIDATES.min(1 + MAX_VALIDATED / data.as_str().len());
    let candidates: Vec<_> = candidates.take(max + 1).collect();
    if candidates.len() > max {
        return None;
    }
    let mut only = None;
    let mut steps = MAX_STEPS;
    for (skill, schema) in candidates {
        if schema.allows(data, &mut steps)? && only.replace(skill).is_some() {
            return None;
        }
    }
    only
}

/// The names in an object; none of another value.
fn property_names(data: &Json) -> HashSet<String> {
    let object = Node::new(data.as_raw(), &Path::Root).object();
    let names = object.and_then(|object| object.entries(|name, _| Ok(name.to_owned())));
    names.unwrap_or_default().into_iter().collect()
}

/// Asks with a list of skills: as text, and their ids as data. `more` is how many others there are.
fn question(listed: &[&Skill], more: usize) -> Outcome {
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
fn answered<'a>(history: &'a [Message], message: &Message, skill: &str) -> Option<&'a Message> {
    let (question, before) = history.split_last()?;
    let is_answer = question.role == Role::Agent && question.text().starts_with(QUESTION);
    if !is_answer || message.text().trim() != skill {
        return None;
    }
    before.iter().rev().find(|message| message.role == Role::User)
}
