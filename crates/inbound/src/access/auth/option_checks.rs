//! Which values the options of authentication may have, for the configuration file and the library. Pure.
//!
//! An error is the end of a sentence that begins with the value, or with the name of a secret. It never contains a secret.

use super::{AuthOptions, Issuer};
use crate::addresses::{
    authority::{Authority, HostName},
    host::public_authority,
};

/// The fewest bytes of a secret: shorter ones can be guessed.
const MIN_SECRET: usize = 16;
/// The most valid keys of an agent.
const MAX_KEYS: usize = 1_000;

const NO_ISSUER: &str = "is not an https URL such as https://id.example (http is for loopback hosts only)";

/// Whether a text can be the secret of tokens.
pub fn check_secret(secret: &str) -> Result<(), &'static str> {
    if secret.len() < MIN_SECRET {
        return Err(
            "has fewer than 16 bytes; use a random secret, such as the output of: openssl rand -base64 32",
        );
    }
    Ok(())
}

/// Whether a text can be the static token.
pub fn check_static_token(token: &str) -> Result<(), &'static str> {
    check_secret(token)?;
    if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(
            "has characters that cannot be in a header; use ASCII letters, digits and signs, no spaces",
        );
    }
    Ok(())
}

/// Whether a text can name an organisation in the claim `org_domain`.
pub fn check_org_domain(domain: &str) -> Result<(), &'static str> {
    let is_lower = !domain.bytes().any(|byte| byte.is_ascii_uppercase());
    match Authority::parse(domain) {
        Some(Authority { host: HostName::Name(name), port: None }) if is_lower && name == domain => Ok(()),
        _ => Err("is not a domain in lower case, such as acme.example"),
    }
}

/// Whether a text can be an issuer: a URL as OpenID Connect Discovery 1.0 has it.
pub fn check_issuer(url: &str) -> Result<(), &'static str> {
    if url.contains(['?', '#']) {
        return Err("has a query or a fragment, which no issuer has");
    }
    if is_protected_url(url) { Ok(()) } else { Err(NO_ISSUER) }
}

/// Whether a text can be the address of an issuer's keys.
pub fn check_jwks_uri(url: &str) -> Result<(), &'static str> {
    if is_protected_url(url) {
        return Ok(());
    }
    Err("is not an https URL such as https://id.example/keys (http is for loopback hosts only)")
}

/// Whether a text can begin API keys.
pub fn check_key_prefix(prefix: &str) -> Result<(), &'static str> {
    if prefix.is_empty() || !engine::is_valid_key_prefix(prefix) {
        return Err("is not a prefix of 1 to 32 letters, digits, '_' or '-'");
    }
    Ok(())
}

/// Whether an agent can have at most so many valid API keys.
pub fn check_max_keys(count: usize) -> Result<(), &'static str> {
    if (1..=MAX_KEYS).contains(&count) { Ok(()) } else { Err("is not a number from 1 to 1000") }
}

/// A URL whose responses nobody on the way can change.
fn is_protected_url(url: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_graphic() && !b"\"<>\\".contains(&byte);
    let Some((scheme, authority)) = public_authority(url).filter(|_| url.bytes().all(is_plain)) else {
        return false;
    };
    scheme.eq_ignore_ascii_case("https") || authority.host.is_loopback()
}

impl AuthOptions {
    /// The first value that is not valid, by its name or its own text, and what is wrong with it.
    pub fn invalid(&self) -> Option<(String, &'static str)> {
        let named = |name: &str, checked: Result<(), &'static str>| {
            checked.err().map(|problem| (name.to_owned(), problem))
        };
        let secret =
            self.secret.iter().find_map(|secret| named(&secret.name, check_secret(secret.secret.expose())));
        let org_secret = || {
            self.org_secrets.iter().find_map(|(domain, secret)| {
                named(domain, check_org_domain(domain).and_then(|()| check_secret(secret.expose())))
            })
        };
        let bearer =
            || self.bearer.iter().find_map(|token| named("the token", check_static_token(token.expose())));
        let issuer =
            || self.issuers.iter().enumerate().find_map(|(at, issuer)| self.invalid_issuer(at, issuer));
        let prefix = || named(&self.api_keys.prefix, check_key_prefix(&self.api_keys.prefix));
        let max = self.api_keys.max_per_agent;
        let max_keys = || named(&max.to_string(), check_max_keys(max));
        secret.or_else(org_secret).or_else(bearer).or_else(issuer).or_else(prefix).or_else(max_keys)
    }

    fn invalid_issuer(&self, at: usize, issuer: &Issuer) -> Option<(String, &'static str)> {
        let Issuer { issuer: url, audience, jwks_uri } = issuer;
        if let Err(problem) = check_issuer(url) {
            return Some((url.clone(), problem));
        }
        if audience.is_empty() {
            return Some((url.clone(), "has no audience, which its tokens must name"));
        }
        if self.issuers[..at].iter().any(|earlier| earlier.issuer == *url) {
            return Some((url.clone(), "is listed twice"));
        }
        jwks_uri.iter().find_map(|url| check_jwks_uri(url).err().map(|problem| (url.clone(), problem)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn issuers_need_https_except_on_loopback() {
        for url in [
            "https://id.example",
            "https://id.example/",
            "https://id.example:8443/realms/a",
            "http://127.0.0.1:9000",
            "http://localhost:9000/a",
            "http://[::1]:9",
        ] {
            assert_eq!(check_issuer(url), Ok(()), "{url}");
        }
        for url in [
            "",
            "id.example",
            "http://id.example",
            "http://10.0.0.1",
            "http://localhost.evil.example",
            "ftp://id.example",
            "https://",
            "https://user@id.example",
            "https://id.example/a b",
            "https://id.example?x=1",
            "https://id.example#a",
        ] {
            assert!(check_issuer(url).is_err(), "{url}");
        }
        assert_eq!(check_jwks_uri("https://id.example/keys?v=1"), Ok(()));
        assert!(check_jwks_uri("http://id.example/keys").is_err());
    }

    #[test]
    fn names_and_secrets_are_bounded() {
        for domain in ["acme.example", "a", "a-b.c1"] {
            assert_eq!(check_org_domain(domain), Ok(()), "{domain}");
        }
        for domain in
            ["", "Acme.example", "acme.example.", "acme:1", "127.0.0.1", "a b", "a/b", "https://a", "[::1]"]
        {
            assert!(check_org_domain(domain).is_err(), "{domain}");
        }
        let longest = "x".repeat(32);
        for prefix in ["a", "pf_a2a_", longest.as_str()] {
            assert_eq!(check_key_prefix(prefix), Ok(()), "{prefix}");
        }
        for prefix in ["", "a b", "a.b", "ä", &"x".repeat(33)] {
            assert!(check_key_prefix(prefix).is_err(), "{prefix}");
        }
        assert!(check_secret("fifteen bytes..").is_err() && check_secret("sixteen bytes ..").is_ok());
        assert!(check_static_token("sixteen bytes ..").is_err());
        assert!(check_static_token("sixteen-bytes-..").is_ok());
        assert!(
            check_max_keys(0).is_err() && check_max_keys(1_001).is_err() && check_max_keys(1_000).is_ok()
        );
    }
}
