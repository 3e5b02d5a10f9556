//! Credentials of a server built with the library: what agents accept, and which addresses it may listen on.

use std::net::SocketAddr;

use a2ad::{
    Builder, Card, Client, ServeError, Server,
    agents::Echo,
    client::{ClientOptions, Error as ClientError, HeaderMap, HeaderValue, ListTasks},
    model::ErrorKind,
    server::{Auth, AuthMethod},
    testing::TestServer,
};
use testkit::http1;
use tokio::io::{AsyncBufReadExt as _, BufReader};

use super::with_timeout;

const TOKEN: &str = "0123456789abcdef";
const SECRET: &str = "a secret of 24 bytes ...";

/// Lists the tasks of an agent; returns the kind of the error.
async fn call(url: &str, token: Option<&str>) -> Result<(), ErrorKind> {
    let mut headers = HeaderMap::new();
    if let Some(token) = token {
        headers.insert("authorization", HeaderValue::from_str(&format!("Bearer {token}")).unwrap());
    }
    let client = Client::discover_with(url, ClientOptions::default().with_headers(headers)).await.unwrap();
    match with_timeout(client.list_tasks(ListTasks::default())).await {
        Ok(_) => Ok(()),
        Err(ClientError::Protocol(error)) => Err(error.kind),
        Err(other) => panic!("{other}"),
    }
}

#[tokio::test]
async fn agents_accept_what_they_list_else_what_the_server_verifies() {
    let builder = Server::builder()
        .auth(Auth::new().bearer(TOKEN))
        .agent("default", Echo)
        .agent(Card::new("open").anonymous(true), Echo)
        .agent(Card::new("keys").auth([AuthMethod::ApiKey]), Echo)
        .agent(Card::new("both").auth([AuthMethod::Anonymous, AuthMethod::Bearer]), Echo)
        .agent(Card::new("person").auth([AuthMethod::Bearer]).end_user_required(), Echo);
    let server = TestServer::start(builder).await.unwrap();
    let refused = Err(ErrorKind::Unauthenticated);
    for (agent, without, with, with_wrong) in [
        ("default", refused, Ok(()), refused),
        ("open", Ok(()), Ok(()), Ok(())),
        ("keys", refused, refused, refused),
        ("both", Ok(()), Ok(()), refused),
        ("person", refused, refused, refused),
    ] {
        let url = server.agent_url(agent);
        assert_eq!(call(&url, None).await, without, "{agent}");
        assert_eq!(call(&url, Some(TOKEN)).await, with, "{agent}");
        assert_eq!(call(&url, Some("another token")).await, with_wrong, "{agent}");
    }
    let card =
        a2ad::client::find_card(&server.agent_url("person"), &ClientOptions::default()).await.unwrap().card;
    let names =
        |list: &[(String, Vec<String>)]| list.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    assert_eq!(names(&card.security_requirements[0].schemes), ["apiKey", "endUser"]);
}

#[tokio::test]
async fn invalid_and_missing_settings_are_rejected_without_the_secret() {
    let refused = |builder: Builder| builder.build().err().unwrap().to_string();
    let with = |auth: Auth| Server::builder().auth(auth).agent("echo", Echo);
    for (auth, text) in [
        (Auth::new().secret("A2A_SECRET", "s3cret"), "Builder::auth: \"A2A_SECRET\" has fewer than 16 bytes"),
        (
            Auth::new().org_secret("acme.example", "s3cret"),
            "Builder::auth: \"acme.example\" has fewer than 16",
        ),
        (Auth::new().org_secret("Acme", SECRET), "Builder::auth: \"Acme\" is not a domain in lower case"),
        (Auth::new().bearer("s3cret"), "Builder::auth: \"the token\" has fewer than 16 bytes"),
        (Auth::new().bearer("s3cret with spaces"), "Builder::auth: \"the token\" has characters that cannot"),
        (
            Auth::new().issuer("http://id.example", "a"),
            "Builder::auth: \"http://id.example\" is not an https URL",
        ),
        (
            Auth::new().issuer("https://id.example", ""),
            "Builder::auth: \"https://id.example\" has no audience",
        ),
        (
            Auth::new().issuer("https://id.example", "a").issuer("https://id.example", "b"),
            "Builder::auth: \"https://id.example\" is listed twice",
        ),
        (
            Auth::new().issuer_with_keys("https://id.example", "a", "id.example/keys"),
            "Builder::auth: \"id.example/keys\" is not an https URL",
        ),
        (Auth::new().api_keys("", 20), "Builder::auth: \"\" is not a prefix of 1 to 32"),
        (Auth::new().api_keys("a2ad_", 0), "Builder::auth: \"0\" is not a number from 1 to 1000"),
    ] {
        let error = refused(with(auth));
        assert!(error.starts_with(text) && !error.contains("s3cret"), "{error}");
    }
    for (method, text) in [
        (AuthMethod::Jwt, "agent id \"a\" accepts tokens of a shared secret, and Auth has none"),
        (AuthMethod::Oidc, "agent id \"a\" accepts tokens of issuers, and Auth has none"),
        (AuthMethod::Bearer, "agent id \"a\" accepts a static token, and Auth has none"),
        (
            AuthMethod::Mtls,
            "agent id \"a\" accepts client certificates, and no address of Builder::serve_on verifies them; set TlsFiles::client_ca",
        ),
    ] {
        assert_eq!(refused(Server::builder().agent(Card::new("a").auth([method]), Echo)), text);
    }
    let auth = Auth::new().secret("A2A_SECRET", SECRET).bearer(TOKEN);
    let shown = format!("{auth:?}");
    assert!(shown.contains("A2A_SECRET") && !shown.contains(SECRET) && !shown.contains(TOKEN), "{shown}");
}

