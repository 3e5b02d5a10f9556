//! Error messages for locked stores, untrusted certificates, unresponsive peers, unknown variables and limits.

use std::{fs::File, path::Path, sync::Arc};

use rcgen::CertifiedKey;
use rusqlite::Connection;
use tokio::{io::AsyncReadExt as _, net::TcpListener, task::JoinSet};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{ServerConfig, pki_types::PrivateKeyDer},
};

use testkit::process::Signal;

use crate::common::{ANY_PORT as ANY, Ended, Running, a2ad, finish, member, run, within};

async fn serve(folder: &Path, more: &[&str]) -> Ended {
    finish(a2ad(folder, &[&["serve", "--listen", ANY], more].concat())).await
}

/// How this test process is described as the holder of a lock.
fn own_process() -> String {
    if cfg!(target_os = "linux") { format!("(PID {}, up ", std::process::id()) } else { String::new() }
}

#[tokio::test]
async fn a_store_held_by_another_program_names_its_process() {
    let folder = tempfile::tempdir().unwrap();
    let lock = File::create(folder.path().join("a2ad.db.lock")).unwrap();
    lock.lock().unwrap();
    let refused = serve(folder.path(), &[]).await;
    refused.ends(1, &["the store a2ad.db is locked by ", &own_process(), "stop that process", "--store"]);
    assert!(!refused.err.contains("another a2ad"), "{}", refused.err);
    // The description left by a killed a2ad is not attributed to the current holder of the lock.
    let dead = r#"{"pid":1,"state":"serving","startedAt":"2026-01-01T00:00:00.000Z"}"#;
    std::fs::write(folder.path().join("a2ad.db.lock"), dead).unwrap();
    let refused = serve(folder.path(), &[]).await;
    refused.ends(1, &["is locked by ", &own_process()]);
    drop(lock);
    // The database itself, locked by a program that does not use the lock file.
    let database = Connection::open(folder.path().join("a2ad.db")).unwrap();
    database.execute_batch("PRAGMA journal_mode = WAL; BEGIN IMMEDIATE").unwrap();
    let refused = serve(folder.path(), &[]).await;
    refused.ends(1, &["the store a2ad.db is locked by ", &own_process(), "--store"]);
    assert!(!refused.err.contains("database is locked"), "{}", refused.err);
}

#[tokio::test]
async fn selftest_reports_why_a_server_cannot_be_checked() {
    let server = Running::start().await;
    let selftest = async |url: &str| server.run(&["selftest", "--url", url]).await;
    let address = &server.address();
    selftest(&format!("https://{address}")).await.ends(2, &["http://", "without TLS"]);
    selftest("ftp://h").await.ends(2, &["\"ftp://h\" is no origin"]);
    let free = std::net::TcpListener::bind(ANY).unwrap().local_addr().unwrap().to_string();
    let start = format!("nothing listens there; start a server with: a2ad serve --listen {free}\n");
    selftest(&free).await.ends(1, &[&format!("cannot check http://{free}: "), &start]);
    let tls = tls_server().await;
    selftest(&tls.address).await.ends(1, &["that port expects TLS"]);
    // A draining server: one message, not a list of failures.
    server.run(&["send", "echo", "hold on", "--async"]).await;
    server.server.signal(Signal::TERM).unwrap();
    let draining = within(async {
        loop {
            let checked = selftest(address).await;
            if checked.err.contains("draining") {
                return checked;
            }
        }
    })
    .await;
    draining.ends(1, &["the server is shutting down (draining)"]);
    assert_eq!((draining.err.lines().count(), draining.out.as_str()), (1, ""), "{}", draining.err);
}

#[tokio::test]
async fn a_peer_that_never_answers_is_reported_as_a_timeout() {
    let listener = TcpListener::bind(ANY).await.unwrap();
    let silent = listener.local_addr().unwrap().to_string();
    let mut accepting = JoinSet::new();
    accepting.spawn(async move {
        let mut open = Vec::new();
        while let Ok((stream, _)) = listener.accept().await {
            open.push(stream);
        }
    });
    let folder = tempfile::tempdir().unwrap();
    for subcommand in [&["card"][..], &["send"]] {
        let text = if subcommand == ["send"] { &["hi"][..] } else { &[] };
        let arguments = [subcommand, &[silent.as_str()], text, &["--timeout", "1s"]].concat();
        let output = run(folder.path(), &arguments).await;
        output.ends(7, &[&format!("no answer from http://{silent} within 1s"), "does not answer http"]);
        assert!(!output.err.contains("working"), "{}", output.err);
    }
}

