//! The public keys of the server at `/.well-known/jwks.json`.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use a2ad_inbound::PublishKeys;
use bytes::Bytes;
use futures_util::future::{BoxFuture, FutureExt as _, ready};

use crate::common::{Server, Setup};

const PATH: &str = "/.well-known/jwks.json";
const KEYS: &str = r#"{"keys":[{"kty":"RSA","kid":"one","n":"AQ","e":"AQAB"}]}"#;

/// Has keys while it is available.
#[derive(Debug, Default)]
struct Keys {
    unavailable: AtomicBool,
}

impl PublishKeys for Keys {
    fn jwks(&self) -> BoxFuture<'static, Result<Bytes, String>> {
        let unavailable = self.unavailable.load(Ordering::Relaxed);
        ready(if unavailable { Err("no space left".into()) } else { Ok(KEYS.into()) }).boxed()
    }
}

async fn server() -> (Arc<Keys>, Server) {
    let (keys, mut setup) = (Arc::new(Keys::default()), Setup::default());
    setup.options.published_keys = Some(Arc::clone(&keys) as Arc<dyn PublishKeys>);
    (keys, setup.open().await)
}

#[tokio::test]
async fn keys_are_public_and_can_be_cached() {
    let (_, server) = server().await;
    let found = server.exchange(&format!("GET {PATH} HTTP/1.1\r\norigin: https://other.test"), "").await;
    assert_eq!((found.status, found.body.as_str()), (200, KEYS));
    assert_eq!(found.header("content-type"), Some("application/jwk-set+json"));
    assert_eq!(found.header("cache-control"), Some("public, max-age=60"));
    assert_eq!(found.header("access-control-allow-origin"), Some("*"));
    let etag = found.header("etag").unwrap().to_owned();
    let again = server.exchange(&format!("GET {PATH} HTTP/1.1\r\nif-none-match: {etag}"), "").await;
    assert_eq!((again.status, again.body.as_str(), again.header("etag")), (304, "", Some(etag.as_str())));
    let posted = server.exchange(&format!("POST {PATH} HTTP/1.1"), "{}").await;
    assert_eq!((posted.status, posted.header("allow")), (405, Some("GET, HEAD")));
}

#[tokio::test]
async fn keys_that_are_not_available_are_a_passing_error() {
    let (keys, server) = server().await;
    keys.unavailable.store(true, Ordering::Relaxed);
    let refused = server.get(PATH).await;
    assert_eq!(refused.status, 503);
    assert!(
        refused.body.contains("try again later") && !refused.body.contains("no space"),
        "{}",
        refused.body
    );
    keys.unavailable.store(false, Ordering::Relaxed);
    assert_eq!(server.get(PATH).await.status, 200);
}

#[tokio::test]
async fn server_without_keys_has_no_such_path() {
    assert_eq!(Server::open().await.get(PATH).await.status, 404);
}
