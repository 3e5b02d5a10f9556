//! Delegates a turn to another agent: by the requested skill, else by keywords in the text, else it asks the
//! client.
//!
//! The other agent runs the same turn, so there is one task. It also gets the requested skill id; a router
//! behind a router ignores an id it does not have. The choice is kept for the task's later turns: every
//! checkpoint starts with the skill's id and a line feed, and the rest belongs to the other agent.

use bytes::Bytes;
use engine::{Agent, AgentResult, DynAgent, ExecutionPolicy, OnCrash, Outcome, Turn};
use protocol::{Content, Json, Message, Part, json::write::Writer, model::AgentSkill};

/// The longest list of skills in a question.
const MAX_LISTED: usize = 50;

/// Delegates turns to other agents.
pub struct Router {
    routes: Vec<Route>,
    /// What has skills that are not known yet.
    pending: Vec<String>,
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
}

impl Route {
    /// A route to the agent of a skill. The skill's id and tags are routing keywords.
    pub fn new(skill: AgentSkill, agent: DynAgent) -> Self {
        let words = skill.tags.iter().chain([&skill.id]).map(|word| word.to_lowercase()).collect();
        Self { skill, agent, words, arguments: None }
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

    fn is(&self, skill: &str) -> bool {
        self.skill.id == skill
    }
}

impl Router {
    /// A router with these routes.
    pub fn new(routes: Vec<Route>) -> Self {
        Self { routes, pending: Vec::new() }
    }

    /// Sets what has further skills that are not known yet: a turn that requests an unknown skill is then tried again
    /// later.
    #[must_use]
    pub fn with_pending(self, pending: Vec<String>) -> Self {
        Self { pending, ..self }
    }

    /// Chooses by the requested skill, else the task's earlier skill, else the data, else the text. The only skill needs
    /// no choice.
    fn choose(&self, turn: &Turn, before: Option<&str>) -> Option<&Route> {
        let find = |skill: &str| self.routes.iter().find(|route| route.is(skill));
        let known = turn.skill.as_deref().and_then(find).or_else(|| before.and_then(find));
        let only = || match self.routes.as_slice() {
            [only] if self.pending.is_empty() => Some(only),
            _ => None,
        };
        let by_content = || self.match_data(&turn.message).or_else(|| self.match_text(&turn.message.text()));
        known.or_else(only).or_else(by_content)
    }

    /// The only skill that accepts the message's data part.
    fn match_data(&self, message: &Message) -> Option<&Route> {
        let data = message.parts.iter().find_map(|part| match &part.content {
            Content::Data(data) => Some(data),
            _ => None,
        })?;
        let accepts = |route: &&Route| route.arguments.as_ref().is_some_and(|accepts| accepts(data));
        let mut routes = self.routes.iter().filter(accepts);
        routes.next().filter(|_| routes.next().is_none())
    }

    /// Matches a text that equals an example of a skill, else by the first word that is a keyword of exactly
    /// one skill.
    fn match_text(&self, text: &str) -> Option<&Route> {
        let example = |route: &&Route| route.skill.examples.iter().any(|example| example == text.trim());
        let by_keyword = |word: &str| {
            let mut routes = self.routes.iter().filter(|route| route.words.iter().any(|known| known == word));
            routes.next().filter(|_| routes.next().is_none())
        };
        let text = text.to_lowercase();
        let words = text.split(|character: char| !(character.is_alphanumeric() || character == '-'));
        self.routes.iter().find(example).or_else(|| words.map(by_keyword).find_map(|route| route))
    }

    fn ask(&self) -> Outcome {
        let mut text = String::from("Which skill do you want?");
        for Route { skill, .. } in self.routes.iter().take(MAX_LISTED) {
            text += &format!("\n{}: {}", skill.id, skill.description);
            if let Some(example) = skill.examples.first() {
                text += &format!(" (such as: {example})");
            }
        }
        if let Some(more) = self.routes.len().checked_sub(MAX_LISTED).filter(|more| *more > 0) {
            text += &format!("\nand {more} more: see the agent card");
        }
        let mut writer = Writer::new();
        writer.object(|writer| {
            let listed = self.routes.iter().take(MAX_LISTED);
            writer.key("skills").array(listed, |writer, route| writer.string(&route.skill.id));
        });
        let skills = String::from_utf8(writer.finish()).ok().and_then(|text| Json::parse(&text).ok());
        Outcome::ask([Part::text(text)].into_iter().chain(skills.map(Part::data)).collect::<Vec<_>>())
    }
}

impl Agent for Router {
    async fn run(&self, turn: Turn) -> AgentResult<Outcome> {
        let (before, saved) = turn.saved_bytes().and_then(unpack).unzip();
        let requested = turn.skill.as_deref().or(before.as_deref());
        let unknown = requested.is_some_and(|skill| !self.routes.iter().any(|route| route.is(skill)));
        if unknown && !self.pending.is_empty() {
            return Ok(Outcome::retry(format!(
                "the skill is not available yet: {} is starting",
                self.pending.join(", ")
            )));
        }
        let Some(route) = self.choose(&turn, before.as_deref()) else { return Ok(self.ask()) };
        // A checkpoint of another skill is not passed on.
        let saved = saved.filter(|saved| before.is_some_and(|skill| route.is(&skill)) && !saved.is_empty());
        let named = turn.skill.as_deref().is_some_and(|skill| route.is(skill));
        let is_new = !named && saved.is_none();
        let turn = turn.delegate(saved, format!("{}\n", route.skill.id).as_bytes());
        if is_new {
            turn.record().clear_saved().await?;
        }
        route.agent.run(turn).await
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

/// Splits a checkpoint into the skill's id and the agent's own part.
fn unpack(saved: &Bytes) -> Option<(String, Bytes)> {
    let end = saved.iter().position(|byte| *byte == b'\n')?;
    Some((String::from_utf8_lossy(&saved[..end]).into_owned(), saved.slice(end + 1..)))
}
