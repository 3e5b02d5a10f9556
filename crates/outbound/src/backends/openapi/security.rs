//! The credentials that an operation's requests carry.
//!
//! `headers` go with every request. A credential of `security` goes with the operations that name its scheme: of the
//! alternatives an operation offers, the first whose schemes all have a credential.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::{HeaderMap, HeaderName, HeaderValue, header};

use super::{
    Credential, OpenApiConfig, OpenApiError, Tree, document::Document, parameter::Location, serialize::Pair,
};
use crate::backends::http::{
    encode::{encode, is_same_parameter},
    facts::{header_name, is_own},
};

/// What is added to the requests of an operation. It is never printed.
#[derive(Clone, Default)]
pub(super) struct Credentials {
    /// They replace headers of the same name.
    headers: Vec<(HeaderName, HeaderValue)>,
    /// Names and encoded values of cookies.
    cookies: Vec<(String, String)>,
    /// Encoded. No argument is sent under one of these names.
    pub(super) query: Vec<Pair>,
    /// The names in `query`, decoded.
    query_names: Vec<String>,
}

impl Credentials {
    /// Whether a parameter of this name would replace or repeat one of them.
    pub(super) fn has(&self, location: &Location, name: &str) -> bool {
        match location {
            Location::Path => false,
            Location::Query => self.query_names.iter().any(|known| is_same_parameter(known, name)),
            Location::Header(header) => self.headers.iter().any(|(known, _)| known == header),
            Location::Cookie => self.cookies.iter().any(|(known, _)| known == name),
        }
    }

    /// Sets the headers; cookies come after those that are there.
    pub(super) fn insert_into(&self, headers: &mut HeaderMap) {
        for (name, value) in &self.headers {
            headers.insert(name.clone(), value.clone());
        }
        if self.cookies.is_empty() {
            return;
        }
        let given = headers.get(header::COOKIE).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let own = self.cookies.iter().map(|(name, value)| format!("{}={value}", encode(name)));
        let all: Vec<_> = given.into_iter().chain(own).collect();
        let mut value = HeaderValue::try_from(all.join("; ")).expect("encoded pairs are printable ASCII");
        value.set_sensitive(true);
        headers.insert(header::COOKIE, value);
    }

    fn extend(&mut self, other: &Self) {
        self.headers.extend(other.headers.iter().cloned());
        self.cookies.extend(other.cookies.iter().cloned());
        self.query.extend(other.query.iter().cloned());
        self.query_names.extend(other.query_names.iter().cloned());
    }
}

/// The credentials of a configuration, by scheme.
pub(super) struct Security<'d> {
    document: &'d Document,
    always: Credentials,
    schemes: Vec<(&'d str, Credentials)>,
}

impl<'d> Security<'d> {
    pub(super) fn new(document: &'d Document, config: &'d OpenApiConfig) -> Result<Self, OpenApiError> {
        let mut always = Credentials::default();
        for (name, value) in &config.headers {
            let problem = |problem| OpenApiError::Header { name: name.to_string(), problem };
            let name = header_name(name.as_str()).map_err(problem)?;
            let value = header_value(value.expose()).map_err(problem)?;
            always.headers.push((name, value));
        }
        let credentials = config
            .security
            .iter()
            .map(|(name, credential)| Ok((name.as_str(), of_scheme(document, name, credential)?)));
        let schemes = credentials.collect::<Result<_, OpenApiError>>()?;
        Ok(Self { document, always, schemes })
    }

    /// The credentials for an operation.
    pub(super) fn of(&self, operation: &Tree) -> Credentials {
        let mut credentials = self.always.clone();
        let required = operation.get("security").unwrap_or(&self.document.root["security"]);
        let alternatives = required.as_array().map(Vec::as_slice).unwrap_or_default();
        let chosen = alternatives.iter().filter_map(|alternative| self.satisfied(alternative));
        // An empty alternative makes credentials optional: then they are sent if there are any.
        for scheme in chosen.into_iter().find(|schemes| !schemes.is_empty()).into_iter().flatten() {
            credentials.extend(scheme);
        }
        credentials
    }

    /// The credentials for all schemes of an alternative; `None` if one is missing.
    fn satisfied(&self, alternative: &Tree) -> Option<Vec<&Credentials>> {
        let names = alternative.as_object()?.keys();
        let found = names.map(|name| self.schemes.iter().find(|(known, _)| known == name));
        found.map(|scheme| scheme.map(|(_, credentials)| credentials)).collect()
    }
}

fn scheme<'d>(document: &'d Document, name: &str) -> Option<&'d Tree> {
    document.resolve(document.root["components"]["securitySchemes"].get(name)?).ok()
}

