//! Several agents of which none is the default.

use serde_json::Value;
use testkit::http1;

use super::{run, serve};

const CONFIG: &str = "[skills.say]\nbuiltin = \"echo\"\n[agents.one]\nauth = [\"api-key\"]\n[agents.two]\n";

#[tokio::test]
async fn a_server_without_a_default_agent_serves_its_agents_and_lists_them_at_the_root() {
    let folder = tempfile::tempdir().unwrap();
    let server = serve(folder.path(), CONFIG).await;
    let post = async |path: &str, version: &str, body: &str| {
        let headers = [("content-type", "application/json"), ("a2a-version", version)];
        http1::request(server.address, "POST", path, &headers, body.as_bytes()).await.unwrap()
    };
    let message = r#"{"messageId":"m","role":"ROLE_USER","parts":[{"text":"hi"}]}"#;
    let call =
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{{"message":{message}}}}}"#);
    let old = r#"{"jsonrpc":"2.0","id":1,"method":"message/send","params":{"message":{"messageId":"m","kind":"message","role":"user","parts":[{"kind":"text","text":"hi"}]}}}"#;
    let rest = format!(r#"{{"message":{message}}}"#);
    for (path, version, body) in [
        ("/", "1.0", call.as_str()),
        ("/a2a", "1.0", &call),
        ("/", "0.3", old),
        ("/message:send", "1.0", &rest),
    ] {
        let refused = post(path, version, body).await;
        assert_eq!(refused.status, 404, "{path}: {}", refused.text());
        // Messages of 0.3 are fixed texts.
        let listed = refused.text().contains("call one of /a2a/one, /a2a/two");
        assert!(listed || version == "0.3", "{path}, {version}: {}", refused.text());
    }
    for path in ["/.well-known/agent-card.json", "/run/say", "/openapi.json"] {
        let method = if path == "/run/say" { "POST" } else { "GET" };
        let refused =
            http1::request(server.address, method, path, &[("a2a-version", "1.0")], b"").await.unwrap();
        assert_eq!(refused.status, 404, "{path}: {}", refused.text());
        assert!(refused.text().contains("/a2a/one, /a2a/two"), "{path}: {}", refused.text());
    }
    // The agents have their own paths, and the page is there.
    let served = post("/a2a/two", "1.0", &call).await;
    assert!(served.status == 200 && served.text().contains("TASK_STATE_COMPLETED"), "{}", served.text());
    let page = http1::request(server.address, "GET", "/", &[], b"").await.unwrap();
    let page: Value = page.json().unwrap();
    assert_eq!(page["agents"].as_array().unwrap().len(), 2);
    assert_eq!(page.get("defaultAgent"), None);
    server.wait_for_log("set server.default_agent to one of one, two").await.unwrap();
}

#[tokio::test]
async fn commands_work_with_a_file_without_a_default_agent() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a2ad.toml"), CONFIG).unwrap();
    let check = run(folder.path(), &["check"]).await;
    assert_eq!(check.code, 0, "{check:?}");
    assert!(check.out.contains("set server.default_agent to one of one, two"), "{check:?}");
    let document = run(folder.path(), &["check", "--json"]).await;
    let document: Value = serde_json::from_str(&document.out).unwrap();
    assert_eq!(document["server"]["default_agent"], "");
    for arguments in [
        &["keys", "new", "one"][..],
        &["keys", "ls"],
        &["agents", "ls"],
        &["ops", "counts"],
        &["ops", "config"],
        &["try", "say", "hello"],
    ] {
        let done = run(folder.path(), arguments).await;
        assert_eq!(done.code, 0, "{arguments:?}: {done:?}");
    }
    // A name that is no agent is still refused, and so is a file that serves nothing.
    let wrong = format!("[server]\ndefault_agent = \"tow\"\n{CONFIG}");
    std::fs::write(folder.path().join("a2ad.toml"), wrong).unwrap();
    let refused = run(folder.path(), &["check"]).await;
    assert!(refused.code == 2 && refused.err.contains("did you mean two?"), "{refused:?}");
    let none =
        "[skills.say]\nbuiltin = \"echo\"\n[agents.one]\nenabled = false\n[agents.two]\nenabled = false\n";
    std::fs::write(folder.path().join("a2ad.toml"), none).unwrap();
    let refused = run(folder.path(), &["check"]).await;
    assert!(refused.code == 2 && refused.err.contains("no agent is enabled"), "{refused:?}");
}
