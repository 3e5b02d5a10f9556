//! Notifications that the program sends: a receiver with many names gets no more requests at a time than one with one.

use std::{net::SocketAddr, time::Duration};

use testkit::{http1, process::Server};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::watch,
    time::sleep,
};

use super::common::{ANY_PORT, Running, within};

/// Requests to one address at a time.
const PLACES: usize = 16;

#[derive(Clone, Copy, Default)]
struct Requests {
    in_progress: usize,
    most: usize,
    ended: usize,
}

/// A receiver that needs some time for each request.
async fn receive(listener: TcpListener, requests: watch::Sender<Requests>) {
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        tokio::spawn(respond(stream, requests.clone()));
    }
}

async fn respond(mut stream: TcpStream, requests: watch::Sender<Requests>) {
    assert!(stream.read(&mut [0; 16 << 10]).await.unwrap() > 0);
    requests.send_modify(|requests| {
        requests.in_progress += 1;
        requests.most = requests.most.max(requests.in_progress);
    });
    sleep(Duration::from_millis(500)).await;
    requests.send_modify(|requests| {
        (requests.in_progress, requests.ended) = (requests.in_progress - 1, requests.ended + 1);
    });
    stream.write_all(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n").await.unwrap();
}

/// Names of 127.0.0.1, each of which is a host of its own.
fn names() -> Vec<String> {
    let mut names = Vec::new();
    for first in ["127", "0x7f", "0177"] {
        for second in ["0", "0x0", "00"] {
            for third in ["0", "0x0", "00"] {
                for last in ["1", "0x1", "01"] {
                    names.push([first, second, third, last].join("."));
                }
            }
        }
    }
    names
}

async fn send(server: &Server, number: usize, name: &str, receiver: SocketAddr) {
    let url = format!("http://{name}:{}/", receiver.port());
    let body = format!(
        r#"{{"message":{{"messageId":"m{number}","role":"ROLE_USER","parts":[{{"text":"hello"}}]}},
            "configuration":{{"taskPushNotificationConfig":{{"url":"{url}"}}}}}}"#
    );
    let path = "/a2a/echo/message:send";
    let sent = http1::request(server.address, "POST", path, &[("A2A-Version", "1.0")], body.as_bytes()).await;
    let sent = sent.unwrap();
    assert_eq!(sent.status, 200, "{url}: {}", sent.text());
}

#[tokio::test]
async fn names_of_one_address_share_its_places() {
    let folder = tempfile::tempdir().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let receiver = listener.local_addr().unwrap();
    let (requests, mut seen) = watch::channel(Requests::default());
    tokio::spawn(receive(listener, requests));
    let allowed = [("A2AD_OUTBOUND__ALLOW", r#"["127.0.0.0/8"]"#), ("A2AD_OUTBOUND__ALLOW_HTTP", "true")];
    let running = Running::start_with(folder, ANY_PORT, &allowed).await;
    let names = names();
    for (number, name) in names.iter().enumerate() {
        send(&running.server, number, name, receiver).await;
    }
    let all = within(seen.wait_for(|requests| requests.ended == names.len())).await;
    assert_eq!(all.unwrap().most, PLACES);
}
