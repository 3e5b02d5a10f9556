//! The client commands of the program with agents that require credentials.

use super::{SECRET, TOKEN};
use crate::common::{ANY_PORT, ECHO, Ended, Running, finish};

const CONFIG: &str = "[server]\ndefault_agent = \"bearer\"\n\
    [auth]\nbearer_env = \"TOKEN\"\n\
    issuers = [{ issuer = \"https://id.example\", audience = \"a2ad\" }]\n\
    [agents.open]\nauth = [\"anonymous\"]\n\
    [agents.bearer]\nauth = [\"bearer\"]\n\
    [agents.keys]\nauth = [\"api-key\"]\n\
    [agents.jwt]\nauth = [\"jwt\", \"oidc\"]\n\
    [agents.person]\nauth = [\"bearer\"]\nend_user = \"required\"\n\
    [agents.bank]\nauth = [\"api-key\"]\nprofile = \"pinkfish\"\n";

/// A client command with the variables of its credentials.
async fn client(running: &Running, arguments: &[&str]) -> Ended {
    let mut command = running.client(arguments);
    command.env("TOKEN", TOKEN).env("WRONG", "another-token");
    finish(command).await
}

async fn start() -> Running {
    super::start(ANY_PORT, &format!("{ECHO}{CONFIG}"), &[("TOKEN", TOKEN), ("A2A_SECRET", SECRET)]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn bearer_token_is_accepted_in_every_version_of_the_card() {
    let running = start().await;
    for dialect in ["draft", "0.3", "1.0"] {
        for subcommand in ["send", "stream"] {
            let arguments = [subcommand, "bearer", "hi", "--bearer-env", "TOKEN", "--dialect", dialect];
            client(&running, &arguments).await.prints(0, "hi\n", "");
        }
    }
    let tasks = client(&running, &["tasks", "ls", "bearer", "--bearer-env", "TOKEN"]).await;
    assert!(tasks.succeeds("").contains("completed"), "{tasks:?}");
    client(&running, &["tasks", "ls", "bearer"]).await.ends(5, &[]);
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
        let refused = client(&running, &command).await;
        refused.fails(5, &[&expected]);
        assert!(!refused.err.contains(TOKEN) && !refused.err.contains("another-token"), "{refused:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn list_of_agents_names_those_that_require_credentials() {
    let running = start().await;
    let listed = client(&running, &["agents"]).await;
    let output = listed.succeeds("");
    assert!(output.contains("open: ") && output.contains("keys (requires credentials): "), "{output}");
    assert_eq!(output.matches("(requires credentials)").count(), 5, "{output}");
    let card = client(&running, &["card", "person"]).await.out;
    assert!(card.contains("apiKey") && card.contains("endUser"), "{card}");
}
