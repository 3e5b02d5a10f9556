//! Changes of the configuration while the server runs: they cannot open what nobody has decided to open.

use std::{fs, time::Duration};

use testkit::http1;

use super::{SECRET, TOKEN, program, start};
use crate::common::{ANY_PORT, ECHO, Running, eventually, finish};

const BEARER: (&str, &str) = ("TOKEN", TOKEN);
const LISTED: &str = "[agents.a]\nauth = [\"bearer\"]\n[auth]\nbearer_env = \"TOKEN\"\n";

impl Running {
    fn save(&self, config: &str) {
        let path = self.path().join("a2ad.toml");
        let new = path.with_extension("new");
        fs::write(&new, format!("{ECHO}{config}")).unwrap();
        fs::rename(new, path).unwrap();
    }

    /// Saves a file and waits for this text in the log.
    async fn save_and_wait(&self, config: &str, text: &str) {
        let before = self.server.log().matches(text).count();
        self.save(config);
        eventually(async || self.server.log().matches(text).count() > before).await;
    }
}

const RELOADED: &str = "the configuration was reloaded";
const REFUSED: &str = "the configuration was not reloaded";

#[tokio::test(flavor = "multi_thread")]
async fn reload_that_would_open_an_agent_to_everybody_is_refused() {
    let config = format!("{ECHO}[agents.a]\nauth = [\"api-key\"]\n");
    let running = start("0.0.0.0:0", &config, &[]).await;
    assert_eq!(running.status("a", &[]).await, 401);
    for worse in [
        "[agents.a]\n",
        "",
        "[agents.a]\nauth = [\"api-key\"]\n[agents.b]\n[server]\ndefault_agent = \"a\"\n",
    ] {
        running.save_and_wait(worse, REFUSED).await;
        assert!(
            running.server.log().contains("would accept calls from anyone"),
            "{}",
            running.server.log_tail()
        );
        assert_eq!(running.status("a", &[]).await, 401, "{worse}");
        assert_eq!(running.status("b", &[]).await, 404, "{worse}");
    }
    // Written, it is permitted.
    running.save_and_wait("[agents.a]\nauth = [\"anonymous\"]\n", RELOADED).await;
    assert_eq!(running.status("a", &[]).await, 200);
    running.save_and_wait("[agents.a]\nauth = [\"api-key\"]\n", RELOADED).await;
    assert_eq!(running.status("a", &[]).await, 401);
}

/// What agents accept by default depends on `[auth]` and `server.mode` of the start.
#[tokio::test(flavor = "multi_thread")]
async fn auth_and_mode_take_effect_at_a_start_only() {
    let running = start(ANY_PORT, &format!("{ECHO}{LISTED}"), &[BEARER]).await;
    let bearer = format!("Bearer {TOKEN}");
    let token = [("Authorization", bearer.as_str())];
    for (config, keys) in [
        // Without [auth], agents that list nothing still require what it configured.
        ("[agents.a]\n", &["auth.bearer_env"][..]),
        ("[agents.a]\n[server]\nmode = \"prod\"\n", &["server.mode", "auth.bearer_env"]),
        (
            "[agents.a]\n[auth]\naudience = \"x\"\n[[auth.issuers]]\nissuer = \"https://id.example\"\naudience = \"a\"\n",
            &["auth.audience", "auth.issuers"],
        ),
    ] {
        running.save_and_wait(config, RELOADED).await;
        for key in keys {
            let named = format!(r#""key":"{key}""#);
            assert!(running.server.log().contains(&named), "{key}: {}", running.server.log_tail());
        }
        assert_eq!(running.status("a", &[]).await, 401, "{config}");
        assert_eq!(running.status("a", &token).await, 200, "{config}");
    }
    // What is wrong is reported, also in a section that needs a start.
    running.save_and_wait("[agents.a]\n[auth]\nbearer_env = \"NOT_SET\"\n", REFUSED).await;
    let log = running.server.log();
    assert!(log.contains("auth.bearer_env: the environment variable NOT_SET is not set"), "{log}");
    // `auth` of an agent takes effect at once, with its warnings.
    running.save_and_wait("[agents.a]\nauth = [\"jwt\"]\n[auth]\nbearer_env = \"TOKEN\"\n", RELOADED).await;
    assert_eq!(running.status("a", &token).await, 401);
    assert_eq!(running.server.log().matches("agents.a: jwt is listed and no secret").count(), 1);
    running
        .save_and_wait("[agents.a]\nauth = [\"anonymous\"]\n[auth]\nbearer_env = \"TOKEN\"\n", RELOADED)
        .await;
    assert_eq!(running.status("a", &[]).await, 200);
    running.server.wait_for_log("calls without a credential are accepted by a:").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn removed_secret_of_an_organisation_ends_what_is_open_with_its_tokens() {
    let organisations = "[auth.org_secrets.\"other.example\"]\nenv = \"OTHER\"\n";
    let acme = "[auth.org_secrets.\"acme.example\"]\nenv = \"ACME\"\n";
    let variables = [("ACME", "a-secret-of-acme-0123456789"), ("OTHER", SECRET)];
    let running = start(ANY_PORT, &format!("{ECHO}[agents.a]\n{organisations}{acme}"), &variables).await;
    let token = async |domain: &str| {
        let mut command = program(running.path(), "", &variables);
        command.args(["token", "--org", domain, "--sub", "alice"]);
        format!("Bearer {}", finish(command).await.succeeds("").trim())
    };
    let (of_acme, of_other) = (token("acme.example").await, token("other.example").await);
    let mut stream = http1::Connection::open(running.server.address).await.unwrap();
    let headers = [
        ("authorization", of_acme.as_str()),
        ("accept", "text/event-stream"),
        ("content-type", "text/plain"),
    ];
    stream.send("POST", "/a2a/a/run/echo", &headers, b"hold").await.unwrap();
    assert_eq!(stream.head().await.unwrap().status, 200);
    running.save_and_wait(&format!("[agents.a]\n{organisations}"), RELOADED).await;
    let body = tokio::time::timeout(Duration::from_secs(1), stream.body()).await.unwrap().unwrap();
    let body = String::from_utf8(body).unwrap();
    assert!(body.contains("event: error") && body.contains("was removed or replaced"), "{body}");
    assert_eq!(running.status("a", &[("authorization", &of_acme)]).await, 401);
    assert_eq!(running.status("a", &[("authorization", &of_other)]).await, 200);
    // Without any of them, agents that list nothing still require what the start has configured.
    running.save_and_wait("[agents.a]\n", RELOADED).await;
    assert_eq!(running.status("a", &[("authorization", &of_other)]).await, 401);
    assert_eq!(running.status("a", &[]).await, 401);
    running.save_and_wait(&format!("[agents.a]\n{acme}"), RELOADED).await;
    assert_eq!(running.status("a", &[("authorization", &of_acme)]).await, 200);
}
