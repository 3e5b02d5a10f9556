//! Selects the skill that a message is for: the named one, else that of the task, else by the data or the text of the message
//! if they are clear; else the client is asked. Pure.
//!
//! A skill that the caller cannot see is neither selected for it nor shown to it, and does not change what is selected: such
//! callers have candidates and a search of their own.

mod data_match;
mod question;
mod text_match;

use std::sync::Arc;

use protocol::{Json, Message, Role};

use self::{question::answered, text_match::TextMatch};
use super::{Skill, SkillSet};
use crate::agent::{Outcome, agent_message};

/// Up to this number of skills, a question lists all of them; of more skills, those that match best.
const MAX_LISTED: usize = 20;
/// The most skills that are listed because they match.
const MAX_SUGGESTED: usize = 10;

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
        .or_else(|| data_match::only_match(request.message, list.iter()))
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
        question::ask(&listed, count - listed.len())
    }
}
