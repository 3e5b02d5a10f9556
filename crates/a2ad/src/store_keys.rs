//! The keys beside a store that the server uses itself: `seal` encrypts secrets in the database, `push` signs tokens for
//! receivers of webhooks.
//!
//! `seal` is made when the store is first opened, before anything can be sealed. `push` is made when it is first needed,
//! because that takes 50 to 200 ms and most servers never need it; a file that exists is checked at the start. The files of
//! a temporary store are deleted with it.

use std::{path::Path, sync::Arc};

use bytes::Bytes;
use engine::Sealer;
use futures_util::future::BoxFuture;
use inbound::PublishKeys;
use outbound::webhooks::{
    push_key::{PushKey, PushKeyError},
    token_signer::PushSigner,
};
use store::{KeyFile, KeyFileError, KeyFolder, KeyForm, KeyOrigin};

use crate::ServeError;

const SEAL: &str = "seal";
const PUSH: &str = "push";

/// The keys of a store that this process has open.
#[derive(Clone, Debug)]
pub(crate) struct StoreKeys {
    #[cfg_attr(
        not(feature = "backends"),
        expect(dead_code, reason = "nothing is sealed without push notifications")
    )]
    pub(crate) sealer: Arc<Sealer>,
    pub(crate) push: PushKey,
}

impl StoreKeys {
    /// Reads the keys beside a store that is open in this process, and makes those that are missing.
    pub(crate) fn of(store: &Path) -> Result<Self, ServeError> {
        let folder = KeyFolder::of(store);
        let file = folder.read_or_make(SEAL, || Sealer::new_key_text().expose().to_owned())?;
        report_exposed(&file);
        let sealer =
            Sealer::from_key_text(file.key.expose()).ok_or(ServeError::SealKey { path: file.path })?;
        if let Some(file) = folder.read_form(PUSH, KeyForm::Pem)? {
            report_exposed(&file);
            read_push(&file)?;
        }
        let push = PushKey::new(move || {
            let failed = |error: ServeError| PushKeyError(error.to_string());
            make_push(&folder).and_then(|file| read_push(&file)).map_err(failed)
        });
        Ok(Self { sealer: Arc::new(sealer), push })
    }

    /// The public keys, for the server to publish.
    pub(crate) fn published(&self) -> Arc<dyn PublishKeys> {
        Arc::new(PublishedPushKey(self.push.clone()))
    }
}

fn make_push(folder: &KeyFolder) -> Result<KeyFile, ServeError> {
    let make = || PushSigner::generate_pem().expose().to_owned();
    folder.read_or_make_form(PUSH, KeyForm::Pem, make).map_err(|error: KeyFileError| error.into())
}

fn read_push(file: &KeyFile) -> Result<PushSigner, ServeError> {
    let invalid = |reason| ServeError::PushKey { path: file.path.clone(), reason };
    PushSigner::from_pem(file.key.expose()).map_err(invalid)
}

fn report_exposed(file: &KeyFile) {
    if file.origin == KeyOrigin::FoundExposed {
        tracing::warn!(file = %file.path.display(), "other users could read this key; their permissions were removed");
    }
}

/// Publishes the public key of the key pair.
#[derive(Debug)]
struct PublishedPushKey(PushKey);

impl PublishKeys for PublishedPushKey {
    fn jwks(&self) -> BoxFuture<'static, Result<Bytes, String>> {
        let key = self.0.clone();
        Box::pin(async move {
            let signer = key.signer().await.map_err(|error| error.to_string())?;
            Ok(Bytes::copy_from_slice(signer.jwks().as_bytes()))
        })
    }
}
