//! Canary secrets (T-S10): credentials of every kind, valid and wrong, never appear in a log, a response, an error, a
//! database file or the environment of a child process.
//!
//! The program is started with canaries in every variable that it reads, and called with canaries in every place where a
//! client may put a credential. Agents fail and panic meanwhile. Afterwards everything that the program has written is
//! searched.

mod backend;
mod canaries;
mod requests;

use std::{fs, path::Path};

use backend::Backend;
use canaries::Canaries;
use requests::{Credentials, Exchanges};
use tempfile::TempDir;
use testkit::process::{Server, Signal};
use tokio::process::Command;

use super::common::{self, ANY_PORT, stop, within};

/// What the test must have at least.
const LEAST: usize = 200;

/// Variables with secrets that the configuration names.
const VARIABLES: [&str; 12] = [
    "A2A_SECRET",
    "STATIC_TOKEN",
    "ORG_ONE",
    "ORG_TWO",
    "FUNCTION_BEARER",
    "FUNCTION_HEADER",
    "OPENAPI_TOKEN",
    "OPENAPI_PASSWORD",
    "OPENAPI_HEADER",
    "MCP_BEARER",
    "MCP_HEADER",
    "NOT_NAMED_ANYWHERE",
];

/// The agents, one for each kind of credential.
const AGENTS: [(&str, &str); 8] = [
    ("open", r#"["anonymous"]"#),
    ("any", r#"["anonymous", "bearer", "jwt", "api-key", "oidc"]"#),
    ("keys", r#"["api-key"]"#),
    ("bearer", r#"["bearer"]"#),
    ("jwt", r#"["jwt"]"#),
    ("oidc", r#"["oidc"]"#),
    ("person", r#"["bearer"]"#),
    ("bank", r#"["api-key"]"#),
];

fn config(backend: &Backend) -> String {
    let at = backend.address;
    let mut config = format!(
        r#"
[server]
default_agent = "any"
[auth]
bearer_env = "STATIC_TOKEN"
org_secrets = {{ "one.example" = {{ env = "ORG_ONE" }}, "two.example" = {{ env = "ORG_TWO" }} }}
issuers = [{{ issuer = "http://{at}", audience = "a2ad", jwks_uri = "http://{at}/jwks" }}]
[skills.say]
builtin = "echo"
[skills.conformance]
builtin = "tck"
[skills.environment]
command = {{ argv = ["env"] }}
[skills.function]
http = {{ url = "http://{at}/500", bearer_env = "FUNCTION_BEARER", headers_env = {{ x-function = "FUNCTION_HEADER" }} }}
[skills.denied]
http = {{ url = "http://{at}/401", bearer_env = "FUNCTION_BEARER" }}
[skills.remote]
mcp = {{ server = "remote", tool = "any" }}
[mcp.remote]
url = "http://{at}/mcp/401"
bearer_env = "MCP_BEARER"
headers_env = {{ x-mcp = "MCP_HEADER" }}
[openapi.pets]
file = "pets.json"
base_url = "http://{at}"
headers_env = {{ x-openapi = "OPENAPI_HEADER" }}
[openapi.pets.security.token]
token_env = "OPENAPI_TOKEN"
[openapi.pets.security.basic]
user = "someone"
password_env = "OPENAPI_PASSWORD"
"#
    );
    for (agent, auth) in AGENTS {
        let more = match agent {
            "person" => "end_user = \"required\"\n",
            "bank" => "profile = \"pinkfish\"\n",
            _ => "",
        };
        config.push_str(&format!("[agents.{agent}]\nauth = {auth}\n{more}"));
    }
    config
}

/// Two operations, whose requests have the two kinds of credentials.
const PETS: &str = r#"{
    "openapi": "3.1.0", "info": {"title": "pets", "version": "1"},
    "paths": {
        "/pets/403": {"get": {"operationId": "listPets", "security": [{"token": []}], "responses": {"200": {"description": "pets"}}}},
        "/pets/500": {"post": {"operationId": "addPet", "security": [{"basic": []}], "responses": {"200": {"description": "a pet"}}}}
    },
    "components": {"securitySchemes": {
        "token": {"type": "apiKey", "in": "query", "name": "api_key"},
        "basic": {"type": "http", "scheme": "basic"}
    }}
}"#;

/// A folder with the configuration, and what the program gets.
struct Setup {
    folder: TempDir,
    variables: Vec<(&'static str, String)>,
}

impl Setup {
    fn new(backend: &Backend, canaries: &mut Canaries) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a2ad.toml"), config(backend)).unwrap();
        fs::write(folder.path().join("pets.json"), PETS).unwrap();
        let variables = VARIABLES.map(|name| (name, canaries.make(&format!("variable {name}")))).to_vec();
        Self { folder, variables }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn variable(&self, name: &str) -> &str {
        &self.variables.iter().find(|(one, _)| *one == name).unwrap().1
    }

    fn a2ad(&self, arguments: &[&str]) -> Command {
        let mut command = common::a2ad(self.path(), arguments);
        command.env("A2AD_LOG", "debug");
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Runs a command to its end.
    async fn run(&self, arguments: &[&str], variables: &[(&str, &str)]) -> Done {
        let mut command = self.a2ad(arguments);
        command.envs(variables.iter().copied());
        let output = within(command.output()).await.unwrap();
        Done { code: output.status.code().unwrap(), stdout: output.stdout, stderr: output.stderr }
    }

    /// The output of a command that must succeed, without its last line break.
    async fn succeed(&self, arguments: &[&str]) -> String {
        let done = self.run(arguments, &[]).await;
        assert_eq!(done.code, 0, "{arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8(done.stdout).unwrap().trim_end().to_owned()
    }
}

/// How a command ended.
struct Done {
    code: i32,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
}

#[tokio::test(flavor = "multi_thread")]
async fn no_credential_appears_outside_of_its_place() {
    let (backend, mut canaries) = (Backend::start().await, Canaries::default());
    let setup = Setup::new(&backend, &mut canaries);
    let server =
        Server::spawn_command(setup.a2ad(&["serve", "--listen", ANY_PORT]), setup.path().join("server.log"));
    let server = server.unwrap().ready().await.unwrap();
    let admin = fs::read_to_string(setup.path().join("a2ad.db.keys/admin")).unwrap().trim_end().to_owned();
    canaries.add("the admin token", &admin);
    let credentials = make_credentials(&setup, &mut canaries, admin).await;

    let mut exchanges = Exchanges::new(server.address);
    exchanges.send_wrong_credentials(&mut canaries).await;
    exchanges.send_credentials_in_bodies(&mut canaries).await;
    exchanges.call_with(&credentials).await;
    let control = "this is content and no secret";
    exchanges.store_text(control).await;

    let mut outputs = exchanges.outputs;
    outputs.extend(run_commands(&setup, &server, &mut canaries).await);
    // A reload reads the variables again.
    let config_path = setup.path().join("a2ad.toml");
    fs::write(&config_path, format!("# changed\n{}", fs::read_to_string(&config_path).unwrap())).unwrap();
    server.signal(Signal::HUP).unwrap();
    server.wait_for_log("the configuration was reloaded").await.unwrap();
    assert!(server.log().contains("the agent panics as asked"), "an agent has panicked");
    assert!(server.log().contains(r#""level":"DEBUG""#), "the log is at level debug");
    stop(server).await;
    outputs.extend(files(setup.path()));

    let mut leaks = Vec::new();
    for (name, bytes) in &outputs {
        let found = canaries.find(bytes).into_iter();
        // The file that holds it on purpose, and its copy in a backup.
        let is_place = |what: &str| what == "the admin token" && name.ends_with(".keys/admin");
        leaks.extend(found.filter(|found| !is_place(&found.what)).map(|found| format!("{name}: {found:?}")));
    }
    let bytes: usize = outputs.iter().map(|(_, bytes)| bytes.len()).sum();
    println!(
        "{} canaries, {} outputs, {bytes} bytes, {} leaks",
        canaries.count(),
        outputs.len(),
        leaks.len()
    );
    assert!(leaks.is_empty(), "{}", leaks.join("\n"));
    assert!(canaries.count() >= LEAST, "{} canaries", canaries.count());
    let has_control = |(name, bytes): &(String, Vec<u8>)| {
        name.contains("a2ad.db") && String::from_utf8_lossy(bytes).contains(control)
    };
    assert!(outputs.iter().any(has_control), "the search finds what is stored");
}

/// Valid credentials of every kind.
async fn make_credentials(setup: &Setup, canaries: &mut Canaries, admin: String) -> Credentials {
    let mut api_keys = Vec::new();
    for agent in ["any", "keys", "bank"] {
        let key = setup.succeed(&["keys", "new", agent]).await;
        canaries.add(&format!("the API key of {agent}"), key.rsplit('_').next().unwrap());
        api_keys.push((agent, key));
    }
    let mut tokens = Vec::new();
    for arguments in [
        &["token", "--sub", "alice"][..],
        &["token", "--sub", "bob", "--ttl", "1h", "--claim", "roles=[1]"],
        &["token", "--sub", "carol", "--org", "one.example", "--secret-env", "ORG_ONE"],
        &["token", "--sub", "dan", "--org", "two.example", "--secret-env", "ORG_TWO"],
        &["token", "--sub", "end-user"],
    ] {
        let token = setup.succeed(arguments).await;
        canaries.add(&format!("the token of {arguments:?}"), token.rsplit('.').next().unwrap());
        tokens.push(token);
    }
    let end_user = tokens.pop().unwrap();
    Credentials { api_keys, tokens, bearer: setup.variable("STATIC_TOKEN").to_owned(), end_user, admin }
}

/// Runs client commands and those of operators, with credentials in variables, headers and URLs.
async fn run_commands(setup: &Setup, server: &Server, canaries: &mut Canaries) -> Vec<(String, Vec<u8>)> {
    let url = server.url();
    let at = url.trim_start_matches("http://");
    let in_url = format!("http://someone:{}@{at}", canaries.make("the password in a URL"));
    let in_query = format!("{url}/?access_token={}", canaries.make("the token in the query of a URL"));
    let in_header = format!("X-Secret: {}", canaries.make("a header on the command line"));
    let wrong = canaries.make("a wrong credential in a variable");
    let refused = setup.path().join("refused.toml");
    let password = canaries.make("the password in a URL of the configuration");
    let function = format!("[skills.f]\nhttp = {{ url = \"http://someone:{password}@127.0.0.1:1/\" }}\n");
    fs::write(&refused, function).unwrap();
    let commands: Vec<(&str, Vec<&str>)> = vec![
        ("send", vec!["send", "bearer", "hi", "--bearer-env", "STATIC_TOKEN"]),
        ("send with a wrong token", vec!["send", "bearer", "hi", "--bearer-env", "WRONG"]),
        ("send with a wrong key", vec!["send", "keys", "hi", "--api-key-env", "WRONG"]),
        ("send for an end user", vec!["send", "person", "hi", "--end-user-token-env", "WRONG"]),
        ("stream", vec!["stream", "bearer", "hi", "--bearer-env", "WRONG", "--json"]),
        ("send to a URL with a password", vec!["send", &in_url, "hi"]),
        ("card at a URL with a token", vec!["card", &in_query]),
        ("send with a header", vec!["send", "bearer", "hi", "--header", &in_header]),
        ("tasks", vec!["tasks", "ls", "bearer", "--bearer-env", "WRONG"]),
        ("keys", vec!["keys", "ls"]),
        ("keys as JSON", vec!["keys", "ls", "--json"]),
        ("backends", vec!["ops", "backends", "--json"]),
        ("configuration", vec!["ops", "config", "--json"]),
        ("configuration of a file", vec!["ops", "config", "--config", "refused.toml", "--store", "none.db"]),
        ("check", vec!["check"]),
        ("check of a URL with a password", vec!["check", "refused.toml"]),
        ("backup", vec!["backup", "copy.db"]),
    ];
    let mut outputs = Vec::new();
    for (name, arguments) in commands {
        let done = setup.run(&arguments, &[("WRONG", &wrong), ("A2AD_URL", &url)]).await;
        outputs.push((format!("stdout of {name}"), done.stdout));
        outputs.push((format!("stderr of {name} ({})", done.code), done.stderr));
    }
    // The operator wrote the password into the file.
    fs::remove_file(refused).unwrap();
    outputs
}

/// Every file below a folder.
fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push((path.display().to_string(), fs::read(&path).unwrap()));
        }
    }
    found
}
