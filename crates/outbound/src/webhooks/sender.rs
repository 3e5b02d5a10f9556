//! Sends notifications to webhooks, through the dialler: URLs of webhooks are chosen by peers.
//!
//! Redirects are not followed. The body of a response is read only to keep the connection, and means nothing.

use std::time::{Duration, UNIX_EPOCH};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use engine::push::{AddressGate, PushRequest, PushSender, SendResult};
use futures_util::future::{BoxFuture, FutureExt as _};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, header};
use http_body_util::{BodyExt as _, Full, Limited};
use protocol::{
    Dialect, PushConfig, Timestamp, Violation,
    model::{PushAuth, Secret},
};
use tokio::time::timeout;
use url::Url;

use super::{
    push_key::PushKey,
    signature::{ID_HEADER, SIGNATURE_HEADER, SigningKey, TIMESTAMP_HEADER, seconds},
};
use crate::dial::{DialError, Dialer, FetchLimits};

/// How much of a response is read so that its connection can be used again.
const MAX_RESPONSE: usize = 64 << 10;
const READ_REST: Duration = Duration::from_secs(1);

/// Where a client's token is sent: the older name, and since 1.0 also the newer one.
const TOKEN: HeaderName = HeaderName::from_static("x-a2a-notification-token");
const TOKEN_1_0: HeaderName = HeaderName::from_static("a2a-notification-token");
const API_KEY: HeaderName = HeaderName::from_static("x-api-key");
const VERSION: HeaderName = HeaderName::from_static("a2a-version");

/// The query parameter with which a receiver is asked to confirm its URL.
const CHALLENGE: &str = "validationToken";

/// Sends notifications. Cheap to clone.
#[derive(Clone)]
pub struct WebhookSender {
    dialer: Dialer,
    key: PushKey,
}

impl WebhookSender {
    /// Sends through this dialler, and signs with this key where a webhook asks for that.
    pub fn new(dialer: Dialer, key: PushKey) -> Self {
        Self { dialer, key }
    }

    async fn post(&self, request: PushRequest) -> SendResult {
        let headers = match self.headers(&request).await {
            Ok(headers) => headers,
            Err(reason) => return SendResult::NotSent(reason),
        };
        // As it was checked, with its characters encoded.
        let Ok(url) = Url::parse(&request.url) else { return not_a_url() };
        let built = Request::builder().method(Method::POST).uri(url.as_str()).body(Full::new(request.body));
        let Ok(mut built) = built else { return not_a_url() };
        *built.headers_mut() = headers;
        let sent = self.dialer.send_admitted(built, |addresses| request.gate.admits(addresses));
        let response = match timeout(request.timeout, sent).await {
            Err(_) => return SendResult::Failed(DialError::TimedOut.to_string()),
            Ok(Err(error)) => return failure(&error),
            Ok(Ok(response)) => response,
        };
        let (head, body) = response.into_parts();
        let _ = timeout(READ_REST, Limited::new(body, MAX_RESPONSE).collect()).await;
        if head.status.is_success() {
            return SendResult::Accepted;
        }
        SendResult::Rejected {
            status: head.status.as_u16(),
            retry_after: retry_after(&head.headers, request.now),
        }
    }

    async fn headers(&self, request: &PushRequest) -> Result<HeaderMap, String> {
        let key = SigningKey::from_token(request.signing_key.expose())
            .ok_or("the key that signs its notifications cannot be read")?;
        let credential = self.credential(request).await?;
        let mut headers = HeaderMap::new();
        let mut set = |name: HeaderName, text: &str| match HeaderValue::from_str(text) {
            Ok(value) => {
                headers.insert(name, value);
                Ok(())
            }
            Err(_) => Err(format!("the header {name} cannot have this value")),
        };
        set(header::CONTENT_TYPE, &request.media_type)?;
        set(header::USER_AGENT, concat!("a2ad/", env!("CARGO_PKG_VERSION")))?;
        set(HeaderName::from_static(ID_HEADER), &request.id)?;
        set(HeaderName::from_static(TIMESTAMP_HEADER), &seconds(request.now).to_string())?;
        let signature = key.sign(&request.id, request.now, &request.body);
        set(HeaderName::from_static(SIGNATURE_HEADER), &signature)?;
        if let Some(token) = &request.token {
            set(TOKEN, token.expose())?;
        }
        if request.dialect == Dialect::V1 {
            set(VERSION, Dialect::V1.label())?;
            if let Some(token) = &request.token {
                set(TOKEN_1_0, token.expose())?;
            }
        }
        if let Some((name, value)) = credential {
            set(name, value.expose())?;
        }
        for value in headers.values_mut() {
            value.set_sensitive(true);
        }
        Ok(headers)
    }

