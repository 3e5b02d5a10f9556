//! The default agent when there is no configuration: the other built-in agents are its skills.

use engine::{Agent, AgentResult, ExecutionPolicy, OnCrash, Outcome, Skill, SkillSet, Turn};
use protocol::model::AgentSkill;

use super::{Builtin, CATALOGUE, Demo as Part};

pub(super) const ABOUT: &str = "Shows what a2ad does: converts money, gives back what it is given, writes slowly, asks before it proceeds";

/// The same as one skill among others of an agent: it selects a skill of its own, by all messages of the task, so that later
/// turns have the same.
pub(super) struct Demo(SkillSet);

impl Demo {
    pub(super) fn new() -> Self {
        Self(SkillSet::separate(members()))
    }
}

impl Agent for Demo {
    async fn run(&self, mut turn: Turn) -> AgentResult<Outcome> {
        match self.0.choose(&turn.history, &turn.message) {
            Ok((skill, message)) => {
                turn.message = message;
                skill.work.run(turn).await
            }
            Err(question) => Ok(*question),
        }
    }

    /// The most restrictive policy of all its skills.
    fn policy(&self) -> ExecutionPolicy {
        let all: Vec<ExecutionPolicy> = self.0.iter().map(|skill| skill.work.policy()).collect();
        let any = |on_crash| all.iter().any(|policy| policy.on_crash == on_crash);
        let on_crash = [OnCrash::Fail, OnCrash::Resume].into_iter().find(|on_crash| any(*on_crash));
        ExecutionPolicy::default()
            .with_overlap(all.iter().all(|policy| policy.overlap))
            .with_on_crash(on_crash.unwrap_or_default())
    }
}

pub(super) fn skills() -> Vec<AgentSkill> {
    members().map(|skill| skill.card).collect()
}

/// The other agents of the demo, each as a skill.
pub(super) fn members() -> impl Iterator<Item = Skill> {
    CATALOGUE.iter().filter(|row| matches!(row.demo, Part::Skill)).map(Builtin::main_skill)
}
