//! Credentials that are sent with every request. Secrets come from environment variables, not from arguments: every
//! process on the machine can read arguments.

use clap::Args;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use protocol::{
    AgentCard,
    model::{ApiKeyLocation, SecurityScheme},
};

use crate::cli::failure::Failure;

/// The header for an API key when the card does not name one.
const API_KEY: HeaderName = HeaderName::from_static("x-api-key");
/// The header for the token of the end user.
const END_USER: HeaderName = HeaderName::from_static("x-end-user-token");

#[derive(Default, Debug, Args)]
pub(crate) struct CredentialFlags {
    /// Add this header to every request; can be repeated.
    #[arg(long = "header", value_name = "NAME: VALUE")]
    headers: Vec<String>,
    /// Environment variable with the bearer token.
    #[arg(long, value_name = "VAR")]
    bearer_env: Option<String>,
    /// Environment variable with the API key, sent in the header the card names, else in X-API-Key.
    #[arg(long, value_name = "VAR")]
    api_key_env: Option<String>,
    /// Environment variable with the token of the person on whose behalf the call is made.
    #[arg(long, value_name = "VAR")]
    end_user_token_env: Option<String>,
}

impl CredentialFlags {
    /// The headers of every request. The card, once known, names the header of the API key.
    pub(crate) fn headers(&self, card: Option<&AgentCard>) -> Result<HeaderMap, Failure> {
        let mut headers = HeaderMap::new();
        for typed in &self.headers {
            let (name, value) = header(typed)
                .ok_or_else(|| Failure::usage("--header expects 'NAME: VALUE', such as 'X-Trace: 17'"))?;
            headers.append(name, value);
        }
        if let Some(variable) = &self.bearer_env {
            headers.insert(header::AUTHORIZATION, secret("Bearer ", variable)?);
        }
        if let Some(variable) = &self.api_key_env {
            headers.insert(card.map_or(Ok(API_KEY), key_header)?, secret("", variable)?);
        }
        if let Some(variable) = &self.end_user_token_env {
            headers.insert(END_USER, secret("", variable)?);
        }
        Ok(headers)
    }

    /// The names of the credential flags that were given.
    pub(crate) fn given(&self) -> Vec<&'static str> {
        let flags = [
            (!self.headers.is_empty(), "--header"),
            (self.bearer_env.is_some(), "--bearer-env"),
            (self.api_key_env.is_some(), "--api-key-env"),
            (self.end_user_token_env.is_some(), "--end-user-token-env"),
        ];
        flags.into_iter().filter(|flag| flag.0).map(|flag| flag.1).collect()
    }

    /// Whether a credential was given; headers are judged by their names.
    pub(crate) fn has_credential(&self) -> bool {
        let names = self.headers.iter().filter_map(|typed| typed.split_once(':'));
        self.bearer_env.is_some()
            || self.api_key_env.is_some()
            || names.map(|header| header.0.trim()).any(is_credential)
    }

    /// The flags for a suggested command. A header's value may be a secret, so a placeholder replaces it.
    pub(crate) fn repeated(&self) -> Vec<String> {
        let mut args = Vec::new();
        for typed in &self.headers {
            let name = typed.split_once(':').map_or("NAME", |header| header.0.trim());
            args.extend(["--header".to_owned(), format!("{name}: VALUE")]);
        }
        for (flag, variable) in [
            ("--bearer-env", &self.bearer_env),
            ("--api-key-env", &self.api_key_env),
            ("--end-user-token-env", &self.end_user_token_env),
        ] {
            args.extend(variable.iter().flat_map(|variable| [flag.to_owned(), variable.clone()]));
        }
        args
    }
}

/// Whether a header of this name usually carries a credential. Agents choose their own names, so this is a
/// heuristic.
fn is_credential(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name == "cookie" || ["auth", "key", "token"].iter().any(|keyword| name.contains(keyword))
}

