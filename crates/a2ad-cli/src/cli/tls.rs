//! TLS of the client commands: the authorities to trust, and the client certificate.

use std::{
    fs,
    path::{Path, PathBuf},
};

use clap::Args;
use client::ClientTls;

use crate::cli::failure::Failure;

#[derive(Default, Debug, Args)]
pub(super) struct TlsFlags {
    /// File with the authorities to trust, in PEM, instead of those of this machine.
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// File with the client certificate and its chain, in PEM, for agents that require one.
    #[arg(long, value_name = "FILE", requires = "key")]
    cert: Option<PathBuf>,
    /// File with the private key of the client certificate, in PEM.
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,
}

impl TlsFlags {
    /// Reads the files.
    pub(super) fn load(&self) -> Result<ClientTls, Failure> {
        let mut tls = ClientTls::default();
        if let Some(path) = &self.ca {
            let authorities = read("--ca", path)?;
            tls = tls.with_authorities(&authorities).map_err(|error| unusable("--ca", path, &error))?;
        }
        if let (Some(cert), Some(key)) = (&self.cert, &self.key) {
            let (chain, key) = (read("--cert", cert)?, read("--key", key)?);
            tls = tls.with_certificate(&chain, &key).map_err(|error| unusable("--cert", cert, &error))?;
        }
        Ok(tls)
    }

    /// Whether there is a client certificate.
    pub(super) fn has_certificate(&self) -> bool {
        self.cert.is_some()
    }

    /// The flags for a suggested command.
    pub(super) fn repeated(&self) -> Vec<String> {
        let flags = [("--ca", &self.ca), ("--cert", &self.cert), ("--key", &self.key)];
        let given = flags.into_iter().filter_map(|(flag, path)| Some((flag, path.as_ref()?)));
        given.flat_map(|(flag, path)| [flag.to_owned(), path.display().to_string()]).collect()
    }
}

fn read(flag: &str, path: &Path) -> Result<Vec<u8>, Failure> {
    let unreadable = |error| Failure::usage(format!("{flag}: {} cannot be read: {error}", path.display()));
    fs::read(path).map_err(unreadable)
}

fn unusable(flag: &str, path: &Path, error: &client::ClientTlsError) -> Failure {
    Failure::usage(format!("{flag}: the file {} {error}", path.display()))
}
