//! A receiver of notifications: an HTTP/1.1 server on a loopback port, which verifies what arrives, records it and responds
//! as it is told.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use aws_lc_rs::{digest, hmac};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::ledger::{Arrival, Ledger};
use super::token;

/// How far the time of a notification may be from ours.
const TOLERANCE_SECONDS: u64 = 60;

/// How a receiver treats a notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// 200, after this time.
    Accept(Duration),
    /// Another status, perhaps with `Retry-After` in seconds.
    Refuse(u16, Option<u64>),
    /// No response for this time, then the end of the connection.
    Stall(Duration),
    /// The connection is reset.
    Reset,
}

/// Decides about a notification: the number of the task, and how often this notification has arrived before.
pub(crate) type Decide = Arc<dyn Fn(u64, usize) -> Answer + Send + Sync>;

/// Serves until it is dropped.
pub(crate) struct Receiver {
    pub(crate) address: SocketAddr,
    _serving: JoinSet<()>,
}

impl Receiver {
    /// Receives at a free port, or at this address.
    pub(crate) async fn start(
        address: Option<SocketAddr>,
        ledger: Arc<Ledger>,
        decide: Decide,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind(address.unwrap_or_else(|| ([127, 0, 0, 1], 0).into())).await?;
        let address = listener.local_addr()?;
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let (ledger, decide) = (Arc::clone(&ledger), Arc::clone(&decide));
                connections.spawn(async move { serve(stream, &ledger, &decide).await });
                while connections.try_join_next().is_some() {}
            }
        });
        Ok(Self { address, _serving: serving })
    }
}

/// Serves the requests of a connection until one of the two sides ends it.
async fn serve(stream: TcpStream, ledger: &Ledger, decide: &Decide) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut stream = BufReader::new(stream);
    while let Some(request) = read(&mut stream).await? {
        let number = request.path.trim_start_matches('/').parse().unwrap_or(u64::MAX);
        let id = request.header("webhook-id").to_owned();
        let answer = decide(number, ledger.earlier(number, &id));
        let arrival = arrival(number, &request, ledger.boot(), matches!(answer, Answer::Accept(_)));
        ledger.record(number, arrival);
        match answer {
            Answer::Accept(delay) => {
                sleep(delay).await;
                respond(&mut stream, 200, "").await?;
            }
            Answer::Refuse(status, retry_after) => {
                let header = retry_after.map_or_else(String::new, |wait| format!("retry-after: {wait}\r\n"));
                respond(&mut stream, status, &header).await?;
            }
            Answer::Stall(time) => {
                sleep(time).await;
                return Ok(());
            }
            Answer::Reset => return stream.get_ref().set_zero_linger(),
        }
    }
    Ok(())
}

async fn respond(stream: &mut BufReader<TcpStream>, status: u16, header: &str) -> io::Result<()> {
    stream.write_all(format!("HTTP/1.1 {status} -\r\n{header}content-length: 0\r\n\r\n").as_bytes()).await?;
    stream.flush().await
}

struct Request {
    path: String,
    /// By their names in lower case.
    headers: HashMap<String, String>,
    body: Vec<u8>,
}

impl Request {
    fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }
}

/// The next request; `None` at the end of the connection.
async fn read(stream: &mut BufReader<TcpStream>) -> io::Result<Option<Request>> {
    let mut line = String::new();
    if stream.read_line(&mut line).await? == 0 {
        return Ok(None);
    }
    let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
    let mut headers = HashMap::new();
    loop {
        line.clear();
        stream.read_line(&mut line).await?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let length = headers.get("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await?;
    Ok(Some(Request { path, headers, body }))
}

fn arrival(number: u64, request: &Request, boot: u64, accepted: bool) -> Arrival {
    let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let arrival = Arrival {
        at: Instant::now(),
        boot,
        id: request.header("webhook-id").to_owned(),
        body: digest::digest(&digest::SHA256, &request.body).as_ref().to_vec(),
        task: text(&body["task"]["id"]),
        state: text(&body["task"]["status"]["state"]),
        fault: None,
        accepted,
    };
    let fault =
        fault(number, request).or_else(|| arrival.seq().is_none().then(|| "its id has no number".into()));
    let fault = fault.or_else(|| arrival.task.is_empty().then(|| format!("its body has no task: {body}")));
    Arrival { fault, ..arrival }
}

/// What is wrong with the headers of a notification.
#[expect(
    clippy::disallowed_methods,
    reason = "a receiver compares the time of a signature with its own clock"
)]
fn fault(number: u64, request: &Request) -> Option<String> {
    let [id, at, signature] =
        ["webhook-id", "webhook-timestamp", "webhook-signature"].map(|name| request.header(name));
    let key = token(number);
    let signed = [id.as_bytes(), b".", at.as_bytes(), b".", &request.body].concat();
    let code = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key.as_bytes()), &signed);
    let expected = format!("v1,{}", STANDARD.encode(code));
    if signature != expected {
        return Some(format!("its signature is {signature:?} instead of {expected:?}"));
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs());
    if at.parse::<u64>().map_or(u64::MAX, |at| at.abs_diff(now)) > TOLERANCE_SECONDS {
        return Some(format!("it was signed at {at:?}, and arrived at {now}"));
    }
    if request.header("x-a2a-notification-token") != key {
        return Some("it has not the token of its webhook".into());
    }
    let media_type = request.header("content-type");
    (media_type != "application/a2a+json").then(|| format!("its content type is {media_type:?}"))
}