fn of_scheme(document: &Document, name: &str, credential: &Credential) -> Result<Credentials, OpenApiError> {
    let wrong = |problem: &str| OpenApiError::Security { scheme: name.into(), problem: problem.into() };
    let scheme =
        scheme(document, name).ok_or_else(|| wrong("the document has no security scheme of this name"))?;
    let of_header = |text: &str| header_value(text).map_err(|problem| wrong(&problem));
    let text = |member: &str| scheme[member].as_str().unwrap_or_default().to_ascii_lowercase();
    let mut credentials = Credentials::default();
    match (text("type").as_str(), text("scheme").as_str(), credential) {
        ("apikey", _, Credential::Token(token)) => {
            let key = scheme["name"].as_str().ok_or_else(|| wrong("the scheme has no parameter name"))?;
            match scheme["in"].as_str() {
                Some("query") => {
                    credentials.query.push((encode(key), encode(token.expose())));
                    credentials.query_names.push(key.to_owned());
                }
                Some("header") => {
                    let header = HeaderName::from_bytes(key.as_bytes()).ok().filter(|name| !is_own(name));
                    let header = header.ok_or_else(|| wrong("the scheme names no header that can be set"))?;
                    credentials.headers.push((header, of_header(token.expose())?));
                }
                Some("cookie") => credentials.cookies.push((key.to_owned(), encode(token.expose()))),
                _ => return Err(wrong("the scheme is neither in a header nor in the query nor in a cookie")),
            }
        }
        ("http", "bearer", Credential::Token(token))
        | ("oauth2" | "openidconnect", _, Credential::Token(token)) => {
            credentials
                .headers
                .push((header::AUTHORIZATION, of_header(&format!("Bearer {}", token.expose()))?));
        }
        ("http", "basic", Credential::Basic { user, password }) => {
            if user.contains(':') {
                return Err(wrong("the user name must not have a colon"));
            }
            let pair = STANDARD.encode(format!("{user}:{}", password.expose()));
            credentials.headers.push((header::AUTHORIZATION, of_header(&format!("Basic {pair}"))?));
        }
        ("http", "basic", Credential::Token(_)) => return Err(wrong("expected a user name and a password")),
        ("apikey" | "oauth2" | "openidconnect", ..) | ("http", "bearer", _) => {
            return Err(wrong("expected a token"));
        }
        _ => return Err(wrong("this type of scheme is not supported: use headers")),
    }
    Ok(credentials)
}

fn header_value(text: &str) -> Result<HeaderValue, String> {
    let mut value =
        HeaderValue::from_str(text).map_err(|_| "the value has characters that a header cannot have")?;
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
        "session":{"type":"apiKey","in":"cookie","name":"sid"},"csrf":{"type":"apiKey","in":"cookie","name":"c"},
        "user":{"type":"http","scheme":"basic"},"token":{"type":"http","scheme":"Bearer"},
        "login":{"type":"oauth2"},"mtls":{"type":"mutualTLS"},
        "length":{"type":"apiKey","in":"header","name":"Content-Length"}}}}"#;

    fn token(text: &str) -> Credential {
        Credential::Token(Secret::new(text))
    }

    /// The credentials of an operation, if these schemes have one.
    fn shown(schemes: &[&str], operation: &Tree) -> String {
        let document = parse(DOCUMENT).unwrap();
        let credential = |name: &str| match name {
            "user" => Credential::Basic { user: "ann".into(), password: Secret::new("p:w") },
            name => token(&format!("{name}&;")),
        };
        let security = schemes.iter().map(|name| ((*name).to_owned(), credential(name))).collect();
        let config = OpenApiConfig { security, ..OpenApiConfig::new("shop") };
        let credentials = Security::new(&document, &config).unwrap().of(operation);
        let mut headers = HeaderMap::from_iter([(header::COOKIE, HeaderValue::from_static("a=1"))]);
        credentials.insert_into(&mut headers);
        let secret = headers.iter().filter(|(_, value)| value.is_sensitive());
        let headers = secret.map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()));
        let query = credentials.query.iter().map(|(name, value)| format!("{name}={value}"));
        headers.chain(query).collect::<Vec<_>>().join(" | ")
    }

    #[test]
    fn first_satisfied_alternative_is_sent() {
        let all = ["key", "head", "user", "session", "csrf"];
        for (operation, expected) in [
            (json!({}), "api%20key=key%26%3B"),
            (json!({"security": []}), ""),
            (json!({"security": [{}, {"key": []}]}), "api%20key=key%26%3B"),
            (
                json!({"security": [{"token": []}, {"head": [], "user": []}]}),
                "x-key: head&; | authorization: Basic YW5uOnA6dw==",
            ),
            (
                json!({"security": [{"session": [], "csrf": []}]}),
                "cookie: a=1; c=csrf%26%3B; sid=session%26%3B",
            ),
            (json!({"security": [{"token": []}]}), ""),
        ] {
            assert_eq!(shown(&all, &operation), expected);
        }
        for scheme in ["token", "login"] {
            let operation = json!({"security": [{scheme: []}]});
            assert_eq!(shown(&[scheme], &operation), format!("authorization: Bearer {scheme}&;"));
        }
    }

    #[test]
    fn credentials_that_do_not_fit_are_rejected_without_being_shown() {
        let document = parse(DOCUMENT).unwrap();
        for (name, credential) in [
            ("nothing", token("s3cret")),
            ("user", token("s3cret")),
            ("mtls", token("s3cret")),
            ("length", token("s3cret")),
            ("head", token("s3cret\r\nX: y")),
            ("key", Credential::Basic { user: "u".into(), password: Secret::new("s3cret") }),
        ] {
            let security = vec![(name.into(), credential)];
            let config = OpenApiConfig { security, ..OpenApiConfig::new("shop") };
            let error = Security::new(&document, &config).err().unwrap().to_string();
            assert!(error.contains(name) && !error.contains("s3cret"), "{error}");
        }
        let headers = vec![(header::HOST, Secret::new("s3cret"))];
        let config = OpenApiConfig { headers, ..OpenApiConfig::new("shop") };
        let error = Security::new(&document, &config).err().unwrap().to_string();
        assert_eq!(error, "headers.host: this header is set by the server and cannot be configured");
    }
}
