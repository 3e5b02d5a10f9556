//! The HTTP side: takes deliveries, answers them, and hands each to whoever prints it.

use std::{
    collections::{HashSet, VecDeque},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use axum::{Router, body::Body, extract::Request, response::Response};
use bytes::Bytes;
use engine::Clock;
use http::{Method, StatusCode, header, request::Parts};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use outbound::webhooks::signature::ID_HEADER;
use protocol::Timestamp;
use tokio::sync::{Semaphore, mpsc};

use super::{
    checks::{self, Checks},
    notification::Notification,
};

/// The longest body: tasks have artifacts.
const MAX_BODY: usize = 16 << 20;
/// How long a body may take.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);
/// How many bodies are in memory at a time.
const BODIES: usize = 8;
/// How many ids are remembered to find duplicates.
const REMEMBERED: usize = 10_000;
/// The longest token that is echoed.
const MAX_VALIDATION_TOKEN: usize = 1_024;

/// A delivery that has been answered.
pub(super) struct ReceivedDelivery {
    pub(super) time: Timestamp,
    /// The header `webhook-id`.
    pub(super) id: Option<String>,
    pub(super) notification: Option<Notification>,
    pub(super) verdict: Verdict,
    pub(super) is_duplicate: bool,
    /// Of the response.
    pub(super) status: u16,
    pub(super) body: Bytes,
}

/// What is known about the sender of a delivery.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// These checks have succeeded.
    Verified(Vec<&'static str>),
    /// There was nothing to verify it with.
    Unchecked,
    /// Why it is refused.
    NotVerified(String),
    /// Why it cannot be verified now.
    Unavailable(String),
    /// What is wrong with the body.
    NotANotification(String),
}

impl Verdict {
    pub(super) fn describe(&self) -> String {
        match self {
            Self::Verified(checks) => format!("verified ({})", checks.join(", ")),
            Self::Unchecked => "not verified".to_owned(),
            Self::NotVerified(problem) | Self::Unavailable(problem) | Self::NotANotification(problem) => {
                format!("refused: {problem}")
            }
        }
    }

    pub(super) fn checks(&self) -> &[&'static str] {
        match self {
            Self::Verified(checks) => checks,
            _ => &[],
        }
    }

    pub(super) fn problem(&self) -> Option<&str> {
        match self {
            Self::Verified(_) => None,
            Self::Unchecked => Some("there is nothing to verify it with"),
            Self::NotVerified(problem) | Self::Unavailable(problem) | Self::NotANotification(problem) => {
                Some(problem)
            }
        }
    }

    /// Of the response.
    fn status(&self, accepted: StatusCode) -> StatusCode {
        match self {
            Self::Verified(_) | Self::Unchecked => accepted,
            Self::NotVerified(_) => StatusCode::UNAUTHORIZED,
            Self::Unavailable(_) => StatusCode::SERVICE_UNAVAILABLE,
            Self::NotANotification(_) => StatusCode::BAD_REQUEST,
        }
    }
}

/// Answers requests.
pub(super) struct Receiver {
    checks: Checks,
    /// The status of the response to valid deliveries.
    accepted: StatusCode,
    clock: Clock,
    seen: Mutex<SeenIds>,
    bodies: Semaphore,
    deliveries: mpsc::Sender<ReceivedDelivery>,
}

impl Receiver {
    pub(super) fn new(checks: Checks, accepted: u16, deliveries: mpsc::Sender<ReceivedDelivery>) -> Self {
        Self {
            checks,
            accepted: StatusCode::from_u16(accepted).unwrap_or(StatusCode::NO_CONTENT),
            clock: Clock::system(),
            seen: Mutex::default(),
            bodies: Semaphore::new(BODIES),
            deliveries,
        }
    }

    async fn answer(&self, request: Request) -> Response {
        let (head, body) = request.into_parts();
        match head.method {
            Method::POST => self.receive(&head, body).await,
            Method::GET | Method::HEAD => challenge(&head),
            _ => {
                let mut response = text(StatusCode::METHOD_NOT_ALLOWED, "expected POST\n");
                response
                    .headers_mut()
                    .insert(header::ALLOW, http::HeaderValue::from_static("GET, HEAD, POST"));
                response
            }
        }
    }

    async fn receive(&self, head: &Parts, body: Body) -> Response {
        let Ok(_permit) = self.bodies.acquire().await else { return closed() };
        let body = match read(body).await {
            Ok(body) => body,
            Err((status, problem)) => return text(status, problem),
        };
        let now = self.clock.now();
        let read = Notification::read(&body);
        let verdict = match (self.checks.verify(&head.headers, &body, now).await, &read) {
            (Verdict::Verified(_) | Verdict::Unchecked, Err(problem)) => {
                Verdict::NotANotification(problem.clone())
            }
            (verdict, _) => verdict,
        };
        let id = checks::text(&head.headers, ID_HEADER).map(str::to_owned);
        let is_valid = matches!(verdict, Verdict::Verified(_) | Verdict::Unchecked);
        // Anybody could have sent an id that is not verified.
        let is_duplicate = is_valid
            && id
                .as_ref()
                .is_some_and(|id| !self.seen.lock().unwrap_or_else(PoisonError::into_inner).insert(id));
        let status = verdict.status(self.accepted);
        let problem = verdict.problem().filter(|_| !is_valid).map(|problem| format!("{problem}\n"));
        let (status_code, notification) = (status.as_u16(), read.ok());
        let received = ReceivedDelivery {
            time: now,
            id,
            notification,
            verdict,
            is_duplicate,
            status: status_code,
            body,
        };
        match self.deliveries.send(received).await {
            Ok(()) => text(status, problem.unwrap_or_default()),
            Err(_) => closed(),
        }
    }
}

/// Every path is the webhook.
pub(super) fn router(receiver: Arc<Receiver>) -> Router {
    Router::new().fallback(move |request: Request| {
        let receiver = Arc::clone(&receiver);
        async move { receiver.answer(request).await }
    })
}

/// Senders may ask whether the URL is meant to receive: they expect their token back.
fn challenge(head: &Parts) -> Response {
    let pairs = url::form_urlencoded::parse(head.uri.query().unwrap_or_default().as_bytes());
    let token = pairs.into_iter().find(|(name, _)| name == "validationToken").map(|(_, token)| token);
    match token {
        Some(token) if token.len() <= MAX_VALIDATION_TOKEN => text(StatusCode::OK, token.into_owned()),
        Some(_) => text(StatusCode::BAD_REQUEST, "validationToken is longer than 1024 bytes\n"),
        None => text(StatusCode::OK, "a2ad inbox: POST push notifications to this URL\n"),
    }
}

async fn read(body: Body) -> Result<Bytes, (StatusCode, &'static str)> {
    let collected = tokio::time::timeout(BODY_TIMEOUT, Limited::new(body, MAX_BODY).collect()).await;
    match collected {
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            Err((StatusCode::PAYLOAD_TOO_LARGE, "the body is longer than 16 MiB\n"))
        }
        Ok(Err(_)) => Err((StatusCode::BAD_REQUEST, "the body cannot be read\n")),
        Err(_) => Err((StatusCode::REQUEST_TIMEOUT, "request body timed out\n")),
    }
}

fn closed() -> Response {
    text(StatusCode::SERVICE_UNAVAILABLE, "the inbox has ended\n")
}

fn text(status: StatusCode, text: impl Into<Body>) -> Response {
    let mut response = Response::new(text.into());
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, http::HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, http::HeaderValue::from_static("nosniff"));
    response
}

/// The last ids.
#[derive(Default)]
struct SeenIds {
    known: HashSet<String>,
    oldest_first: VecDeque<String>,
}

impl SeenIds {
    /// Remembers an id; returns whether it is new.
    fn insert(&mut self, id: &str) -> bool {
        if !self.known.insert(id.to_owned()) {
            return false;
        }
        self.oldest_first.push_back(id.to_owned());
        if self.oldest_first.len() > REMEMBERED {
            self.oldest_first.pop_front().map(|oldest| self.known.remove(&oldest));
        }
        true
    }
}
