//! A receiver of push notifications: many ports of this host, which respond 200 at once or hold their responses back.
//!
//! It shares the machine with the server that it measures, so requests are searched, not parsed, and header names have
//! to be in lower case as `a2ad` writes them. A notification without the token, a signature or a completed task is an
//! error; that signatures are right is shown by the proofs of the program, not here. Repetitions are not counted.

use std::collections::HashSet;
use std::io;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use memchr::memmem;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::request::excerpt;

/// The token of every webhook; long enough to be the key of its signatures.
pub const TOKEN: &str = "the-token-of-every-webhook";

const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
/// How long nothing may arrive while notifications are missing.
const STALL_LIMIT: Duration = Duration::from_secs(30);
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// A receiver on several ports. Cheap to clone.
#[derive(Clone)]
pub struct Receiver {
    arrivals: Arc<Mutex<Arrivals>>,
    /// Whether requests are answered.
    released: watch::Sender<bool>,
}

/// What has arrived since the last [`Receiver::hold`].
struct Arrivals {
    /// Each `webhook-id` once.
    ids: HashSet<Vec<u8>>,
    /// How many had arrived when responses were released, and when that was.
    before_release: usize,
    released_at: Instant,
    last_at: Instant,
    /// The first request that was no proper notification.
    error: Option<String>,
}

/// Notifications that arrived after responses were released, and the time from then to the last of them.
pub struct Delivered {
    /// How many.
    pub notifications: usize,
    /// From the release to the last.
    pub time: Duration,
}

impl Receiver {
    /// Listens on this many free ports of the loopback interface and returns their URLs. Responses are not held back.
    pub async fn listen(ports: usize) -> Result<(Self, Vec<String>)> {
        let receiver = Self {
            arrivals: Arc::new(Mutex::new(Arrivals::new(Instant::now()))),
            released: watch::Sender::new(true),
        };
        let mut urls = Vec::with_capacity(ports);
        for _ in 0..ports {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.context("cannot listen")?;
            urls.push(format!("http://{}/", listener.local_addr()?));
            tokio::spawn(receiver.clone().accept(listener));
        }
        Ok((receiver, urls))
    }

    /// Forgets what has arrived, and sends no response until [`Self::release`].
    pub fn hold(&self) {
        self.released.send_replace(false);
        *self.arrivals() = Arrivals::new(Instant::now());
    }

    /// Responds to what is held back and to all that follows.
    pub fn release(&self) {
        let mut arrivals = self.arrivals();
        arrivals.before_release = arrivals.ids.len();
        arrivals.released_at = Instant::now();
        drop(arrivals);
        self.released.send_replace(true);
    }

    /// Waits until this many have arrived since responses were held back. Blocks the thread.
    pub fn wait(&self, notifications: usize) -> Result<Delivered> {
        loop {
            let arrivals = self.arrivals();
            ensure!(arrivals.error.is_none(), "not a notification: {:?}", arrivals.error);
            let (arrived, last_at) = (arrivals.ids.len(), arrivals.last_at.max(arrivals.released_at));
            if arrived >= notifications {
                return Ok(Delivered {
                    notifications: arrived - arrivals.before_release,
                    time: last_at - arrivals.released_at,
                });
            }
            drop(arrivals);
            ensure!(
                last_at.elapsed() < STALL_LIMIT,
                "{arrived} of {notifications} notifications have arrived, and no more come"
            );
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    fn arrivals(&self) -> MutexGuard<'_, Arrivals> {
        self.arrivals.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn accept(self, listener: TcpListener) {
        while let Ok((stream, _)) = listener.accept().await {
            let receiver = self.clone();
            tokio::spawn(async move { receiver.serve(stream).await });
        }
    }

    /// Serves the requests of a connection until the sender closes it.
    async fn serve(self, mut stream: TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        let mut released = self.released.subscribe();
        let mut received = Vec::with_capacity(4 * 1024);
        while let Some((head, length)) = read_request(&mut stream, &mut received).await? {
            self.arrivals().add(&received[..head], &received[head..length]);
            received.drain(..length);
            if released.wait_for(|released| *released).await.is_err() {
                break;
            }
            stream.write_all(RESPONSE).await?;
        }
        Ok(())
    }
}

impl Arrivals {
    fn new(now: Instant) -> Self {
        Self { ids: HashSet::new(), before_release: 0, released_at: now, last_at: now, error: None }
    }

    fn add(&mut self, head: &[u8], body: &[u8]) {
        match check(head, body) {
            Ok(id) => {
                self.ids.insert(id.to_vec());
                self.last_at = Instant::now();
            }
            Err(error) => drop(self.error.get_or_insert(error.to_string())),
        }
    }
}

/// The `webhook-id` of a notification about a completed task.
fn check<'a>(head: &'a [u8], body: &[u8]) -> Result<&'a [u8]> {
    let id = header(head, "webhook-id").context("no webhook-id")?;
    let token = header(head, "x-a2a-notification-token");
    ensure!(token == Some(TOKEN.as_bytes()), "not the token: {}", excerpt(head));
    let signature = header(head, "webhook-signature").unwrap_or_default();
    let is_signed = header(head, "webhook-timestamp").is_some() && signature.starts_with(b"v1,");
    ensure!(is_signed, "no signature: {}", excerpt(head));
    let is_completed = memmem::find(body, b"\"TASK_STATE_COMPLETED\"").is_some();
    ensure!(is_completed, "no completed task: {}", excerpt(body));
    Ok(id)
}

/// The value of a header; names are in lower case.
fn header<'a>(head: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let mark = format!("\r\n{name}: ");
    let value = &head[memmem::find(head, mark.as_bytes())? + mark.len()..];
    Some(&value[..memmem::find(value, b"\r\n")?])
}

/// Reads until `received` begins with a whole request. Returns the lengths of its head and of the request; `None` at the
/// end of the connection.
async fn read_request(stream: &mut TcpStream, received: &mut Vec<u8>) -> io::Result<Option<(usize, usize)>> {
    loop {
        if let Some(end) = memmem::find(received, b"\r\n\r\n") {
            let head = end + 4;
            let length = header(&received[..head], "content-length");
            let length = length.and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok());
            let length: usize = length.ok_or(io::ErrorKind::InvalidData)?;
            if received.len() >= head + length {
                return Ok(Some((head, head + length)));
            }
        }
        if stream.read_buf(received).await? == 0 {
            return Ok(None);
        }
    }
}
