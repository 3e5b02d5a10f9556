//! The server with agents that require credentials, and the credentials for it.

use std::{fs, path::Path};

use serde_json::{Value, json};

use super::{
    CheckError,
    counted_function::CountedFunction,
    fixture::start_server,
    http::{Response, Server},
    json::{ValueChecks as _, quote},
    mismatch,
    server_process::{Plan, ServerProcess},
    test_client::TestClient,
    token,
    token_issuer::TokenIssuer,
};

/// The secret of the server, of an organisation, and a secret that the server does not have.
pub(crate) const SECRET: &str = "selftest-secret-0123456789abcdef-0123456789";
pub(crate) const ORG_SECRET: &str = "selftest-acme-0123456789abcdef-0123456789";
pub(crate) const FOREIGN_SECRET: &str = "selftest-foreign-0123456789abcdef-0123456789";
/// The organisation that has [`ORG_SECRET`], and the one that has [`SECRET`] too.
pub(crate) const ORG: &str = "acme.example";
pub(crate) const ORG_WITH_SERVER_SECRET: &str = "same.example";
/// The static token.
pub(crate) const BEARER: &str = "selftest-static-0123456789abcdef-0123456789";
/// The audience of the server.
pub(crate) const AUDIENCE: &str = "https://selftest.example";
/// The beginning of its API keys.
pub(crate) const KEY_PREFIX: &str = "pf_a2a_";

/// The environment of the server.
pub(crate) const ENVIRONMENT: &[(&str, &str)] =
    &[("A2A_SECRET", SECRET), ("ACME_SECRET", ORG_SECRET), ("SELFTEST_BEARER", BEARER)];

/// A running server with its credentials and what its configuration refers to.
pub(crate) struct CredentialServer {
    pub(crate) server: Server,
    /// The skills `count` and `queued`.
    pub(crate) function: CountedFunction,
    pub(crate) issuer: TokenIssuer,
    plan: Plan,
    process: ServerProcess,
}

/// What a command has written.
pub(crate) struct Output {
    pub(crate) succeeded: bool,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Output {
    /// The key that `a2ad keys new` has printed, and nothing else.
    pub(crate) fn key(self) -> Result<String, CheckError> {
        let Self { succeeded, stdout, stderr } = self;
        let is_line = stdout.lines().count() == 1 && !stdout.trim().contains(char::is_whitespace);
        if succeeded && is_line {
            return Ok(stdout.trim().to_owned());
        }
        Err(mismatch("a2ad keys new that prints one key", format!("{stdout}{stderr}")))
    }
}

impl CredentialServer {
    pub(crate) async fn start(plan: Plan) -> Result<Self, CheckError> {
        let (function, issuer) = (CountedFunction::start().await?, TokenIssuer::start().await?);
        let config = plan.config.replace("counter.invalid", function.host());
        let plan = Plan { config: config.replace("issuer.invalid", issuer.host()), ..plan };
        let process = start_server(&plan).await?;
        Ok(Self { server: process.server.clone(), function, issuer, plan, process })
    }

    /// A client of the default agent at a path, without a credential.
    pub(crate) fn at(&self, path: &str, skill: &'static str) -> TestClient {
        TestClient::new(&self.server, path, skill)
    }

    /// A client of the default agent with the profile `agent-native`, without a credential.
    pub(crate) fn native(&self, skill: &'static str) -> TestClient {
        self.at("/_agent-native/a2a", skill)
    }

    /// A client of an agent at its own path, without a credential.
    pub(crate) fn agent(&self, agent: &str, skill: &'static str) -> TestClient {
        self.at(&format!("/a2a/{agent}"), skill)
    }

    /// The card of an agent; `file` is `agent-card.json` or `agent.json`.
    pub(crate) async fn card(&self, agent: &str, file: &str) -> Result<Response, CheckError> {
        let card = self.server.get(&format!("/a2a/{agent}/.well-known/{file}"), &[]).await?;
        card.has_status(200)?;
        Ok(card)
    }

