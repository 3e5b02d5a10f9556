//! API keys: made and revoked with `a2ad keys`, on a running server and on its store, and used for calls.

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path};

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD as BASE64URL};
use serde_json::{Value, json};
use testkit::{
    http1::{self, Connection},
    process::{Server, Signal},
};

use super::common::{Ended, a2ad, begin, client, configured, finish, run, serve, stop};

/// Two agents that require an API key, and one that permits everybody.
const CONFIG: &str = r#"
[server]
default_agent = "echo"
[skills.say]
builtin = "echo"
[agents.echo]
skills = ["say"]
auth = ["api-key"]
[agents.other]
skills = ["say"]
auth = ["api-key"]
[agents.open]
skills = ["say"]
"#;

/// Runs `a2ad keys` with these arguments.
async fn keys(folder: &Path, arguments: &[&str]) -> Ended {
    run(folder, &[&["keys"], arguments].concat()).await
}

/// The only line of an output.
#[track_caller]
fn only_line(out: &str) -> String {
    let line = out.strip_suffix('\n').unwrap();
    assert!(!line.is_empty() && !line.contains(char::is_whitespace), "{out:?}");
    line.to_owned()
}

fn id_of(key: &str) -> &str {
    key.strip_prefix("a2ad_").unwrap().split_once('_').unwrap().0
}

/// The status of a call of an agent with these headers.
async fn call(server: &Server, agent: &str, headers: &[(&str, &str)]) -> u16 {
    let headers = [&[("content-type", "text/plain")], headers].concat();
    http1::request(server.address, "POST", &format!("/a2a/{agent}"), &headers, b"hello").await.unwrap().status
}

fn is_in_files(folder: &Path, text: &str) -> bool {
    fs::read_dir(folder).unwrap().any(|entry| {
        let path = entry.unwrap().path();
        if path.is_dir() {
            return is_in_files(&path, text);
        }
        fs::read(path).unwrap().windows(text.len()).any(|window| window == text.as_bytes())
    })
}

#[tokio::test]
async fn a_key_of_a_running_server_is_used_and_revoked_at_once() {
    let folder = configured(CONFIG);
    let server = serve(folder.path()).await;
    let running = format!("on the running server http://{}", server.address);
    let new = keys(folder.path(), &["new", "echo", "--owner", "alice"]).await;
    let key = only_line(new.succeeds(&running));
    let id = id_of(&key).to_owned();
    let other = only_line(keys(folder.path(), &["new", "other"]).await.succeeds(&running));
    assert_eq!(call(&server, "echo", &[]).await, 401);
    let bearer = format!("Bearer {key}");
    for headers in [[("x-api-key", key.as_str())], [("authorization", &bearer)]] {
        assert_eq!(call(&server, "echo", &headers).await, 200);
    }
    assert_eq!(call(&server, "echo", &[("x-api-key", &other)]).await, 403, "a key of another agent");
    assert_eq!(call(&server, "other", &[("x-api-key", &other)]).await, 200);

    let listed = keys(folder.path(), &["ls", "echo"]).await;
    let line = listed.succeeds(&running);
    let columns: Vec<&str> = line.split_whitespace().collect();
    assert_eq!(&columns[..4], [&id, "echo", "alice", "valid"], "{line}");
    assert_eq!(columns[5], format!("a2ad_{id}_…{}", &key[key.len() - 4..]));
    assert_eq!(keys(folder.path(), &["ls"]).await.succeeds("2 keys").lines().count(), 2);

    // An open connection.
    let mut connection = Connection::open(server.address).await.unwrap();
    let mut call_again = async || {
        let headers = [("content-type", "text/plain"), ("x-api-key", &*key)];
        connection.exchange("POST", "/a2a/echo", &headers, b"hello").await.unwrap().status
    };
    assert_eq!(call_again().await, 200);
    let revoked = keys(folder.path(), &["revoke", &id]).await;
    assert_eq!(revoked.succeeds(&running), "");
    assert_eq!(call_again().await, 401);
    assert_eq!(call(&server, "echo", &[("x-api-key", &key)]).await, 401);
    assert_eq!(call(&server, "other", &[("x-api-key", &other)]).await, 200);
    keys(folder.path(), &["revoke", &id])
        .await
        .fails(6, &["there is no valid API key with the id", "a2ad keys ls"]);

    // Nothing that is written has a secret.
    server.wait_for_log("API key revoked").await.unwrap();
    let log = server.log();
    assert!(log.contains("API key made") && log.contains(&id), "{log}");
    for key in [&key, &other] {
        let secret = key.rsplit_once('_').unwrap().1;
        assert!(!log.contains(secret) && !is_in_files(folder.path(), secret));
    }
    assert!(is_in_files(folder.path(), &id));
}

