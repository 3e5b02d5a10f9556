//! What the tests of the program share: its commands and how they ended, its servers, and calls of them.

use std::{
    fs::{self, File},
    path::Path,
    process::Stdio,
    time::Duration,
};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use client::{Client, SendReply};
use protocol::{
    Content, Json, Message, Part, Role, SendMessage, Task, TaskId,
    json::read::{Node, Path as Field},
};
use rustix::pty;
use serde_json::Value;
use tempfile::TempDir;
use testkit::process::{self, Server};
use tokio::process::Command;

pub(crate) use testkit::process::ANY_PORT;

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_a2ad");
/// The limit of any single wait.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);
pub(crate) const DIALECTS: [&str; 3] = ["draft", "0.3", "1.0"];
pub(crate) const ECHO: &str = "[skills.echo]\nbuiltin = \"echo\"\n";
/// An OpenAPI document with one operation.
pub(crate) const SHOP: &str = r#"{"openapi": "3.1.0", "info": {"title": "Shop", "version": "1"},
    "servers": [{"url": "http://127.0.0.1:9"}],
    "paths": {"/items": {"get": {"operationId": "list", "summary": "Lists all items",
        "responses": {"200": {"description": "all"}}}}}}"#;

pub(crate) async fn within<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(TIMEOUT, future).await.expect("timed out")
}

