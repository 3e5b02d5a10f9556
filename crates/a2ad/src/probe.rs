//! Probes what answers at a port, to name the likely cause in an error message. Not used for calls.

use std::{io, time::Duration};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

/// The limit for the connection, and again for the response.
const TIMEOUT: Duration = Duration::from_secs(1);
/// The most bytes of a response that are read.
const MAX_BYTES: u64 = 64 * 1024;

/// The result of a probe.
#[derive(Debug, PartialEq, Eq)]
pub enum ProbeResult {
    /// An HTTP/1.1 response without TLS.
    Http {
        /// The status code.
        status: u16,
        /// The start of the body.
        body: String,
    },
    /// A TLS alert: the port expects TLS.
    Tls,
    /// The connection was accepted, but no known response arrived.
    Unknown,
    /// The connection failed.
    Unreachable(io::ErrorKind),
}

/// Requests a path in plain HTTP. `authority` is host and port.
#[expect(clippy::disallowed_methods, reason = "asks a server that the user named, without an HTTP client")]
pub async fn get(authority: &str, path: &str) -> ProbeResult {
    let connected = tokio::time::timeout(TIMEOUT, TcpStream::connect(authority)).await;
    let stream = match connected {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return ProbeResult::Unreachable(error.kind()),
        Err(_) => return ProbeResult::Unreachable(io::ErrorKind::TimedOut),
    };
    let answer = tokio::time::timeout(TIMEOUT, exchange(stream, authority, path)).await;
    answer.map_or(ProbeResult::Unknown, |bytes| read(&bytes))
}

async fn exchange(mut stream: TcpStream, authority: &str, path: &str) -> Vec<u8> {
    let request = format!(
        "GET {path} HTTP/1.1\r\nhost: {authority}\r\naccept: application/json\r\nconnection: close\r\n\r\n"
    );
    let mut bytes = Vec::new();
    if stream.write_all(request.as_bytes()).await.is_ok() {
        // Bytes received before an error are used.
        let _ = stream.take(MAX_BYTES).read_to_end(&mut bytes).await;
    }
    bytes
}

fn read(bytes: &[u8]) -> ProbeResult {
    const ALERT: [u8; 2] = [0x15, 0x03];
    if bytes.starts_with(&ALERT) {
        return ProbeResult::Tls;
    }
    let text = String::from_utf8_lossy(bytes);
    let status = text.strip_prefix("HTTP/1.").and_then(|rest| rest.get(2..5)?.parse().ok());
    match status {
        Some(status) => {
            let body = text.split_once("\r\n\r\n").map(|(_, body)| body.to_owned()).unwrap_or_default();
            ProbeResult::Http { status, body }
        }
        None => ProbeResult::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn responses_are_classified_as_http_tls_or_unknown() {
        let http = ProbeResult::Http { status: 503, body: "{}".into() };
        assert_eq!(read(b"HTTP/1.1 503 Service Unavailable\r\na: b\r\n\r\n{}"), http);
        assert_eq!(read(b"\x15\x03\x01\x00\x02\x02\x46"), ProbeResult::Tls);
        for bytes in [&b""[..], b"SSH-2.0", b"HTTP/1.1", b"HTTP/1.1 abc\r\n"] {
            assert_eq!(read(bytes), ProbeResult::Unknown);
        }
    }
}
