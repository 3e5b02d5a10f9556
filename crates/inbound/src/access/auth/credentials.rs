//! The credentials that the head of a request presents. Pure: nothing is verified here.

use std::{borrow::Cow, sync::Arc};

use http::{HeaderMap, HeaderName, HeaderValue, header};
use protocol::{Error, ErrorKind};

use super::{
    RequiredCredentials,
    schemes::{self, PresentedToken},
};

/// The header of API keys.
pub(crate) const API_KEY: HeaderName = HeaderName::from_static("x-api-key");
/// The header of the end user's token.
pub(crate) const END_USER: HeaderName = HeaderName::from_static("x-end-user-token");

/// The wanted credentials of a request.
#[derive(PartialEq, Eq)]
pub(super) struct Credentials<'a> {
    pub(super) caller: Option<Credential<'a>>,
    /// The token of the end user.
    pub(super) end_user: Option<Cow<'a, str>>,
}

/// The credential of a caller.
#[derive(PartialEq, Eq)]
pub(super) enum Credential<'a> {
    /// In `X-Api-Key`.
    ApiKey(Cow<'a, str>),
    /// In `Authorization: Bearer`.
    Bearer(Cow<'a, str>),
    /// The principal of the client certificate, which the TLS handshake has verified.
    Certificate(Arc<str>),
}

impl<'a> Credentials<'a> {
    /// Reads the wanted credentials. A client certificate is presented with every request of a connection, so it counts
    /// only where a request has no credential of its own.
    pub(super) fn read(
        headers: &'a HeaderMap,
        certificate: Option<&Arc<str>>,
        wanted: RequiredCredentials,
    ) -> Result<Self, Error> {
        let of_connection = || certificate.map(|principal| Credential::Certificate(Arc::clone(principal)));
        Ok(Self {
            caller: if wanted.caller { caller(headers)?.or_else(of_connection) } else { None },
            end_user: if wanted.end_user { end_user(headers)?.map(Cow::Borrowed) } else { None },
        })
    }

    pub(super) fn into_owned(self) -> Credentials<'static> {
        let owned = |text: Cow<'a, str>| Cow::Owned(text.into_owned());
        Credentials {
            caller: self.caller.map(|credential| match credential {
                Credential::ApiKey(key) => Credential::ApiKey(owned(key)),
                Credential::Bearer(token) => Credential::Bearer(owned(token)),
                Credential::Certificate(principal) => Credential::Certificate(principal),
            }),
            end_user: self.end_user.map(owned),
        }
    }
}

fn caller(headers: &HeaderMap) -> Result<Option<Credential<'_>>, Error> {
    let key = only(headers, &API_KEY)?;
    let authorization = only(headers, &header::AUTHORIZATION)?;
    match (key, authorization.map(bearer)) {
        (None, None) => Ok(None),
        // Other schemes are for a proxy in front of this server, as long as there is a key.
        (Some(key), None | Some(None)) => Ok(Some(Credential::ApiKey(key.into()))),
        (None, Some(Some(token))) => Ok(Some(Credential::Bearer(token.into()))),
        (None, Some(None)) => Err(refused("Authorization has a scheme that is not supported; use Bearer")),
        (Some(_), Some(Some(_))) => {
            Err(refused("there are two credentials; send either X-Api-Key or Authorization"))
        }
    }
}

fn end_user(headers: &HeaderMap) -> Result<Option<&str>, Error> {
    only(headers, &END_USER).map_err(schemes::with_end_user_challenge)
}

/// Whether a request has a bearer token, for the challenge of its refusal.
pub(crate) fn presented(headers: &HeaderMap) -> PresentedToken {
    let mut values =
        headers.get_all(header::AUTHORIZATION).into_iter().filter_map(|value| value.to_str().ok());
    if values.any(|value| bearer(value).is_some()) { PresentedToken::Token } else { PresentedToken::NoToken }
}

/// The token in `Authorization: Bearer`.
pub(super) fn bearer_token(headers: &HeaderMap) -> Result<Option<&str>, Error> {
    Ok(only(headers, &header::AUTHORIZATION)?.and_then(bearer))
}

/// The token of the scheme `Bearer`.
fn bearer(value: &str) -> Option<&str> {
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim_start_matches(' '))
}

/// The value of a header that may occur once.
fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, Error> {
    let mut values = headers.get_all(name).into_iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(refused(format!("the header {name} occurs more than once; send it once")));
    }
    // Visible ASCII is enough for every credential; spaces around the value are already removed.
    let text = HeaderValue::to_str(value).ok().filter(|text| !text.is_empty());
    let text = text.ok_or_else(|| refused(format!("the header {name} is empty or not plain ASCII text")))?;
    Ok(Some(text))
}

fn refused(text: impl Into<String>) -> Error {
    Error::new(ErrorKind::Unauthenticated, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: RequiredCredentials = RequiredCredentials { caller: true, end_user: true };

    fn headers(values: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in values {
            headers.append(*name, HeaderValue::from_static(value));
        }
        headers
    }

    #[test]
    fn credentials_are_read_from_their_headers() {
        let certificate = Arc::from("mtls:dn:CN=c");
        let read_with = |certificate: Option<&Arc<str>>, values: &[(&'static str, &'static str)]| {
            let credentials = Credentials::read(&headers(values), certificate, ALL).ok()?.into_owned();
            Some(match credentials.caller {
                None => "none".to_owned(),
                Some(Credential::ApiKey(key)) => format!("key {key}"),
                Some(Credential::Bearer(token)) => format!("bearer {token}"),
                Some(Credential::Certificate(principal)) => format!("certificate {principal}"),
            })
        };
        let read = |values: &[(&'static str, &'static str)]| read_with(None, values);
        assert_eq!(read_with(Some(&certificate), &[]).unwrap(), "certificate mtls:dn:CN=c");
        assert_eq!(read_with(Some(&certificate), &[("x-api-key", "k")]).unwrap(), "key k");
        assert!(read_with(Some(&certificate), &[("authorization", "Basic eDp5")]).is_none());
        assert_eq!(read(&[]).unwrap(), "none");
        assert_eq!(read(&[("x-api-key", "k")]).unwrap(), "key k");
        assert_eq!(read(&[("authorization", "Bearer t")]).unwrap(), "bearer t");
        assert_eq!(read(&[("authorization", "bEARER   t")]).unwrap(), "bearer t");
        assert_eq!(read(&[("authorization", "Basic eDp5"), ("x-api-key", "k")]).unwrap(), "key k");
        for refused in [
            &[("authorization", "Basic eDp5")][..],
            &[("authorization", "Bearer")],
            &[("authorization", "Bearer t"), ("x-api-key", "k")],
            &[("authorization", "Bearer t"), ("authorization", "Bearer t")],
            &[("x-api-key", "k"), ("x-api-key", "k")],
            &[("x-api-key", "")],
            &[("x-end-user-token", "a"), ("x-end-user-token", "b")],
        ] {
            assert!(read(refused).is_none(), "{refused:?}");
        }
    }

    #[test]
    fn unwanted_credentials_are_ignored() {
        let twice = headers(&[("x-api-key", "k"), ("x-api-key", "k"), ("x-end-user-token", "t")]);
        let none = RequiredCredentials { caller: false, end_user: false };
        let read = Credentials::read(&twice, None, none).unwrap();
        assert!(read.caller.is_none() && read.end_user.is_none());
    }
}
