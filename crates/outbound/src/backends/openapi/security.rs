//! The credentials that an operation's requests carry.
//!
//! `bearer` and `headers` go with every request. A credential of `security` goes with the operations that require its
//! scheme: of the alternatives an operation offers, the first whose schemes all have a credential.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::{HeaderName, HeaderValue, header};

use super::{
    Credential, OpenApiConfig, OpenApiError, Tree, document::Document, path::encode, serialize::Pair,
};

/// What is added to the requests of an operation. It is never printed.
#[derive(Clone, Default)]
pub(super) struct Credentials {
    /// They replace headers of the same name.
    pub(super) headers: Vec<(HeaderName, HeaderValue)>,
    /// Encoded. No argument is sent under one of these names.
    pub(super) query: Vec<Pair>,
}

/// The credentials of a configuration, by scheme.
pub(super) struct Security<'d> {
    document: &'d Document,
    always: Credentials,
    schemes: Vec<(&'d str, Credentials)>,
    /// Whether `bearer` is set, which satisfies every scheme with a bearer token.
    has_bearer: bool,
}

impl<'d> Security<'d> {
    pub(super) fn new(document: &'d Document, config: &'d OpenApiConfig) -> Result<Self, OpenApiError> {
        let mut always = Credentials::default();
        if let Some(token) = &config.bearer {
            always.headers.push((header::AUTHORIZATION, bearer("bearer", token.expose())?));
        }
        for (name, value) in &config.headers {
            always.headers.push((name.clone(), header_value(name.as_str(), value.expose())?));
        }
        let credentials = config
            .security
            .iter()
            .map(|(name, credential)| Ok((name.as_str(), of_scheme(document, name, credential)?)));
        let schemes = credentials.collect::<Result<_, OpenApiError>>()?;
        Ok(Self { document, always, schemes, has_bearer: config.bearer.is_some() })
    }

    /// The credentials for an operation.
    pub(super) fn of(&self, operation: &Tree) -> Credentials {
        let mut credentials = self.always.clone();
        let required = operation.get("security").unwrap_or(&self.document.root["security"]);
        let alternatives = required.as_array().map(Vec::as_slice).unwrap_or_default();
        if let Some(chosen) = alternatives.iter().find_map(|alternative| self.satisfied(alternative)) {
            for scheme in chosen {
                credentials.headers.extend(scheme.headers.iter().cloned());
                credentials.query.extend(scheme.query.iter().cloned());
            }
        }
        credentials
    }

    /// The credentials for all schemes of an alternative; `None` if one is missing.
    fn satisfied(&self, alternative: &Tree) -> Option<Vec<&Credentials>> {
        let mut found = Vec::new();
        for name in alternative.as_object()?.keys() {
            match self.schemes.iter().find(|(known, _)| known == name) {
                Some((_, credentials)) => found.push(credentials),
                None if self.has_bearer && is_bearer(&scheme(self.document, name)?["type"]) => {}
                None if self.has_bearer && scheme(self.document, name)?["scheme"] == "bearer" => {}
                None => return None,
            }
        }
        Some(found)
    }
}

fn scheme<'d>(document: &'d Document, name: &str) -> Option<&'d Tree> {
    document.resolve(document.root["components"]["securitySchemes"].get(name)?).ok()
}

/// Whether a scheme of this type is sent as a bearer token.
fn is_bearer(kind: &Tree) -> bool {
    matches!(kind.as_str(), Some("oauth2" | "openIdConnect"))
}

fn of_scheme(document: &Document, name: &str, credential: &Credential) -> Result<Credentials, OpenApiError> {
    let wrong = |problem: &str| OpenApiError::Security { scheme: name.into(), problem: problem.into() };
    let scheme =
        scheme(document, name).ok_or_else(|| wrong("the document has no security scheme of this name"))?;
    let text = |member: &str| scheme[member].as_str().unwrap_or_default().to_ascii_lowercase();
    let mut credentials = Credentials::default();
    match (text("type").as_str(), text("scheme").as_str(), credential) {
        ("apikey", _, Credential::Token(token)) => {
            let key = scheme["name"].as_str().ok_or_else(|| wrong("the scheme has no parameter name"))?;
            match scheme["in"].as_str() {
                Some("query") => credentials.query.push((encode(key), encode(token.expose()))),
                Some("header") => {
                    let header = HeaderName::from_bytes(key.as_bytes())
                        .map_err(|_| wrong("the scheme names no valid header"))?;
                    credentials.headers.push((header, header_value(name, token.expose())?));
                }
                Some("cookie") => {
                    let cookie = format!("{}={}", encode(key), token.expose());
                    credentials.headers.push((header::COOKIE, header_value(name, &cookie)?));
                }
                _ => return Err(wrong("the scheme is neither in a header nor in the query nor in a cookie")),
            }
        }
        ("http", "bearer", Credential::Token(token))
        | ("oauth2" | "openidconnect", _, Credential::Token(token)) => {
            credentials.headers.push((header::AUTHORIZATION, bearer(name, token.expose())?));
        }
        ("http", "basic", Credential::Basic { user, password }) => {
            if user.contains(':') {
                return Err(wrong("the user name must not have a colon"));
            }
            let pair = STANDARD.encode(format!("{user}:{}", password.expose()));
            credentials.headers.push((header::AUTHORIZATION, header_value(name, &format!("Basic {pair}"))?));
        }
        ("http", "basic", Credential::Token(_)) => return Err(wrong("expected a user name and a password")),
        ("apikey" | "oauth2" | "openidconnect", ..) | ("http", "bearer", _) => {
            return Err(wrong("expected a token"));
        }
        _ => return Err(wrong("this type of scheme is not supported: use headers")),
    }
    Ok(credentials)
}

