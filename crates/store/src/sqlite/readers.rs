//! The pool of reader threads, each with its own read-only connection.

use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    sync::{Arc, Mutex, PoisonError, mpsc},
    thread::JoinHandle,
};

use engine::store::{ReadFuture, StoreError};
use futures_util::FutureExt as _;
use rusqlite::{Connection, OpenFlags, Transaction};
use tokio::sync::oneshot;

/// Queues reads for the threads. Dropping it ends and joins them.
pub(super) struct ReaderPool {
    jobs: Option<mpsc::Sender<Job>>,
    threads: Vec<JoinHandle<()>>,
}

type Job = Box<dyn FnOnce(&mut Connection) + Send>;

/// Why a read failed.
pub(super) enum Failure {
    Sql(rusqlite::Error),
    Store(StoreError),
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
    pub(super) fn start(path: &Path, count: usize) -> rusqlite::Result<Self> {
        let (jobs, queue) = mpsc::channel();
        let queue = Arc::new(Mutex::new(queue));
        let mut threads = Vec::with_capacity(count);
        for number in 0..count.max(1) {
            let connection = connect(path)?;
            let queue = Arc::clone(&queue);
            let thread = std::thread::Builder::new().name(format!("a2ad-read-{number}"));
            threads
                .push(thread.spawn(move || work(connection, &queue)).expect("the system can start a thread"));
        }
        Ok(Self { jobs: Some(jobs), threads })
    }

    /// Runs a read inside one transaction, so that it sees one snapshot.
    pub(super) fn read<T: Send + 'static>(
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

fn work(mut connection: Connection, queue: &Mutex<mpsc::Receiver<Job>>) {
    loop {
        // The lock is held while waiting: one thread waits for the next job, the others for the lock.
        let job = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
        match job {
            Ok(job) => {
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
pub(super) fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".into())
}

/// Opens a read-only connection.
pub(super) fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(std::time::Duration::from_secs(5))?;
    // Enough cache for the inner B-tree pages of a million tasks beside leaf pages that are read once.
    connection.pragma_update(None, "cache_size", -12_288)?;
    connection.set_prepared_statement_cache_capacity(64);
    Ok(connection)
}
