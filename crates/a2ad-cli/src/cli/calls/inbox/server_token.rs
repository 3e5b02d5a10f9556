//! The token that a server signs for the scheme `jwt`: RS256, with the time and the digest of the body.
//!
//! The keys are loaded when they are first needed, and again for a token with an unknown key, at most every few seconds.

use std::time::{Duration, Instant};

use aws_lc_rs::{
    digest::{SHA256, digest},
    signature::{RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents},
};
use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD as BASE64URL};
use bytes::Bytes;
use http::{Request, StatusCode, Uri};
use http_body_util::Full;
use outbound::{
    dial::{Dialer, FetchLimits, UrlSource},
    webhooks::signature::{TOLERANCE, seconds},
};
use protocol::{
    Timestamp,
    json::{
        Raw,
        read::{Node, Object, Path, Read},
    },
};
use tokio::sync::Mutex;

use super::receiver::Verdict;

const LIMITS: FetchLimits = FetchLimits { time: Duration::from_secs(10), body: 1 << 20 };
/// The least time between two requests for the keys.
const INTERVAL: Duration = Duration::from_secs(5);
/// The most keys of a server.
const MAX_KEYS: usize = 100;

/// The public keys of a server.
pub(super) struct ServerKeys {
    url: Uri,
    dialer: Dialer,
    loaded: Mutex<LoadedKeys>,
}

#[derive(Default)]
struct LoadedKeys {
    keys: Vec<Key>,
    at: Option<Instant>,
}

struct Key {
    id: Option<String>,
    public: RsaPublicKeyComponents<Vec<u8>>,
}

/// A token whose signature is not verified yet.
struct Token<'a> {
    signed: &'a str,
    signature: Vec<u8>,
    key: Option<String>,
    issued_at: i64,
    body_digest: String,
}

impl ServerKeys {
    /// The keys at this URL; the error is for the user.
    pub(super) fn at(url: &str) -> Result<Self, String> {
        let parsed: Option<Uri> = url.parse().ok();
        let is_http = |url: &Uri| matches!(url.scheme_str(), Some("http" | "https")) && url.host().is_some();
        let url = parsed.filter(is_http).ok_or("--jwks: expected an http or https URL")?;
        Ok(Self { url, dialer: Dialer::new(), loaded: Mutex::default() })
    }

    /// Verifies the token of a delivery that arrives at this time.
    pub(super) async fn verify(
        &self,
        authorization: Option<&str>,
        body: &[u8],
        now: Timestamp,
    ) -> Result<(), Verdict> {
        let refused = |problem: &str| Verdict::NotVerified(problem.to_owned());
        let bearer = authorization.and_then(|value| value.strip_prefix("Bearer "));
        let token = bearer.ok_or_else(|| refused("the header Authorization has no Bearer token"))?;
        let token = Token::read(token).ok_or_else(|| {
            refused("the token is not a JWT with RS256 and the claims iat and request_body_sha256")
        })?;
        self.check_signature(&token).await?;
        let actual: String =
            digest(&SHA256, body).as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        if token.body_digest != actual {
            return Err(refused("request_body_sha256 of the token is not that of the body"));
        }
        if seconds(now).saturating_sub(token.issued_at).abs() > TOLERANCE {
            return Err(refused("iat of the token is more than 5 minutes away"));
        }
        Ok(())
    }

    async fn check_signature(&self, token: &Token<'_>) -> Result<(), Verdict> {
        let mut loaded = self.loaded.lock().await;
        if loaded.find(token.key.as_deref()).is_none() && loaded.at.is_none_or(|at| at.elapsed() >= INTERVAL)
        {
            let fetched = self.fetch().await;
            loaded.keys = fetched.map_err(|problem| {
                Verdict::Unavailable(format!("the keys at {} cannot be loaded: {problem}", self.url))
            })?;
            loaded.at = Some(Instant::now());
        }
        let unknown = || Verdict::NotVerified("the key of the token is not one of the server's".to_owned());
        let key = loaded.find(token.key.as_deref()).ok_or_else(unknown)?;
        let verified =
            key.public.verify(&RSA_PKCS1_2048_8192_SHA256, token.signed.as_bytes(), &token.signature);
        verified.map_err(|_| Verdict::NotVerified("the signature of the token is not valid".to_owned()))
    }

    async fn fetch(&self) -> Result<Vec<Key>, String> {
        let request = Request::get(self.url.clone()).body(Full::<Bytes>::default());
        let request = request.map_err(|error| error.to_string())?;
        let response = self.dialer.fetch(request, UrlSource::Operator, LIMITS).await;
        let response = response.map_err(|error| error.to_string())?;
        match response.status() {
            StatusCode::OK => read_keys(response.body()).ok_or_else(|| "they are not a JWKS".to_owned()),
            status => Err(format!("the server responded {status}")),
        }
    }
}

impl LoadedKeys {
    fn find(&self, id: Option<&str>) -> Option<&Key> {
        self.keys.iter().find(|key| id.is_none() || key.id.as_deref() == id)
    }
}

impl<'a> Token<'a> {
    fn read(token: &'a str) -> Option<Self> {
        let (signed, signature) = token.rsplit_once('.')?;
        let (header, claims) = signed.split_once('.')?;
        let (header, claims) = (BASE64URL.decode(header).ok()?, BASE64URL.decode(claims).ok()?);
        let key = read_object(&header, |header| {
            let is_rs256 = header.need_text("alg")? == "RS256";
            Ok(is_rs256.then_some(header.text("kid")?))
        })??;
        let (issued_at, body_digest) = read_object(&claims, |claims| {
            let issued_at = claims.need("iat", "seconds since 1970", |node| Ok(node.text().to_owned()))?;
            Ok((issued_at, claims.need_text("request_body_sha256")?))
        })?;
        let issued_at = issued_at.parse().ok()?;
        Some(Self { signed, signature: BASE64URL.decode(signature).ok()?, key, issued_at, body_digest })
    }
}

/// Reads the RSA keys of a document; others are skipped.
fn read_keys(document: &[u8]) -> Option<Vec<Key>> {
    let keys = read_object(document, |object| {
        object.need("keys", "a list of keys", |node| {
            node.list_up_to(MAX_KEYS, "keys", |node| {
                let key = node.object()?;
                let is_rsa = key.text("kty")?.as_deref() == Some("RSA");
                let (id, n, e) = (key.text("kid")?, key.text("n")?, key.text("e")?);
                Ok(is_rsa.then_some((id, n, e)))
            })
        })
    })?;
    let decoded = keys.into_iter().flatten().filter_map(|(id, n, e)| {
        let number = |text: Option<String>| BASE64URL.decode(text?).ok();
        Some(Key { id, public: RsaPublicKeyComponents { n: number(n)?, e: number(e)? } })
    });
    Some(decoded.collect())
}

fn read_object<T>(document: &[u8], read: impl FnOnce(&Object<'_, '_>) -> Read<T>) -> Option<T> {
    let raw = Raw::parse(document).ok()?;
    let object = Node::new(raw, &Path::Root).bounded().object().ok()?;
    read(&object).ok()
}
