//! Delegates a turn to another agent: by the requested skill, else by the data or the text of the message if they are
//! clear, else it asks the client.
//!
//! The other agent runs the same turn, so there is one task. It also gets the requested skill id; a router
//! behind a router ignores an id it does not have. The choice is kept for the task's later turns: every
//! checkpoint starts with the skill's id and a line feed, and the rest belongs to the other agent.
//!
//! A skill that is only for callers with a credential is neither chosen for others nor shown to them, and does not change
//! what is chosen for them: they have their own list of routes and their own search.

mod data_match;
mod question;
mod route;
mod text_match;

use std::{collections::HashMap, time::Duration};

use bytes::Bytes;
use engine::{Agent, AgentResult, ExecutionPolicy, OnCrash, Outcome, Scope, Turn};
use protocol::{Json, Message, TaskId};

pub use route::{InputSchema, Route};
use text_match::TextMatch;

/// How long a turn waits whose skill is not known yet: with the delays between attempts, longer than a server may take
/// to start.
const STARTING_DELAY: Duration = Duration::from_secs(10);
/// Up to this number of skills, a question lists all of them; of more skills, those that match best.
const MAX_LISTED: usize = 20;
/// The most skills that are listed because they match.
const MAX_SUGGESTED: usize = 10;

/// Delegates turns to other agents.
pub struct Router {
    routes: Vec<Route>,
    /// The position of each route, by the id of its skill.
    positions: HashMap<String, usize>,
    /// The routes of callers with a credential: all of them.
    all: RouteList,
    /// The routes of other callers; `None` if they are the same.
    public: Option<RouteList>,
    /// The most restrictive policy of all agents.
    policy: ExecutionPolicy,
    /// What has skills that are not known yet.
    pending: Vec<String>,
    unknown_skill: UnknownSkill,
}

/// Some of the routes, by position.
struct RouteList {
    members: Vec<usize>,
    /// Built with the router, so that no message waits for it.
    text_match: TextMatch,
}

/// What a router does with a turn whose skill it does not have.
enum UnknownSkill {
    /// Chooses another one: the id may be that of the router itself.
    Ignore,
    /// Fails: the task was accepted when the skill existed.
    Fail,
}

impl Router {
    /// A router with these routes. The first one of two with the same id counts. Indexes the skills for the choice by
    /// text, which takes about 0.1 s for 15,000 of them.
    pub fn new(routes: Vec<Route>) -> Self {
        let reversed = routes.iter().enumerate().rev();
        let positions = reversed.map(|(position, route)| (route.skill.id.clone(), position)).collect();
        let has_private = routes.iter().any(|route| route.known_callers_only);
        let is_public = |position: &usize| !routes[*position].known_callers_only;
        let public = has_private.then(|| RouteList::new(&routes, (0..routes.len()).filter(is_public)));
        Self {
            positions,
            all: RouteList::new(&routes, 0..routes.len()),
            public,
            policy: most_restrictive(&routes),
            routes,
            pending: Vec::new(),
            unknown_skill: UnknownSkill::Ignore,
        }
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
        let is_known = !caller.is_anonymous();
        let list = self.public.as_ref().filter(|_| !is_known).unwrap_or(&self.all);
        Routes { router: self, list, is_known }
    }

    /// Whether the skill of a turn may become known when its server has started.
    fn is_starting(&self, routes: Routes<'_>, requested: Option<&str>) -> bool {
        let unknown = || requested.is_some_and(|skill| routes.find(skill).is_none());
        !self.pending.is_empty() && (routes.is_empty() || unknown())
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
    fn unavailable(&self, routes: Routes<'_>, turn: &Turn, requested: Option<&str>) -> Option<Outcome> {
        let unknown = requested.filter(|skill| routes.find(skill).is_none());
        match (unknown, &self.unknown_skill) {
            (Some(skill), UnknownSkill::Fail) => Some(removed(turn, skill)),
            _ if routes.is_empty() => Some(Outcome::reject("this agent has no skill for this caller")),
            _ => None,
        }
    }
}

impl RouteList {
    fn new(routes: &[Route], members: impl Iterator<Item = usize>) -> Self {
        let members: Vec<usize> = members.collect();
        let text_match = TextMatch::new(members.iter().map(|position| &routes[*position]));
        Self { members, text_match }
    }
}

/// The routes that exist for one caller.
#[derive(Clone, Copy)]
struct Routes<'a> {
    router: &'a Router,
    list: &'a RouteList,
    /// Whether the caller has a credential.
    is_known: bool,
}

impl<'a> Routes<'a> {
    fn is_empty(self) -> bool {
        self.list.members.is_empty()
    }