fn header(typed: &str) -> Option<(HeaderName, HeaderValue)> {
    let (name, value) = typed.split_once(':')?;
    let mut value = HeaderValue::from_str(value.trim()).ok()?;
    value.set_sensitive(true);
    Some((HeaderName::from_bytes(name.trim().as_bytes()).ok()?, value))
}

fn secret(scheme: &str, variable: &str) -> Result<HeaderValue, Failure> {
    let value = std::env::var(variable).ok().filter(|value| !value.trim().is_empty());
    let value =
        value.ok_or_else(|| Failure::usage(format!("the environment variable {variable} is not set")))?;
    let mut value = HeaderValue::from_str(&format!("{scheme}{}", value.trim())).map_err(|_| {
        Failure::usage(format!(
            "the environment variable {variable} contains characters that are not allowed in a header"
        ))
    })?;
    value.set_sensitive(true);
    Ok(value)
}

fn is_end_user(header: &str) -> bool {
    header.eq_ignore_ascii_case(END_USER.as_str())
}

/// What the card of an agent requires of its callers, with the flags for it; `None` if it requires nothing.
pub(crate) fn required(card: &AgentCard) -> Option<String> {
    let one = |name: &String| {
        let scheme = card.security_schemes.iter().find(|(known, _)| known == name);
        scheme.map_or_else(|| undescribed(name), |(_, scheme)| described(scheme))
    };
    let mut alternatives: Vec<String> = Vec::new();
    for requirement in &card.security_requirements {
        let all: Vec<String> = requirement.schemes.iter().map(|(name, _)| one(name)).collect();
        let all = all.join(" and ");
        if !all.is_empty() && !alternatives.contains(&all) {
            alternatives.push(all);
        }
    }
    if alternatives.is_empty() { None } else { Some(alternatives.join(", or ")) }
}

fn described(scheme: &SecurityScheme) -> String {
    match scheme {
        SecurityScheme::ApiKey { name, .. } if is_end_user(name) => {
            "a token of the end user (--end-user-token-env VAR)".to_owned()
        }
        SecurityScheme::ApiKey { location: ApiKeyLocation::Header, name, .. } => {
            format!("an API key in the header {name} (--api-key-env VAR)")
        }
        SecurityScheme::ApiKey { location: ApiKeyLocation::Cookie, name, .. } => {
            format!("an API key in the cookie {name} (--header)")
        }
        SecurityScheme::ApiKey { location: ApiKeyLocation::Query, name, .. } => {
            format!("an API key in the query parameter {name}")
        }
        SecurityScheme::HttpAuth { scheme, bearer_format, .. } if scheme.eq_ignore_ascii_case("bearer") => {
            match bearer_format.as_deref() {
                Some(format) => format!("a bearer token, {format} (--bearer-env VAR)"),
                None => "a bearer token (--bearer-env VAR)".to_owned(),
            }
        }
        SecurityScheme::HttpAuth { scheme, .. } => {
            format!("HTTP {scheme} (--header 'Authorization: {scheme} …')")
        }
        SecurityScheme::OAuth2 { .. } => "an OAuth 2.0 token (--bearer-env VAR)".to_owned(),
        SecurityScheme::OpenIdConnect { url, .. } => {
            let issuer = url.strip_suffix("/.well-known/openid-configuration").unwrap_or(url);
            format!("a token of {issuer} (--bearer-env VAR)")
        }
        SecurityScheme::MutualTls { .. } => "a client certificate (--cert FILE --key FILE)".to_owned(),
    }
}

/// A scheme that the card only names, as cards of the draft do.
fn undescribed(name: &str) -> String {
    match name.to_ascii_lowercase().as_str() {
        "bearer" | "oauth2" | "openidconnect" => format!("{name} (--bearer-env VAR)"),
        "apikey" => format!("{name} (--api-key-env VAR)"),
        _ => format!("{name} (--header)"),
    }
}

