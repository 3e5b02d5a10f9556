//! A question that the client has not answered, as a backend keeps it that holds something for the answer.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use super::Turn;
use crate::{
    access::scope::Scope,
    error::Result,
    expire::expire,
    runner::Runner,
    store::{Lookup, StepOwner, StoreError, TaskRow},
    task::Reason,
};

/// How often, and how long apart, the task is read until the turn that asks has ended: ten seconds in all.
const MAX_READS: usize = 200;
const READ_DELAY: Duration = Duration::from_millis(50);

/// The question with which a turn is going to end. A backend that keeps something until the client answers, such as an
/// open call of another process, can give it up with [`lose`](Self::lose).
pub struct OpenQuestion {
    runner: Weak<Runner>,
    scope: Scope,
    task: Lookup,
    turn: StepOwner,
}

impl Turn {
    /// The question with which this turn is going to end. `None` in a call of another skill
    /// ([`Turn::call`]): its caller decides what a lost question means.
    pub fn open_question(&self) -> Option<OpenQuestion> {
        let runner = &self.calls.runner;
        let ours = runner.store().ids().parse_task(&self.task_id);
        let task = Lookup { ours, name: self.task_id.clone() };
        self.call_id.is_none().then(|| OpenQuestion {
            runner: Arc::downgrade(runner),
            scope: self.scope.clone(),
            task,
            turn: self.journal.turn,
        })
    }
}

impl OpenQuestion {
    /// No answer can be taken any more: the task fails at once with this text and the reason `elicitation_lost`, unless
    /// the client has answered meanwhile. Nothing happens while the server shuts down. Must be called within a Tokio runtime.
    pub fn lose(self, text: String) {
        let Some(runner) = self.runner.upgrade().filter(|runner| !runner.is_draining()) else { return };
        let spawner = Arc::clone(&runner);
        spawner.spawn(async move {
            if let Err(error) = self.fail(&runner, text).await {
                tracing::warn!(task = %self.task.name, %error, "cannot fail a task whose question is lost");
            }
        });
    }

    async fn fail(&self, runner: &Runner, text: String) -> Result<()> {
        let Some(row) = self.asked(runner).await? else { return Ok(()) };
        if runner.last_turn(&self.scope, &row).await?.map(StepOwner::Turn) != Some(self.turn) {
            // The client has answered already, and was asked something else.
            return Ok(());
        }
        let now = runner.clock().now();
        expire(&**runner.store(), &[row], Reason::QuestionLost, |_| text.clone(), now).await?;
        Ok(())
    }

    /// The task when it waits for its client; `None` if it does something else.
    async fn asked(&self, runner: &Runner) -> Result<Option<TaskRow>> {
        for _ in 0..MAX_READS {
            match runner.store().row(&self.scope, self.task.clone()).await {
                Ok(Some(row)) if row.state.is_interrupted() => return Ok(Some(row)),
                Ok(Some(row)) if !row.state.is_terminal() => {}
                Ok(_) => return Ok(None),
                Err(StoreError::Overloaded) => {}
                Err(error) => return Err(error.into()),
            }
            tokio::select! {
                () = tokio::time::sleep(READ_DELAY) => {}
                () = runner.draining() => return Ok(None),
            }
        }
        Ok(None)
    }
}
