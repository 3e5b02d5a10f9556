//! Lets the queued work of one task be claimed now, instead of at the claimer's next read of the store.

use protocol::TaskState;

use super::Runner;
use crate::{
    error::{Error, Result},
    ids::{Tag, TaskNo},
    store,
};

impl Runner {
    /// Adds the work of a task to what waits for a slot, if it is due and no process holds it. A retry keeps its backoff.
    /// Returns the state of the task; `None` if there is none that is visible.
    ///
    /// The work may be claimed by somebody else meanwhile: then the claim conflicts, and nothing happens.
    pub(crate) async fn wake(&self, no: TaskNo, tag: Tag) -> Result<Option<TaskState>> {
        let Some(work) = self.store.task_work(no, tag).await? else { return Ok(None) };
        let now = self.clock.now();
        let Some(due) = work.queued.filter(|queued| store::is_due(queued.at, now)) else {
            return Ok(Some(work.state));
        };
        if self.is_draining() {
            return Err(Error::later("the server is shutting down; the next one runs this task"));
        }
        self.slots(|scheduler| scheduler.add_due(&due, now, |task| self.asking(task)));
        Ok(Some(work.state))
    }
}