/// The header in which the agent expects its API key.
fn key_header(card: &AgentCard) -> Result<HeaderName, Failure> {
    let keys = card.security_schemes.iter().filter_map(|(_, scheme)| match scheme {
        SecurityScheme::ApiKey { name, .. } if is_end_user(name) => None,
        SecurityScheme::ApiKey { location, name, .. } => Some((*location, name)),
        _ => None,
    });
    let keys: Vec<_> = keys.collect();
    let named = keys.iter().find(|key| key.0 == ApiKeyLocation::Header).map(|key| key.1);
    match named {
        Some(name) => HeaderName::from_bytes(name.as_bytes()).map_err(|_| {
            Failure::usage(format!(
                "the card names {name:?} for the API key, which is not a valid header name"
            ))
        }),
        None if keys.is_empty() => Ok(API_KEY),
        None => Err(Failure::usage(
            "the agent expects its key in the query or a cookie; use --header for a cookie",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credential_headers_are_recognised_by_name() {
        for name in ["Authorization", "X-API-Key", "apikey", "X-Auth-Token", "Cookie"] {
            assert!(is_credential(name), "{name}");
        }
        for name in ["X-Trace", "Accept-Language", "traceparent"] {
            assert!(!is_credential(name), "{name}");
        }
    }

    #[test]
    fn requirements_of_a_card_are_shown_with_their_flags() {
        use protocol::{
            Json,
            dialect::v1,
            json::read::{Node, Path},
        };
        let card = |requirements: &str| {
            let text = format!(
                r#"{{"name":"a","description":"b","version":"1","skills":[],"capabilities":{{}},"defaultInputModes":[],
                "defaultOutputModes":[],"supportedInterfaces":[{{"url":"http://x","protocolBinding":"JSONRPC","protocolVersion":"1.0"}}],"securitySchemes":{{
                "key":{{"apiKeySecurityScheme":{{"location":"header","name":"X-Api-Key"}}}},
                "user":{{"apiKeySecurityScheme":{{"location":"header","name":"X-End-User-Token"}}}},
                "jwt":{{"httpAuthSecurityScheme":{{"scheme":"Bearer","bearerFormat":"JWT"}}}},
                "oidc":{{"openIdConnectSecurityScheme":{{"openIdConnectUrl":"https://id.example/.well-known/openid-configuration"}}}}}},
                "securityRequirements":[{requirements}]}}"#
            );
            v1::card::decode(Node::new(Json::parse(&text).unwrap().as_raw(), &Path::Root)).unwrap()
        };
        let one = |name: &str| format!(r#"{{"schemes":{{"{name}":{{}}}}}}"#);
        assert_eq!(required(&card("")), None);
        assert_eq!(required(&card("{}")), None);
        assert_eq!(
            required(&card(&format!("{},{}", one("key"), one("oidc")))).unwrap(),
            "an API key in the header X-Api-Key (--api-key-env VAR), or a token of https://id.example (--bearer-env VAR)"
        );
        let both = card(r#"{"schemes":{"jwt":{},"user":{}}}"#);
        assert_eq!(
            required(&both).unwrap(),
            "a bearer token, JWT (--bearer-env VAR) and a token of the end user (--end-user-token-env VAR)"
        );
        assert_eq!(required(&card(&one("apiKey"))).unwrap(), "apiKey (--api-key-env VAR)");
        // The header of the end user is not that of the key.
        assert_eq!(key_header(&both).unwrap(), "x-api-key");
    }

    #[test]
    fn a_header_is_a_name_and_a_value() {
        let (name, value) = header("X-Trace:  a: b ").unwrap();
        assert_eq!((name.as_str(), value.as_bytes()), ("x-trace", &b"a: b"[..]));
        for typed in ["", "X-Trace", ": v", "a b: v", "a: b\nc"] {
            assert!(header(typed).is_none(), "{typed}");
        }
    }
}
