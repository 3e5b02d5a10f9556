//! Processes of command skills, as the system's process list shows them: nothing that a command has started survives its
//! call or the server, whatever it does.

use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

use client::Client;
use protocol::{Task, TaskId, TaskState};
use rustix::process::{Pid, kill_process};
use testkit::process::{Server, Signal};

use super::common::{ANY_PORT, TIMEOUT, a2ad, begin, client, configured, ended, status_text, texts, until};

/// How long processes may exist after their end was requested.
const STOP_TIME: Duration = Duration::from_secs(6);
/// The supervisor, the command, and its three descendants.
const TREE_SIZE: usize = 5;

/// Ignores SIGTERM, and starts a child, a child in a session of its own, and one whose parent has ended, which do too.
const TREE: &str = r"
import os, signal, time

signal.signal(signal.SIGTERM, signal.SIG_IGN)
started, report = os.pipe()

def start(new_session=False, orphan=False):
    if os.fork() == 0:
        if new_session:
            os.setsid()
        if orphan and os.fork():
            os._exit(0)
        os.write(report, b'.')
        while True:
            time.sleep(60)

start()
start(new_session=True)
start(new_session=True, orphan=True)
for _ in range(3):
    os.read(started, 1)
print('started', flush=True)
";
const AND_STAY: &str = "while True: time.sleep(60)\n";

/// A server with one skill that runs a Python script. Its processes have the variable `MARK`.
struct Setup {
    folder: tempfile::TempDir,
    server: Server,
    client: Client,
}

impl Setup {
    /// `settings` are further keys of the command, `skill` further keys of the skill.
    async fn start(script: &str, settings: &str, skill: &str) -> Self {
        let folder = configured("");
        fs::write(folder.path().join("script.py"), script).unwrap();
        let mark = folder.path().to_str().unwrap();
        let config = format!(
            "[skills.tool]\n{skill}\ncommand = {{ argv = [\"python3\", \"script.py\"], env = {{ MARK = {mark:?} }}{settings} }}\n"
        );
        fs::write(folder.path().join("a2ad.toml"), config).unwrap();
        let (server, client) = serve(folder.path()).await;
        Self { folder, server, client }
    }

    /// Starts the task and waits until its script has started everything.
    async fn start_tree(&self) -> TaskId {
        let id = begin(&self.client, "x").await.id;
        until(&self.client, &id, |task| !task.artifacts.is_empty()).await;
        assert_eq!(marked(self.folder.path()).len(), TREE_SIZE);
        id
    }

