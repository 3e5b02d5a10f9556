//! Client commands, and a server that refuses calls for now.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};

use super::run;

/// A server that answers every request with the next of these responses, and with the last one from then on.
async fn answering(responses: Vec<String>) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let asked = Arc::<AtomicUsize>::default();
    let count = Arc::clone(&asked);
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let (count, responses) = (Arc::clone(&count), responses.clone());
            tokio::spawn(async move {
                let mut request = [0; 16 << 10];
                if stream.read(&mut request).await.is_ok_and(|read| read > 0) {
                    let number = count.fetch_add(1, Ordering::Relaxed).min(responses.len() - 1);
                    stream.write_all(responses[number].as_bytes()).await.unwrap();
                }
            });
        }
    });
    (url, asked)
}

fn response(status: &str, retry_after: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\nconnection: close\r\ncontent-type: application/json\r\nretry-after: {retry_after}\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

const STARTING: &str = r#"{"status":"starting"}"#;
const ANSWER: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"message":{"messageId":"m","role":"ROLE_AGENT","parts":[{"text":"hello"}]}}}"#;

#[tokio::test]
async fn a_server_that_starts_is_asked_again_after_the_time_that_it_names() {
    let folder = tempfile::tempdir().unwrap();
    let starting = response("503 Service Unavailable", "1", STARTING);
    let limited = response("429 Too Many Requests", "1", "");
    // The search for a card, and then the call.
    let no_card = response("404 Not Found", "0", "");
    let answer = response("200 OK", "0", ANSWER);
    let responses = vec![starting, limited, no_card.clone(), no_card.clone(), no_card, answer];
    let (url, asked) = answering(responses).await;
    let done = run(folder.path(), &["send", &url, "hi", "--dialect", "1.0"]).await;
    assert_eq!((done.code, done.out.as_str()), (0, "hello\n"), "{done:?}");
    assert_eq!(asked.load(Ordering::Relaxed), 6);
}

#[tokio::test]
async fn a_server_that_goes_on_starting_is_unavailable_and_said_to_start() {
    let folder = tempfile::tempdir().unwrap();
    // Longer than the client waits.
    let (url, _) = answering(vec![response("503 Service Unavailable", "60", STARTING)]).await;
    let done = run(folder.path(), &["send", &url, "hi"]).await;
    assert_eq!(done.code, 1, "{done:?}");
    assert!(done.err.contains("the server is starting") && !done.err.contains("draining"), "{done:?}");
    let (url, _) =
        answering(vec![response("503 Service Unavailable", "1", r#"{"status":"not ready"}"#)]).await;
    let done = run(folder.path(), &["send", &url, "hi"]).await;
    assert_eq!(done.code, 1, "{done:?}");
    assert!(done.err.contains("draining"), "{done:?}");
}