#[tokio::test]
async fn address_that_others_can_reach_needs_a_decision_for_every_agent() {
    let refused = async |builder: Builder, address: &str| {
        let error = with_timeout(builder.serve(address)).await.unwrap_err();
        match error.downcast_ref() {
            Some(ServeError::Unprotected { agents, .. }) => agents.clone(),
            _ => panic!("{error}"),
        }
    };
    let two = || Server::builder().agent("one", Echo).agent("two", Echo);
    for address in ["0.0.0.0:0", "[::]:0", "[::ffff:0.0.0.0]:0"] {
        assert_eq!(refused(two(), address).await, "one, two", "{address}");
    }
    let one = Server::builder()
        .agent("one", Echo)
        .agent(Card::new("two").auth([AuthMethod::ApiKey]), Echo)
        .agent(Card::new("three").anonymous(true), Echo)
        .agent(Card::new("four").anonymous(false), Echo);
    assert_eq!(refused(one, "0.0.0.0:0").await, "one");
    // Keys alone verify nothing unless an agent lists them.
    assert_eq!(refused(two().auth(Auth::new().api_keys("x_", 1)), "0.0.0.0:0").await, "one, two");
}

/// Set in the child process of a test.
const SERVE_IN_CHILD: &str = "CREDENTIALS_TEST_SERVE";

fn protected(mode: &str) -> Builder {
    match mode {
        "listed" => Server::builder()
            .auth(Auth::new().secret("A2A_SECRET", SECRET).bearer(TOKEN))
            .agent(Card::new("echo").auth([AuthMethod::Bearer]), Echo),
        "configured" => Server::builder().auth(Auth::new().bearer(TOKEN)).agent("echo", Echo),
        "anonymous" => Server::builder().agent(Card::new("echo").anonymous(true), Echo),
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn address_that_others_can_reach_is_served_when_it_is_decided_who_may_call() {
    for (mode, without, with) in [("listed", 401, 200), ("configured", 401, 200), ("anonymous", 200, 200)] {
        let mut child = tokio::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "credentials::serve_until_killed", "--ignored", "--nocapture"])
            .env(SERVE_IN_CHILD, mode)
            .stdin(std::process::Stdio::null())
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let address: SocketAddr = loop {
            let line = with_timeout(lines.next_line()).await.unwrap().expect("the server wrote no URL");
            if let Some((_, address)) = line.split_once(" at http://0.0.0.0:") {
                break format!("127.0.0.1:{address}").parse().unwrap();
            }
        };
        let list = async |headers: &[(&str, &str)]| {
            http1::request(address, "GET", "/a2a/echo/tasks", headers, &[]).await.unwrap().status
        };
        assert_eq!(list(&[]).await, without, "{mode}");
        assert_eq!(list(&[("authorization", &format!("Bearer {TOKEN}"))]).await, with, "{mode}");
        child.kill().await.unwrap();
    }
}

/// The child process of [`address_that_others_can_reach_is_served_when_it_is_decided_who_may_call`].
#[tokio::test]
#[ignore = "runs in a child process of another test"]
async fn serve_until_killed() {
    let Ok(mode) = std::env::var(SERVE_IN_CHILD) else { return };
    protected(&mode).serve("0.0.0.0:0").await.unwrap();
}