fn bearer(field: &str, token: &str) -> Result<HeaderValue, OpenApiError> {
    header_value(field, &format!("Bearer {token}"))
}

fn header_value(field: &str, text: &str) -> Result<HeaderValue, OpenApiError> {
    let mut value =
        HeaderValue::from_str(text).map_err(|_| OpenApiError::HeaderValue { field: field.to_owned() })?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests {
    use protocol::model::Secret;
    use serde_json::json;

    use super::{super::parse, *};

    const DOCUMENT: &str = r#"{"openapi":"3.0.0","security":[{"key":[]}],"components":{"securitySchemes":{
        "key":{"type":"apiKey","in":"query","name":"api key"},"head":{"type":"apiKey","in":"header","name":"X-Key"},
        "user":{"type":"http","scheme":"basic"},"token":{"type":"http","scheme":"bearer"},
        "login":{"type":"oauth2"},"mtls":{"type":"mutualTLS"}}}}"#;

    fn config() -> OpenApiConfig {
        let token = |text: &str| Credential::Token(Secret::new(text));
        OpenApiConfig {
            security: vec![
                ("key".into(), token("k&1")),
                ("head".into(), token("h")),
                ("user".into(), Credential::Basic { user: "ann".into(), password: Secret::new("p:w") }),
            ],
            ..OpenApiConfig::new("shop")
        }
    }

    fn shown(config: &OpenApiConfig, operation: &Tree) -> String {
        let document = parse(DOCUMENT).unwrap();
        let Credentials { headers, query } = Security::new(&document, config).unwrap().of(operation);
        let headers = headers.iter().map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()));
        let query = query.iter().map(|(name, value)| format!("{name}={value}"));
        headers.chain(query).collect::<Vec<_>>().join("; ")
    }

    #[test]
    fn first_satisfied_alternative_is_sent() {
        for (operation, expected) in [
            (json!({}), "api%20key=k%261"),
            (json!({"security": []}), ""),
            (
                json!({"security": [{"token": []}, {"head": [], "user": []}]}),
                "x-key: h; authorization: Basic YW5uOnA6dw==",
            ),
            (json!({"security": [{"token": []}]}), ""),
        ] {
            assert_eq!(shown(&config(), &operation), expected);
        }
    }

    #[test]
    fn bearer_satisfies_schemes_with_a_bearer_token() {
        let config = OpenApiConfig { bearer: Some(Secret::new("t")), ..config() };
        for scheme in ["token", "login"] {
            let operation = json!({"security": [{scheme: []}, {"key": []}]});
            assert_eq!(shown(&config, &operation), "authorization: Bearer t");
        }
    }

    #[test]
    fn credentials_that_do_not_fit_are_rejected_without_being_shown() {
        let document = parse(DOCUMENT).unwrap();
        for (name, credential) in [
            ("nothing", Credential::Token(Secret::new("s3cret"))),
            ("user", Credential::Token(Secret::new("s3cret"))),
            ("mtls", Credential::Token(Secret::new("s3cret"))),
            ("head", Credential::Token(Secret::new("s3cret\r\nX: y"))),
            ("key", Credential::Basic { user: "u".into(), password: Secret::new("s3cret") }),
        ] {
            let config =
                OpenApiConfig { security: vec![(name.into(), credential)], ..OpenApiConfig::new("shop") };
            let error = Security::new(&document, &config).err().unwrap().to_string();
            assert!(error.contains(name) && !error.contains("s3cret"), "{error}");
        }
    }
}
