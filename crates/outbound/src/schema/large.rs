//! Checks that are too large for the threads that serve requests.

use std::time::Duration;

use tokio::{
    sync::{Semaphore, SemaphorePermit},
    task::spawn_blocking,
};

use super::{Budget, Schema, Tree};

/// How long a large check may take.
const DEADLINE: Duration = Duration::from_millis(50);
/// How many run at the same time: they need a processor each, and threads that others need too.
const PLACES: usize = 2;

static FREE: Semaphore = Semaphore::const_new(PLACES);

/// A check that waits for its place.
pub(crate) struct LargeCheck {
    schema: Schema,
    root: &'static str,
    tree: Tree,
    steps: u64,
}

/// A check that may run now.
pub(crate) struct ReadyCheck {
    check: LargeCheck,
    place: SemaphorePermit<'static>,
}

impl LargeCheck {
    pub(super) fn new(schema: Schema, root: &'static str, tree: Tree, steps: u64) -> Self {
        Self { schema, root, tree, steps }
    }

    /// Waits for a place.
    pub(crate) async fn ready(self) -> ReadyCheck {
        let place = FREE.acquire().await.expect("it is never closed");
        ReadyCheck { check: self, place }
    }
}

impl ReadyCheck {
    /// The result, within the deadline. The place is taken until the check ends, also when its caller does not wait.
    pub(crate) async fn run(self) -> Result<(), String> {
        let Self { check: LargeCheck { schema, root, tree, steps }, place } = self;
        let checked = spawn_blocking(move || {
            let _place = place;
            schema.result(root, &tree, steps, &mut Budget::time(DEADLINE))
        });
        checked.await.unwrap_or_else(|_| Err(format!("{root}: the check was interrupted; try again")))
    }
}
