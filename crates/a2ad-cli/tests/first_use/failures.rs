//! Tools of users that fail: what the log and the commands say about it.

use std::time::Duration;

use serde_json::Value;
use testkit::{http1, process::Server};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};

use super::{run, serve};

/// The log line of a failed call of this skill.
async fn failure(server: &Server, skill: &str) -> Value {
    let found = || -> Vec<Value> {
        let log = server.log();
        let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        lines
            .filter(|line| line["message"] == "a call of a backend failed" && line["skill"] == skill)
            .collect()
    };
    let logged = async {
        while found().is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let timeout = Duration::from_secs(20);
    assert!(tokio::time::timeout(timeout, logged).await.is_ok(), "{skill}: {}", server.log());
    let found = found();
    assert_eq!(found.len(), 1, "{skill}: {}", server.log());
    assert_eq!(found[0]["level"], "WARN");
    found[0].clone()
}

#[tokio::test]
async fn the_log_has_the_reason_of_a_failed_run() {
    let folder = tempfile::tempdir().unwrap();
    // Nothing listens there.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let free = listener.local_addr().unwrap();
    drop(listener);
    let config = format!(
        r#"
        [skills.broken]
        description = "Fails"
        command = {{ argv = ["sh", "-c", "echo no such table >&2; exit 3"] }}
        [skills.missing]
        description = "Is not there"
        command = {{ argv = ["sh", "-c", "exit 0"], cwd = "gone" }}
        [skills.away]
        description = "Is down"
        http = {{ url = "http://{free}/fx?key=secret" }}
        [agents.main]
        "#
    );
    std::fs::create_dir(folder.path().join("gone")).unwrap();
    let server = serve(folder.path(), &config).await;
    std::fs::remove_dir(folder.path().join("gone")).unwrap();
    for (skill, target, reasons) in [
        ("broken", "sh -c echo no such table >&2; exit 3".to_owned(), ["exit code 3", "no such table"]),
        ("missing", "sh -c exit 0".to_owned(), ["cannot be started", "does not exist"]),
        ("away", format!("http://{free}/fx"), ["cannot be reached", "refused"]),
    ] {
        let path = format!("/a2a/main/run/{skill}");
        let headers = [("content-type", "application/json")];
        let response = http1::request(server.address, "POST", &path, &headers, b"{}").await.unwrap();
        assert!(response.status >= 400, "{skill}: {}", response.text());
        let line = failure(&server, skill).await;
        assert_eq!(line["agent"], "main", "{line}");
        assert_eq!(line["destination"], target, "{line}");
        assert!(line["task"].as_str().unwrap().starts_with("task_"), "{line}");
        assert!(line["backend"].is_string(), "{line}");
        for reason in reasons {
            assert!(line["reason"].as_str().unwrap().contains(reason), "{line}");
        }
    }
}

#[tokio::test]
async fn a_program_that_is_no_mcp_server_is_reported_once_with_its_exit_status() {
    let folder = tempfile::tempdir().unwrap();
    let done =
        run(folder.path(), &["add", "mcp", "x", "--", "sh", "-c", "echo no module named x >&2; exit 3"])
            .await;
    assert_eq!(done.code, 1, "{done:?}");
    assert_eq!(done.err.matches("exit code 3").count(), 1, "{}", done.err);
    assert_eq!(done.err.matches("no module named x").count(), 1, "{}", done.err);
    assert!(!folder.path().join("a2ad.toml").exists());
}

#[tokio::test]
async fn a_url_without_an_mcp_server_is_reported_with_what_it_answers() {
    for (response, expected) in [
        (
            "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 2\r\n\r\nhi",
            "text/html instead of JSON or events",
        ),
        ("HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n", "HTTP 404"),
        ("HTTP/1.1 500 Oh\r\ncontent-length: 0\r\n\r\n", "HTTP 500"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let answering = tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                tokio::spawn(async move {
                    let mut request = [0; 16 << 10];
                    while stream.read(&mut request).await.is_ok_and(|read| read > 0) {
                        // The whole request is small and arrives at once.
                        stream.write_all(response.as_bytes()).await.unwrap();
                        tokio::time::sleep(Duration::from_millis(10)).await;
                    }
                });
            }
        });
        let done = run(folder.path(), &["add", "mcp", "x", "--url", &url]).await;
        answering.abort();
        assert_eq!(done.code, 1, "{done:?}");
        assert!(done.err.contains(expected), "{expected:?} is not in {}", done.err);
        for debug_form in ["Some(", "Transport [", "Error(", "{ "] {
            assert!(!done.err.contains(debug_form), "{}", done.err);
        }
    }
}
