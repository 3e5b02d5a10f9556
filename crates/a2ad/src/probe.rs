//! A look at a port: what answers there. For errors that name a likely cause, not for calls.

use std::{io, time::Duration};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

/// How long the look may take.
const TIMEOUT: Duration = Duration::from_secs(1);
/// How much of an answer is read.
const MAX_BYTES: u64 = 64 * 1024;

/// What was found at a port.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// An answer in HTTP/1.1, without TLS.
    Http { status: u16, body: String },
    /// An alert of TLS: the port expects TLS.
    Tls,
    /// Connections are accepted, and nothing that is known comes back.
    Nothing,
    /// No connection, for this reason.
    Unreachable(io::ErrorKind),
}

/// Gets a path in plain HTTP. `authority` is host and port.
pub(crate) async fn get(authority: &str, path: &str) -> Found {
    let connected = tokio::time::timeout(TIMEOUT, TcpStream::connect(authority)).await;
    let stream = match connected {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return Found::Unreachable(error.kind()),
        Err(_) => return Found::Unreachable(io::ErrorKind::TimedOut),
    };
    let answer = tokio::time::timeout(TIMEOUT, exchange(stream, authority, path)).await;
    answer.map_or(Found::Nothing, |bytes| read(&bytes))
}

async fn exchange(mut stream: TcpStream, authority: &str, path: &str) -> Vec<u8> {
    let request = format!(
        "GET {path} HTTP/1.1\r\nhost: {authority}\r\naccept: application/json\r\nconnection: close\r\n\r\n"
    );
    let mut bytes = Vec::new();
    if stream.write_all(request.as_bytes()).await.is_ok() {
        // What came before an error counts.
        let _ = stream.take(MAX_BYTES).read_to_end(&mut bytes).await;
    }
    bytes
}

fn read(bytes: &[u8]) -> Found {
    const ALERT: [u8; 2] = [0x15, 0x03];
    if bytes.starts_with(&ALERT) {
        return Found::Tls;
    }
    let text = String::from_utf8_lossy(bytes);
    let status = text.strip_prefix("HTTP/1.").and_then(|rest| rest.get(2..5)?.parse().ok());
    match status {
        Some(status) => {
            let body = text.split_once("\r\n\r\n").map(|(_, body)| body.to_owned()).unwrap_or_default();
            Found::Http { status, body }
        }
        None => Found::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_http_or_tls_or_nothing() {
        let http = Found::Http { status: 503, body: "{}".into() };
        assert_eq!(read(b"HTTP/1.1 503 Service Unavailable\r\na: b\r\n\r\n{}"), http);
        assert_eq!(read(b"\x15\x03\x01\x00\x02\x02\x46"), Found::Tls);
        for bytes in [&b""[..], b"SSH-2.0", b"HTTP/1.1", b"HTTP/1.1 abc\r\n"] {
            assert_eq!(read(bytes), Found::Nothing);
        }
    }
}
