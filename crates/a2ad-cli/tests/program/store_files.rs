//! The program and the files of its store: other names of the file, files of other programs, files that disappear or are
//! damaged, and what is left after a clean stop.

use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::Path,
};

use testkit::{
    http1, http2,
    process::Server,
    rpc::{Caller, message},
};

use super::common::{ANY_PORT, TIMEOUT, files, run, serve_with, stop};

async fn start(folder: &Path, store: &str) -> Server {
    serve_with(folder, &["--store", store]).await
}

/// Starts a server that must not start. Returns its error.
async fn refused(folder: &Path, store: &str) -> String {
    let refused = run(folder, &["--listen", ANY_PORT, "--store", store]).await;
    refused.ends(1, &[]);
    refused.err
}

/// Sends a message; whether its task was acknowledged.
async fn send(server: &Server) -> bool {
    let body = r#"{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"hello"}]}}"#;
    let response = http1::request(server.address, "POST", "/message:send", &[], body.as_bytes()).await;
    response.is_ok_and(|response| response.status == 200)
}

#[tokio::test]
async fn a_second_server_is_refused_by_any_name_of_the_store() {
    let folder = tempfile::tempdir().unwrap();
    let first = start(folder.path(), "tasks.db").await;
    let pid = format!("PID {}", first.id().unwrap());
    symlink("tasks.db", folder.path().join("link.db")).unwrap();
    let error = refused(folder.path(), "link.db").await;
    assert!(error.contains("in use by another a2ad") && error.contains(&pid), "{error}");
    assert!(error.contains("serving at 127.0.0.1:"), "{error}");
    // Without the lock file, the lock on the database itself decides, where the system has such locks.
    if cfg!(target_os = "linux") {
        fs::remove_file(folder.path().join("tasks.db.lock")).unwrap();
        let error = refused(folder.path(), "link.db").await;
        assert!(error.contains("is locked by a2ad (") && error.contains(&pid), "{error}");
    }
    fs::hard_link(folder.path().join("tasks.db"), folder.path().join("second.db")).unwrap();
    let error = refused(folder.path(), "second.db").await;
    assert!(error.contains("has 2 names (hard links)"), "{error}");
    assert!(send(&first).await, "the refused servers do not affect the first");
    first.kill().await.unwrap();
    for name in ["second.db", "tasks.db", "link.db"] {
        let error = refused(folder.path(), name).await;
        assert!(error.contains("has 2 names (hard links)"), "{name}: {error}");
    }
    fs::remove_file(folder.path().join("second.db")).unwrap();
    let first = start(folder.path(), "link.db").await;
    assert!(send(&first).await);
}

#[tokio::test]
async fn a_server_whose_store_disappears_acknowledges_nothing_and_stops() {
    for (file, known) in [
        ("tasks.db", "tasks.db-wal: put the file back beside it"),
        ("tasks.db-wal", "what was acknowledged has been moved into"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let mut server = start(folder.path(), "tasks.db").await;
        assert!(send(&server).await);
        fs::remove_file(folder.path().join(file)).unwrap();
        for _ in 0..20 {
            assert!(!send(&server).await, "{file}");
        }
        let status = server.wait(TIMEOUT).await.unwrap().unwrap();
        let log = server.log();
        assert_eq!(status.code(), Some(70), "{log}");
        let last = log.lines().last().unwrap();
        assert!(last.contains(&format!("{file} was removed")) && last.contains(known), "{last}");
        assert!(!last.contains("every acknowledged task is safe"), "{last}");
    }
}

#[tokio::test]
async fn an_idle_server_notices_that_its_store_was_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = start(folder.path(), "tasks.db").await;
    let pid = server.id().unwrap();
    assert!(send(&server).await);
    fs::write(folder.path().join("other.db"), "").unwrap();
    fs::rename(folder.path().join("other.db"), folder.path().join("tasks.db")).unwrap();
    let status = server.wait(TIMEOUT).await.unwrap().unwrap();
    assert_eq!(status.code(), Some(70), "{}", server.log());
    assert!(server.log().contains("tasks.db was replaced by another file"), "{}", server.log());
    // The other file is not touched, and the log of the earlier one is kept under another name.
    assert_eq!(fs::metadata(folder.path().join("tasks.db")).unwrap().len(), 0);
    let aside = format!("tasks.db-wal.replaced-{pid}");
    assert!(server.log().contains(&aside), "{}", server.log());
    let mut left = files(folder.path());
    left.retain(|name| name != "tasks.db.lock");
    assert_eq!(left, ["tasks.db", &aside, "tasks.db.audit.jsonl", "tasks.db.keys"]);
    assert!(fs::metadata(folder.path().join(aside)).unwrap().len() > 0);
}