#[tokio::test]
async fn keys_of_a_stopped_store_are_those_of_its_server() {
    let folder = configured(CONFIG);
    let stopped = "in the store a2ad.db, which no server uses";
    // Also before the first start.
    keys(folder.path(), &["ls"]).await.fails(1, &["there is no store a2ad.db", "--store"]);
    let new = keys(folder.path(), &["new", "echo", "--owner", "alice"]).await;
    let first = only_line(new.succeeds(stopped));
    let server = serve(folder.path()).await;
    assert_eq!(call(&server, "echo", &[("x-api-key", &first)]).await, 200);
    let second = only_line(keys(folder.path(), &["new", "echo"]).await.succeeds("on the running server"));
    let running = keys(folder.path(), &["ls", "--json"]).await.document();
    stop(server).await;

    let listed = keys(folder.path(), &["ls", "--json"]).await;
    assert!(listed.err.starts_with(r#"{"notice":"a2ad: 2 keys in the store"#), "{listed:?}");
    assert_eq!(listed.document(), running, "the same documents");
    assert_eq!(running["keys"][0]["id"], id_of(&second));
    assert_eq!(running["keys"][1]["owner"], "alice");
    assert_eq!(keys(folder.path(), &["revoke", id_of(&first)]).await.succeeds(stopped), "");
    keys(folder.path(), &["revoke", id_of(&first)]).await.fails(6, &["there is no valid API key"]);
    let server = serve(folder.path()).await;
    assert_eq!(call(&server, "echo", &[("x-api-key", &first)]).await, 401);
    assert_eq!(call(&server, "echo", &[("x-api-key", &second)]).await, 200);
}

/// A secret that only the server has is not needed to manage its keys.
#[tokio::test]
async fn keys_need_no_secret_of_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let config = format!("auth = {{ secret_env = \"A2AD_TEST_ONLY_SERVER\" }}\n{CONFIG}");
    fs::write(folder.path().join("a2ad.toml"), config).unwrap();
    let made = keys(folder.path(), &["new", "echo"]).await;
    let key = only_line(made.succeeds("which no server uses"));
    assert!(keys(folder.path(), &["ls", "echo"]).await.succeeds("1 key").contains(id_of(&key)));
    keys(folder.path(), &["new", "ecko"]).await.fails(6, &["no agent \"ecko\"", "echo"]);
    keys(folder.path(), &["revoke", id_of(&key)]).await.succeeds("revoked the key");
    let mut server = a2ad(folder.path(), &["serve", "--listen", "127.0.0.1:0"]);
    server.env("A2AD_TEST_ONLY_SERVER", "a secret of the server");
    let server = Server::start_command(server).await.unwrap();
    assert_eq!(call(&server, "echo", &[("x-api-key", &key)]).await, 401);
    let made = keys(folder.path(), &["new", "echo"]).await;
    let key = only_line(made.succeeds("on the running server"));
    assert_eq!(call(&server, "echo", &[("x-api-key", &key)]).await, 200);
    stop(server).await;
}

#[tokio::test]
async fn both_ways_print_the_same_documents() {
    let folder = configured(CONFIG);
    let mut documents = Vec::new();
    for is_running in [true, false] {
        let server = if is_running { Some(serve(folder.path()).await) } else { None };
        let mut new = keys(folder.path(), &["new", "open", "--owner", "bob", "--json"]).await;
        assert!(new.err.contains("agent \\\"open\\\" does not accept API keys"), "{new:?}");
        let id = new.document()["id"].as_str().unwrap().to_owned();
        let mut revoked = keys(folder.path(), &["revoke", &id, "--json"]).await;
        let mut unknown = keys(folder.path(), &["revoke", "nobody", "--json"]).await;
        assert_eq!((unknown.code, unknown.out.as_str()), (6, ""));
        std::mem::swap(&mut unknown.out, &mut unknown.err);
        unknown.code = 0;
        let members = |done: &mut Ended| {
            let document = done.document();
            document.as_object().unwrap().keys().cloned().collect::<Vec<_>>()
        };
        documents.push((members(&mut new), members(&mut revoked), unknown.document()));
        if let Some(server) = server {
            stop(server).await;
        }
    }
    let (new, revoked, unknown) = documents.pop().unwrap();
    let members = ["agent", "createdAt", "id", "key", "masked", "owner", "scope", "warning"];
    assert_eq!(new, members);
    assert_eq!(revoked, ["agent", "createdAt", "id", "masked", "owner", "revokedAt", "scope"]);
    assert_eq!(unknown["error"]["exitCode"], 6);
    assert_eq!(documents, [(new, revoked, unknown)]);
}

#[tokio::test]
async fn what_cannot_be_done_is_explained_in_both_ways() {
    let folder = configured(CONFIG);
    for is_running in [false, true] {
        let server = if is_running { Some(serve(folder.path()).await) } else { None };
        keys(folder.path(), &["new", "ecko"]).await.fails(6, &["agent \"ecko\""]);
        keys(folder.path(), &["new", "echo", "--owner", "a b"])
            .await
            .fails(2, &["1 to 128 visible characters"]);
        keys(folder.path(), &["revoke", "a/../b"]).await.fails(6, &["there is no valid API key"]);
        // The other way has made the first half.
        for _ in 0..10 {
            keys(folder.path(), &["new", "other"]).await.succeeds("made the key");
        }
        let open = keys(folder.path(), &["new", "open"]).await;
        open.succeeds("agent \"open\" does not accept API keys; add \"api-key\" to its auth");
        if let Some(server) = server {
            let full = keys(folder.path(), &["new", "other"]).await;
            full.fails(8, &["the agent has 20 valid keys", "revoke one first"]);
            stop(server).await;
        }
    }
    let full = keys(folder.path(), &["new", "other"]).await;
    full.fails(8, &["the agent has 20 valid keys", "revoke one first"]);
    assert_eq!(keys(folder.path(), &["ls", "other"]).await.succeeds("20 keys").lines().count(), 20);
    // Where no configuration is known, any agent may have been meant.
    let elsewhere = tempfile::tempdir().unwrap();
    keys(elsewhere.path(), &["new", "some-agent", "--store", "x.db"]).await.succeeds("in the store x.db");
    keys(elsewhere.path(), &["new", "some-agent"])
        .await
        .fails(6, &["the configuration has no agent", "demo"]);
    assert!(!elsewhere.path().join("a2ad.db").exists(), "nothing is left of a refused command");
    fs::write(elsewhere.path().join("broken.toml"), "[agents.x]\nskils = []\n").unwrap();
    keys(elsewhere.path(), &["ls", "--config", "broken.toml"]).await.fails(2, &["broken.toml", "skils"]);
    fs::write(elsewhere.path().join("note.db"), "a text, not a database").unwrap();
    keys(elsewhere.path(), &["ls", "--store", "note.db"]).await.fails(1, &["note.db"]);
}

#[tokio::test]
async fn a_running_server_is_asked_only_with_its_own_admin_token() {
    let folder = configured(CONFIG);
    let server = serve(folder.path()).await;
    let admin = folder.path().join("a2ad.db.keys/admin");
    let token = fs::read_to_string(&admin).unwrap();
    fs::remove_file(&admin).unwrap();
    keys(folder.path(), &["ls"])
        .await
        .fails(5, &["there is no admin token at", "a2ad.db.keys/admin", "restart"]);
    fs::write(&admin, "a2ad_admin_another_one_of_some_length\n").unwrap();
    fs::set_permissions(&admin, fs::Permissions::from_mode(0o640)).unwrap();
    let refused = keys(folder.path(), &["ls"]).await;
    refused.fails(5, &["the admin token is not valid", "other users could read", "restart the server"]);
    assert!(!refused.err.contains("another_one"), "{refused:?}");
    fs::write(&admin, "").unwrap();
    keys(folder.path(), &["ls"]).await.fails(5, &["the admin token cannot be read", "has no key"]);
    fs::write(&admin, token).unwrap();
    keys(folder.path(), &["ls"]).await.succeeds("0 keys on the running server");
    // By another name of the same store too.
    std::os::unix::fs::symlink("a2ad.db", folder.path().join("link.db")).unwrap();
    keys(folder.path(), &["ls", "--store", "link.db"]).await.succeeds("on the running server");
    stop(server).await;
}

#[tokio::test]
async fn a_server_that_shuts_down_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let server = serve(folder.path()).await;
    begin(&client(&server, "echo"), "hold on").await;
    server.signal(Signal::TERM).unwrap();
    server.wait_for_log("no new work is accepted").await.unwrap();
    let refused = keys(folder.path(), &["new", "echo"]).await;
    let holder = format!("in use by another a2ad (PID {}, draining at ", server.id().unwrap());
    refused.fails(1, &["a2ad.db", &holder, "it is shutting down: try again when it has stopped"]);
    server.kill().await.unwrap();
    // The lock of a killed server is not taken for a running one.
    keys(folder.path(), &["new", "echo"]).await.succeeds("in the store a2ad.db");
}

