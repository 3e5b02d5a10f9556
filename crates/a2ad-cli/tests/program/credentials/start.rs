//! Configurations and what becomes of them: the program refuses to start, or starts and answers calls with 200, 401 or 503.

use futures_util::{StreamExt as _, stream};
use testkit::http1;

use super::{SECRET, TOKEN, program, start};
use crate::common::{ECHO, configured, finish, run, within};

/// Programs that run at a time.
const CONCURRENT: usize = 4;
/// Everybody can reach this; the tests call it over loopback.
const OUTSIDE: &str = "0.0.0.0:0";
/// A configuration of `cases.txt`, and what becomes of it.
#[derive(Default)]
struct Case {
    listen: &'static str,
    variables: Vec<(&'static str, &'static str)>,
    /// What is on stderr, if the program does not start.
    refused: Vec<&'static str>,
    /// The statuses of a call without a credential and with the static token, if it starts.
    serves: Option<(u16, u16)>,
    /// What the log has, with the number of times.
    logged: Vec<(usize, &'static str)>,
    /// The text of the file; empty: none, so the demo runs.
    config: String,
}

impl Case {
    fn read(text: &'static str) -> Self {
        let (listen, rest) = text.split_once('\n').unwrap();
        let mut case = Self { listen, ..Self::default() };
        for line in rest.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            if let Some(text) = line.strip_prefix("refused: ") {
                case.refused.push(text);
            } else if let Some(statuses) = line.strip_prefix("serves ") {
                let (without, with_token) = statuses.split_once(' ').unwrap();
                case.serves = Some((without.parse().unwrap(), with_token.parse().unwrap()));
            } else if let Some(logged) = line.strip_prefix("logged ") {
                let (times, text) = logged.split_once(": ").unwrap();
                case.logged.push((times.parse().unwrap(), text));
            } else if case.serves.is_none() && case.refused.is_empty() {
                let (name, value) = line.split_once('=').unwrap();
                let secrets = [("$SECRET", SECRET), ("$TOKEN", TOKEN)].into_iter();
                let secret = secrets.filter(|(name, _)| *name == value).map(|(_, secret)| secret).next();
                case.variables.push((name, secret.unwrap_or(value)));
            } else {
                case.config += &format!("{line}\n");
            }
        }
        if !case.config.is_empty() {
            case.config.insert_str(0, ECHO);
        }
        case
    }

    async fn check(&self) {
        let name = format!("{} {:?} {:?}", self.listen, self.config, self.variables);
        match self.serves {
            None => {
                let folder = tempfile::tempdir().unwrap();
                let mut command = program(folder.path(), &self.config, &self.variables);
                command.args(["--listen", self.listen]);
                let refused = finish(command).await;
                assert_eq!(refused.code, 2, "{name}: {refused:?}");
                let errors = refused.err;
                assert!(!self.refused.is_empty(), "{name}");
                for text in &self.refused {
                    assert!(errors.contains(text), "{name}: {text:?} is not in {errors}");
                }
                for (_, value) in self.variables.iter().filter(|(_, value)| value.len() > 4) {
                    assert!(!errors.contains(value), "{name}: {errors}");
                }
                assert!(!folder.path().join("a2ad.db").exists(), "{name}");
            }
            Some((without, with_token)) => {
                let running = start(self.listen, &self.config, &self.variables).await;
                let agent = if self.config.is_empty() { "demo" } else { "a" };
                let bearer = format!("Bearer {TOKEN}");
                assert_eq!(running.status(agent, &[]).await, without, "{name}: {}", running.server.log());
                let token = [("Authorization", bearer.as_str())];
                assert_eq!(running.status(agent, &token).await, with_token, "{name}");
                // Cards are public in any case.
                let address = running.server.address;
                let path = format!("/a2a/{agent}/.well-known/agent-card.json");
                let card = http1::request(address, "GET", &path, &[], &[]).await.unwrap();
                assert_eq!(card.status, 200, "{name}");
                assert_eq!(
                    card.text().contains("securityRequirements"),
                    without != 200 || self.lists_more(),
                    "{name}"
                );
                // Lines are written in order, and those of the calls are the last.
                running.server.wait_for_log("\"target\":\"a2ad::call\"").await.unwrap();
                let log = running.server.log();
                for (times, text) in &self.logged {
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
const PROD: &str = "[server]\nmode = \"prod\"\n";
const WITH_BEARER: &str = "[auth]\nbearer_env = \"TOKEN\"\n";

#[tokio::test(flavor = "multi_thread")]
async fn every_configuration_starts_or_is_refused_as_documented() {
    let cases: Vec<Case> = include_str!("cases.txt").split("=> ").skip(1).map(Case::read).collect();
    assert_eq!(cases.len(), 60);
    stream::iter(&cases).for_each_concurrent(CONCURRENT, Case::check).await;
}

#[tokio::test]
async fn address_in_the_file_is_checked_with_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let config = format!("{ECHO}[server]\nlisten = \"0.0.0.0:0\"\n");
    for arguments in [&["serve"][..], &["check"]] {
        let mut command = program(folder.path(), &config, &[]);
        command.args(arguments);
        finish(command).await.ends(2, &["a2ad.toml:4: server.listen: listening on 0.0.0.0:0 would accept"]);
    }
    // Commands that do not listen work.
    run(folder.path(), &["try", "echo", "hi"]).await.prints(0, "hi\n", "");
}

/// A server that others can reach accepts requests that name a configured host, and no others.
#[tokio::test]
async fn server_that_others_can_reach_is_called_by_its_host() {
    let config = format!(
        "{ECHO}{A}{WITH_BEARER}[server]\npublic_url = \"https://agents.example\"\nallowed_hosts = [\"inner.example\"]\n"
    );
    let running = start(OUTSIDE, &config, &[BEARER]).await;
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
    let config = format!("{ECHO}[agents.a]\nauth = [\"api-key\"]\nend_user = \"required\"\n{PROD}");
    let folder = configured(&config);
    run(folder.path(), &["try", "echo", "hi"]).await.prints(0, "hi\n", "");
    let listed = mcp_tools(program(folder.path(), &config, &[("A2A_SECRET", SECRET)])).await;
    assert!(listed.contains("a__echo"), "{listed}");
}

/// What `a2ad mcp` answers to a request for its tools.
async fn mcp_tools(mut command: tokio::process::Command) -> String {
    use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
    command.arg("mcp").stdin(std::process::Stdio::piped()).stderr(std::process::Stdio::null());
    let mut child = command.spawn().unwrap();
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
    let line = within(found).await;
    drop(input);
    line
}

#[tokio::test]
async fn check_shows_who_may_call() {
    let folder = tempfile::tempdir().unwrap();
    let check = async |config: &str, variables: &[(&str, &str)], more: &[&str]| {
        let config = format!("{ECHO}{config}");
        let mut command = program(folder.path(), &config, variables);
        command.arg("check").args(more);
        finish(command).await.succeeds("").to_owned()
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