/// Waits until the condition holds.
pub(crate) async fn eventually(mut condition: impl AsyncFnMut() -> bool) {
    within(async {
        while !condition().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
}

/// A command of the program in this folder, without the variables of the test's environment.
pub(crate) fn a2ad(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = process::command(PROGRAM);
    command.current_dir(folder).args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// A script of a shell in this folder, in which `$0` is the program.
pub(crate) fn shell(shell: &str, folder: &Path, script: &str) -> Command {
    let mut command = process::command(shell);
    command.args(["-c", script, PROGRAM]).current_dir(folder).env_remove("A2AD_URL");
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// How a command has ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

pub(crate) async fn finish(mut command: Command) -> Ended {
    let output = within(command.output()).await.unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Ended { code: output.status.code().unwrap(), out: text(output.stdout), err: text(output.stderr) }
}

pub(crate) async fn run(folder: &Path, arguments: &[&str]) -> Ended {
    finish(a2ad(folder, arguments)).await
}

impl Ended {
    /// Checks the exit code, and that stderr has these texts.
    #[track_caller]
    pub(crate) fn ends(&self, code: i32, texts: &[&str]) {
        assert_eq!(self.code, code, "{self:?}");
        for text in texts {
            assert!(self.err.contains(text), "{text:?} is not in {self:?}");
        }
    }

    /// The same of a command that prints nothing on stdout.
    #[track_caller]
    pub(crate) fn fails(&self, code: i32, texts: &[&str]) {
        self.ends(code, texts);
        assert_eq!(self.out, "", "{self:?}");
    }

    /// The same, with this text on stdout.
    #[track_caller]
    pub(crate) fn prints(&self, code: i32, out: &str, text: &str) {
        self.ends(code, &[text]);
        assert_eq!(self.out, out, "{self:?}");
    }

    /// The output of a command that succeeds, with this text on stderr.
    #[track_caller]
    pub(crate) fn succeeds(&self, text: &str) -> &str {
        self.ends(0, &[text]);
        &self.out
    }

    /// The document that a command prints.
    #[track_caller]
    pub(crate) fn document(&self) -> Value {
        self.succeeds("");
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The document on stderr, which is one line; nothing is on stdout.
    #[track_caller]
    pub(crate) fn error(&self) -> Json {
        assert_eq!((self.err.lines().count(), self.out.as_str()), (1, ""), "{self:?}");
        Json::parse(self.err.trim()).unwrap_or_else(|problem| panic!("{problem}: {self:?}"))
    }

    /// The id of the task that stderr names.
    #[track_caller]
    pub(crate) fn task(&self) -> String {
        let (_, rest) = self.err.split_once("task ").unwrap_or_else(|| panic!("{self:?}"));
        rest.split_whitespace().next().unwrap().to_owned()
    }
}

/// A member of a document, as text; empty if there is none.
pub(crate) fn member(document: &Json, path: &str) -> String {
    let found = path.split('.').try_fold(document.clone(), |value, name| {
        let object = Node::new(value.as_raw(), &Field::Root).object().ok()?;
        object.maybe(name, |node| node.any()).ok()?
    });
    found.map(|value| value.as_str().trim_matches('"').to_owned()).unwrap_or_default()
}

/// A folder with this configuration.
pub(crate) fn configured(config: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a2ad.toml"), config).unwrap();
    folder
}

/// A server in this folder, with further arguments.
pub(crate) async fn serve_with(folder: &Path, arguments: &[&str]) -> Server {
    let command = a2ad(folder, &[&["serve", "--listen", ANY_PORT], arguments].concat());
    Server::start_command(command).await.unwrap()
}

pub(crate) async fn serve(folder: &Path) -> Server {
    serve_with(folder, &[]).await
}

/// Stops a server, which must succeed.
pub(crate) async fn stop(server: Server) {
    assert!(server.terminate(TIMEOUT).await.unwrap().success());
}

/// A server in a folder of its own.
pub(crate) struct Running {
    pub(crate) folder: TempDir,
    pub(crate) server: Server,
}

impl Running {
    /// The demo.
    pub(crate) async fn start() -> Self {
        Self::start_with(tempfile::tempdir().unwrap(), ANY_PORT, &[]).await
    }

    pub(crate) async fn configured(config: &str) -> Self {
        Self::start_with(configured(config), ANY_PORT, &[]).await
    }

    pub(crate) async fn start_with(folder: TempDir, listen: &str, variables: &[(&str, &str)]) -> Self {
        let mut command = a2ad(folder.path(), &["serve", "--listen", listen]);
        command.envs(variables.iter().copied());
        Self { server: Server::start_command(command).await.unwrap(), folder }
    }

    /// Kills it with SIGKILL and restarts it at the same address.
    pub(crate) async fn kill_and_restart(self) -> Self {
        let address = self.address();
        self.server.kill().await.unwrap();
        Self::start_with(self.folder, &address, &[]).await
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn address(&self) -> String {
        self.server.address.to_string()
    }

    pub(crate) fn url(&self) -> String {
        self.server.url()
    }

    pub(crate) fn pid(&self) -> u32 {
        self.server.id().unwrap()
    }

    /// A command that calls it.
    pub(crate) fn client(&self, arguments: &[&str]) -> Command {
        let mut command = a2ad(self.path(), arguments);
        command.env("A2AD_URL", self.url());
        command
    }

    pub(crate) async fn run(&self, arguments: &[&str]) -> Ended {
        finish(self.client(arguments)).await
    }

    /// The log up to the end of the process.
    pub(crate) async fn log(mut self) -> String {
        self.server.wait(TIMEOUT).await.unwrap().expect("timed out");
        self.server.log()
    }
}

pub(crate) fn client(server: &Server, agent: &str) -> Client {
    Client::connect(&format!("{}/a2a/{agent}", server.url())).unwrap()
}

pub(crate) fn request(text: &str, return_immediately: bool) -> SendMessage {
    let message = Message::new("m", Role::User, vec![Part::text(text)]);
    SendMessage { return_immediately, ..SendMessage::new(message) }
}

/// Sends a message and returns its task.
pub(crate) async fn send(client: &Client, request: SendMessage) -> Task {
    match within(client.send(request)).await.unwrap() {
        SendReply::Task(task) => task,
        other => panic!("{other:?}"),
    }
}

/// Sends a text and does not wait for the end of its task.
pub(crate) async fn begin(client: &Client, text: &str) -> Task {
    send(client, request(text, true)).await
}

/// The task when it satisfies the condition.
pub(crate) async fn until(client: &Client, id: &TaskId, condition: impl Fn(&Task) -> bool) -> Task {
    within(async {
        loop {
            let task = client.get_task(id).await.unwrap();
            if condition(&task) {
                return task;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await
}

pub(crate) async fn ended(client: &Client, id: &TaskId) -> Task {
    until(client, id, |task| task.status.state.is_terminal()).await
}

/// The texts of a task's artifacts, one for each part.
pub(crate) fn texts(task: &Task) -> Vec<&str> {
    let text = |part| match part {
        &Part { content: Content::Text(ref text), .. } => text.as_str(),
        other => panic!("{other:?}"),
    };
    task.artifacts.iter().flat_map(|artifact| &artifact.parts).map(text).collect()
}

pub(crate) fn status_text(task: &Task) -> String {
    task.status.message.as_ref().unwrap().text()
}

/// What the slow writer writes.
pub(crate) fn sections(count: usize) -> Vec<String> {
    (1..=count).map(|number| format!("Section {number} of {count}: more about the sea.\n")).collect()
}

/// The names of the files in a folder, sorted.
pub(crate) fn files(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// A document as a PEM text.
pub(crate) fn pem(label: &str, der: &[u8]) -> String {
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", BASE64_STANDARD.encode(der))
}

/// A new terminal: the end of its user, and that of a program.
pub(crate) fn terminal() -> (File, File) {
    let terminal = pty::openpt(pty::OpenptFlags::RDWR | pty::OpenptFlags::NOCTTY).unwrap();
    pty::grantpt(&terminal).unwrap();
    pty::unlockpt(&terminal).unwrap();
    let name = pty::ptsname(&terminal, Vec::new()).unwrap();
    let other_end = File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
    (File::from(terminal), other_end)
}
