//! Reads certificates and private keys from PEM files.

use std::{fs, io::Read as _, path::Path};

use rustls::pki_types::{
    CertificateDer, PrivateKeyDer,
    pem::{self, PemObject as _},
};

use super::{TlsError, TlsFile};

/// The largest file that is read.
const MAX_BYTES: u64 = 4 << 20;

/// The certificates of a file; at least one.
pub(super) fn certificates(file: TlsFile, path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let problem = |reason: String| TlsError { file, path: path.to_owned(), reason };
    let bytes = read(path).map_err(problem)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    match found {
        Ok(found) if found.is_empty() => Err(problem(
            "has no certificate; expected PEM text that begins with -----BEGIN CERTIFICATE-----".into(),
        )),
        Ok(found) => Ok(found),
        Err(error) => Err(problem(format!("is not valid PEM: {}", pem_problem(&error)))),
    }
}

/// What is wrong with a PEM text, without what is in it.
fn pem_problem(error: &pem::Error) -> &'static str {
    match error {
        pem::Error::MissingSectionEnd { .. } => "a section has no line that begins with -----END",
        pem::Error::IllegalSectionStart { .. } => "a line that begins with -----BEGIN is malformed",
        pem::Error::Base64Decode(_) => "the content of a section is not base64",
        _ => "it cannot be read",
    }
}

/// The first private key of a file.
pub(super) fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    let problem = |reason: String| TlsError { file: TlsFile::Key, path: path.to_owned(), reason };
    let bytes = read(path).map_err(problem)?;
    PrivateKeyDer::from_pem_slice(&bytes).map_err(|error| match error {
        pem::Error::NoItemsFound => problem(
            "has no private key that can be used; expected PEM text with PRIVATE KEY, RSA PRIVATE KEY or EC PRIVATE KEY, \
             not encrypted"
                .into(),
        ),
        // Never with the content of the file.
        _ => problem("is not valid PEM".into()),
    })
}

/// The bytes of a regular file. Others are rejected: a device or a pipe could be read forever.
fn read(path: &Path) -> Result<Vec<u8>, String> {
    let unreadable = |error: std::io::Error| format!("cannot be read: {error}");
    if !fs::metadata(path).map_err(unreadable)?.is_file() {
        return Err("cannot be read: it is not a regular file".into());
    }
    let mut bytes = Vec::new();
    let file = fs::File::open(path).map_err(unreadable)?;
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err("cannot be read: it is larger than 4 MiB".into());
    }
    Ok(bytes)
}