#[tokio::test]
async fn a_process_that_has_the_store_and_cannot_be_asked_is_named() {
    let folder = configured(CONFIG);
    let options = store::SqliteOptions::at(folder.path().join("a2ad.db"));
    let store = store::Sqlite::open(&options, engine::Feed::default(), &engine::Clock::system()).unwrap();
    let holder = format!("another a2ad (PID {}, starting", std::process::id());
    let refused = keys(folder.path(), &["ls"]).await;
    refused.fails(1, &["a2ad.db", &holder, "it is starting: try again in a moment"]);
    // An application that has mounted its agents does not listen itself.
    store.instance().record(store::InstanceState::Serving, None);
    let refused = keys(folder.path(), &["ls"]).await;
    refused.fails(1, &["a2ad.db", "which has no address", "use the API of that"]);
    // Nothing answers at the address.
    let served_at = store::ServedAt { address: "127.0.0.1:1".into(), ..store::ServedAt::default() };
    store.instance().record(store::InstanceState::Serving, Some(&served_at));
    keys(folder.path(), &["ls"]).await.fails(5, &["there is no admin token"]);
    fs::create_dir(folder.path().join("a2ad.db.keys")).unwrap();
    fs::write(folder.path().join("a2ad.db.keys/admin"), "a".repeat(40)).unwrap();
    let refused = keys(folder.path(), &["ls"]).await;
    refused.fails(1, &["the server http://127.0.0.1:1, which has the store open, cannot be asked"]);
}

