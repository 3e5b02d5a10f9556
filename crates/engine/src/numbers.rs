//! Task numbers, set aside in blocks so that a new task costs no question to the store.

use std::{
    ops::Range,
    sync::{Mutex, MutexGuard, PoisonError},
};

use crate::{error::Result, ids::TaskNo, store::Store};

/// How many numbers are set aside at a time; a restart skips what is left of a block.
const BLOCK: i64 = 65_536;

/// Hands out task numbers, each once.
#[derive(Default)]
pub(crate) struct Numbers {
    left: Mutex<Range<i64>>,
    /// One at a time fetches a new block.
    refill: tokio::sync::Mutex<()>,
}

impl Numbers {
    pub(crate) async fn next(&self, store: &dyn Store) -> Result<TaskNo> {
        if let Some(number) = self.left().next() {
            return Ok(TaskNo(number));
        }
        let _refilling = self.refill.lock().await;
        loop {
            // Somebody else may have fetched the block meanwhile, and others may have used it up.
            if let Some(number) = self.left().next() {
                return Ok(TaskNo(number));
            }
            let TaskNo(first) = store.reserve(BLOCK).await?;
            *self.left() = first..first + BLOCK;
        }
    }

    fn left(&self) -> MutexGuard<'_, Range<i64>> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
