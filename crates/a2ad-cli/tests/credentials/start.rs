//! Configurations and what becomes of them: the program refuses to start, or starts and answers calls with 200, 401 or 503.

use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use testkit::http1;

use super::{ECHO, Running, SECRET, TOKEN, program};

/// Programs that run at a time.
const CONCURRENT: usize = 4;
const LOOPBACK: &str = "127.0.0.1:0";
/// Everybody can reach this; the tests call it over loopback.
const OUTSIDE: &str = "0.0.0.0:0";
/// The warning about anonymous calls.
const ANYBODY: &str = "calls without a credential are accepted by";

enum Expected {
    /// Does not start, with exit code 2 and these texts on stderr.
    Refused(&'static [&'static str]),
    /// Starts; the statuses of a call without a credential and with the static token.
    Serves { without: u16, with_token: u16 },
}
use Expected::{Refused, Serves};

const OPEN: Expected = Serves { without: 200, with_token: 200 };
/// Credentials are required, and the static token is none that is accepted.
const CLOSED: Expected = Serves { without: 401, with_token: 401 };
const TOKEN_ONLY: Expected = Serves { without: 401, with_token: 200 };
const UNAVAILABLE: Expected = Serves { without: 503, with_token: 503 };

struct Case {
    listen: &'static str,
    /// The text of the file; empty: none, so the demo runs.
    config: String,
    variables: Vec<(&'static str, &'static str)>,
    expected: Expected,
    /// What the log has, with the number of times.
    logged: Vec<(&'static str, usize)>,
}

fn case(
    listen: &'static str,
    config: &str,
    variables: &[(&'static str, &'static str)],
    expected: Expected,
) -> Case {
    let config = if config.is_empty() { String::new() } else { format!("{ECHO}{config}") };
    Case { listen, config, variables: variables.to_vec(), expected, logged: Vec::new() }
}

impl Case {
    fn logs(mut self, text: &'static str, times: usize) -> Self {
        self.logged.push((text, times));
        self
    }

    async fn check(&self) {
        let name = format!("{} {:?} {:?}", self.listen, self.config, self.variables);
        match &self.expected {
            Refused(texts) => {
                let folder = tempfile::tempdir().unwrap();
                let mut command = program(folder.path(), &self.config, &self.variables);
                let output = command.args(["--listen", self.listen]).output();
                let output =
                    tokio::time::timeout(Duration::from_secs(30), output).await.expect(&name).unwrap();
                let errors = String::from_utf8_lossy(&output.stderr);
                assert_eq!(output.status.code(), Some(2), "{name}: {errors}");
                for text in *texts {
                    assert!(errors.contains(text), "{name}: {text:?} is not in {errors}");
                }
                for (_, value) in self.variables.iter().filter(|(_, value)| value.len() > 4) {
                    assert!(!errors.contains(value), "{name}: {errors}");
                }
                assert!(!folder.path().join("a2ad.db").exists(), "{name}");
            }
            Serves { without, with_token } => {
                let running = Running::start(self.listen, &self.config, &self.variables).await;
                let agent = if self.config.is_empty() { "demo" } else { "a" };
                let bearer = format!("Bearer {TOKEN}");
                assert_eq!(running.status(agent, &[]).await, *without, "{name}: {}", running.server.log());
                let token = [("Authorization", bearer.as_str())];
                assert_eq!(running.status(agent, &token).await, *with_token, "{name}");
                // Cards are public in any case.
                let address = running.server.address;
                let path = format!("/a2a/{agent}/.well-known/agent-card.json");
                let card = http1::request(address, "GET", &path, &[], &[]).await.unwrap();
                assert_eq!(card.status, 200, "{name}");
                assert_eq!(
                    card.text().contains("securityRequirements"),
                    *without != 200 || self.lists_more(),
                    "{name}"
                );
                // Lines are written in order, and those of the calls are the last.
                running.server.wait_for_log("\"target\":\"a2ad::call\"").await.unwrap();
                let log = running.server.log();
                for (text, times) in &self.logged {
                    assert_eq!(log.matches(text).count(), *times, "{name}: {text:?} in {log}");
                }
                for secret in [SECRET, TOKEN] {
                    assert!(!log.contains(secret), "{name}: {log}");
                }
            }
        }
    }