#[tokio::test]
async fn a_token_has_the_claims_of_its_options_and_a_valid_signature() {
    const SECRET: &str = "a secret of the test";
    let folder = tempfile::tempdir().unwrap();
    let token = async |arguments: &[&str], variable: Option<(&str, &str)>| {
        let mut command = a2ad(folder.path(), &[&["token"], arguments].concat());
        command.envs(variable);
        finish(command).await
    };
    let done = token(
        &["--sub", "alice", "--ttl", "5m", "--aud", "a2ad", "--claim", "team=\"red\""],
        Some(("A2A_SECRET", SECRET)),
    )
    .await;
    let text = only_line(done.succeeds(""));
    assert_eq!(done.err, "");
    let parts: Vec<&str> = text.split('.').collect();
    let decoded = |part: &str| -> Value { serde_json::from_slice(&BASE64URL.decode(part).unwrap()).unwrap() };
    assert_eq!(decoded(parts[0]), json!({"alg": "HS256", "typ": "JWT"}));
    let claims = decoded(parts[1]);
    assert_eq!(
        (&claims["sub"], &claims["aud"], &claims["team"]),
        (&json!("alice"), &json!("a2ad"), &json!("red"))
    );
    assert_eq!(claims["exp"].as_i64().unwrap() - claims["iat"].as_i64().unwrap(), 300);
    let key = aws_lc_rs::hmac::Key::new(aws_lc_rs::hmac::HMAC_SHA256, SECRET.as_bytes());
    let signed = format!("{}.{}", parts[0], parts[1]);
    aws_lc_rs::hmac::verify(&key, signed.as_bytes(), &BASE64URL.decode(parts[2]).unwrap()).unwrap();

    let organisation = ["--sub", "a", "--org", "acme.example", "--secret-env", "ACME"];
    let done = token(&organisation, Some(("ACME", SECRET))).await;
    let claims = decoded(only_line(done.succeeds("")).split('.').nth(1).unwrap());
    assert_eq!(claims["org_domain"], "acme.example");
    token(&["--sub", "a"], None).await.fails(2, &["A2A_SECRET is not set", "--secret-env"]);
    token(&["--sub", "a"], Some(("A2A_SECRET", ""))).await.fails(2, &["A2A_SECRET is not set"]);
    token(&["--sub", "a", "--secret-env", "NONE"], None).await.fails(2, &["NONE is not set"]);
    let unknown = token(&["--sub", "a", "--org", "none.example"], Some(("A2A_SECRET", SECRET))).await;
    unknown.fails(2, &["no secret of the organisation \"none.example\"", "auth.org_secrets"]);
    token(&["--sub", ""], Some(("A2A_SECRET", SECRET))).await.fails(2, &["--sub"]);
    token(&["--sub", "a", "--ttl", "9000h"], None).await.fails(2, &["--ttl"]);
    token(&[], None).await.fails(2, &["--sub"]);
}
