//! Delegates a turn to another agent: by the requested skill, else by keywords in the text, else it asks the
//! client.
//!
//! The other agent runs the same turn, so there is one task. It also gets the requested skill id; a router
//! behind a router ignores an id it does not have. The choice is kept for the task's later turns: every
//! checkpoint starts with the skill's id and a line feed, and the rest belongs to the other agent.
//!
//! A skill that is only for callers with a credential is neither chosen for others nor shown to them.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use engine::{Agent, AgentResult, DynAgent, ExecutionPolicy, OnCrash, Outcome, Scope, Turn};
use protocol::{Content, Json, Message, Part, Role, TaskId, json::write::Writer, model::AgentSkill};

/// How long a turn waits whose skill is not known yet: with the delays between attempts, longer than a server may take
/// to start.
const STARTING_DELAY: Duration = Duration::from_secs(10);
/// Up to this product of its size and the number of skills, a data part is compared with the schema of every skill.
const MAX_COMPARED: usize = 16 << 20;
const QUESTION: &str = "Which skill do you want?";
/// The longest list of skills in a question.
const MAX_LISTED: usize = 50;

/// Delegates turns to other agents.
pub struct Router {
    routes: Vec<Route>,
    /// What has skills that are not known yet.
    pending: Vec<String>,
    unknown_skill: UnknownSkill,
}

/// What a router does with a turn whose skill it does not have.
enum UnknownSkill {
    /// Chooses another one: the id may be that of the router itself.
    Ignore,
    /// Fails: the task was accepted when the skill existed.
    Fail,
}

/// Whether a route accepts these arguments.
type Arguments = Box<dyn Fn(&Json) -> bool + Send + Sync>;

/// One agent of a router.
pub struct Route {
    skill: AgentSkill,
    agent: DynAgent,
    /// Routing keywords, in lower case.
    words: Vec<String>,
    arguments: Option<Arguments>,
    known_callers_only: bool,
}

impl Route {
    /// A route to the agent of a skill. The skill's id and tags are routing keywords.
    pub fn new(skill: AgentSkill, agent: DynAgent) -> Self {
        let words = skill.tags.iter().chain([&skill.id]).map(|word| word.to_lowercase()).collect();
        Self { skill, agent, words, arguments: None, known_callers_only: false }
    }

    /// Adds routing keywords.
    #[must_use]
    pub fn with_keywords(mut self, words: impl IntoIterator<Item = String>) -> Self {
        self.words.extend(words);
        self
    }

    /// Sets which arguments the skill accepts: a data part that only one skill accepts chooses it.
    #[must_use]
    pub fn with_arguments(self, accepts: impl Fn(&Json) -> bool + Send + Sync + 'static) -> Self {
        Self { arguments: Some(Box::new(accepts)), ..self }
    }

    /// Only callers with a credential may use the skill; for others it does not exist.
    #[must_use]
    pub fn for_known_callers(self) -> Self {
        Self { known_callers_only: true, ..self }
    }

    fn is(&self, skill: &str) -> bool {
        self.skill.id == skill
    }
}

impl Router {
    /// A router with these routes.
    pub fn new(routes: Vec<Route>) -> Self {
        Self { routes, pending: Vec::new(), unknown_skill: UnknownSkill::Ignore }
    }

    /// Sets what has further skills that are not known yet: a turn that requests an unknown skill is then tried again
    /// later.
    #[must_use]
    pub fn with_pending(self, pending: Vec<String>) -> Self {
        Self { pending, ..self }
    }

    /// Fails a turn whose skill does not exist any more.
    #[must_use]
    pub fn with_changing_skills(self) -> Self {
        Self { unknown_skill: UnknownSkill::Fail, ..self }
    }

