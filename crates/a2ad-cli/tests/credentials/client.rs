//! The client commands of the program with agents that require credentials.

use testkit::process;

use super::{ECHO, PROGRAM, Running, SECRET, TOKEN};

const CONFIG: &str = "[server]\ndefault_agent = \"bearer\"\n\
    [auth]\nbearer_env = \"TOKEN\"\n\
    issuers = [{ issuer = \"https://id.example\", audience = \"a2ad\" }]\n\
    [agents.open]\nauth = [\"anonymous\"]\n\
    [agents.bearer]\nauth = [\"bearer\"]\n\
    [agents.keys]\nauth = [\"api-key\"]\n\
    [agents.jwt]\nauth = [\"jwt\", \"oidc\"]\n\
    [agents.person]\nauth = [\"bearer\"]\nend_user = \"required\"\n\
    [agents.bank]\nauth = [\"api-key\"]\nprofile = \"pinkfish\"\n";

impl Running {
    /// Exit code, stdout and stderr of a client command.
    async fn client(&self, arguments: &[&str]) -> (i32, String, String) {
        let mut command = process::command(PROGRAM);
        command.current_dir(self.folder.path()).args(arguments);
        command.env("A2AD_URL", self.server.url()).env("TOKEN", TOKEN).env("WRONG", "another-token");
        let output = command.output().await.unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
    }
}

async fn start() -> Running {
    Running::start("127.0.0.1:0", &format!("{ECHO}{CONFIG}"), &[("TOKEN", TOKEN), ("A2A_SECRET", SECRET)])
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn bearer_token_is_accepted_in_every_version_of_the_card() {
    let running = start().await;
    for dialect in ["draft", "0.3", "1.0"] {
        for subcommand in ["send", "stream"] {
            let (code, output, errors) = running
                .client(&[subcommand, "bearer", "hi", "--bearer-env", "TOKEN", "--dialect", dialect])
                .await;
            assert_eq!((code, output.as_str()), (0, "hi\n"), "{dialect} {subcommand}: {errors}");
        }
    }
    let (code, tasks, errors) = running.client(&["tasks", "ls", "bearer", "--bearer-env", "TOKEN"]).await;
    assert!(code == 0 && tasks.contains("completed"), "{errors}");
    let (code, _, errors) = running.client(&["tasks", "ls", "bearer"]).await;
    assert_eq!(code, 5, "{errors}");
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_call_names_what_the_card_requires() {
    let running = start().await;
    let key = "the agent requires an API key in the header X-Api-Key (--api-key-env VAR)";
    let token = "the agent requires a bearer token (--bearer-env VAR)";
    for (agent, arguments, expected) in [
        ("bearer", &[][..], token.to_owned()),
        ("bearer", &["--bearer-env", "WRONG"], format!("access was denied with --bearer-env; {token}")),
        ("bearer", &["--api-key-env", "TOKEN"], format!("access was denied with --api-key-env; {token}")),
        ("keys", &[], key.to_owned()),
        ("keys", &["--api-key-env", "WRONG"], format!("access was denied with --api-key-env; {key}")),
        (
            "jwt",
            &[],
            "the agent requires a bearer token, JWT (--bearer-env VAR), or a token of https://id.example (--bearer-env VAR)"
                .to_owned(),
        ),
        (
            "person",
            &["--bearer-env", "TOKEN"],
            "access was denied with --bearer-env; the agent requires a bearer token (--bearer-env VAR) and a token of the \
             end user (--end-user-token-env VAR)"
                .to_owned(),
        ),
        (
            "person",
            &["--bearer-env", "TOKEN", "--end-user-token-env", "WRONG"],
            "access was denied with --bearer-env and --end-user-token-env; the agent requires a bearer token ".to_owned(),
        ),
        // 403 instead of 401.
        ("bank", &[], key.to_owned()),
    ] {
        let command = [&["send", agent, "hi"], arguments].concat();
        let (code, output, errors) = running.client(&command).await;
        assert_eq!((code, output.as_str()), (5, ""), "{agent}: {errors}");
        assert!(errors.contains(&expected), "{agent}: {expected:?} is not in {errors}");
        assert!(!errors.contains(TOKEN) && !errors.contains("another-token"), "{errors}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn list_of_agents_names_those_that_require_credentials() {
    let running = start().await;
    let (code, output, errors) = running.client(&["agents"]).await;
    assert_eq!(code, 0, "{errors}");
    assert!(output.contains("open: ") && output.contains("keys (requires credentials): "), "{output}");
    assert_eq!(output.matches("(requires credentials)").count(), 5, "{output}");
    let (_, card, _) = running.client(&["card", "person"]).await;
    assert!(card.contains("apiKey") && card.contains("endUser"), "{card}");
}
