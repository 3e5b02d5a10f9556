//! Checks that are too large for the threads that serve requests.

use std::time::Duration;

use engine::LargeCheck;
use tokio::{sync::Semaphore, task::spawn_blocking};

use super::{Budget, Schema, Tree};

/// How long a large check may take.
const DEADLINE: Duration = Duration::from_millis(50);
/// How many run at the same time: they need a processor each, and threads that others need too.
const PLACES: usize = 2;

static FREE: Semaphore = Semaphore::const_new(PLACES);

/// A check of so many steps: it waits for a place, then it runs within the deadline. The place is taken until the check ends,
/// also when its caller does not wait.
#[expect(clippy::async_yields_async, reason = "its start may be recorded before the second future runs")]
pub(super) fn check(schema: Schema, root: &'static str, tree: Tree, steps: u64) -> LargeCheck {
    Box::pin(async move {
        let place = FREE.acquire().await.expect("it is never closed");
        let check = async move {
            let checked = spawn_blocking(move || {
                let _place = place;
                schema.result(root, &tree, steps, &mut Budget::time(DEADLINE))
            });
            checked.await.unwrap_or_else(|_| Err(format!("{root}: the check was interrupted; try again")))
        };
        Box::pin(check) as _
    })
}