    /// The routes that exist for a caller.
    fn routes_of(&self, caller: &Scope) -> Routes<'_> {
        let exists = |route: &&Route| !(route.known_callers_only && caller.is_anonymous());
        Routes(self.routes.iter().filter(exists).collect())
    }

    /// Whether the skill of a turn may become known when its server has started.
    fn is_starting(&self, routes: &Routes<'_>, requested: Option<&str>) -> bool {
        let unknown = requested.is_some_and(|skill| routes.find(skill).is_none());
        (unknown || routes.0.is_empty()) && !self.pending.is_empty()
    }

    /// Waits for a server that starts. The next attempt has the skills that are known then.
    async fn wait_for_start(&self, turn: &Turn) -> Outcome {
        tokio::select! {
            () = tokio::time::sleep(STARTING_DELAY) => {}
            () = turn.cancel.cancelled() => {}
        }
        Outcome::retry(format!("the skill is not available yet: {} is starting", self.pending.join(", ")))
    }

    /// The outcome of a turn that no route can take.
    fn unavailable(&self, routes: &Routes<'_>, turn: &Turn, requested: Option<&str>) -> Option<Outcome> {
        let unknown = requested.filter(|skill| routes.find(skill).is_none());
        match (unknown, &self.unknown_skill) {
            (Some(skill), UnknownSkill::Fail) => Some(removed(turn, skill)),
            _ if routes.0.is_empty() => Some(Outcome::reject("this agent has no skill for this caller")),
            _ => None,
        }
    }
}

/// The routes that exist for one caller.
struct Routes<'a>(Vec<&'a Route>);

impl<'a> Routes<'a> {
    fn find(&self, skill: &str) -> Option<&'a Route> {
        self.0.iter().copied().find(|route| route.is(skill))
    }

    /// Chooses by the requested skill, else the task's earlier skill, else the data, else the text.
    fn choose(&self, turn: &Turn, before: Option<&str>) -> Option<&'a Route> {
        let known = turn.skill.as_deref().and_then(|skill| self.find(skill));
        known
            .or_else(|| before.and_then(|skill| self.find(skill)))
            .or_else(|| self.match_data(&turn.message))
            .or_else(|| self.match_text(&turn.message.text()))
    }

    /// The only skill that accepts the message's data part.
    fn match_data(&self, message: &Message) -> Option<&'a Route> {
        let data = message.parts.iter().find_map(|part| match &part.content {
            Content::Data(data) => Some(data),
            _ => None,
        })?;
        if data.as_str().len().saturating_mul(self.0.len()) > MAX_COMPARED {
            return None;
        }
        self.only(|route| route.arguments.as_ref().is_some_and(|accepts| accepts(data)))
    }

    /// Matches a text that is the id or an example of a skill, else by the first word that is a keyword of exactly one
    /// skill.
    fn match_text(&self, text: &str) -> Option<&'a Route> {
        let example = |route: &&&Route| route.skill.examples.iter().any(|example| example == text.trim());
        let by_keyword = |word: &str| self.only(|route| route.words.iter().any(|known| known == word));
        let text_in_lower_case = text.to_lowercase();
        let words = text_in_lower_case
            .split(|character: char| !(character.is_alphanumeric() || "-_".contains(character)));
        let named = self.find(text.trim());
        named
            .or_else(|| self.0.iter().find(example).copied())
            .or_else(|| words.map(by_keyword).find_map(|route| route))
    }

    /// The route for which this holds, if there is exactly one.
    fn only(&self, holds: impl Fn(&Route) -> bool) -> Option<&'a Route> {
        let mut routes = self.0.iter().copied().filter(|route| holds(route));
        routes.next().filter(|_| routes.next().is_none())
    }

    fn ask(&self) -> Outcome {
        let mut text = String::from(QUESTION);
        for Route { skill, .. } in self.0.iter().take(MAX_LISTED) {
            text += &format!("\n{}: {}", skill.id, skill.description);
            if let Some(example) = skill.examples.first() {
                text += &format!(" (such as: {example})");
            }
        }
        if let Some(more) = self.0.len().checked_sub(MAX_LISTED).filter(|more| *more > 0) {
            text += &format!("\nand {more} more: see the agent card");
        }
        let mut writer = Writer::new();
        writer.object(|writer| {
            let listed = self.0.iter().take(MAX_LISTED);
            writer.key("skills").array(listed, |writer, route| writer.string(&route.skill.id));
        });
        let skills = String::from_utf8(writer.finish()).ok().and_then(|text| Json::parse(&text).ok());
        Outcome::ask([Part::text(text)].into_iter().chain(skills.map(Part::data)).collect::<Vec<_>>())
    }
}