    /// The header by which the server authenticates: that of the first scheme for which there is a credential.
    async fn credential(&self, request: &PushRequest) -> Result<Option<(HeaderName, Secret)>, String> {
        let Some(PushAuth { schemes, credentials, .. }) = &request.authentication else { return Ok(None) };
        for scheme in schemes {
            if scheme.eq_ignore_ascii_case("jwt") {
                let signer = self.key.signer().await.map_err(|error| error.to_string())?;
                let token = signer.sign(&request.body, request.now);
                return Ok(Some((header::AUTHORIZATION, Secret::new(format!("Bearer {token}")))));
            }
            let Some(credentials) = credentials else { continue };
            let text = credentials.expose();
            return Ok(Some(if scheme.eq_ignore_ascii_case("apikey") {
                (API_KEY, credentials.clone())
            } else if scheme.eq_ignore_ascii_case("basic") && text.contains(':') {
                // User name and password as they are; base64 has no colon.
                (header::AUTHORIZATION, Secret::new(format!("Basic {}", STANDARD.encode(text))))
            } else {
                (header::AUTHORIZATION, Secret::new(format!("{scheme} {text}")))
            }));
        }
        Ok(None)
    }

    async fn confirm(&self, url: String, time: Duration, gate: AddressGate) -> SendResult {
        let token = format!("{:032x}", u128::from_be_bytes(random_bytes()));
        let Ok(mut asked) = Url::parse(&url) else { return not_a_url() };
        asked.query_pairs_mut().append_pair(CHALLENGE, &token);
        let Ok(request) = Request::get(asked.as_str()).body(Full::new(Bytes::new())) else {
            return not_a_url();
        };
        let limits = FetchLimits { time, body: MAX_RESPONSE };
        let sent = self.dialer.send_admitted(request, |addresses| gate.admits(addresses));
        match limits.read(sent).await {
            Err(error) => failure(&error),
            Ok(response) if !response.status().is_success() => {
                SendResult::Rejected { status: response.status().as_u16(), retry_after: None }
            }
            Ok(response) if response.body().trim_ascii() == token.as_bytes() => SendResult::Accepted,
            Ok(_) => SendResult::Failed(format!("the receiver did not return the {CHALLENGE}")),
        }
    }
}

impl PushSender for WebhookSender {
    fn check(&self, config: &PushConfig) -> Result<(), Violation> {
        self.dialer.check_url(&config.url).map_err(|forbidden| {
            Violation::new("url", format_args!("no notification can be sent to it: {forbidden}"))
        })?;
        let auth = config.authentication.as_ref();
        let schemes = auth.into_iter().flat_map(|auth| &auth.schemes).map(String::as_str);
        let values = [
            ("token", config.token.as_ref().map(Secret::expose)),
            (
                "authentication.credentials",
                auth.and_then(|auth| auth.credentials.as_ref()).map(Secret::expose),
            ),
        ];
        let values = values.into_iter().filter_map(|(field, value)| Some((field, value?)));
        for (field, value) in values.chain(schemes.map(|scheme| ("authentication.scheme", scheme))) {
            if HeaderValue::from_str(value).is_err() {
                return Err(Violation::new(
                    field,
                    "expected no control characters, because it is sent in a header",
                ));
            }
        }
        Ok(())
    }

    fn is_signing_key(&self, token: &Secret) -> bool {
        SigningKey::from_token(token.expose()).is_some()
    }

    fn send(&self, request: PushRequest) -> BoxFuture<'static, SendResult> {
        let sender = self.clone();
        async move { sender.post(request).await }.boxed()
    }

    fn challenge(&self, url: String, timeout: Duration, gate: AddressGate) -> BoxFuture<'static, SendResult> {
        let sender = self.clone();
        async move { sender.confirm(url, timeout, gate).await }.boxed()
    }
}

fn failure(error: &DialError) -> SendResult {
    match error {
        DialError::Forbidden(forbidden) => SendResult::Forbidden(forbidden.to_string()),
        DialError::NotAdmitted => SendResult::NoPlace,
        other => SendResult::Failed(other.to_string()),
    }
}

fn not_a_url() -> SendResult {
    SendResult::Forbidden("it is not an absolute http or https URL".into())
}

/// The wait that a receiver asks for: a number of seconds, or a date.
fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let text = headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = httpdate::parse_http_date(text).ok()?.duration_since(UNIX_EPOCH).ok()?;
    let now = Duration::from_millis(u64::try_from(now.as_millis()).ok()?);
    date.checked_sub(now)
}

fn random_bytes() -> [u8; 16] {
    let mut bytes = [0; 16];
    aws_lc_rs::rand::fill(&mut bytes).expect("the operating system provides randomness");
    bytes
}