    /// Whether a credential is accepted although none is required.
    fn lists_more(&self) -> bool {
        self.config.contains("\"anonymous\", ")
    }
}

const BEARER: (&str, &str) = ("TOKEN", TOKEN);
const A: &str = "[agents.a]\n";
const ANONYMOUS: &str = "[agents.a]\nauth = [\"anonymous\"]\n";
const PROD: &str = "[server]\nmode = \"prod\"\n";
const WITH_BEARER: &str = "[auth]\nbearer_env = \"TOKEN\"\n";

fn in_development() -> Vec<Case> {
    vec![
        case(LOOPBACK, "", &[], OPEN).logs(ANYBODY, 1),
        case(LOOPBACK, A, &[], OPEN).logs(ANYBODY, 1),
        case(LOOPBACK, ANONYMOUS, &[], OPEN).logs(ANYBODY, 1),
        case(LOOPBACK, "", &[("A2A_SECRET", SECRET)], CLOSED).logs(ANYBODY, 0),
        case(LOOPBACK, A, &[("A2A_SECRET", "")], OPEN),
        case(LOOPBACK, &format!("{A}[auth]\nsecret_env = \"\"\n"), &[("A2A_SECRET", SECRET)], OPEN),
        case(LOOPBACK, &format!("{A}[auth]\nsecret_env = \"MINE\"\n"), &[("MINE", SECRET)], CLOSED),
        case(LOOPBACK, &format!("{A}{WITH_BEARER}"), &[BEARER], TOKEN_ONLY).logs(ANYBODY, 0),
        case(
            LOOPBACK,
            &format!("[agents.a]\nauth = [\"anonymous\", \"bearer\"]\n{WITH_BEARER}"),
            &[BEARER],
            OPEN,
        ),
        // A method without its key: the agent starts, shows its scheme and refuses every call.
        case(LOOPBACK, "[agents.a]\nauth = [\"jwt\"]\n", &[], CLOSED)
            .logs("jwt is listed and no secret is", 1),
        case(LOOPBACK, "[agents.a]\nauth = [\"oidc\"]\n", &[], CLOSED)
            .logs("oidc is listed and no issuer is", 1),
        case(LOOPBACK, "[agents.a]\nauth = [\"bearer\"]\n", &[], CLOSED)
            .logs("bearer is listed and no token is", 1),
        case(LOOPBACK, "[agents.a]\nauth = [\"api-key\"]\n", &[], CLOSED).logs("is listed and", 0),
        case(LOOPBACK, &format!("[agents.a]\nend_user = \"required\"\n{WITH_BEARER}"), &[BEARER], CLOSED)
            .logs("agents.a: end_user is required and no token can be verified", 1),
    ]
}

fn in_production() -> Vec<Case> {
    let by_variable = |name| case(LOOPBACK, "", &[(name, "x")], UNAVAILABLE).logs(name, 2).logs(ANYBODY, 0);
    vec![
        by_variable("NETLIFY"),
        by_variable("AWS_LAMBDA_FUNCTION_NAME"),
        by_variable("CF_PAGES"),
        by_variable("CLOUDFLARE_WORKERS"),
        by_variable("VERCEL"),
        by_variable("RENDER"),
        by_variable("FLY_APP_NAME"),
        by_variable("K_SERVICE"),
        case(LOOPBACK, "", &[("NETLIFY", "")], OPEN),
        // A mode that is written takes precedence.
        case(LOOPBACK, &format!("{A}[server]\nmode = \"dev\"\n"), &[("NETLIFY", "true")], OPEN)
            .logs("NETLIFY", 0),
        case(LOOPBACK, &format!("{A}{PROD}"), &[], UNAVAILABLE).logs("every call of a gets 503", 1),
        case(LOOPBACK, A, &[("A2AD_SERVER__MODE", "prod")], UNAVAILABLE),
        case(OUTSIDE, "", &[("VERCEL", "1")], UNAVAILABLE),
        case(OUTSIDE, &format!("{A}{PROD}"), &[], UNAVAILABLE),
        case(LOOPBACK, &format!("{A}{PROD}"), &[("A2A_SECRET", SECRET)], CLOSED),
        case(LOOPBACK, &format!("{A}{PROD}{WITH_BEARER}"), &[BEARER], TOKEN_ONLY),
        case(OUTSIDE, &format!("{A}{WITH_BEARER}"), &[BEARER, ("VERCEL", "1")], TOKEN_ONLY),
        // Somebody has written that everybody may call.
        case(LOOPBACK, &format!("{ANONYMOUS}{PROD}"), &[], OPEN).logs(ANYBODY, 0),
        case(OUTSIDE, &format!("{ANONYMOUS}{PROD}"), &[], OPEN),
        // What is listed is required, whether it is configured or not.
        case(LOOPBACK, &format!("[agents.a]\nauth = [\"jwt\"]\n{PROD}"), &[], CLOSED),
        case(LOOPBACK, &format!("[agents.a]\nauth = [\"api-key\"]\n{PROD}"), &[], CLOSED),
    ]
}

fn outside() -> Vec<Case> {
    let issuer = "[[auth.issuers]]\nissuer = \"https://id.example\"\naudience = \"a2ad\"\n";
    let org = "[auth.org_secrets.\"acme.example\"]\nenv = \"ACME\"\n";
    let written = "[agents.b]\nauth = [\"api-key\"]\n";
    vec![
        case(
            OUTSIDE,
            "",
            &[],
            Refused(&[
                "a2ad: --listen: listening on 0.0.0.0:0 would accept calls from anyone: nobody has decided who may call demo, ",
                "write auth for each of them",
                "set A2A_SECRET",
            ]),
        ),
        case(OUTSIDE, A, &[], Refused(&["nobody has decided who may call a; "])),
        case("[::]:0", A, &[], Refused(&["listening on [::]:0 would accept calls from anyone"])),
        case(
            OUTSIDE,
            &format!("[server]\ndefault_agent = \"a\"\n{A}{written}"),
            &[],
            Refused(&["who may call a; "]),
        ),
        case(
            OUTSIDE,
            &format!("[server]\ndefault_agent = \"a\"\n{ANONYMOUS}[agents.b]\nenabled = false\n"),
            &[],
            OPEN,
        ),
        // How keys are made does not require any.
        case(OUTSIDE, &format!("{A}[auth.api_keys]\nprefix = \"x_\"\n"), &[], Refused(&["who may call a; "])),
        case(
            OUTSIDE,
            &format!("{A}[auth]\nsecret_env = \"\"\n"),
            &[("A2A_SECRET", SECRET)],
            Refused(&["who may call a; "]),
        ),
        case(OUTSIDE, ANONYMOUS, &[], OPEN).logs(ANYBODY, 1),
        case(OUTSIDE, A, &[("A2AD_AGENTS__A__AUTH", "anonymous")], OPEN),
        case(OUTSIDE, "", &[("A2A_SECRET", SECRET)], CLOSED),
        case(OUTSIDE, "[agents.a]\nauth = [\"api-key\"]\n", &[], CLOSED),
        case(OUTSIDE, &format!("{A}{WITH_BEARER}"), &[BEARER], TOKEN_ONLY),
        case(OUTSIDE, &format!("{A}{issuer}"), &[], CLOSED),
        case(OUTSIDE, &format!("{A}{org}"), &[("ACME", SECRET)], CLOSED),
    ]
}

fn invalid() -> Vec<Case> {
    vec![
        case(
            LOOPBACK,
            "[agents.a]\nauth = [\"mtls\"]\n",
            &[],
            Refused(&["agents.a.auth: \"mtls\": no address of the server verifies client certificates"]),
        ),
        case(
            LOOPBACK,
            &format!("{A}[server]\nadmin_listen = \"0.0.0.0:0\"\n"),
            &[],
            Refused(&[
                "server.admin_listen: listening on 0.0.0.0:0 would send the admin token over the network",
            ]),
        ),
        case(
            LOOPBACK,
            &format!("{A}[server]\ntls = {{ cert = \"absent.pem\", key = \"absent.key\" }}\n"),
            &[],
            Refused(&["server.tls.cert: the file absent.pem cannot be read: No such file"]),
        ),
        case(
            LOOPBACK,
            &format!("{A}[server]\ntls = {{ cert = \"a2ad.toml\", key = \"a2ad.toml\" }}\n"),
            &[],
            Refused(&["server.tls.cert: the file a2ad.toml has no certificate; expected PEM text"]),
        ),
        case(
            LOOPBACK,
            &format!("{A}[server]\ntls = {{ client_ca = \"a2ad.toml\" }}\n"),
            &[],
            Refused(&["server.tls.cert: expected the file with the certificate"]),
        ),
        // Several addresses, of which others can reach one.
        case(
            "127.0.0.1:0,0.0.0.0:0",
            A,
            &[],
            Refused(&["a2ad: --listen: listening on 0.0.0.0:0 would accept calls from anyone"]),
        ),
        case(LOOPBACK, "[agents.a]\nauth = []\n", &[], Refused(&["agents.a.auth: expected at least one"])),
        case(
            LOOPBACK,
            A,
            &[("A2A_SECRET", "fifteen bytes..")],
            Refused(&["auth.secret_env: the environment variable A2A_SECRET has fewer than 16 bytes"]),
        ),
        case(
            LOOPBACK,
            &format!("{A}[auth]\nsecret_env = \"MINE\"\n"),
            &[],
            Refused(&["a2ad.toml:5: auth.secret_env: the environment variable MINE is not set"]),
        ),
        case(
            LOOPBACK,
            &format!("{A}{WITH_BEARER}"),
            &[("TOKEN", "short")],
            Refused(&[
                "a2ad.toml:5: auth.bearer_env: the environment variable TOKEN has fewer than 16 bytes",
            ]),
        ),
        case(
            LOOPBACK,
            &format!("{A}[server]\nmode = \"production\"\n"),
            &[],
            Refused(&["is not one of dev, prod"]),
        ),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn every_configuration_starts_or_is_refused_as_documented() {
    let cases: Vec<Case> =
        [in_development(), in_production(), outside(), invalid()].into_iter().flatten().collect();
    assert!(cases.len() >= 50, "{}", cases.len());
    stream::iter(&cases).for_each_concurrent(CONCURRENT, Case::check).await;
}

#[tokio::test]
async fn address_in_the_file_is_checked_with_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let config = format!("{ECHO}[server]\nlisten = \"0.0.0.0:0\"\n");
    for arguments in [&["serve"][..], &["check"]] {
        let output = program(folder.path(), &config, &[]).args(arguments).output().await.unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{errors}");
        assert!(
            errors.contains("a2ad.toml:4: server.listen: listening on 0.0.0.0:0 would accept"),
            "{errors}"
        );
    }
    // Commands that do not listen work.
    let tried = program(folder.path(), &config, &[]).args(["try", "echo", "hi"]).output().await.unwrap();
    assert_eq!(String::from_utf8_lossy(&tried.stdout), "hi\n");
}

/// A server that others can reach accepts requests that name a configured host, and no others.
#[tokio::test]
async fn server_that_others_can_reach_is_called_by_its_host() {
    let config = format!(
        "{ECHO}{A}{WITH_BEARER}[server]\npublic_url = \"https://agents.example\"\nallowed_hosts = [\"inner.example\"]\n"
    );
    let running = Running::start(OUTSIDE, &config, &[BEARER]).await;
    let bearer = format!("Bearer {TOKEN}");
    for (host, without, with) in [
        ("agents.example", 401, 200),
        ("inner.example:8080", 401, 200),
        ("127.0.0.1", 401, 200),
        ("localhost", 403, 403),
        ("evil.example", 403, 403),
    ] {
        assert_eq!(running.status("a", &[("Host", host)]).await, without, "{host}");
        let token = [("Host", host), ("Authorization", bearer.as_str())];
        assert_eq!(running.status("a", &token).await, with, "{host}");
    }
}

/// Skills can be tried, and used by an MCP client on this machine, without the credentials that others need.
#[tokio::test]
async fn own_commands_need_no_credential() {
    let folder = tempfile::tempdir().unwrap();
    let config = format!("{ECHO}[agents.a]\nauth = [\"api-key\"]\nend_user = \"required\"\n{PROD}");
    let tried = program(folder.path(), &config, &[]).args(["try", "echo", "hi"]).output().await.unwrap();
    assert_eq!(String::from_utf8_lossy(&tried.stdout), "hi\n", "{}", String::from_utf8_lossy(&tried.stderr));
    let listed = mcp_tools(program(folder.path(), &config, &[("A2A_SECRET", SECRET)])).await;
    assert!(listed.contains("a__echo"), "{listed}");
}

/// What `a2ad mcp` answers to a request for its tools.
async fn mcp_tools(mut command: tokio::process::Command) -> String {
    use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
    let mut child = command
        .arg("mcp")
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let (mut input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let messages = [
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#,
    ];
    for message in messages {
        input.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }
    let mut lines = BufReader::new(output).lines();
    let found = async {
        while let Some(line) = lines.next_line().await.unwrap() {
            if line.contains(r#""id":2"#) {
                return line;
            }
        }
        panic!("no answer");
    };
    let line = tokio::time::timeout(Duration::from_secs(30), found).await.expect("timed out");
    drop(input);
    line
}

#[tokio::test]
async fn check_shows_who_may_call() {
    let folder = tempfile::tempdir().unwrap();
    let check = async |config: &str, variables: &[(&str, &str)], more: &[&str]| {
        let config = format!("{ECHO}{config}");
        let output =
            program(folder.path(), &config, variables).arg("check").args(more).output().await.unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    for (config, variables, expected) in [
        (A, &[][..], "mode      dev\n"),
        (A, &[("VERCEL", "1")], "mode      prod, because VERCEL is set\n"),
        (A, &[], "  auth    anonymous, because nothing is configured\n"),
        (A, &[("A2A_SECRET", SECRET)], "  auth    jwt, as [auth] configures\n"),
        (A, &[("VERCEL", "1")], "  auth    none: every call gets 503, because nothing is configured\n"),
        (
            "[agents.a]\nauth = [\"jwt\", \"api-key\"]\n",
            &[],
            "  auth    jwt, api-key\n  warning jwt is listed and no secret is configured; set A2A_SECRET, or auth.org_secrets\n",
        ),
        (
            "[agents.a]\nauth = [\"bearer\"]\n",
            &[],
            "  auth    bearer: refuses every call\n  warning bearer is listed and no token is configured; set auth.bearer_env\n",
        ),
        (
            "[agents.a]\nauth = [\"api-key\"]\nend_user = \"required\"\n",
            &[("A2A_SECRET", SECRET)],
            "  auth    api-key, with the token of the end user\n",
        ),
    ] {
        let text = check(config, variables, &[]).await;
        assert!(text.contains(expected), "{expected:?} is not in {text}");
        assert!(!text.contains(SECRET));
    }
    let config = "[server]\nmode = \"prod\"\nlisten = \"0.0.0.0:4242\"\n[agents.a]\nend_user = \"required\"\n[auth]\n\
                  audience = \"us\"\nbearer_env = \"TOKEN\"\n\
                  org_secrets = { \"acme.example\" = { env = \"ACME\" } }\n\
                  issuers = [{ issuer = \"https://id.example\", audience = \"a2ad\", jwks_uri = \"https://id.example/k\" }]\n\
                  api_keys = { prefix = \"x-\", max_per_agent = 3 }\n";
    let json = check(config, &[BEARER, ("ACME", SECRET), ("A2A_SECRET", SECRET)], &["--json"]).await;
    for part in [
        r#""server":{"mode":"prod","listen":"0.0.0.0:4242","#,
        r#""auth":{"secret":"A2A_SECRET","audiences":["us"],"org_secrets":["acme.example"],"bearer":true,"#,
        r#""issuers":[{"issuer":"https://id.example","audience":"a2ad","jwks_uri":"https://id.example/k"}],"#,
        r#""api_keys":{"prefix":"x-","max_per_agent":3}}"#,
        r#""auth":["jwt","oidc","bearer"],"auth_source":"auth","end_user":"required","warnings":[]"#,
    ] {
        assert!(json.contains(part), "{part} is not in {json}");
    }
    assert!(!json.contains(SECRET) && !json.contains(TOKEN), "{json}");
    for (listen, audiences) in [
        ("127.0.0.1:4242", r#"["http://127.0.0.1:4242","http://localhost:4242"]"#),
        ("[::1]:1", r#"["http://[::1]:1","http://localhost:1"]"#),
    ] {
        let json = check(&format!("{A}[server]\nlisten = \"{listen}\"\n"), &[], &["--json"]).await;
        assert!(json.contains(&format!(r#""audiences":{audiences}"#)), "{json}");
    }
}