#[tokio::test]
async fn the_log_of_a_replaced_store_is_not_applied_to_the_other() {
    let folder = tempfile::tempdir().unwrap();
    let other = start(folder.path(), "other.db").await;
    let mut ids = Vec::new();
    for number in 0..20 {
        let sent = message(number, "kept", false);
        let reply = Caller::new(other.address).call("echo", "SendMessage", sent).await.unwrap();
        ids.push(reply["task"]["id"].as_str().unwrap().to_owned());
    }
    stop(other).await;
    let mut server = start(folder.path(), "tasks.db").await;
    for _ in 0..5 {
        assert!(send(&server).await);
    }
    fs::rename(folder.path().join("other.db"), folder.path().join("tasks.db")).unwrap();
    assert_eq!(server.wait(TIMEOUT).await.unwrap().unwrap().code(), Some(70), "{}", server.log());
    let server = start(folder.path(), "tasks.db").await;
    for id in ids {
        let task = Caller::new(server.address).get("echo", &id).await.unwrap();
        assert!(task.is_some(), "{id} is missing");
    }
}

#[tokio::test]
async fn a_truncated_store_stops_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = start(folder.path(), "tasks.db").await;
    assert!(send(&server).await);
    fs::File::create(folder.path().join("tasks.db")).unwrap();
    assert!(!send(&server).await);
    assert_eq!(server.wait(TIMEOUT).await.unwrap().unwrap().code(), Some(70), "{}", server.log());
    assert!(server.log().contains("tasks.db was truncated"), "{}", server.log());
}

#[tokio::test]
async fn a_stop_directly_after_the_store_was_removed_is_a_failure() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path(), "tasks.db").await;
    assert!(send(&server).await);
    fs::remove_file(folder.path().join("tasks.db")).unwrap();
    assert_eq!(server.terminate(TIMEOUT).await.unwrap().code(), Some(70));
}

#[tokio::test]
async fn a_lock_file_of_another_program_is_left_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let lock = folder.path().join("Cargo.lock");
    fs::write(&lock, "version = 4\n").unwrap();
    let error = refused(folder.path(), "Cargo").await;
    assert!(error.contains("Cargo.lock is not a lock file of a2ad; move it away"), "{error}");
    assert_eq!(fs::read(&lock).unwrap(), b"version = 4\n");
    assert_eq!(files(folder.path()), ["Cargo.lock"]);
    // An empty one has no content to lose.
    fs::write(lock, "").unwrap();
    let server = start(folder.path(), "Cargo").await;
    stop(server).await;
}

#[tokio::test]
async fn a_clean_stop_leaves_the_database_the_audit_log_and_the_keys() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path(), "tasks.db").await;
    assert!(send(&server).await);
    let running = ["tasks.db", "tasks.db-shm", "tasks.db-wal", "tasks.db.lock"];
    let keys = folder.path().join("tasks.db.keys");
    let beside = ["tasks.db.audit.jsonl", "tasks.db.keys"];
    assert_eq!(files(folder.path()), [&running[..3], &beside, &running[3..]].concat());
    assert_eq!(files(&keys), ["admin", "seal"]);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    for file in running.into_iter().chain(["tasks.db.audit.jsonl", "tasks.db.keys/admin"]) {
        assert_eq!(mode(&folder.path().join(file)), 0o600, "{file}");
    }
    assert_eq!(mode(&keys), 0o700);
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/operations.md");
    let page = fs::read_to_string(page).unwrap();
    let named =
        page.split_once("The store is five files and a folder: ").unwrap().1.split("\n\n").next().unwrap();
    for file in files(folder.path()) {
        let file = file.replace("tasks.db", "a2ad.db");
        assert!(
            named.contains(&format!("`{file}`")) || named.contains(&format!("`{file}/`")),
            "{file}: {named}"
        );
    }
    // The lock describes the process while it runs.
    let lock = fs::read_to_string(folder.path().join("tasks.db.lock")).unwrap();
    let lock: serde_json::Value = serde_json::from_str(&lock).unwrap();
    assert_eq!((&lock["pid"], &lock["state"]), (&server.id().into(), &"serving".into()));
    assert_eq!(lock["address"], server.address.to_string());
    stop(server).await;
    assert_eq!(files(folder.path()), ["tasks.db", "tasks.db.audit.jsonl", "tasks.db.keys"]);
}