/// A server with a self-signed certificate.
struct TlsServer {
    address: String,
    _serving: JoinSet<()>,
}

async fn tls_server() -> TlsServer {
    let CertifiedKey { cert, signing_key } =
        rcgen::generate_simple_self_signed(["localhost".to_owned(), "127.0.0.1".to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(signing_key.serialize_der()).unwrap();
    let config = ServerConfig::builder().with_no_client_auth();
    let config = config.with_single_cert(vec![cert.der().clone()], key).unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind(ANY).await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let mut serving = JoinSet::new();
    serving.spawn(async move {
        let mut open = JoinSet::new();
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            open.spawn(async move {
                if let Ok(mut stream) = acceptor.accept(stream).await {
                    let _ = stream.read(&mut [0; 1_024]).await;
                }
            });
        }
    });
    TlsServer { address, _serving: serving }
}

#[tokio::test]
async fn an_untrusted_certificate_is_explained() {
    let server = tls_server().await;
    let folder = tempfile::tempdir().unwrap();
    let url = format!("https://{}/a2a/echo", server.address);
    let output = run(folder.path(), &["card", &url]).await;
    let address = format!("cannot connect to https://{}: ", server.address);
    let problem = "its certificate is not trusted: it is signed by an authority this machine does not know";
    output.ends(1, &[&address, problem, "SSL_CERT_FILE"]);
    assert!(!output.err.contains("UnknownIssuer"), "{}", output.err);
    let error = run(folder.path(), &["card", &url, "--json"]).await.error();
    assert!(member(&error, "error.hint").contains("SSL_CERT_FILE"), "{error:?}");
}

#[tokio::test]
async fn unknown_variables_are_reported_by_every_command() {
    let server = Running::start().await;
    for arguments in [&["agents"][..], &["check", "a2ad.toml"], &["card", "echo"]] {
        std::fs::write(server.path().join("a2ad.toml"), "").unwrap();
        let mut command = server.client(arguments);
        command.env("A2AD_LOG", "inf").env("A2AD_FOO", "1");
        let output = finish(command).await;
        assert_eq!(output.code, 0, "{}", output.err);
        for expected in ["A2AD_LOG: \"inf\" is not a log level; did you mean info?", "A2AD_FOO is unknown"] {
            assert!(output.err.contains(expected), "{arguments:?}: {expected:?} is not in {:?}", output.err);
        }
        assert!(!output.err.contains("did you mean A2AD_"), "no similar name exists: {}", output.err);
    }
}

#[tokio::test]
async fn a_misspelt_section_names_the_nearest_variable_beside_other_warnings() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a2ad.toml"), "").unwrap();
    let mut command = a2ad(folder.path(), &["check", "a2ad.toml"]);
    command.env("A2AD_SERVR__LISTEN", "127.0.0.1:1").env("A2AD_LISTN", "127.0.0.1:1");
    let output = finish(command).await;
    output
        .ends(2, &["A2AD_SERVR__LISTEN: ", "did you mean A2AD_SERVER__LISTEN?", "did you mean A2AD_LISTEN?"]);
    let mut command = a2ad(folder.path(), &["serve"]);
    command.env("A2AD_SERVER__LISEN", "127.0.0.1:1").env("A2AD_LISTN", "127.0.0.1:1");
    let output = finish(command).await;
    output.ends(2, &["did you mean A2AD_SERVER__LISTEN?", "did you mean A2AD_LISTEN?"]);
}

