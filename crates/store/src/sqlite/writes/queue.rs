//! The writer's queue: counts the bytes of what is queued, and forms batches that are bounded in bytes.

use std::{
    sync::{
        Arc,
        mpsc::{self, RecvTimeoutError},
    },
    time::Duration,
};

use engine::metrics::StoreMetrics;

/// Maximum number of jobs in one batch.
const MAX_BATCH_JOBS: usize = 256;
/// Maximum size of a batch. A single larger job is a batch of its own.
const MAX_BATCH_BYTES: usize = 8 << 20;
/// Queued bytes above which the queue is full: a few of the largest tasks, and what a disk writes in a few seconds.
const MAX_QUEUE_BYTES: i64 = 256 << 20;

/// The sending side. Cheap to clone.
pub(crate) struct JobSender<T> {
    jobs: mpsc::Sender<(T, usize)>,
    /// Counts the bytes that are queued.
    metrics: Arc<StoreMetrics>,
}

/// The writer's side.
pub(crate) struct JobQueue<T> {
    jobs: mpsc::Receiver<(T, usize)>,
    metrics: Arc<StoreMetrics>,
    /// A job that did not fit into the last batch.
    next: Option<(T, usize)>,
}

/// An empty queue, whose bytes are counted here.
pub(crate) fn queue<T>(metrics: Arc<StoreMetrics>) -> (JobSender<T>, JobQueue<T>) {
    let (sender, jobs) = mpsc::channel();
    (JobSender { jobs: sender, metrics: Arc::clone(&metrics) }, JobQueue { jobs, metrics, next: None })
}

impl<T> Clone for JobSender<T> {
    fn clone(&self) -> Self {
        Self { jobs: self.jobs.clone(), metrics: Arc::clone(&self.metrics) }
    }
}

impl<T> JobSender<T> {
    /// Queues a job of about this many bytes; `false` if the writer has stopped, and the job is dropped.
    pub(crate) fn send(&self, job: T, bytes: usize) -> bool {
        self.metrics.queued_bytes.add(signed(bytes));
        let sent = self.jobs.send((job, bytes)).is_ok();
        if !sent {
            self.metrics.queued_bytes.add(-signed(bytes));
        }
        sent
    }

    /// Whether so much is queued that jobs which can be rejected should be.
    pub(crate) fn is_full(&self) -> bool {
        self.metrics.queued_bytes.get() > MAX_QUEUE_BYTES
    }
}

impl<T> JobQueue<T> {
    /// Moves what is queued into `batch`, in order and within its bounds; waits only for the first job. Returns the
    /// size of the batch, for [`release`](Self::release).
    pub(crate) fn next_batch(
        &mut self,
        batch: &mut Vec<T>,
        timeout: Duration,
    ) -> Result<usize, RecvTimeoutError> {
        let (first, mut bytes) = match self.next.take() {
            Some(next) => next,
            None => self.jobs.recv_timeout(timeout)?,
        };
        batch.push(first);
        while batch.len() < MAX_BATCH_JOBS {
            let Ok((job, more)) = self.jobs.try_recv() else { break };
            if bytes + more > MAX_BATCH_BYTES {
                self.next = Some((job, more));
                break;
            }
            bytes += more;
            batch.push(job);
        }
        Ok(bytes)
    }

    /// A batch is written: its bytes are no longer queued.
    pub(crate) fn release(&self, bytes: usize) {
        self.metrics.queued_bytes.add(-signed(bytes));
    }
}

fn signed(bytes: usize) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The batches of a queue that holds jobs of these sizes.
    fn batches(sizes: &[usize]) -> Vec<Vec<usize>> {
        let (sender, mut queue) = queue(Arc::default());
        for size in sizes {
            sender.send(*size, *size);
        }
        drop(sender);
        let mut batches = Vec::new();
        let mut batch = Vec::new();
        while let Ok(bytes) = queue.next_batch(&mut batch, Duration::ZERO) {
            assert_eq!(bytes, batch.iter().sum::<usize>());
            queue.release(bytes);
            batches.push(std::mem::take(&mut batch));
        }
        assert_eq!(queue.metrics.queued_bytes.get(), 0);
        batches
    }

    #[test]
    fn batches_are_bounded_in_bytes_and_keep_the_order() {
        const MIB: usize = 1 << 20;
        assert_eq!(batches(&[3 * MIB, 5 * MIB, 1]), [vec![3 * MIB, 5 * MIB], vec![1]]);
        assert_eq!(batches(&[1, 30 * MIB, 2, 3]), [vec![1], vec![30 * MIB], vec![2, 3]]);
        assert_eq!(batches(&[30 * MIB, 30 * MIB]), [vec![30 * MIB], vec![30 * MIB]]);
        let many = batches(&[1; 600]);
        assert_eq!(many.iter().map(Vec::len).collect::<Vec<_>>(), [256, 256, 88]);
    }

    #[test]
    fn queue_is_full_until_its_jobs_are_written() {
        let (sender, mut queue) = queue(Arc::default());
        sender.send((), MAX_QUEUE_BYTES as usize);
        assert!(!sender.is_full());
        sender.send((), 1);
        assert!(sender.is_full());
        let mut batch = Vec::new();
        let bytes = queue.next_batch(&mut batch, Duration::ZERO).unwrap();
        assert!(sender.is_full(), "a batch in progress is still in memory");
        queue.release(bytes);
        assert!(!sender.is_full());
    }
}
