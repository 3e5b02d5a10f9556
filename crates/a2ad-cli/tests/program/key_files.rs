//! The keys that the server makes beside its store: `seal` at the first start, `push` when it is first needed.

use std::{fs, os::unix::fs::PermissionsExt as _};

use testkit::{http1, process};

use super::common::{run, serve, stop};

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
    stop(server).await;
    let server = serve(folder.path()).await;
    assert_eq!(published(&server).await, first);
    assert_eq!(fs::read_to_string(keys.join("seal")).unwrap(), seal);
    // A lost key is replaced by a new one, which receivers find at the same address.
    stop(server).await;
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
        let refused = run(folder.path(), &["serve", "--listen", process::ANY_PORT]).await;
        let path = format!("a2ad.db.keys/{name}");
        refused.ends(1, &[expected, &path, "remove"]);
        assert_eq!(fs::read_to_string(&file).unwrap(), text);
    }
}
