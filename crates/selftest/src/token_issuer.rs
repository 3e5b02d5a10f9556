//! An issuer of tokens: its discovery document, its public key, and the tokens that it signs.

use std::{io, sync::Arc};

use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair as _};
use serde_json::{Value, json};

use super::{
    CheckError,
    loopback::{LoopbackServer, Request},
    mismatch,
    token::{base64url, content},
};

/// The path of the discovery document (OpenID Connect Discovery 1.0).
pub(crate) const DISCOVERY: &str = "/.well-known/openid-configuration";
/// The audience of its tokens in the configuration of the server under test.
pub(crate) const AUDIENCE: &str = "selftest";

/// Serves its documents until this value is dropped.
pub(crate) struct TokenIssuer {
    server: LoopbackServer,
    key: Ed25519KeyPair,
}

impl TokenIssuer {
    pub(crate) async fn start() -> Result<Self, CheckError> {
        let key = new_key()?;
        let public: Arc<str> = base64url(key.public_key().as_ref()).into();
        let server = LoopbackServer::start(move |request| respond(request, Arc::clone(&public))).await?;
        Ok(Self { server, key })
    }

    /// Host and port.
    pub(crate) fn host(&self) -> &str {
        &self.server.host
    }

    /// The value of the claim `iss`.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.server.host)
    }

    /// A token of this issuer; `claims` replaces and adds claims.
    pub(crate) fn token(&self, claims: &Value) -> String {
        self.signed(&self.key, claims)
    }

    /// The same token with the signature of another key.
    pub(crate) fn forged_token(&self, claims: &Value) -> Result<String, CheckError> {
        Ok(self.signed(&new_key()?, claims))
    }

    fn signed(&self, key: &Ed25519KeyPair, claims: &Value) -> String {
        let mut all = json!({ "iss": self.url(), "aud": AUDIENCE });
        for (name, value) in claims.as_object().into_iter().flatten() {
            all[name] = value.clone();
        }
        let content = content(r#"{"alg":"EdDSA","typ":"JWT","kid":"one"}"#, &all);
        let signature = base64url(key.sign(content.as_bytes()).as_ref());
        format!("{content}.{signature}")
    }
}

fn new_key() -> Result<Ed25519KeyPair, CheckError> {
    Ed25519KeyPair::generate().map_err(|error| mismatch("a key pair", error))
}

async fn respond(request: Request, public: Arc<str>) -> io::Result<()> {
    let origin = format!("http://{}", request.stream.get_ref().local_addr()?);
    let body = match request.line.split_once(' ') {
        Some(("GET", DISCOVERY)) => json!({
            "issuer": origin,
            "authorization_endpoint": format!("{origin}/authorize"),
            "token_endpoint": format!("{origin}/token"),
            "jwks_uri": format!("{origin}/keys"),
            "response_types_supported": ["code"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["EdDSA"],
        }),
        Some(("GET", "/keys")) => json!({ "keys": [{
            "kty": "OKP", "crv": "Ed25519", "alg": "EdDSA", "use": "sig", "kid": "one", "x": *public,
        }] }),
        _ => return request.respond_not_found().await,
    };
    request.respond(&body.to_string()).await
}