async fn send_text(server: &Server, text: &str) {
    let body =
        format!(r#"{{"message":{{"messageId":"{text}","role":"ROLE_USER","parts":[{{"text":"{text}"}}]}}}}"#);
    let response =
        http1::request(server.address, "POST", "/message:send", &[], body.as_bytes()).await.unwrap();
    assert_eq!(response.status, 200, "{}", response.text());
}

/// Runs `a2ad check` on a store. Returns the exit code and the findings.
async fn check(folder: &Path, store: &str) -> (Option<i32>, String) {
    let checked = run(folder, &["check", "--store", store]).await;
    (Some(checked.code), checked.out)
}

#[tokio::test]
async fn a_damaged_task_is_named_by_the_check_and_left_out_of_lists() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path(), "a.db").await;
    for text in ["first", "broken", "third"] {
        send_text(&server, text).await;
    }
    stop(server).await;
    let path = folder.path().join("a.db");
    let mut bytes = fs::read(&path).unwrap();
    let places: Vec<usize> =
        bytes.windows(6).enumerate().filter(|(_, text)| *text == b"broken").map(|(at, _)| at).collect();
    places.iter().for_each(|at| bytes[*at] = 0xff);
    assert!(!places.is_empty());
    fs::write(&path, bytes).unwrap();

    let (code, findings) = check(folder.path(), "a.db").await;
    assert_eq!(code, Some(1), "{findings}");
    assert!(findings.contains("\nsegments: task 2 (") && findings.contains("): entry 1: "), "{findings}");

    let server = start(folder.path(), "a.db").await;
    let page = async |query: &str| {
        let path = format!("/tasks?{query}");
        let page =
            http1::request(server.address, "GET", &path, &[("A2A-Version", "1.0")], b"").await.unwrap();
        assert_eq!(page.status, 200, "{}", page.text());
        (page.headers.get("a2ad-unreadable").map(str::to_owned), page.json().unwrap())
    };
    let (unreadable, all) = page("includeArtifacts=true").await;
    assert_eq!((unreadable.as_deref(), all["tasks"].as_array().unwrap().len()), (Some("1"), 2), "{all}");
    let (mut pages, mut token) = (Vec::new(), String::new());
    while pages.len() < 3 {
        let (unreadable, one) = page(&format!("pageSize=1{token}")).await;
        pages.push((one["tasks"].as_array().unwrap().len(), unreadable.is_some()));
        token = format!("&pageToken={}", one["nextPageToken"].as_str().unwrap());
    }
    assert_eq!((pages, token.as_str()), (vec![(1, false), (0, true), (1, false)], "&pageToken="));

    let list = br#"{"jsonrpc":"2.0","id":1,"method":"ListTasks","params":{}}"#;
    let headers = [("A2A-Version", "1.0"), ("Content-Type", "application/json")];
    let listed = http1::request(server.address, "POST", "/", &headers, list).await.unwrap();
    assert_eq!(listed.headers.get("a2ad-unreadable"), Some("1"), "{}", listed.text());
    assert_eq!(listed.json().unwrap()["result"]["tasks"].as_array().unwrap().len(), 2);
    let channel = http2::Channel::open(server.address).await.unwrap();
    let request = channel.grpc("/lf.a2a.v1.A2AService/ListTasks", &[], http2::framed(b"")).unwrap();
    let mut response = channel.request(request).await.unwrap();
    assert_eq!(response.header("a2ad-unreadable"), "1", "in the initial metadata");
    assert!(response.message().await.unwrap().is_some());
    server.wait_for_log("a damaged task is left out of a list").await.unwrap();
}

#[tokio::test]
async fn a_log_with_a_damaged_header_is_not_discarded() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path(), "a.db").await;
    send_text(&server, "kept").await;
    server.kill().await.unwrap();
    let path = folder.path().join("a.db-wal");
    let log = fs::read(&path).unwrap();
    for place in [0, 13, 31] {
        let mut damaged = log.clone();
        damaged[place] ^= 1;
        fs::write(&path, &damaged).unwrap();
        let error = refused(folder.path(), "a.db").await;
        for part in ["a.db-wal is damaged", "put an undamaged copy of the log back", "restore a backup"] {
            assert!(error.contains(part), "{error}");
        }
        let (code, findings) = check(folder.path(), "a.db").await;
        assert!(code == Some(1) && findings.contains("a.db-wal is damaged"), "{findings}");
        assert_eq!(fs::read(&path).unwrap(), damaged, "it is left as it was");
    }
    fs::write(&path, log).unwrap();
    let server = start(folder.path(), "a.db").await;
    let tasks =
        http1::request(server.address, "GET", "/tasks", &[("A2A-Version", "1.0")], b"").await.unwrap();
    assert_eq!(tasks.json().unwrap()["totalSize"], 1, "{}", tasks.text());
    stop(server).await;
    // What a crash can leave of a log that was just begun.
    for left in [&b""[..], &[0; 20], &[0; 32]] {
        fs::write(&path, left).unwrap();
        let server = start(folder.path(), "a.db").await;
        stop(server).await;
    }
}
