//! The key pair of a server, which signs tokens for receivers of webhooks. It is loaded or made when it is first needed:
//! making one takes 50 to 200 ms, and most servers never need it.

use std::{
    fmt::{self, Debug, Formatter},
    sync::{Arc, Mutex, PoisonError},
};

use tokio::sync::OnceCell;

use super::token_signer::PushSigner;

/// Loads the key pair, or makes and keeps it. Blocks.
type Load = Box<dyn FnMut() -> Result<PushSigner, PushKeyError> + Send>;

/// The key pair of a server. Cheap to clone.
#[derive(Clone)]
pub struct PushKey(Arc<Shared>);

struct Shared {
    signer: OnceCell<Arc<PushSigner>>,
    /// One call at a time, also if the one who waited for the last call has gone.
    load: Mutex<Load>,
}

/// The key pair can be neither loaded nor made: the reason, for the log.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the key that signs push notifications cannot be used: {0}")]
pub struct PushKeyError(pub String);

impl PushKey {
    /// A key pair that `load` returns, on a thread where it may block. It is called again after an error.
    pub fn new(load: impl FnMut() -> Result<PushSigner, PushKeyError> + Send + 'static) -> Self {
        Self(Arc::new(Shared { signer: OnceCell::new(), load: Mutex::new(Box::new(load)) }))
    }

    /// What signs with the key pair.
    ///
    /// # Errors
    ///
    /// The key pair cannot be loaded now. The next call tries again.
    pub async fn signer(&self) -> Result<Arc<PushSigner>, PushKeyError> {
        let shared = &self.0;
        let load = async || {
            let shared = Arc::clone(shared);
            let load = move || (shared.load.lock().unwrap_or_else(PoisonError::into_inner))();
            let loaded = tokio::task::spawn_blocking(load).await;
            loaded.unwrap_or_else(|error| Err(PushKeyError(error.to_string()))).map(Arc::new)
        };
        shared.signer.get_or_try_init(load).await.cloned()
    }
}

impl Debug for PushKey {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        write!(out, "PushKey({:?})", self.0.signer.get())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_key_is_loaded_once_and_again_after_an_error() {
        let (document, mut calls) = (PushSigner::generate_pem(), 0);
        let key = PushKey::new(move || {
            calls += 1;
            match calls {
                1 => Err(PushKeyError("no space left".into())),
                2 => Ok(PushSigner::from_pem(document.expose()).expect("it was generated")),
                _ => panic!("it is loaded"),
            }
        });
        assert!(key.signer().await.unwrap_err().to_string().ends_with("cannot be used: no space left"));
        let (first, second) = tokio::join!(key.signer(), key.signer());
        assert_eq!(first.unwrap().jwks(), second.unwrap().jwks());
        assert!(key.clone().signer().await.is_ok());
    }
}
