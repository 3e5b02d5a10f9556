//! What goes with every request to show who calls. Secrets come from the environment, never from the command line,
//! where every process of the machine can read them.

use clap::Args;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use protocol::{
    AgentCard,
    model::{ApiKeyLocation, SecurityScheme},
};

use super::stop::Stop;

/// Where a key goes when the card does not say.
const API_KEY: HeaderName = HeaderName::from_static("x-api-key");

#[derive(Debug, Args)]
pub(super) struct CredentialFlags {
    /// Send this header along; may be given several times.
    #[arg(long = "header", value_name = "NAME: VALUE")]
    headers: Vec<String>,
    /// Send the bearer token that this environment variable holds.
    #[arg(long, value_name = "VAR")]
    bearer_env: Option<String>,
    /// Send the API key that this environment variable holds, in the header the card names, else in X-API-Key.
    #[arg(long, value_name = "VAR")]
    api_key_env: Option<String>,
}

impl CredentialFlags {
    /// The headers of every request; the card, once it is known, says where a key goes.
    pub(super) fn headers(&self, card: Option<&AgentCard>) -> Result<HeaderMap, Stop> {
        let mut headers = HeaderMap::new();
        for typed in &self.headers {
            let (name, value) = header(typed)
                .ok_or_else(|| Stop::usage("--header wants a name and a value, as in 'X-Trace: 17'"))?;
            headers.append(name, value);
        }
        if let Some(variable) = &self.bearer_env {
            headers.insert(header::AUTHORIZATION, secret("Bearer ", variable)?);
        }
        if let Some(variable) = &self.api_key_env {
            headers.insert(card.map_or(Ok(API_KEY), key_header)?, secret("", variable)?);
        }
        Ok(headers)
    }

    /// The flags that were given, by name.
    pub(super) fn given(&self) -> Vec<&'static str> {
        let flags = [
            (!self.headers.is_empty(), "--header"),
            (self.bearer_env.is_some(), "--bearer-env"),
            (self.api_key_env.is_some(), "--api-key-env"),
        ];
        flags.into_iter().filter(|flag| flag.0).map(|flag| flag.1).collect()
    }

    /// Whether a credential is among what was given, going by the names of headers.
    pub(super) fn tell_who_calls(&self) -> bool {
        let names = self.headers.iter().filter_map(|typed| typed.split_once(':'));
        self.bearer_env.is_some()
            || self.api_key_env.is_some()
            || names.map(|header| header.0.trim()).any(is_credential)
    }

    /// The flags as a suggested command repeats them. The value of a header may be a secret and is left to be typed.
    pub(super) fn repeated(&self) -> Vec<String> {
        let mut words = Vec::new();
        for typed in &self.headers {
            let name = typed.split_once(':').map_or("NAME", |header| header.0.trim());
            words.extend(["--header".to_owned(), format!("{name}: VALUE")]);
        }
        for (flag, variable) in [("--bearer-env", &self.bearer_env), ("--api-key-env", &self.api_key_env)] {
            words.extend(variable.iter().flat_map(|variable| [flag.to_owned(), variable.clone()]));
        }
        words
    }
}

/// Whether a header of this name is one that credentials travel in. Agents name their own, so this goes by words.
fn is_credential(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name == "cookie" || ["auth", "key", "token"].iter().any(|word| name.contains(word))
}

fn header(typed: &str) -> Option<(HeaderName, HeaderValue)> {
    let (name, value) = typed.split_once(':')?;
    let mut value = HeaderValue::from_str(value.trim()).ok()?;
    value.set_sensitive(true);
    Some((HeaderName::from_bytes(name.trim().as_bytes()).ok()?, value))
}

fn secret(scheme: &str, variable: &str) -> Result<HeaderValue, Stop> {
    let value = std::env::var(variable).ok().filter(|value| !value.trim().is_empty());
    let value =
        value.ok_or_else(|| Stop::usage(format!("the environment variable {variable} is not set")))?;
    let mut value = HeaderValue::from_str(&format!("{scheme}{}", value.trim())).map_err(|_| {
        Stop::usage(format!("the environment variable {variable} holds what no header can carry"))
    })?;
    value.set_sensitive(true);
    Ok(value)
}

/// The header in which the agent wants its key.
fn key_header(card: &AgentCard) -> Result<HeaderName, Stop> {
    let keys = card.security_schemes.iter().filter_map(|(_, scheme)| match scheme {
        SecurityScheme::ApiKey { location, name, .. } => Some((*location, name)),
        _ => None,
    });
    let keys: Vec<_> = keys.collect();
    let named = keys.iter().find(|key| key.0 == ApiKeyLocation::Header).map(|key| key.1);
    match named {
        Some(name) => HeaderName::from_bytes(name.as_bytes()).map_err(|_| {
            Stop::usage(format!("the card wants the key in the header {name:?}, which is none"))
        }),
        None if keys.is_empty() => Ok(API_KEY),
        None => {
            Err(Stop::usage("the agent wants its key in the query or a cookie; use --header for a cookie"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_that_carries_a_credential_is_known_by_its_name() {
        for name in ["Authorization", "X-API-Key", "apikey", "X-Auth-Token", "Cookie"] {
            assert!(is_credential(name), "{name}");
        }
        for name in ["X-Trace", "Accept-Language", "traceparent"] {
            assert!(!is_credential(name), "{name}");
        }
    }

    #[test]
    fn a_header_has_a_name_and_a_value() {
        let (name, value) = header("X-Trace:  a: b ").unwrap();
        assert_eq!((name.as_str(), value.as_bytes()), ("x-trace", &b"a: b"[..]));
        for typed in ["", "X-Trace", ": v", "a b: v", "a: b\nc"] {
            assert!(header(typed).is_none(), "{typed}");
        }
    }
}
