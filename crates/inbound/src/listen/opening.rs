//! The beginning of a connection: the TLS handshake, if the listener has TLS, and the version of HTTP.
//!
//! A client that uses the wrong one of `http` and `https` is told so, or closed without a reset.

use std::{io, sync::Arc, time::Duration};

use bytes::Bytes;
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};
use tokio_rustls::TlsAcceptor;

use super::{
    Caps,
    channel::Transport,
    connection_io::{ConnectionIo, Progress},
    frame_count::{FRAME_HEADER, PREFACE},
};
use crate::tls::{ClientCertificate, ServerTls};

/// The first byte of every TLS connection: a record with a part of the handshake.
const TLS_HANDSHAKE: u8 = 0x16;

/// The response to a client that speaks plain HTTP to a listener with TLS.
const HTTPS_REQUIRED: &[u8] = b"HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain; charset=utf-8\r\n\
    content-length: 70\r\nconnection: close\r\n\r\nthis port expects TLS; use https:// instead of http:// in the address\n";

/// How long a connection of the wrong kind is read until it is closed, and how much of it: unread bytes would turn the end
/// into a reset, and the client would lose the response.
const DISCARD_TIME: Duration = Duration::from_secs(1);
const MAX_DISCARDED: u64 = 64 << 10;

/// A connection that is ready for requests.
pub(super) struct OpenedConnection {
    pub(super) transport: Transport,
    pub(super) version: Version,
    /// The bytes that were read to find the version.
    pub(super) prefix: Bytes,
    /// That of the client.
    pub(super) certificate: Option<Arc<ClientCertificate>>,
}

/// Opens a connection; `None` if it is of the wrong kind and was closed.
pub(super) async fn open(
    stream: TcpStream,
    tls: Option<&Arc<ServerTls>>,
    progress: &Arc<Progress>,
    caps: &Caps,
) -> io::Result<Option<OpenedConnection>> {
    let (mut transport, certificate) = match tls {
        None => (Transport::Plain(connection_io(stream, progress, caps)), None),
        Some(tls) => {
            let secured = timeout(caps.handshake, secure(stream, tls, progress, caps)).await?;
            let Some(secured) = secured? else { return Ok(None) };
            secured
        }
    };
    let (version, prefix) = timeout(caps.first_bytes, Version::of(&mut transport)).await??;
    match transport {
        Transport::Plain(stream) if prefix.first() == Some(&TLS_HANDSHAKE) => {
            tracing::debug!("a client uses TLS on a listener without it");
            close(stream).await;
            Ok(None)
        }
        transport => Ok(Some(OpenedConnection { transport, version, prefix, certificate })),
    }
}

fn connection_io(stream: TcpStream, progress: &Arc<Progress>, caps: &Caps) -> ConnectionIo<TcpStream> {
    ConnectionIo::new(stream, Arc::clone(progress), caps.write_rate())
}

/// The TLS handshake; `None` if the client speaks something else.
async fn secure(
    mut stream: TcpStream,
    tls: &Arc<ServerTls>,
    progress: &Arc<Progress>,
    caps: &Caps,
) -> io::Result<Option<(Transport, Option<Arc<ClientCertificate>>)>> {
    let mut first = [0];
    let peeked = stream.peek(&mut first).await?;
    if peeked == 0 {
        return Ok(None);
    }
    if first[0] != TLS_HANDSHAKE {
        tracing::debug!("a client does not use TLS on a listener with it");
        if first[0].is_ascii_uppercase() {
            stream.write_all(HTTPS_REQUIRED).await?;
        }
        close(stream).await;
        return Ok(None);
    }
    let client_ca_change = tls.client_ca_change();
    let stream = TlsAcceptor::from(tls.config()).accept(connection_io(stream, progress, caps)).await?;
    let (_, session) = stream.get_ref();
    let chain = session.peer_certificates();
    let certificate = chain.and_then(|chain| ClientCertificate::new(tls, client_ca_change, chain));
    Ok(Some((Transport::Tls(Box::new(stream)), certificate.map(Arc::new))))
}

/// Closes a connection without a reset, if its client stops soon.
async fn close(mut stream: impl AsyncRead + tokio::io::AsyncWrite + Unpin) {
    let _ = stream.shutdown().await;
    let mut rest = stream.take(MAX_DISCARDED);
    let _ = timeout(DISCARD_TIME, tokio::io::copy(&mut rest, &mut tokio::io::sink())).await;
}

pub(super) enum Version {
    Http1,
    Http2,
}

impl Version {
    /// The version a connection begins with, and the bytes that were read to find out. The preface of HTTP/2 is read as a
    /// whole, with the header of the SETTINGS frame that follows it at once: a connection of HTTP/2 needs much more memory than
    /// one that is only open. Over TLS, clients send what they have negotiated.
    async fn of(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<(Self, Bytes)> {
        let mut buffer = [0; 1 << 10];
        let mut length = 0;
        loop {
            let read = stream.read(&mut buffer[length..]).await?;
            length += read;
            let compared = length.min(PREFACE.len());
            let version = match buffer[..compared] == PREFACE[..compared] {
                true if length >= PREFACE.len() + FRAME_HEADER => Self::Http2,
                true if read > 0 => continue,
                // What is missing will not come.
                true if compared == PREFACE.len() => Self::Http2,
                _ => Self::Http1,
            };
            return Ok((version, Bytes::copy_from_slice(&buffer[..length])));
        }
    }
}
