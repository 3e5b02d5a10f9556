//! Allocates task numbers in blocks, so that a new task needs no extra store round trip.

use std::{
    ops::Range,
    sync::{Mutex, MutexGuard, PoisonError},
};

use crate::{error::Result, ids::TaskNo, store::Store};

/// Numbers reserved at a time; a restart skips the rest of a block.
const BLOCK: i64 = 65_536;

/// Hands out each task number once.
#[derive(Default)]
pub(crate) struct TaskNumbers {
    block: Mutex<Range<i64>>,
    /// Held while a new block is reserved, so that only one caller does it.
    refill: tokio::sync::Mutex<()>,
}

impl TaskNumbers {
    pub(crate) async fn next(&self, store: &dyn Store) -> Result<TaskNo> {
        if let Some(number) = self.block().next() {
            return Ok(TaskNo(number));
        }
        let _refilling = self.refill.lock().await;
        loop {
            // Another caller may have reserved a block meanwhile, and others may have used it up.
            if let Some(number) = self.block().next() {
                return Ok(TaskNo(number));
            }
            let TaskNo(first) = store.reserve(BLOCK).await?;
            *self.block() = first..first + BLOCK;
        }
    }

    fn block(&self) -> MutexGuard<'_, Range<i64>> {
        self.block.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