#[tokio::test]
async fn a_filter_for_one_target_does_not_disable_others() {
    for setting in ["a2ad::call", "a2ad::call=off"] {
        let server = Running::start_with(tempfile::tempdir().unwrap(), ANY, &[("A2AD_LOG", setting)]).await;
        server.run(&["send", "echo", "hi"]).await.prints(0, "hi\n", "");
        server.server.signal(Signal::TERM).unwrap();
        let log = server.log().await;
        assert!(log.contains("shutting down"), "{setting}: {log}");
        assert_eq!(log.contains(r#""target":"a2ad::call""#), setting == "a2ad::call", "{log}");
    }
}

#[tokio::test]
async fn each_step_of_a_shutdown_is_logged() {
    let folder = tempfile::tempdir().unwrap();
    let config = "[server]\ndrain_delay = \"2s\"\n[skills.echo]\nbuiltin = \"echo\"\n[agents.echo]\n";
    std::fs::write(folder.path().join("a2ad.toml"), config).unwrap();
    let server = Running::start_with(folder, ANY, &[]).await;
    server.run(&["send", "echo", "hold on", "--async"]).await;
    server.server.signal(Signal::TERM).unwrap();
    // Work is still accepted during the delay.
    server.run(&["send", "echo", "hi"]).await.prints(0, "hi\n", "");
    let refused = within(async {
        loop {
            let sent = server.run(&["send", "echo", "hi"]).await;
            if sent.code != 0 {
                return sent;
            }
        }
    })
    .await;
    refused.ends(1, &["the server is shutting down"]);
    assert_eq!(refused.err.matches("shutting down").count(), 1, "{}", refused.err);
    server.server.signal(Signal::TERM).unwrap();
    let log = server.log().await;
    let steps = [
        "shutting down: not ready, new work is accepted for 2 s more",
        "no new work is accepted; running tasks have up to 18 s to finish and 5 s more to stop",
        "a second signal",
        "stopped; 1 task is left and continues at the next start",
    ];
    let mut rest = log.as_str();
    for step in steps {
        let at = rest.find(step).unwrap_or_else(|| panic!("{step:?} is not in {rest:?}"));
        rest = &rest[at..];
    }
    // Without running tasks, none is left.
    let server = Running::start().await;
    server.server.signal(Signal::TERM).unwrap();
    let log = server.log().await;
    assert!(log.contains("stopped; no task is left") && !log.contains("accepted for"), "{log}");
}

#[tokio::test]
async fn a_too_small_memory_limit_names_the_key_to_change() {
    let folder = tempfile::tempdir().unwrap();
    let check = async |text: &str| {
        std::fs::write(folder.path().join("a2ad.toml"), text).unwrap();
        run(folder.path(), &["check"]).await
    };
    let needed = "limits.memory is 1GiB and must be at least 1200MiB, four times max_body";
    check("[limits]\nmax_body = \"300MiB\"\n").await.ends(2, &["a2ad.toml:2: limits.max_body: ", needed]);
    let needed = "expected at least 64MiB, four times max_body (16MiB)";
    check("[limits]\nmemory = \"63MiB\"\n").await.ends(2, &["a2ad.toml:2: limits.memory: ", needed]);
    // Without FILE, `check` uses the file that `serve` would use; without any, it fails.
    check("").await.prints(0, &run(folder.path(), &["check", "a2ad.toml"]).await.out, "");
    let empty = tempfile::tempdir().unwrap();
    finish(a2ad(empty.path(), &["check"])).await.ends(2, &["FILE", "--store"]);
}

#[tokio::test]
async fn completions_offer_the_values_of_flags() {
    let folder = tempfile::tempdir().unwrap();
    let script = run(folder.path(), &["completions", "bash"]).await.out;
    for values in ["draft 0.3 1.0", "submitted working input-required"] {
        assert!(script.contains(values), "{values}");
    }
    // Other spellings are accepted too.
    let server = Running::start().await;
    for dialect in ["0.1", "v0.3", "1", "1.0.1", "DRAFT"] {
        server.run(&["send", "echo", "hi", "--dialect", dialect]).await.prints(0, "hi\n", "");
    }
    for state in ["TASK_STATE_WORKING", "cancelled", "input_required"] {
        server.run(&["tasks", "ls", "echo", "--status", state]).await.prints(0, "", "");
    }
}

#[tokio::test]
async fn localhost_is_an_address_to_listen_on() {
    let server = Running::start_with(tempfile::tempdir().unwrap(), "localhost:0", &[]).await;
    server.run(&["send", "echo", "hi"]).await.prints(0, "hi\n", "");
}
