//! The claims of a token that are used, and what they have to be. Pure.

use std::borrow::Cow;

use protocol::{Timestamp, json::Raw};

use super::{Problem, members, problem};

/// How far the clocks of issuer and server may differ, in milliseconds.
const LEEWAY: i64 = 30_000;
/// Times after the year 9999 are not plausible, in seconds.
const MAX_SECONDS: f64 = 253_402_300_799.0;
/// The most characters of a subject.
const MAX_SUBJECT: usize = 256;

/// The claims of a token. Their types have been checked, their values have not.
#[derive(Debug, PartialEq)]
pub(super) struct Claims<'a> {
    /// `iss`
    pub(super) issuer: Option<Cow<'a, str>>,
    /// `sub`; an empty one counts as missing.
    pub(super) subject: Option<Cow<'a, str>>,
    /// `org_domain`
    pub(super) organisation: Option<Cow<'a, str>>,
    /// `aud`
    pub(super) audience: Option<Audience<'a>>,
    pub(super) lifetime: Lifetime,
}

/// Whom a token is for.
#[derive(Debug, PartialEq)]
pub(super) struct Audience<'a>(Vec<Cow<'a, str>>);

/// When a token is valid, in milliseconds since 1970. Leeway is added when it is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lifetime {
    not_before: i64,
    expires: i64,
}

impl<'a> Claims<'a> {
    pub(super) fn read(document: &'a [u8]) -> Result<Self, Problem> {
        let (mut issuer, mut subject, mut organisation, mut audience) = (None, None, None, None);
        let (mut expires, mut not_before) = (None, None);
        members::read(document, problem::CLAIMS, |name, value| {
            match name {
                "iss" => issuer = Some(text(value)?),
                "sub" => subject = Some(text(value)?),
                "org_domain" => organisation = Some(text(value)?),
                "aud" => audience = Some(Audience::read(value)?),
                "exp" => expires = Some(time(value)?),
                "nbf" => not_before = Some(time(value)?),
                // Not used, but a token that has it has to have it right.
                "iat" => drop(time(value)?),
                _ => {}
            }
            Ok(())
        })?;
        if issuer.as_deref() == Some("") {
            return Err(problem::ISSUER);
        }
        let subject = subject.filter(|subject| !subject.is_empty());
        if subject.as_deref().is_some_and(|subject| !is_usable_subject(subject)) {
            return Err(problem::SUBJECT);
        }
        let expires = expires.ok_or(problem::NO_EXPIRY)?;
        let lifetime = Lifetime { not_before: not_before.unwrap_or(i64::MIN), expires };
        Ok(Self { issuer, subject, organisation, audience, lifetime })
    }
}

impl<'a> Audience<'a> {
    fn read(value: Raw<'a>) -> Result<Self, Problem> {
        let texts = match members::list(value, usize::MAX) {
            Some(values) => values.into_iter().map(text).collect::<Result<_, _>>()?,
            None => vec![text(value)?],
        };
        Ok(Self(texts))
    }

    pub(super) fn contains(&self, audience: &str) -> bool {
        self.0.iter().any(|own| own == audience)
    }
}

impl Lifetime {
    /// The last moment at which the token is valid.
    pub(super) fn last_moment(self) -> Timestamp {
        Timestamp::from_millis(self.expires.saturating_add(LEEWAY - 1))
    }

    /// Checks that the token is valid now.
    pub(super) fn check(self, now: Timestamp) -> Result<(), Problem> {
        if now > self.last_moment() {
            Err(problem::EXPIRED)
        } else if now.as_millis() < self.not_before.saturating_sub(LEEWAY) {
            Err(problem::NOT_YET_VALID)
        } else {
            Ok(())
        }
    }
}

fn text(value: Raw<'_>) -> Result<Cow<'_, str>, Problem> {
    members::text(value).ok_or(problem::TEXTS)
}

/// A number of seconds, whole or not, as milliseconds.
fn time(value: Raw<'_>) -> Result<i64, Problem> {
    let is_number = value.get().starts_with(|first: char| first == '-' || first.is_ascii_digit());
    let seconds = is_number.then(|| value.get().parse::<f64>().ok()).flatten();
    let plausible = seconds.filter(|seconds| seconds.abs() <= MAX_SECONDS).ok_or(problem::TIMES)?;
    #[expect(clippy::cast_possible_truncation, reason = "less than 2^53")]
    Ok((plausible * 1_000.0).floor() as i64)
}

fn is_usable_subject(subject: &str) -> bool {
    subject.chars().count() <= MAX_SUBJECT && !subject.contains(char::is_control)
}
