//! The token that permits to start the work of one task: `v1.<exp>.<hmac>`, or `<time>.<hmac>` as the package
//! `@agent-native/core` signs it.
//!
//! `<hmac>` is HMAC-SHA256 over `v1|<task id>|<exp>` or `<task id>:<time>` with the secret of HS256 tokens, in lower-case
//! hexadecimal digits, so that a signature has one spelling. `<exp>` is the time in Unix seconds until which the token is
//! valid, `<time>` that in milliseconds at which it was signed. Form and time are decided before the body of a request is
//! read; the task is named in the body.

use aws_lc_rs::hmac::{self, HMAC_SHA256};
use http::HeaderMap;
use protocol::{Error, ErrorKind, TaskId, Timestamp};

use super::{AuthOptions, credentials};

/// How long a token may be valid, in seconds.
const MAX_AGE: i64 = 300;
/// How much the clock of the sender may be ahead, in seconds.
const CLOCK_DIFFERENCE: i64 = 30;
/// The same for a token that says when it was signed, as the package has it.
const PACKAGE_CLOCK_DIFFERENCE: i64 = 60;

/// Checks the tokens of tasks.
pub(crate) struct TaskTokens {
    /// `None`: no secret is configured.
    key: Option<hmac::Key>,
}

/// A token in the head of a request. Its signature is not verified yet.
pub(crate) struct TaskToken {
    form: TokenForm,
    /// As it was sent: it is part of what is signed.
    time: String,
    signature: [u8; 32],
}

/// What is signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TokenForm {
    /// Until when the token is valid, in seconds.
    Expiry,
    /// When it was signed, in milliseconds.
    SignedAt,
}

impl TokenForm {
    fn signed(self, task: &TaskId, time: &str) -> String {
        match self {
            Self::Expiry => format!("v1|{task}|{time}"),
            Self::SignedAt => format!("{task}:{time}"),
        }
    }

    /// How long a token is still valid, in milliseconds, and how long it can be at most.
    fn validity(self, time: &str, now: Timestamp) -> (i64, i64) {
        let time = time.parse::<i64>().unwrap_or(i64::MAX);
        let now = now.as_millis();
        match self {
            // Valid until the end of the second.
            Self::Expiry => {
                let left = time.saturating_sub(now.div_euclid(1_000));
                (left.saturating_mul(1_000), (MAX_AGE + CLOCK_DIFFERENCE) * 1_000)
            }
            Self::SignedAt => {
                let left = time.saturating_sub(now).saturating_add(MAX_AGE * 1_000);
                (left, (MAX_AGE + PACKAGE_CLOCK_DIFFERENCE) * 1_000)
            }
        }
    }
}

impl TaskTokens {
    pub(crate) fn new(options: &AuthOptions) -> Self {
        let key = |secret: &str| hmac::Key::new(HMAC_SHA256, secret.as_bytes());
        Self { key: options.secret.as_ref().map(|named| key(named.secret.expose())) }
    }

    /// Reads the token of a request and checks everything but its signature.
    pub(crate) fn read(&self, headers: &HeaderMap, now: Timestamp) -> Result<TaskToken, Error> {
        self.key()?;
        let token = credentials::bearer_token(headers)?
            .ok_or_else(|| refused("a signed token is required: Authorization: Bearer v1.<exp>.<hmac>"))?;
        let (form, time, signature) = parse(token).ok_or_else(|| {
            refused(
                "the token in Authorization is not valid: expected v1.<exp>.<hmac>, with Unix seconds and 64 \
                 lower-case hexadecimal digits",
            )
        })?;
        let (left, max) = form.validity(time, now);
        if left < 0 {
            return Err(refused("the token in Authorization has expired; sign a new one"));
        }
        if left > max {
            return Err(refused(
                "the token in Authorization is valid for more than 5 minutes; use a nearer exp",
            ));
        }
        Ok(TaskToken { form, time: time.to_owned(), signature })
    }

    /// Verifies that a token was signed for this task.
    pub(crate) fn verify(&self, token: &TaskToken, task: &TaskId) -> Result<(), Error> {
        let signed = token.form.signed(task, &token.time);
        hmac::verify(self.key()?, signed.as_bytes(), &token.signature)
            .map_err(|_| refused("the token in Authorization was not signed for this task with this secret"))
    }

    fn key(&self) -> Result<&hmac::Key, Error> {
        self.key.as_ref().ok_or_else(|| {
            let text = "this server has no secret to verify signatures with; its operator has to set the variable \
                        of auth.secret_env";
            Error::new(ErrorKind::Unavailable, text)
        })
    }
}

/// The form, the time and the signature of a token.
fn parse(token: &str) -> Option<(TokenForm, &str, [u8; 32])> {
    let (form, rest) = match token.strip_prefix("v1.") {
        Some(rest) => (TokenForm::Expiry, rest),
        None => (TokenForm::SignedAt, token),
    };
    let (time, digits) = rest.split_once('.')?;
    let is_number = !time.is_empty() && time.bytes().all(|byte| byte.is_ascii_digit());
    let digits = is_number.then_some(digits)?.as_bytes();
    let (pairs, []) = digits.as_chunks::<2>() else { return None };
    let mut signature = [0; 32];
    if pairs.len() != signature.len() {
        return None;
    }
    for (byte, [high, low]) in signature.iter_mut().zip(pairs) {
        *byte = digit(*high)? << 4 | digit(*low)?;
    }
    Some((form, time, signature))
}

fn digit(letter: u8) -> Option<u8> {
    match letter {
        b'0'..=b'9' => Some(letter - b'0'),
        b'a'..=b'f' => Some(letter - b'a' + 10),
        _ => None,
    }
}

fn refused(text: &str) -> Error {
    Error::new(ErrorKind::Unauthenticated, text)
}
