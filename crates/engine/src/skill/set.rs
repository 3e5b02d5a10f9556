//! The skills of one agent.

use std::{collections::HashMap, sync::Arc};

use protocol::model::AgentSkill;

use super::{Skill, select::Candidates};
use crate::agent::{Agent as _, DynAgent, ExecutionPolicy};

/// The skills of an agent, in card order. Every clone is the same set.
#[derive(Clone)]
pub struct SkillSet {
    known: Arc<KnownSkills>,
    /// What has skills that are not known yet.
    pending: Arc<[String]>,
    hidden: Arc<HiddenSkills>,
}

/// Skills that are on no card and that no caller can name. Work of an agent can call them
/// ([`Turn::call`](crate::Turn::call)), unless the agent has another one with the same id. Agents may share them.
#[derive(Default)]
pub struct HiddenSkills {
    by_id: HashMap<String, Arc<Skill>>,
    /// What has skills that are not known yet.
    pending: Vec<String>,
}

impl HiddenSkills {
    /// These skills; those of `pending` are not known yet.
    pub fn new(skills: impl IntoIterator<Item = Skill>, pending: Vec<String>) -> Self {
        let by_id = skills.into_iter().map(|skill| (skill.id().to_owned(), Arc::new(skill))).collect();
        Self { by_id, pending }
    }
}

struct KnownSkills {
    list: Vec<Arc<Skill>>,
    /// The position of each skill, by id. The first of two with the same id counts.
    positions: HashMap<String, usize>,
    work: Work,
}

/// What does the work of the skills.
enum Work {
    /// One agent does it for all of them, and for messages without a skill, which is a skill of its own: its clients are
    /// never asked which skill they want.
    Shared(Arc<Skill>),
    /// Each skill has its own: one of them is selected for each task.
    Separate {
        /// For callers to whom the extended card is open.
        all: Box<Candidates>,
        /// For other callers; `None` if these are the same.
        public: Option<Box<Candidates>>,
    },
}

impl SkillSet {
    /// The skills of an agent that does the work of all of them, and knows what to do without one.
    pub fn shared(work: DynAgent, skills: impl IntoIterator<Item = Skill>) -> Self {
        let own = Arc::new(Skill::new(AgentSkill::default(), work));
        Self::with(skills.into_iter().map(Arc::new).collect(), |_| Work::Shared(own))
    }

    /// The same with what the card shows of them.
    pub fn of_cards(work: DynAgent, cards: impl IntoIterator<Item = AgentSkill>) -> Self {
        let skills: Vec<Skill> = cards.into_iter().map(|card| Skill::new(card, work.clone())).collect();
        Self::shared(work, skills)
    }

    /// Skills that have work of their own. Indexes them for the choice by text, which takes about 0.1 s for 15,000 of them.
    pub fn separate(skills: impl IntoIterator<Item = Skill>) -> Self {
        Self::with(skills.into_iter().map(Arc::new).collect(), |skills| {
            let public = |position: &usize| skills[*position].is_public();
            let is_partly_public = !skills.iter().all(|skill| skill.is_public());
            Work::Separate {
                all: Box::new(Candidates::new(skills, 0..skills.len())),
                public: is_partly_public
                    .then(|| Box::new(Candidates::new(skills, (0..skills.len()).filter(public)))),
            }
        })
    }

    fn with(skills: Vec<Arc<Skill>>, work: impl FnOnce(&[Arc<Skill>]) -> Work) -> Self {
        let reversed = skills.iter().enumerate().rev();
        let positions = reversed.map(|(position, skill)| (skill.id().to_owned(), position)).collect();
        let work = work(&skills);
        Self {
            known: Arc::new(KnownSkills { list: skills, positions, work }),
            pending: Arc::default(),
            hidden: Arc::default(),
        }
    }

    /// Sets what has further skills that are not known yet.
    #[must_use]
    pub fn with_pending(self, pending: impl Into<Arc<[String]>>) -> Self {
        Self { pending: pending.into(), ..self }
    }