impl Agent for Router {
    async fn run(&self, turn: Turn) -> AgentResult<Outcome> {
        let (before, saved) = turn.saved_bytes().and_then(unpack).unzip();
        let routes = self.routes_of(&turn.scope);
        let requested = turn.skill.as_deref().or(before.as_deref());
        if self.is_starting(&routes, requested) {
            return Ok(self.wait_for_start(&turn).await);
        }
        if let Some(outcome) = self.unavailable(&routes, &turn, requested) {
            return Ok(outcome);
        }
        let only = match routes.0.as_slice() {
            [only] if self.pending.is_empty() => Some(*only),
            _ => None,
        };
        let chosen = routes.choose(&turn, before.as_deref()).or(only);
        let Some(route) = chosen else { return Ok(routes.ask()) };
        // A checkpoint of another skill is not passed on.
        let saved = saved.filter(|saved| before.is_some_and(|skill| route.is(&skill)) && !saved.is_empty());
        let named = turn.skill.as_deref().is_some_and(|skill| route.is(skill));
        let is_new = !named && saved.is_none();
        let asked = question_answered_by(&turn, &route.skill.id);
        let mut turn = turn.delegate(saved, format!("{}\n", route.skill.id).as_bytes());
        if let Some(asked) = asked {
            turn.message = asked;
        }
        if is_new {
            turn.record().clear_saved().await?;
        }
        route.agent.run(turn).await
    }

    fn abandoned(&self, scope: &Scope, task: &TaskId) {
        self.routes.iter().for_each(|route| route.agent.abandoned(scope, task));
    }

    /// The most restrictive policy of all reachable agents.
    fn policy(&self) -> ExecutionPolicy {
        let all = || self.routes.iter().map(|route| route.agent.policy());
        let any = |on_crash| all().any(|policy| policy.on_crash == on_crash);
        let on_crash = [OnCrash::Fail, OnCrash::Resume].into_iter().find(|on_crash| any(*on_crash));
        ExecutionPolicy::default()
            .with_overlap(all().all(|policy| policy.overlap))
            .with_on_crash(on_crash.unwrap_or_default())
    }
}

/// The skill was removed after the task was accepted.
fn removed(turn: &Turn, skill: &str) -> Outcome {
    let metadata = Json::parse(r#"{"a2ad":{"reason":"skill_removed"}}"#).ok();
    let text = format!("the agent no longer has the skill {skill}");
    let message = Message { metadata, ..turn.reply(text) };
    Outcome::Failed { message: Some(message), retryable: false }
}

/// The message that made the router ask, if the message of this turn only names a skill: that is what the skill is for.
fn question_answered_by(turn: &Turn, skill: &str) -> Option<Arc<Message>> {
    let (question, before) = turn.history.split_last()?;
    let is_answer = question.role == Role::Agent && question.text().starts_with(QUESTION);
    if !is_answer || turn.message.text().trim() != skill {
        return None;
    }
    before.iter().rev().find(|message| message.role == Role::User).cloned().map(Arc::new)
}

/// Splits a checkpoint into the skill's id and the agent's own part.
fn unpack(saved: &Bytes) -> Option<(String, Bytes)> {
    let end = saved.iter().position(|byte| *byte == b'\n')?;
    Some((String::from_utf8_lossy(&saved[..end]).into_owned(), saved.slice(end + 1..)))
}
