//! HTTP/2: a request that the server has not acted on is sent again, as when it restarts.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use a2ad_client::{Client, ClientOptions, ClientTls, Error};
use base64::{Engine as _, prelude::BASE64_STANDARD};
use bytes::Bytes;
use h2::{Reason, server::SendResponse};
use rcgen::CertifiedKey;
use rustls::{ServerConfig, crypto::aws_lc_rs, pki_types::PrivateKeyDer};
use tokio::{net::TcpListener, task::JoinSet, time::timeout};
use tokio_rustls::TlsAcceptor;

use crate::{TASK, result};

/// An agent that refuses its first requests.
struct RefusingAgent {
    client: Client,
    requests: Arc<AtomicUsize>,
    _serving: JoinSet<()>,
}

impl RefusingAgent {
    async fn start(refused: usize) -> Self {
        let CertifiedKey { cert, signing_key } =
            rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let key = PrivateKeyDer::try_from(signing_key.serialize_der()).unwrap();
        let builder = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()));
        let builder = builder.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
        let mut config = builder.with_single_cert(vec![cert.der().clone()], key).unwrap();
        config.alpn_protocols = vec![b"h2".to_vec()];
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("https://localhost:{}/rpc", listener.local_addr().unwrap().port());
        let requests = Arc::new(AtomicUsize::new(0));
        let mut serving = JoinSet::new();
        serving.spawn(serve(listener, TlsAcceptor::from(Arc::new(config)), Arc::clone(&requests), refused));
        let pem = format!(
            "-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n",
            BASE64_STANDARD.encode(cert.der())
        );
        let tls = ClientTls::default().with_authorities(pem.as_bytes()).unwrap();
        let client = Client::connect_with(&url, ClientOptions::default().with_tls(tls)).unwrap();
        Self { client, requests, _serving: serving }
    }
}

/// Serves one connection.
async fn serve(listener: TcpListener, tls: TlsAcceptor, requests: Arc<AtomicUsize>, refused: usize) {
    let stream = tls.accept(listener.accept().await.unwrap().0).await.unwrap();
    let mut connection = h2::server::handshake(stream).await.unwrap();
    while let Some(Ok((_, mut response))) = connection.accept().await {
        if requests.fetch_add(1, Ordering::Relaxed) < refused {
            response.send_reset(Reason::REFUSED_STREAM);
        } else {
            answer(response);
        }
    }
}

fn answer(mut response: SendResponse<Bytes>) {
    let mut body = response.send_response(http::Response::new(()), false).unwrap();
    body.send_data(Bytes::from(result(TASK)), true).unwrap();
}

#[tokio::test]
async fn refused_request_is_sent_again_twice() {
    for (refused, is_answered, expected) in [(2, true, 3), (3, false, 3)] {
        let agent = RefusingAgent::start(refused).await;
        let got = timeout(Duration::from_secs(30), agent.client.get_task("t-1")).await.unwrap();
        match got {
            Ok(task) => assert!(is_answered, "{task:?}"),
            Err(error) => assert!(!is_answered && matches!(error, Error::Transport(_)), "{error}"),
        }
        assert_eq!(agent.requests.load(Ordering::Relaxed), expected);
    }
}