    /// Sets the skills that only work of the agent can call.
    #[must_use]
    pub fn with_hidden(self, hidden: impl Into<Arc<HiddenSkills>>) -> Self {
        Self { hidden: hidden.into(), ..self }
    }

    /// The same set with one skill changed; the empty id is what the agent does without one.
    #[must_use]
    pub(crate) fn with_skill(&self, id: &str, change: impl FnOnce(&mut Skill)) -> Self {
        let mut skills: Vec<Skill> = self.iter().map(|skill| Skill::clone(skill)).collect();
        let mut own = self.own().map(|own| Skill::clone(own));
        if let Some(skill) = own.iter_mut().chain(&mut skills).find(|skill| skill.id() == id) {
            change(skill);
        }
        let changed = match own {
            Some(own) => {
                let own = Arc::new(own);
                Self::with(skills.into_iter().map(Arc::new).collect(), |_| Work::Shared(own))
            }
            None => Self::separate(skills),
        };
        Self { pending: Arc::clone(&self.pending), hidden: Arc::clone(&self.hidden), ..changed }
    }

    /// All skills, in card order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Arc<Skill>> + Clone {
        self.known.list.iter()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.known.list.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.known.list.is_empty()
    }

    /// The skill with this id.
    pub fn find(&self, id: &str) -> Option<&Arc<Skill>> {
        self.known.positions.get(id).map(|position| &self.known.list[*position])
    }

    /// The skill that work of the agent calls by this id.
    pub(super) fn callable(&self, id: &str) -> Option<&Arc<Skill>> {
        self.find(id).or_else(|| self.hidden.by_id.get(id))
    }

    /// The ids of the skills that work of the agent can call, in order.
    pub(super) fn callable_ids(&self) -> Vec<&str> {
        let mut hidden: Vec<&str> = self.hidden.by_id.keys().map(String::as_str).collect();
        hidden.sort_unstable();
        self.iter().map(|skill| skill.id()).chain(hidden).collect()
    }

    /// What has skills that are not known yet and that work of the agent can call.
    pub(super) fn callable_pending(&self) -> Vec<&str> {
        self.pending.iter().chain(&self.hidden.pending).map(String::as_str).collect()
    }

    /// The skill at a position in card order.
    pub(crate) fn at(&self, position: usize) -> &Arc<Skill> {
        &self.known.list[position]
    }

    /// What has skills that are not known yet.
    pub(crate) fn pending(&self) -> &[String] {
        &self.pending
    }

    /// What the agent does without a skill, if it does the work of all of them.
    pub(super) fn own(&self) -> Option<&Arc<Skill>> {
        match &self.known.work {
            Work::Shared(own) => Some(own),
            Work::Separate { .. } => None,
        }
    }

    /// The skills among which a message chooses.
    ///
    /// # Errors
    ///
    /// The agent does the work of all of them: what it does without one.
    pub(super) fn candidates(&self, sees_extended: bool) -> Result<&Candidates, &Arc<Skill>> {
        match &self.known.work {
            Work::Shared(own) => Err(own),
            Work::Separate { public: Some(public), .. } if !sees_extended => Ok(public),
            Work::Separate { all, .. } => Ok(all),
        }
    }

    /// What the work declares about runs of a task without a skill.
    pub(crate) fn shared_policy(&self) -> ExecutionPolicy {
        self.own().map(|own| own.work.policy()).unwrap_or_default()
    }

    /// The agents that do the work.
    pub(crate) fn works(&self) -> impl Iterator<Item = &DynAgent> {
        let separate = match &self.known.work {
            Work::Shared(_) => &[][..],
            Work::Separate { .. } => &self.known.list[..],
        };
        self.own().into_iter().chain(separate).chain(self.hidden.by_id.values()).map(|skill| &skill.work)
    }
}

/// An agent without skills.
impl From<DynAgent> for SkillSet {
    fn from(work: DynAgent) -> Self {
        Self::shared(work, [])
    }
}

impl std::fmt::Debug for SkillSet {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_list().entries(self.iter().map(|skill| skill.id())).finish()
    }
}
