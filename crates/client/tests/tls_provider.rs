//! The client brings its own TLS provider. A process has one default provider, so this is the only test of
//! its binary.

#![allow(clippy::unwrap_used, reason = "a test fails on any error")]

use std::{io::Read as _, net::TcpListener, thread::JoinHandle};

use a2ad_client::{Client, Error};
use rustls::crypto::{CryptoProvider, aws_lc_rs};

/// The first byte of a TLS handshake record.
const HANDSHAKE: u8 = 22;

/// Accepts one connection, reads its first byte and closes it.
fn read_first_byte(listener: TcpListener) -> JoinHandle<u8> {
    std::thread::spawn(move || {
        let mut byte = [0];
        listener.accept().unwrap().0.read_exact(&mut byte).unwrap();
        byte[0]
    })
}

async fn check_handshake_starts() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}/", listener.local_addr().unwrap());
    let first_byte = read_first_byte(listener);
    let error = Client::connect(&url).unwrap().get_task("t-1").await.unwrap_err();
    assert!(matches!(error, Error::Transport(_)), "{error:?}");
    assert_eq!(first_byte.join().unwrap(), HANDSHAKE, "{error}");
}

#[tokio::test]
async fn default_provider_of_the_process_is_neither_set_nor_used() {
    check_handshake_starts().await;
    assert!(CryptoProvider::get_default().is_none(), "the client has installed a default provider");

    // No handshake could start with this one.
    let useless = CryptoProvider { cipher_suites: Vec::new(), ..aws_lc_rs::default_provider() };
    useless.install_default().unwrap();
    check_handshake_starts().await;
}
