//! The discovery document of an issuer (OpenID Connect Discovery 1.0). Pure.

use super::members;
use crate::access::auth::KeyUrl;

/// The address of an issuer's discovery document.
pub(super) fn url(issuer: &str) -> KeyUrl {
    let base = issuer.strip_suffix('/').unwrap_or(issuer);
    KeyUrl::Configured(format!("{base}/.well-known/openid-configuration"))
}

/// The address of the keys that a discovery document names.
pub(super) fn jwks_url(document: &[u8], issuer: &str) -> Result<KeyUrl, &'static str> {
    let (mut own, mut jwks_uri) = (None, None);
    let malformed = "the discovery document is not a JSON object whose members occur once";
    members::read(document, malformed, |name, value| {
        match name {
            "issuer" => own = members::text(value),
            "jwks_uri" => jwks_uri = members::text(value),
            _ => {}
        }
        Ok(())
    })?;
    if own.as_deref() != Some(issuer) {
        return Err(
            "the discovery document is of another issuer: its issuer has to be exactly the configured one",
        );
    }
    let jwks_uri = jwks_uri.ok_or("the discovery document has no jwks_uri")?.into_owned();
    let is_own = is_at_origin_of(&jwks_uri, issuer);
    Ok(if is_own { KeyUrl::Configured(jwks_uri) } else { KeyUrl::Discovered(jwks_uri) })
}

/// Whether a URL begins with scheme, host and port of the issuer exactly as they are configured, up to the slash after
/// them: then every reader of URLs finds the same host in both.
fn is_at_origin_of(url: &str, issuer: &str) -> bool {
    let Some((scheme, rest)) = issuer.split_once("://") else { return false };
    let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    let path = url.strip_prefix(scheme).and_then(|url| url.strip_prefix("://"));
    let path = path.and_then(|url| url.strip_prefix(authority));
    !authority.is_empty() && path.is_some_and(|path| path.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_at_the_origin_of_the_issuer_count_as_configured() {
        let found = |issuer: &str, uri: &str| {
            let document = format!(r#"{{"issuer":"{issuer}","jwks_uri":"{uri}","x":[]}}"#);
            jwks_url(document.as_bytes(), issuer)
        };
        for (issuer, uri) in [
            ("https://id.example", "https://id.example/keys"),
            ("https://id.example/tenant/", "https://id.example/keys?x"),
            ("http://127.0.0.1:8080", "http://127.0.0.1:8080/"),
        ] {
            assert_eq!(found(issuer, uri), Ok(KeyUrl::Configured(uri.into())));
        }
        for uri in [
            "http://id.example/keys",
            "https://id.example",
            "https://id.example:8443/",
            "https://id.example.evil.example/",
            "https://id.example@127.0.0.1/",
            "https://id.example?@127.0.0.1/",
            "https://ID.example/",
            "file:///etc/passwd",
            "",
        ] {
            assert_eq!(found("https://id.example", uri), Ok(KeyUrl::Discovered(uri.into())));
        }
    }

    #[test]
    fn document_has_to_be_of_the_issuer() {
        for document in [
            "",
            "[]",
            "{}",
            r#"{"issuer":"https://a/","jwks_uri":"https://a/k"}"#,
            r#"{"issuer":"https://A","jwks_uri":"https://a/k"}"#,
            r#"{"issuer":["https://a"],"jwks_uri":"https://a/k"}"#,
            r#"{"issuer":"https://a"}"#,
            r#"{"issuer":"https://a","jwks_uri":1}"#,
            r#"{"issuer":"https://a","issuer":"https://a","jwks_uri":"https://a/k"}"#,
        ] {
            assert!(jwks_url(document.as_bytes(), "https://a").is_err(), "{document}");
        }
        let url = |issuer| match url(issuer) {
            KeyUrl::Configured(url) => url,
            KeyUrl::Discovered(url) => panic!("{url}"),
        };
        assert_eq!(url("https://a"), "https://a/.well-known/openid-configuration");
        assert_eq!(url("https://a/b/"), "https://a/b/.well-known/openid-configuration");
    }
}
