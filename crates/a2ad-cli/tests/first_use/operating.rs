//! What operators of users' tools see: metrics, warnings and errors.

use std::{fs, time::Duration};

use testkit::http1;

use super::{run, serve};

#[tokio::test]
async fn metrics_have_the_names_of_backends_and_a_running_call_is_use() {
    let folder = tempfile::tempdir().unwrap();
    let config = r#"
        [skills.broken]
        description = "Fails"
        command = { argv = ["false"] }
        [skills.slow]
        description = "Takes long"
        command = { argv = ["sleep", "30"] }
        [mcp.gone]
        command = ["false"]
    "#;
    let server = serve(folder.path(), config).await;
    let call = async |skill: &str, query: &str| {
        let path = format!("/a2a/main/run/{skill}{query}");
        http1::request(server.address, "POST", &path, &[], b"").await.unwrap()
    };
    assert!(call("broken", "").await.status >= 400);
    assert_eq!(call("slow", "?wait=0").await.status, 202);
    let mut text = String::new();
    for _ in 0..200 {
        text = http1::request(server.address, "GET", "/metrics", &[], b"").await.unwrap().text();
        if text.contains(r#"a2ad_named_backend_calls_total{backend="slow",kind="command"} 1"#) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    for line in [
        r#"a2ad_named_backend_calls_total{backend="slow",kind="command"} 1"#,
        r#"a2ad_named_backend_calls_total{backend="broken",kind="command"} 1"#,
        r#"a2ad_named_backend_failures_total{backend="broken",kind="command"} 1"#,
        r#"a2ad_named_backend_failures_total{backend="slow",kind="command"} 0"#,
        r#"a2ad_mcp_server_state{backend="gone",state="ready"} 0"#,
    ] {
        assert!(text.contains(line), "{line} is not in {text}");
    }
    let states =
        text.lines().filter(|line| line.starts_with("a2ad_mcp_server_state{") && line.ends_with(" 1"));
    assert_eq!(states.count(), 1, "{text}");
    let backends = run(folder.path(), &["ops", "backends"]).await;
    let slow =
        backends.out.lines().find(|line| line.starts_with("slow")).unwrap_or_else(|| panic!("{backends:?}"));
    assert!(!slow.contains("unused"), "{slow}");
}

#[tokio::test]
async fn check_warns_of_what_a_start_does_not_refuse() {
    let folder = tempfile::tempdir().unwrap();
    let config = r#"
        [server]
        listen = "0.0.0.0:4242"
        [store]
        url = "missing/a2ad.db"
        [skills.fx]
        command = { argv = ["true"] }
        [skills.gx]
        description = "Does something"
        command = { argv = ["true"] }
        [agents.main]
        auth = ["api-key"]
    "#;
    fs::write(folder.path().join("a2ad.toml"), config).unwrap();
    let check = run(folder.path(), &["check"]).await;
    assert_eq!(check.code, 0, "{check:?}");
    for warning in [
        "keys and tokens for main are accepted over plain HTTP at 0.0.0.0:4242",
        "the store missing/a2ad.db cannot be written by this user: missing: No such file",
        "skills.fx has no description",
    ] {
        assert!(check.out.contains(warning), "{warning:?} is not in {}", check.out);
    }
    assert!(!check.out.contains("skills.gx has no description"), "{}", check.out);
    // A proxy with TLS in front of it.
    let behind = config.replace("[store]", "trusted_proxies = [\"10.0.0.0/8\"]\n[store]");
    fs::write(folder.path().join("a2ad.toml"), behind).unwrap();
    assert!(!run(folder.path(), &["check"]).await.out.contains("plain HTTP"));
}

#[tokio::test]
async fn check_names_every_operation_that_matches_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let shop = r#"{"openapi": "3.1.0", "info": {"title": "Shop", "version": "1"}, "servers": [{"url": "http://127.0.0.1:9"}],
        "paths": {"/items": {"get": {"operationId": "list", "responses": {"200": {"description": "all"}}}}}}"#;
    fs::write(folder.path().join("shop.json"), shop).unwrap();
    let config = "[openapi.shop]\nfile = \"shop.json\"\noperations = [\"lst\", \"list\", \"gone\"]\n";
    fs::write(folder.path().join("a2ad.toml"), config).unwrap();
    let check = run(folder.path(), &["check"]).await;
    assert_eq!(check.code, 2, "{check:?}");
    for missing in
        [r#""lst" matches no operation"#, r#"did you mean "list"?"#, r#""gone" matches no operation"#]
    {
        assert!(check.err.contains(missing), "{missing:?} is not in {check:?}");
    }
}

#[tokio::test]
async fn a_file_that_is_no_database_is_not_called_a_damaged_store() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("letter.txt"), "Dear Ada, this is a letter and not a database.").unwrap();
    for arguments in [&["check", "--store", "letter.txt"][..], &["serve", "--store", "letter.txt"]] {
        let refused = run(folder.path(), arguments).await;
        assert_eq!(refused.code, 1, "{refused:?}");
        assert!(refused.err.contains("it is not a store"), "{refused:?}");
        assert!(!(refused.err + &refused.out).contains("damaged"));
    }
}

#[tokio::test]
async fn the_help_says_what_it_is_and_has_groups_and_examples() {
    let folder = tempfile::tempdir().unwrap();
    let help = run(folder.path(), &["--help"]).await;
    assert!(help.out.starts_with("a2ad puts MCP servers, HTTP functions"), "{}", help.out);
    for group in ["Call agents:", "Serve agents:", "Operate a server:", "Develop:"] {
        assert!(help.out.contains(group), "{}", help.out);
    }
    assert!(run(folder.path(), &["add", "--help"]).await.out.contains("Example:\n  a2ad add mcp"));
}

#[tokio::test]
async fn a_webhook_that_is_refused_for_its_scheme_names_the_key() {
    let folder = tempfile::tempdir().unwrap();
    let server = serve(folder.path(), "[skills.say]\nbuiltin = \"echo\"\n").await;
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"hi"}]},"configuration":{"taskPushNotificationConfig":{"url":"http://example.com/hook"}}}}"#;
    let headers = [("content-type", "application/json"), ("a2a-version", "1.0")];
    let refused = http1::request(server.address, "POST", "/", &headers, body.as_bytes()).await.unwrap();
    assert!(refused.text().contains("outbound.allow_http"), "{}", refused.text());
}
