//! Delegates a turn to another agent: by the requested skill, else by keywords in the text, else it asks the
//! client.
//!
//! The other agent runs the same turn, so there is one task. It also gets the requested skill id; a router
//! behind a router ignores an id it does not have. The choice is kept for the task's later turns: every
//! checkpoint starts with the skill's id and a line feed, and the rest belongs to the other agent.

use std::sync::Arc;

use bytes::Bytes;
use engine::{Agent, ExecutionPolicy, OnCrash, Outcome, Turn, Update, Updates};
use futures_util::{FutureExt as _, future::BoxFuture};
use protocol::{Json, Part, json::write::Writer, model::AgentSkill};

/// Delegates turns to other agents.
pub struct Router(Vec<Route>);

/// One agent of a router.
pub struct Route {
    skill: AgentSkill,
    agent: Arc<dyn Agent>,
    /// Routing keywords, in lower case.
    words: Vec<String>,
}

impl Route {
    /// A route to the agent of a skill. The skill's id and tags are routing keywords.
    pub fn new(skill: AgentSkill, agent: Arc<dyn Agent>) -> Self {
        let words = skill.tags.iter().chain([&skill.id]).map(|word| word.to_lowercase()).collect();
        Self { skill, agent, words }
    }

    /// Adds routing keywords.
    #[must_use]
    pub fn with_keywords(mut self, words: impl IntoIterator<Item = String>) -> Self {
        self.words.extend(words);
        self
    }

    fn is(&self, skill: &str) -> bool {
        self.skill.id == skill
    }
}

impl Router {
    /// A router with these routes.
    pub fn new(routes: Vec<Route>) -> Self {
        Self(routes)
    }

    /// Chooses by the requested skill, else the task's earlier skill, else the text.
    fn choose(&self, turn: &Turn, before: Option<&str>) -> Option<&Route> {
        let find = |skill: &str| self.0.iter().find(|route| route.is(skill));
        let known = turn.skill.as_deref().and_then(find).or_else(|| before.and_then(find));
        known.or_else(|| self.match_text(&turn.message.text()))
    }

    /// Matches a text that equals an example of a skill, else by the first word that is a keyword of exactly
    /// one skill.
    fn match_text(&self, text: &str) -> Option<&Route> {
        let example = |route: &&Route| route.skill.examples.iter().any(|example| example == text.trim());
        let by_keyword = |word: &str| {
            let mut routes = self.0.iter().filter(|route| route.words.iter().any(|known| known == word));
            routes.next().filter(|_| routes.next().is_none())
        };
        let text = text.to_lowercase();
        let words = text.split(|character: char| !(character.is_alphanumeric() || character == '-'));
        self.0.iter().find(example).or_else(|| words.map(by_keyword).find_map(|route| route))
    }

    fn ask(&self, turn: &Turn) -> Outcome {
        let mut text = String::from("Which skill do you want?");
        for Route { skill, .. } in &self.0 {
            text += &format!("\n{}: {}", skill.id, skill.description);
            if let Some(example) = skill.examples.first() {
                text += &format!(" (such as: {example})");
            }
        }
        let mut writer = Writer::new();
        writer.object(|writer| {
            writer.key("skills").array(&self.0, |writer, route| writer.string(&route.skill.id));
        });
        let skills = String::from_utf8(writer.finish()).ok().and_then(|text| Json::parse(&text).ok());
        let parts = [Part::text(text)].into_iter().chain(skills.map(Part::data)).collect();
        Outcome::NeedInput { message: turn.reply(parts) }
    }
}

impl Agent for Router {
    fn run(&self, mut turn: Turn, out: Updates) -> BoxFuture<'static, Outcome> {
        let (before, saved) = turn.saved.as_ref().and_then(unpack).unzip();
        let Some(route) = self.choose(&turn, before.as_deref()) else {
            let question = self.ask(&turn);
            return async move { question }.boxed();
        };
        // A checkpoint of another skill is not passed on.
        turn.saved = saved.filter(|saved| before.is_some_and(|skill| route.is(&skill)) && !saved.is_empty());
        let named = turn.skill.as_deref().is_some_and(|skill| route.is(skill));
        let prefix = format!("{}\n", route.skill.id);
        let (agent, inner) = (Arc::clone(&route.agent), out.with_save_prefix(prefix.as_bytes()));
        async move {
            if !named && turn.saved.is_none() {
                inner.say([Update::Save(Bytes::new())]).await;
            }
            agent.run(turn, inner).await
        }
        .boxed()
    }

    /// The most restrictive policy of all reachable agents.
    fn policy(&self) -> ExecutionPolicy {
        let all = || self.0.iter().map(|route| route.agent.policy());
        let any = |on_crash| all().any(|policy| policy.on_crash == on_crash);
        ExecutionPolicy {
            overlap: all().all(|policy| policy.overlap),
            on_crash: [OnCrash::Fail, OnCrash::Resume]
                .into_iter()
                .find(|on_crash| any(*on_crash))
                .unwrap_or_default(),
        }
    }
}

/// Splits a checkpoint into the skill's id and the agent's own part.
fn unpack(saved: &Bytes) -> Option<(String, Bytes)> {
    let end = saved.iter().position(|byte| *byte == b'\n')?;
    Some((String::from_utf8_lossy(&saved[..end]).into_owned(), saved.slice(end + 1..)))
}