    /// Makes an API key with `a2ad keys new`.
    pub(crate) async fn new_key(&self, agent: &str) -> Result<String, CheckError> {
        self.run(&["keys", "new", agent]).await?.key()
    }

    /// The same with an owner.
    pub(crate) async fn new_key_of(&self, owner: &str, agent: &str) -> Result<String, CheckError> {
        self.run(&["keys", "new", agent, "--owner", owner]).await?.key()
    }

    /// Revokes a key with `a2ad keys revoke`.
    pub(crate) async fn revoke(&self, key: &str) -> Result<(), CheckError> {
        let output = self.run(&["keys", "revoke", key_id(key)?]).await?;
        if output.succeeded { Ok(()) } else { Err(mismatch("a2ad keys revoke", output.stderr)) }
    }

    /// Runs a command of the program with the store and the configuration of this server.
    pub(crate) async fn run(&self, arguments: &[&str]) -> Result<Output, CheckError> {
        let (store, config) = (self.plan.store(), self.plan.folder.join("a2ad.toml"));
        let (store, config) = (store.to_string_lossy(), config.to_string_lossy());
        let all = [arguments, &["--store", &*store, "--config", &*config]].concat();
        run(&self.plan, &all).await
    }

    /// Sends a request to the operators' API.
    pub(crate) async fn console(&self, verb: &str, path: &str, body: &str) -> Result<Response, CheckError> {
        let token = fs::read_to_string(self.plan.folder.join("a2ad.db.keys/admin"));
        let token = token.map_err(|error| mismatch("a file with the admin token", error))?;
        let authorization = format!("Bearer {}", token.trim());
        let headers = [("content-type", "application/json"), ("authorization", authorization.as_str())];
        self.server.send_request(verb, path, &headers, body).await
    }

    /// Makes an API key with the operators' API.
    pub(crate) async fn post_key(&self, agent: &str) -> Result<Response, CheckError> {
        self.console("POST", "/console/api/keys", &format!(r#"{{"agent":{}}}"#, quote(agent))).await
    }

    /// Everything that the server has written: the files in its folder, with their paths, and its log.
    pub(crate) fn written(&self) -> Result<Vec<(String, Vec<u8>)>, CheckError> {
        let mut files = vec![("the log".to_owned(), self.process.log().into_bytes())];
        read_folder(&self.plan.folder, &mut files)
            .map_err(|error| mismatch("a folder that can be read", error))?;
        Ok(files)
    }
}

/// Runs a command of the program in the folder of a server.
pub(crate) async fn run(plan: &Plan, arguments: &[&str]) -> Result<Output, CheckError> {
    let output = plan.run(arguments).await.map_err(|error| mismatch("a command that starts", error))?;
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    let succeeded = output.status.success();
    Ok(Output { succeeded, stdout: text(output.stdout), stderr: text(output.stderr) })
}

fn read_folder(folder: &Path, files: &mut Vec<(String, Vec<u8>)>) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            read_folder(&path, files)?;
        } else if path.is_file() {
            files.push((path.display().to_string(), fs::read(&path)?));
        }
    }
    Ok(())
}

/// The public part of a key: what is between its prefix and its secret.
pub(crate) fn key_id(key: &str) -> Result<&str, CheckError> {
    let id = key.strip_prefix(KEY_PREFIX).and_then(|rest| rest.split_once('_'));
    id.map(|(id, _)| id).ok_or_else(|| mismatch(format!("{KEY_PREFIX}ID_SECRET"), key))
}

/// A token of the server's own secret for a user.
pub(crate) fn token_of(user: &str) -> String {
    token::hs256(SECRET, &json!({ "sub": user }))
}

/// A token of the server's own secret with these claims; null removes one.
pub(crate) fn token_with(claims: &Value) -> String {
    token::hs256(SECRET, claims)
}

/// Checks that a call of an agent was refused because of its credential: HTTP 401, or 403 with the profile `pinkfish`.
pub(crate) fn is_refused(response: &Response) -> Result<(), CheckError> {
    let refused = matches!(response.status(), 401 | 403) && response.find("result").is_none();
    if refused { Ok(()) } else { Err(mismatch("401 or 403", response)) }
}
