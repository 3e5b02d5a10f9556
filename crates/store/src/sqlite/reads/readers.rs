//! The pool of reader threads, each with its own read-only connection.

use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    thread::JoinHandle,
};

use engine::store::{ReadFuture, StoreError};
use futures_util::FutureExt as _;
use rusqlite::{Connection, OpenFlags, Transaction};
use tokio::sync::oneshot;

use crate::sqlite::files::open;

/// How many reads may wait; more are rejected with [`StoreError::Overloaded`].
const MAX_QUEUED: usize = 1_024;

/// Queues reads for the threads. Dropping it ends and joins them.
pub(crate) struct ReaderPool {
    jobs: Option<mpsc::Sender<Job>>,
    /// Number of reads that no thread has taken yet.
    queued: Arc<AtomicUsize>,
    threads: Vec<JoinHandle<()>>,
}

type Job = Box<dyn FnOnce(&mut Connection) + Send>;

/// Why a read failed.
pub(crate) enum Failure {
    Sql(rusqlite::Error),
    Store(StoreError),
}

impl Failure {
    /// What is damaged, if the failure is about the record that was read and not about the store.
    pub(crate) fn damage(&self) -> Option<String> {
        use rusqlite::Error;

        match self {
            Self::Store(StoreError::Broken(what)) => Some(what.clone()),
            Self::Sql(
                error @ (Error::FromSqlConversionFailure(..)
                | Error::IntegralValueOutOfRange(..)
                | Error::InvalidColumnType(..)
                | Error::Utf8Error(..)
                | Error::BlobSizeError
                | Error::QueryReturnedNoRows),
            ) => Some(error.to_string()),
            Self::Sql(error) if open::is_corrupt(error) => Some(error.to_string()),
            Self::Sql(_) | Self::Store(_) => None,
        }
    }
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sql(error)
    }
}

impl From<engine::log::Corrupt> for Failure {
    fn from(corrupt: engine::log::Corrupt) -> Self {
        Self::Store(corrupt.into())
    }
}

impl From<Failure> for StoreError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Store(error) => error,
            Failure::Sql(error) => Self::Unavailable(error.to_string()),
        }
    }
}

impl ReaderPool {
    pub(crate) fn start(path: &Path, count: usize) -> rusqlite::Result<Self> {
        let (jobs, queue) = mpsc::channel();
        let queue = Arc::new(Mutex::new(queue));
        let queued = Arc::new(AtomicUsize::new(0));
        let mut threads = Vec::with_capacity(count);
        for number in 0..count.max(1) {
            let connection = connect(path)?;
            let (queue, queued) = (Arc::clone(&queue), Arc::clone(&queued));
            let thread = std::thread::Builder::new().name(format!("a2ad-read-{number}"));
            threads.push(
                thread
                    .spawn(move || work(connection, &queue, &queued))
                    .expect("the system can start a thread"),
            );
        }
        Ok(Self { jobs: Some(jobs), queued, threads })
    }

    /// Runs a read inside one transaction, so that it sees one snapshot. Rejected if too many reads are waiting.
    pub(crate) fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Transaction<'_>) -> Result<T, Failure> + Send + 'static,
    ) -> ReadFuture<T> {
        if self.queued.load(Ordering::Relaxed) >= MAX_QUEUED {
            return std::future::ready(Err(StoreError::Overloaded)).boxed();
        }
        self.read_always(read)
    }

    /// Like [`Self::read`], but is never rejected. For reads of background tasks and of accepted work, which are few.
    pub(crate) fn read_always<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Transaction<'_>) -> Result<T, Failure> + Send + 'static,
    ) -> ReadFuture<T> {
        let (reply, answer) = oneshot::channel();
        let job: Job = Box::new(move |connection| {
            // The caller was cancelled: do not delay other reads.
            if reply.is_closed() {
                return;
            }
            let result = connection.transaction().map_err(Failure::from).and_then(|tx| read(&tx));
            let _ = reply.send(result.map_err(StoreError::from));
        });
        if let Some(jobs) = &self.jobs {
            self.queued.fetch_add(1, Ordering::Relaxed);
            // A rejected job drops its sender, which the receiver reports.
            let _ = jobs.send(job);
        }
        async move {
            answer
                .await
                .unwrap_or_else(|_| Err(StoreError::Unavailable("the reader threads have stopped".into())))
        }
        .boxed()
    }
}

impl Drop for ReaderPool {
    fn drop(&mut self) {
        self.jobs = None;
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn work(mut connection: Connection, queue: &Mutex<mpsc::Receiver<Job>>, queued: &AtomicUsize) {
    loop {
        // The lock is held while waiting: one thread waits for the next job, the others for the lock.
        let job = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
        match job {
            Ok(job) => {
                queued.fetch_sub(1, Ordering::Relaxed);
                // The caller of a job that panics gets an error because the sender is dropped; the thread goes on
                // with the next job.
                if let Err(panic) = catch_unwind(AssertUnwindSafe(|| job(&mut connection))) {
                    tracing::error!(panic = panic_text(&*panic), "a read panicked");
                }
            }
            Err(mpsc::RecvError) => return,
        }
    }
}

/// The panic message.
pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".into())
}

/// Opens a read-only connection.
pub(crate) fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(std::time::Duration::from_secs(5))?;
    // Enough cache for the inner B-tree pages of a million tasks beside leaf pages that are read once.
    connection.pragma_update(None, "cache_size", -12_288)?;
    connection.set_prepared_statement_cache_capacity(64);
    Ok(connection)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn reads_beyond_the_queue_limit_are_rejected() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.db");
        Connection::open(&path).unwrap().execute_batch("CREATE TABLE a (b)").unwrap();
        let pool = ReaderPool::start(&path, 1).unwrap();
        let (started, has_started) = oneshot::channel();
        let (unblock, blocked) = mpsc::channel::<()>();
        let first = pool.read(move |_| {
            let _ = started.send(());
            let _ = blocked.recv();
            Ok(())
        });
        has_started.await.unwrap();
        let waiting: Vec<_> = (0..MAX_QUEUED).map(|number| pool.read(move |_| Ok(number))).collect();
        for _ in 0..3 {
            assert!(matches!(pool.read(|_| Ok(())).await, Err(StoreError::Overloaded)));
        }
        let internal = pool.read_always(|_| Ok(()));
        drop(unblock);
        first.await.unwrap();
        for (number, read) in waiting.into_iter().enumerate() {
            assert_eq!(read.await.unwrap(), number);
        }
        internal.await.unwrap();
        pool.read(|_| Ok(())).await.unwrap();
    }
}
