//! The keys that the server makes beside its store: `seal` at the first start, `push` when it is first needed.

#![allow(clippy::unwrap_used, reason = "a test fails on any error")]

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path, time::Duration};

use testkit::{http1, process};

const TIMEOUT: Duration = Duration::from_secs(30);

async fn serve(folder: &Path) -> process::Server {
    process::Server::start(Path::new(env!("CARGO_BIN_EXE_a2ad")), &folder.join("a2ad.db")).await.unwrap()
}

async fn published(server: &process::Server) -> String {
    let response = http1::request(server.address, "GET", "/.well-known/jwks.json", &[], &[]).await.unwrap();
    let text = String::from_utf8(response.body).unwrap();
    assert_eq!(response.status, 200, "{text}");
    text
}

#[tokio::test]
async fn keys_are_made_when_they_are_needed_and_stay_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let keys = folder.path().join("a2ad.db.keys");
    let server = serve(folder.path()).await;
    let seal = fs::read_to_string(keys.join("seal")).unwrap();
    assert!(seal.starts_with("a2ad_seal_") && seal.trim_end().len() == 53, "{}", seal.len());
    assert!(!keys.join("push").exists());
    let (first, second) = tokio::join!(published(&server), published(&server));
    assert_eq!(first, second);
    assert!(first.starts_with(r#"{"keys":[{"kty":"RSA","kid":""#), "{first}");
    assert!(!first.contains(r#""d""#), "{first}");
    let push = fs::read_to_string(keys.join("push")).unwrap();
    assert!(push.starts_with("-----BEGIN PRIVATE KEY-----\n"), "{}", push.len());
    for name in ["seal", "push"] {
        assert_eq!(fs::metadata(keys.join(name)).unwrap().permissions().mode() & 0o777, 0o600, "{name}");
    }
    server.terminate(TIMEOUT).await.unwrap();
    let server = serve(folder.path()).await;
    assert_eq!(published(&server).await, first);
    assert_eq!(fs::read_to_string(keys.join("seal")).unwrap(), seal);
    // A lost key is replaced by a new one, which receivers find at the same address.
    server.terminate(TIMEOUT).await.unwrap();
    fs::remove_file(keys.join("push")).unwrap();
    assert_ne!(published(&serve(folder.path()).await).await, first);
}

#[tokio::test]
async fn damaged_key_is_reported_at_the_start_and_kept() {
    let pem = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";
    for (name, text, expected) in [
        ("seal", "short\n", "has no key: expected one line"),
        ("seal", "a2ad_seal_but_this_is_no_key_of_32_bytes\n", "is not a key that seals secrets"),
        ("push", "short\n", "has no key: expected a PEM document"),
        ("push", pem, "expected an RSA private key"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a2ad.db.keys").join(name);
        fs::create_dir(file.parent().unwrap()).unwrap();
        fs::write(&file, text).unwrap();
        let mut command = process::command(env!("CARGO_BIN_EXE_a2ad"));
        command.current_dir(folder.path()).args(["serve", "--listen", process::ANY_PORT]);
        let refused = tokio::time::timeout(TIMEOUT, command.output()).await.unwrap().unwrap();
        let error = String::from_utf8(refused.stderr).unwrap();
        assert_eq!(refused.status.code(), Some(1), "{error}");
        let path = format!("a2ad.db.keys/{name}");
        assert!([expected, &path, "remove"].iter().all(|part| error.contains(part)), "{expected}: {error}");
        assert_eq!(fs::read_to_string(&file).unwrap(), text);
    }
}
