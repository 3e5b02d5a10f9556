//! Hands a turn to another agent: by the skill that was named, else by what is said, else it asks.
//!
//! The other agent takes the very same turn, so there is one task. It hears the name too, so a router behind a router
//! may hear one that is none of its own: then it is the other's. Which one it was is kept for the task's later
//! turns: everything saved begins with the skill's id and a line feed, and the rest is the other agent's own.

use std::sync::Arc;

use bytes::Bytes;
use engine::{Agent, ExecutionPolicy, OnCrash, Outcome, Turn, Update, Updates};
use futures_util::{FutureExt as _, future::BoxFuture};
use protocol::{Json, Part, json::write::Writer, model::AgentSkill};

/// Hands turns to other agents.
pub struct Router(Vec<Route>);

/// One of the agents a router can reach.
pub struct Route {
    skill: AgentSkill,
    agent: Arc<dyn Agent>,
    /// Words that ask for it, in lower case.
    words: Vec<String>,
}

impl Route {
    /// The agent behind a skill. The skill's id and tags are the words that ask for it.
    pub fn new(skill: AgentSkill, agent: Arc<dyn Agent>) -> Self {
        let words = skill.tags.iter().chain([&skill.id]).map(|word| word.to_lowercase()).collect();
        Self { skill, agent, words }
    }

    /// More words that ask for it.
    #[must_use]
    pub fn with_words(mut self, words: impl IntoIterator<Item = String>) -> Self {
        self.words.extend(words);
        self
    }

    fn is(&self, skill: &str) -> bool {
        self.skill.id == skill
    }
}

impl Router {
    /// A router to these agents.
    pub fn new(routes: Vec<Route>) -> Self {
        Self(routes)
    }

    /// The skill that was named, or the one this task has had before, or the one the words ask for.
    fn choose(&self, turn: &Turn, before: Option<&str>) -> Option<&Route> {
        let find = |skill: &str| self.0.iter().find(|route| route.is(skill));
        let known = turn.skill.as_deref().and_then(find).or_else(|| before.and_then(find));
        known.or_else(|| self.understand(&turn.message.text()))
    }

    /// One of a skill's own examples, or the first word that asks for one skill and no other.
    fn understand(&self, text: &str) -> Option<&Route> {
        let example = |route: &&Route| route.skill.examples.iter().any(|example| example == text.trim());
        let asked = |word: &str| {
            let mut routes = self.0.iter().filter(|route| route.words.iter().any(|known| known == word));
            routes.next().filter(|_| routes.next().is_none())
        };
        let text = text.to_lowercase();
        let words = text.split(|character: char| !(character.is_alphanumeric() || character == '-'));
        self.0.iter().find(example).or_else(|| words.map(asked).find_map(|route| route))
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
        // What another skill has saved means nothing to this one.
        turn.saved = saved.filter(|saved| before.is_some_and(|skill| route.is(&skill)) && !saved.is_empty());
        let named = turn.skill.as_deref().is_some_and(|skill| route.is(skill));
        let mark = format!("{}\n", route.skill.id);
        let (agent, inner) = (Arc::clone(&route.agent), out.marked(mark.as_bytes()));
        async move {
            if !named && turn.saved.is_none() {
                inner.say([Update::Save(Bytes::new())]).await;
            }
            agent.run(turn, inner).await
        }
        .boxed()
    }

    /// What holds for every agent that can be reached.
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

/// The skill's id and what its agent saved.
fn unpack(saved: &Bytes) -> Option<(String, Bytes)> {
    let end = saved.iter().position(|byte| *byte == b'\n')?;
    Some((String::from_utf8_lossy(&saved[..end]).into_owned(), saved.slice(end + 1..)))
}
