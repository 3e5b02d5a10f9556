//! Checks that are too large for the threads that serve requests.
//!
//! Few run at the same time. Of those that clients cause, few wait, because each keeps its value in memory: beyond that, a
//! check is refused, and its caller is asked to try again. Results have places of their own and are not refused: their
//! number is that of the runs.

use std::time::Duration;

use engine::SchemaCheck;
use tokio::{sync::Semaphore, task::spawn_blocking};

use super::{Budget, Schema, Tree};

/// How long a large check may take.
const DEADLINE: Duration = Duration::from_millis(50);
/// How many run at the same time: they need a processor each, and threads that others need too.
const PLACES: usize = 2;
/// How many of clients' values may wait or be checked: the last one waits for 3 seconds at most.
const MAX_ARGUMENTS: usize = 128;
/// How results are called.
const RESULT: &str = "result";

/// The places of checks.
pub(super) struct Places {
    free: Semaphore,
    /// One for each check that may still be taken.
    unfinished: Semaphore,
}

static OF_ARGUMENTS: Places = Places::new(MAX_ARGUMENTS);
static OF_RESULTS: Places = Places::new(Semaphore::MAX_PERMITS);

impl Places {
    pub(super) const fn new(max_unfinished: usize) -> Self {
        Self { free: Semaphore::const_new(PLACES), unfinished: Semaphore::const_new(max_unfinished) }
    }

    /// The places for a value that is called so.
    pub(super) fn of(root: &str) -> &'static Self {
        if root == RESULT { &OF_RESULTS } else { &OF_ARGUMENTS }
    }

    /// A check of so many steps: it waits for a place, then it runs within the deadline. The place is taken until the
    /// check ends, also when its caller does not wait.
    #[expect(clippy::async_yields_async, reason = "its start may be recorded before the second future runs")]
    pub(super) fn check(
        &'static self,
        schema: Schema,
        root: &'static str,
        tree: Tree,
        steps: u64,
    ) -> SchemaCheck {
        let Ok(taken) = self.unfinished.try_acquire() else {
            return SchemaCheck::Done(Err(format!(
                "{root}: the server is too busy to check such a large value; try again later"
            )));
        };
        SchemaCheck::Large(Box::pin(async move {
            let place = self.free.acquire().await.expect("it is never closed");
            let check = async move {
                let checked = spawn_blocking(move || {
                    let _places = (taken, place);
                    schema.prepare(steps);
                    schema.result(root, &tree, steps, &mut Budget::time(DEADLINE))
                });
                checked.await.unwrap_or_else(|_| Err(format!("{root}: the check was interrupted; try again")))
            };
            Box::pin(check) as _
        }))
    }
}
