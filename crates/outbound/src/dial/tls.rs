//! TLS of outgoing connections: rustls with the platform's root certificates.

use std::{io, sync::Arc};

use rustls::{ClientConfig, crypto::aws_lc_rs};
use rustls_platform_verifier::Verifier;
use tokio::sync::OnceCell;

/// The TLS settings, made when they are first needed: a server that uses `http` only also starts on a machine without
/// root certificates.
#[derive(Default)]
pub(super) struct Tls(OnceCell<Arc<ClientConfig>>);

impl Tls {
    /// With these settings; the application protocols are ours.
    pub(super) fn with(config: ClientConfig) -> Self {
        Self(OnceCell::from(Arc::new(with_protocols(config))))
    }

    pub(super) async fn config(&self) -> io::Result<Arc<ClientConfig>> {
        let make = || async {
            // Reads the certificates from files.
            let config = tokio::task::spawn_blocking(platform).await.map_err(io::Error::other)?;
            Ok(Arc::new(config.map_err(io::Error::other)?))
        };
        self.0.get_or_try_init(make).await.cloned()
    }
}

/// The provider is given explicitly: the default of the process belongs to the program that uses this crate.
fn platform() -> Result<ClientConfig, rustls::Error> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider));
    let verifier = Arc::new(Verifier::new(provider)?);
    let builder = builder.with_safe_default_protocol_versions()?;
    let config = builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth();
    Ok(with_protocols(config))
}

fn with_protocols(mut config: ClientConfig) -> ClientConfig {
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    config
}