    /// Waits until no process of the command is left.
    async fn assert_ended(&self, begun: Instant) {
        loop {
            let left = marked(self.folder.path());
            if left.is_empty() {
                return;
            }
            assert!(begun.elapsed() < STOP_TIME, "still there after {STOP_TIME:?}: {left:?}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

async fn serve(folder: &Path) -> (Server, Client) {
    let mut command = a2ad(folder, &["serve", "--listen", ANY_PORT]);
    let server = Server::start_command({
        command.env("SECRET_OF_THE_SERVER", "x");
        command
    })
    .await
    .unwrap();
    let client = client(&server, "main");
    (server, client)
}

/// The result as text.
fn result(task: &Task) -> String {
    texts(task).concat()
}

/// A process with the variable `MARK` of a test: its id and its arguments.
fn marked(folder: &Path) -> Vec<(i32, String)> {
    let mark = format!("MARK={}", folder.display());
    let pids =
        fs::read_dir("/proc").unwrap().filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok());
    let find = |pid: i32| {
        // A process that has ended has no variables.
        let variables = fs::read(format!("/proc/{pid}/environ")).ok()?;
        variables.split(|byte| *byte == 0).find(|variable| *variable == mark.as_bytes())?;
        let arguments =
            String::from_utf8_lossy(&fs::read(format!("/proc/{pid}/cmdline")).ok()?).replace('\0', " ");
        Some((pid, arguments))
    };
    pids.filter_map(find).collect()
}

/// The children of a process, also those that have ended and are not reaped.
fn children(pid: u32) -> Vec<String> {
    fs::read_dir(format!("/proc/{pid}/task"))
        .unwrap()
        .flat_map(|thread| {
            let children = fs::read_to_string(thread.unwrap().path().join("children")).unwrap_or_default();
            children.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
        })
        .collect()
}

#[tokio::test]
async fn nothing_survives_a_cancel_and_no_zombie_is_left() {
    let setup = Setup::start(&format!("{TREE}{AND_STAY}"), "", "").await;
    let id = setup.start_tree().await;
    let begun = Instant::now();
    let canceled = setup.client.cancel(id).await.unwrap();
    assert_eq!(canceled.status.state, TaskState::Canceled);
    setup.assert_ended(begun).await;
    let server = setup.server.id().unwrap();
    while !children(server).is_empty() {
        assert!(begun.elapsed() < STOP_TIME, "{:?}", children(server));
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn nothing_survives_the_timeout_of_a_command() {
    let setup = Setup::start(&format!("{TREE}{AND_STAY}"), ", timeout = \"4s\"", "").await;
    let id = setup.start_tree().await;
    let task = ended(&setup.client, &id).await;
    // It is recorded when everything has ended.
    assert_eq!(marked(setup.folder.path()), []);
    assert_eq!(status_text(&task), "the command took longer than 4 s and was ended");
}

#[tokio::test]
async fn nothing_survives_the_run_time_of_a_skill() {
    let setup = Setup::start(&format!("{TREE}{AND_STAY}"), "", "run_time = \"4s\"").await;
    let id = setup.start_tree().await;
    let task = ended(&setup.client, &id).await;
    setup.assert_ended(Instant::now()).await;
    assert_eq!(status_text(&task), "the turn took longer than 4s");
}

#[tokio::test]
async fn nothing_survives_the_end_of_the_command_itself() {
    let setup = Setup::start(TREE, "", "").await;
    let id = begin(&setup.client, "x").await.id;
    let task = ended(&setup.client, &id).await;
    assert_eq!(marked(setup.folder.path()), []);
    assert_eq!((task.status.state, result(&task).as_str()), (TaskState::Completed, "started\n"));
}

#[tokio::test]
async fn nothing_survives_kill_9_of_the_server() {
    let setup = Setup::start(&format!("{TREE}{AND_STAY}"), "", "").await;
    setup.start_tree().await;
    let begun = Instant::now();
    setup.server.signal(Signal::KILL).unwrap();
    setup.assert_ended(begun).await;
}

#[tokio::test]
async fn nothing_survives_a_graceful_shutdown() {
    let mut setup = Setup::start(&format!("{TREE}{AND_STAY}"), "", "").await;
    setup.start_tree().await;
    setup.server.signal(Signal::TERM).unwrap();
    let status = setup.server.wait(TIMEOUT).await.unwrap().expect("the server did not end");
    assert_eq!(marked(setup.folder.path()), []);
    assert!(status.success(), "{status}");
}

#[tokio::test]
async fn nothing_survives_a_forced_shutdown() {
    let mut setup = Setup::start(&format!("{TREE}{AND_STAY}"), "", "").await;
    setup.start_tree().await;
    let begun = Instant::now();
    // A second signal shortly after the first counts as the same.
    while setup.server.wait(Duration::from_millis(300)).await.unwrap().is_none() {
        setup.server.signal(Signal::TERM).unwrap();
    }
    setup.assert_ended(begun).await;
}

/// Whether a process may use huge pages; `None` where the kernel has none.
fn may_use_huge_pages(status: &str) -> Option<bool> {
    let (_, value) = status.lines().find_map(|line| line.split_once("THP_enabled:"))?;
    Some(value.trim() == "1")
}

#[tokio::test]
async fn a_command_may_use_huge_pages_although_the_server_does_not() {
    let setup = Setup::start("print(open('/proc/self/status').read())\n", "", "").await;
    let id = begin(&setup.client, "x").await.id;
    let of_command = may_use_huge_pages(&result(&ended(&setup.client, &id).await));
    let status = |pid: u32| fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let of_this_process = may_use_huge_pages(&status(std::process::id()));
    assert_eq!(of_command, of_this_process);
    assert_eq!(may_use_huge_pages(&status(setup.server.id().unwrap())), of_this_process.map(|_| false));
}

/// A killed supervisor cannot end those who have left the process group of the command.
#[tokio::test]
async fn killed_supervisor_fails_the_task_and_ends_the_process_group() {
    let script = "import os, time\nos.fork()\nprint('started', flush=True)\ntime.sleep(60)\n";
    let setup = Setup::start(script, "", "").await;
    let id = begin(&setup.client, "x").await.id;
    until(&setup.client, &id, |task| result(task).matches("started").count() == 2).await;
    let processes = marked(setup.folder.path());
    let (supervisor, _) = processes.iter().find(|(_, arguments)| arguments.contains(" supervise ")).unwrap();
    assert_eq!(processes.len(), 3);
    let begun = Instant::now();
    kill_process(Pid::from_raw(*supervisor).unwrap(), Signal::KILL).unwrap();
    setup.assert_ended(begun).await;
    let task = ended(&setup.client, &id).await;
    assert_eq!(status_text(&task), "the command was lost; the server's log has the reason");
    setup.server.wait_for_log("the supervisor of the command was ended by signal 9").await.unwrap();
}

/// Of the server, a command gets no open file, no signal settings, no secret and no name.
#[tokio::test]
async fn command_inherits_nothing_of_the_server() {
    let script = "import os\nprint(dict(os.environ))\nfor fd in os.listdir('/proc/self/fd'):\n\
        \x20   print('fd', fd, os.readlink(f'/proc/self/fd/{fd}') if os.path.exists(f'/proc/self/fd/{fd}') else '')\n\
        print(open('/proc/self/status').read())\nprint('parent', open(f'/proc/{os.getppid()}/comm').read())\n";
    let setup = Setup::start(script, "", "").await;
    let id = begin(&setup.client, "x").await.id;
    let task = ended(&setup.client, &id).await;
    assert_eq!(task.status.state, TaskState::Completed, "{task:?}");
    let text = result(&task);
    assert!(!text.contains("SECRET_OF_THE_SERVER"), "{text}");
    let files: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("fd ")).collect();
    let store = setup.folder.path().to_str().unwrap();
    let is_of_server =
        |file: &&&str| file.contains("socket:") || file.contains("anon_inode") || file.contains(store);
    assert!(files.len() >= 3 && files.iter().find(is_of_server).is_none(), "{files:?}");
    let signals = |name: &str| {
        let set = text.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim();
        u64::from_str_radix(set, 16).unwrap()
    };
    assert_eq!(signals("SigBlk:"), 0);
    assert!(text.contains("parent supervise"), "{text}");
}

#[tokio::test]
async fn memory_is_limited_for_the_command_and_what_it_starts() {
    let script = "import subprocess\nsubprocess.run(['sh', '-c', 'ulimit -Hd; ulimit -Sd'])\n\
        try:\n    bytearray(200 << 20)\nexcept MemoryError:\n    print('refused')\n";
    let setup = Setup::start(script, ", memory = \"100MiB\"", "").await;
    let id = begin(&setup.client, "x").await.id;
    let task = ended(&setup.client, &id).await;
    assert_eq!(task.status.state, TaskState::Completed, "{task:?}");
    assert_eq!(result(&task), "102400\n102400\nrefused\n");
}

/// Files with what a caller has sent are removed even if the server cannot do it.
#[tokio::test]
async fn saved_state_is_removed_after_kill_9_of_the_server() {
    let script = "import json, os, sys, time\nsaved = os.environ.get('A2AD_CALL_SAVED')\nif not saved:\n\
        \x20   print(json.dumps({'type': 'checkpoint', 'data': 1}), flush=True)\n    sys.exit(75)\n\
        print(json.dumps({'type': 'artifact', 'text': saved}), flush=True)\ntime.sleep(60)\n";
    let setup = Setup::start(script, ", protocol = \"jsonl\"", "").await;
    let id = begin(&setup.client, "x").await.id;
    let saved = result(&until(&setup.client, &id, |task| !task.artifacts.is_empty()).await);
    assert_eq!(fs::read_to_string(&saved).unwrap(), "1");
    let begun = Instant::now();
    setup.server.signal(Signal::KILL).unwrap();
    setup.assert_ended(begun).await;
    assert!(!Path::new(&saved).parent().unwrap().exists(), "{saved} was not removed");
}
