//! Task numbers, set aside in blocks so that a new task costs no question to the store.

use tokio::sync::Mutex;

use crate::{error::Result, ids::TaskNo, store::Store};

/// How many numbers are set aside at a time; a restart skips what is left of a block.
const BLOCK: i64 = 65_536;

/// Hands out task numbers, each once.
#[derive(Default)]
pub(crate) struct Numbers {
    left: Mutex<std::ops::Range<i64>>,
}

impl Numbers {
    pub(crate) async fn next(&self, store: &dyn Store) -> Result<TaskNo> {
        let mut left = self.left.lock().await;
        if left.is_empty() {
            let TaskNo(first) = store.reserve(BLOCK).await?;
            *left = first..first + BLOCK;
        }
        Ok(TaskNo(left.next().expect("the block was just filled")))
    }
}
