//! Search over the agents of a tenant and the skills on their public cards.

use std::sync::Arc;

use protocol::model::AgentSkill;

use super::{
    RegisteredAgent,
    search::{Document, Field, Index},
};
use crate::skill::Skill;

/// The index over the enabled agents of a tenant. What only extended cards show is not in it.
#[derive(Debug)]
pub(super) struct AgentSearch {
    entries: Vec<Entry>,
    index: Index,
}

/// A document of the index.
#[derive(Debug)]
struct Entry {
    agent: Arc<RegisteredAgent>,
    /// `None` is the agent itself.
    skill: Option<Arc<Skill>>,
}

/// An agent that matches a query.
#[derive(Clone, Debug)]
pub struct FoundAgent<'a> {
    /// The agent.
    pub agent: &'a Arc<RegisteredAgent>,
    /// Its skills that match, best first.
    pub skills: Vec<&'a AgentSkill>,
}

impl AgentSearch {
    pub(super) fn new<'a>(agents: impl Iterator<Item = &'a Arc<RegisteredAgent>>) -> Self {
        let entries: Vec<Entry> = agents.flat_map(entries).collect();
        let index = Index::new(entries.iter().map(Entry::document));
        Self { entries, index }
    }

    /// The agents of the best `max` documents, each where its best document is.
    pub(super) fn find(&self, query: &str, max: usize) -> Vec<FoundAgent<'_>> {
        let mut found: Vec<FoundAgent<'_>> = Vec::new();
        for hit in self.index.search(query, max).hits {
            let Entry { agent, skill } = &self.entries[hit.document];
            let skill = skill.as_ref().map(|skill| &skill.card);
            match found.iter_mut().find(|one| Arc::ptr_eq(one.agent, agent)) {
                Some(one) => one.skills.extend(skill),
                None => found.push(FoundAgent { agent, skills: skill.into_iter().collect() }),
            }
        }
        found
    }
}

/// An agent and its public skills.
fn entries(agent: &Arc<RegisteredAgent>) -> Vec<Entry> {
    let skills = agent.skills().iter().filter(|skill| skill.is_public()).map(|skill| Some(Arc::clone(skill)));
    let entry = |skill| Entry { agent: Arc::clone(agent), skill };
    [None].into_iter().chain(skills).map(entry).collect()
}

impl Entry {
    fn document(&self) -> Document<'_> {
        let info = self.agent.info();
        let Some(skill) = &self.skill else {
            let document = Document::new(&info.id).with(Field::Name, &info.name);
            return document.with(Field::Description, &info.description);
        };
        let document = Document::of_skill(&skill.card);
        match skill.input_schema() {
            Some(schema) => document.with_schema(schema),
            None => document,
        }
    }
}