    fn iter(self) -> impl Iterator<Item = &'a Route> + Clone {
        self.list.members.iter().map(move |position| &self.router.routes[*position])
    }

    fn member(self, number: usize) -> &'a Route {
        &self.router.routes[self.list.members[number]]
    }

    fn find(self, skill: &str) -> Option<&'a Route> {
        let route = &self.router.routes[*self.router.positions.get(skill)?];
        (self.is_known || !route.known_callers_only).then_some(route)
    }

    /// Chooses by the requested skill, else the task's earlier skill, else the only one, else the data, else the text.
    fn choose(self, turn: &Turn, before: Option<&str>) -> Option<&'a Route> {
        let named = turn.skill.as_deref().and_then(|skill| self.find(skill));
        named
            .or_else(|| before.and_then(|skill| self.find(skill)))
            .or_else(|| self.only())
            .or_else(|| data_match::only_match(&turn.message, self.iter()))
            .or_else(|| self.match_text(&turn.message.text()))
    }

    /// The route of an agent that has one, and will not have others in a moment.
    fn only(self) -> Option<&'a Route> {
        match self.list.members.as_slice() {
            [only] if self.router.pending.is_empty() => Some(&self.router.routes[*only]),
            _ => None,
        }
    }

    fn match_text(self, text: &str) -> Option<&'a Route> {
        let text = text.trim();
        if text.is_empty() {
            return None;
        }
        self.find(text).or_else(|| self.list.text_match.choose(text).map(|number| self.member(number)))
    }

    /// Asks which skill is wanted, with those first that match the message best.
    fn ask(self, message: &Message) -> Outcome {
        let count = self.list.members.len();
        let mut listed = self.list.text_match.best(&message.text(), MAX_SUGGESTED);
        if count <= MAX_LISTED || listed.is_empty() {
            let others: Vec<usize> =
                (0..count).filter(|number| !listed.contains(number)).take(MAX_LISTED).collect();
            listed.extend(others);
        }
        let routes: Vec<&Route> = listed.into_iter().map(|number| self.member(number)).collect();
        question::ask(&routes, count - routes.len())
    }
}

impl Agent for Router {
    async fn run(&self, turn: Turn) -> AgentResult<Outcome> {
        let (before, saved) = turn.saved_bytes().and_then(unpack).unzip();
        let routes = self.routes_of(&turn.scope);
        let requested = turn.skill.as_deref().or(before.as_deref());
        if self.is_starting(routes, requested) {
            return Ok(self.wait_for_start(&turn).await);
        }
        if let Some(outcome) = self.unavailable(routes, &turn, requested) {
            return Ok(outcome);
        }
        let Some(route) = routes.choose(&turn, before.as_deref()) else {
            return Ok(routes.ask(&turn.message));
        };
        // A checkpoint of another skill is not passed on.
        let saved = saved.filter(|saved| before.is_some_and(|skill| route.is(&skill)) && !saved.is_empty());
        let named = turn.skill.as_deref().is_some_and(|skill| route.is(skill));
        let is_new = !named && saved.is_none();
        let asked = question::answered(&turn, &route.skill.id);
        let mut turn = turn.delegate(saved, format!("{}\n", route.skill.id).as_bytes());
        if let Some(asked) = asked {
            turn.message = asked;
        }
        if !route.agent.policy().may_ask {
            turn.will_not_ask();
        }
        if is_new {
            turn.record().clear_saved().await?;
        }
        route.agent.run(turn).await
    }

    fn abandoned(&self, scope: &Scope, task: &TaskId) {
        self.routes.iter().for_each(|route| route.agent.abandoned(scope, task));
    }

    fn policy(&self) -> ExecutionPolicy {
        self.policy
    }
}

/// The most restrictive policy of all agents that a router can reach.
fn most_restrictive(routes: &[Route]) -> ExecutionPolicy {
    let all: Vec<ExecutionPolicy> = routes.iter().map(|route| route.agent.policy()).collect();
    let any = |on_crash| all.iter().any(|policy| policy.on_crash == on_crash);
    let on_crash = [OnCrash::Fail, OnCrash::Resume].into_iter().find(|on_crash| any(*on_crash));
    ExecutionPolicy::default()
        .with_overlap(all.iter().all(|policy| policy.overlap))
        .with_on_crash(on_crash.unwrap_or_default())
        .with_may_ask(all.iter().any(|policy| policy.may_ask))
}

/// The skill was removed after the task was accepted.
pub(super) fn removed(turn: &Turn, skill: &str) -> Outcome {
    let metadata = Json::parse(r#"{"a2ad":{"reason":"skill_removed"}}"#).ok();
    let text = format!("the agent no longer has the skill {skill}");
    let message = Message { metadata, ..turn.reply(text) };
    Outcome::Failed { message: Some(message), retryable: false }
}

/// Splits a checkpoint into the skill's id and the agent's own part.
pub(super) fn unpack(saved: &Bytes) -> Option<(String, Bytes)> {
    let end = saved.iter().position(|byte| *byte == b'\n')?;
    Some((String::from_utf8_lossy(&saved[..end]).into_owned(), saved.slice(end + 1..)))
}
