//! `a2ad backup` beside a running server, and `a2ad restore`.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use testkit::{
    json::{artifact_text, state},
    process::Server,
    rpc::{Caller, message},
};
use tokio::task::JoinSet;

use super::common::{Ended, a2ad, configured, files, finish, run, serve_with, stop, within};

const CLIENTS: usize = 16;
/// How many tasks are acknowledged before the backup begins.
const TASKS: usize = 600;

async fn serve(folder: &Path, store: &str) -> Server {
    serve_with(folder, &["--store", store]).await
}

#[track_caller]
fn succeeds(ended: Ended) -> String {
    assert_eq!((ended.code, ended.err.as_str()), (0, ""), "{ended:?}");
    ended.out
}

#[track_caller]
fn fails(ended: &Ended, expected: &[&str]) {
    ended.fails(1, expected);
}

/// Sends a message to an agent; returns the id of its task.
async fn send(caller: &mut Caller, agent: &str, text: &str, at_once: bool) -> String {
    let id = uuid::Uuid::new_v4();
    let reply = caller.call(agent, "SendMessage", message(id, text, at_once)).await.unwrap();
    reply["task"]["id"].as_str().unwrap().to_owned()
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// Clients that send without pause, and what was acknowledged to them: ids and texts.
struct Load {
    acknowledged: Arc<Mutex<Vec<(String, String)>>>,
    stop: Arc<AtomicBool>,
    clients: JoinSet<()>,
}

impl Load {
    fn start(server: &Server) -> Self {
        let (acknowledged, stop) = (Arc::<Mutex<Vec<_>>>::default(), Arc::new(AtomicBool::new(false)));
        let mut clients = JoinSet::new();
        for client in 0..CLIENTS {
            let (acknowledged, stop) = (Arc::clone(&acknowledged), Arc::clone(&stop));
            let mut caller = Caller::new(server.address);
            clients.spawn(async move {
                for number in 0.. {
                    let text = format!("message {number} of client {client}");
                    let id = send(&mut caller, "echo", &text, false).await;
                    acknowledged.lock().unwrap().push((id, text));
                    if stop.load(Ordering::Relaxed) {
                        return;
                    }
                }
            });
        }
        Self { acknowledged, stop, clients }
    }

    fn acknowledged(&self) -> Vec<(String, String)> {
        self.acknowledged.lock().unwrap().clone()
    }

    async fn wait_for(&self, count: usize) {
        while self.acknowledged.lock().unwrap().len() < count {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    async fn end(mut self) -> Vec<(String, String)> {
        self.stop.store(true, Ordering::Relaxed);
        while let Some(client) = self.clients.join_next().await {
            client.unwrap();
        }
        self.acknowledged()
    }
}

#[tokio::test]
async fn a_backup_under_load_has_every_task_acknowledged_before_it() {
    let (folder, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let server = serve(folder.path(), "tasks.db").await;
    let mut caller = Caller::new(server.address);
    let slow = send(&mut caller, "slow-writer", "sections=4 delay=400ms", true).await;
    let load = Load::start(&server);
    load.wait_for(TASKS).await;
    let before = load.acknowledged();
    let backup = elsewhere.path().join("tasks.backup");
    let shown =
        run(folder.path(), &["backup", backup.to_str().unwrap(), "--store", "tasks.db", "--json"]).await;
    let shown = succeeds(shown);
    let later = send(&mut caller, "echo", "later", false).await;
    let all = load.end().await;
    let document: Value = serde_json::from_str(&shown).unwrap();
    let tasks = usize::try_from(document["tasks"].as_u64().unwrap()).unwrap();
    assert!(tasks > before.len() && tasks < all.len() + 2, "{} < {tasks} < {}", before.len(), all.len());
    assert_eq!(document["bytes"], fs::metadata(&backup).unwrap().len());
    assert_eq!(files(elsewhere.path()), ["tasks.backup", "tasks.backup.keys"]);
    assert_eq!(mode(&backup), 0o600);

    succeeds(run(elsewhere.path(), &["restore", "tasks.backup", "--store", "new.db"]).await);
    assert_eq!(files(elsewhere.path()), ["new.db", "new.db.keys", "tasks.backup", "tasks.backup.keys"]);
    let restored = serve(elsewhere.path(), "new.db").await;
    let mut reader = Caller::new(restored.address);
    for (id, text) in &before {
        let task = reader.get("echo", id).await.unwrap().unwrap_or_else(|| panic!("{id} is missing"));
        assert_eq!((state(&task), artifact_text(&task).as_str()), ("TASK_STATE_COMPLETED", text.as_str()));
    }
    // Later tasks are there whole, or not at all.
    for (id, text) in &all[before.len()..] {
        if let Some(task) = reader.get("echo", id).await.unwrap() {
            assert_eq!(
                (state(&task), artifact_text(&task).as_str()),
                ("TASK_STATE_COMPLETED", text.as_str())
            );
        }
    }
    assert!(reader.get("echo", &later).await.unwrap().is_none(), "sent after the backup");
    let written = async {
        loop {
            let task = reader.get("slow-writer", &slow).await.unwrap().unwrap();
            if state(&task) == "TASK_STATE_COMPLETED" {
                return artifact_text(&task);
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let text = within(written).await;
    assert_eq!(text.lines().filter(|line| line.starts_with("Section ")).count(), 4, "{text}");
    // The server that was copied is not affected.
    assert!(caller.get("echo", &later).await.unwrap().is_some());
}

#[tokio::test]
async fn a_backup_is_made_of_running_killed_and_stopped_stores() {
    let folder = tempfile::tempdir().unwrap();
    let server = serve(folder.path(), "a.db").await;
    let id = send(&mut Caller::new(server.address), "echo", "kept", false).await;
    succeeds(run(folder.path(), &["backup", "running.db", "--store", "a.db"]).await);
    server.kill().await.unwrap();
    let killed = files(folder.path());
    succeeds(run(folder.path(), &["backup", "killed.db", "--store", "a.db"]).await);
    // The log of the killed server stays beside its store.
    assert!(killed.iter().any(|name| name == "a.db-wal"), "{killed:?}");
    assert!(killed.iter().all(|name| files(folder.path()).contains(name)), "{killed:?}");
    let server = serve(folder.path(), "a.db").await;
    stop(server).await;
    succeeds(run(folder.path(), &["backup", "stopped.db", "--store", "a.db"]).await);
    let stores = ["a.db", "killed.db", "running.db", "stopped.db"];
    let mut expected: Vec<String> =
        stores.iter().flat_map(|name| [(*name).into(), format!("{name}.keys")]).collect();
    expected.insert(1, "a.db.audit.jsonl".into());
    assert_eq!(files(folder.path()), expected);
    // A backup is a store, also without `restore`.
    for name in ["running.db", "killed.db", "stopped.db"] {
        assert_eq!(
            succeeds(run(folder.path(), &["check", "--store", name]).await),
            format!("the store {name} is intact\n")
        );
        let server = serve(folder.path(), name).await;
        let task = Caller::new(server.address).get("echo", &id).await.unwrap().unwrap();
        assert_eq!(artifact_text(&task), "kept", "{name}");
    }
}

#[tokio::test]
async fn key_files_are_copied_with_the_store_and_stay_private() {
    let folder = tempfile::tempdir().unwrap();
    stop(serve(folder.path(), "a.db").await).await;
    let admin = fs::read(folder.path().join("a.db.keys/admin")).unwrap();
    fs::write(folder.path().join("a.db.keys/seal"), "secret").unwrap();
    // A key that a server is making.
    fs::write(folder.path().join("a.db.keys/.push.unfinished"), "-----BEGIN").unwrap();
    let shown = succeeds(run(folder.path(), &["backup", "b.db", "--store", "a.db"]).await);
    assert!(shown.starts_with("backed up 0 tasks and 2 key files from a.db to b.db ("), "{shown}");
    let shown = run(folder.path(), &["restore", "b.db", "--store", "c.db", "--json"]).await.document();
    assert_eq!(
        ["from", "to", "keyFiles"].map(|name| &shown[name]),
        [&json!("b.db"), &json!("c.db"), &json!(2)]
    );
    for keys in ["b.db.keys", "c.db.keys"] {
        let keys = folder.path().join(keys);
        assert_eq!((mode(&keys), mode(&keys.join("seal"))), (0o700, 0o600));
        assert_eq!(fs::read(keys.join("seal")).unwrap(), b"secret");
        assert_eq!(
            (mode(&keys.join("admin")), fs::read(keys.join("admin")).unwrap()),
            (0o600, admin.clone())
        );
    }
    // What is in the way is not overwritten, and nothing is left of the attempt.
    fs::remove_file(folder.path().join("b.db")).unwrap();
    let before = files(folder.path());
    fails(&run(folder.path(), &["backup", "b.db", "--store", "a.db"]).await, &["b.db.keys exists"]);
    fs::create_dir(folder.path().join("a.db.keys/more")).unwrap();
    fails(
        &run(folder.path(), &["backup", "d.db", "--store", "a.db"]).await,
        &["a.db.keys/more", "expected a file"],
    );
    assert_eq!(files(folder.path()), before);
}

#[tokio::test]
async fn nothing_is_overwritten_and_no_other_file_is_taken_for_a_store() {
    let folder = tempfile::tempdir().unwrap();
    let server = serve(folder.path(), "a.db").await;
    let pid = format!("PID {}", server.id().unwrap());
    let notes = rusqlite::Connection::open(folder.path().join("notes.db")).unwrap();
    notes.execute_batch("CREATE TABLE notes (text)").unwrap();
    drop(notes);
    for name in ["taken.db", "log.db-wal", "letter.txt"] {
        fs::write(folder.path().join(name), "a text, not a database").unwrap();
    }
    succeeds(run(folder.path(), &["backup", "b.db", "--store", "a.db"]).await);
    let before = files(folder.path());
    let backup = async |to: &str, store: &str| run(folder.path(), &["backup", to, "--store", store]).await;
    fails(&backup("taken.db", "a.db").await, &["taken.db exists"]);
    fails(&backup("a.db", "a.db").await, &["a.db exists"]);
    fails(&backup("log.db", "a.db").await, &["log.db-wal exists"]);
    fails(&backup("missing/b.db", "a.db").await, &["missing/b.db", "No such file"]);
    fails(&backup("missing/", "a.db").await, &["missing/", "there is no such directory"]);
    fails(&backup("c.db", "missing.db").await, &["missing.db", "there is no such file"]);
    fails(&backup("c.db", "notes.db").await, &["notes.db is a database of another program"]);
    fails(&backup("c.db", "letter.txt").await, &["letter.txt", "not a database"]);
    let restore =
        async |from: &str, store: &str| run(folder.path(), &["restore", from, "--store", store]).await;
    fails(&restore("b.db", "a.db").await, &["a.db is in use by another a2ad", &pid, "serving"]);
    fails(&restore("b.db", "taken.db").await, &["taken.db exists"]);
    fails(&restore("b.db", "log.db").await, &["log.db-wal exists"]);
    fails(&restore("missing.db", "c.db").await, &["missing.db", "there is no such file"]);
    fails(&restore("notes.db", "c.db").await, &["notes.db is a database of another program"]);
    fails(&restore("letter.txt", "c.db").await, &["letter.txt", "not a database"]);
    assert_eq!(files(folder.path()), before, "nothing is left of a refused copy");
    let taken = run(folder.path(), &["backup", "taken.db", "--store", "a.db", "--json"]).await;
    assert!(taken.code == 1 && taken.err.starts_with(r#"{"error":{"exitCode":1,"message":""#), "{taken:?}");
    // A damaged store is not copied.
    stop(server).await;
    let mut bytes = fs::read(folder.path().join("a.db")).unwrap();
    // The schema is in the first page and in the last ones.
    let half = bytes.len() / 2;
    bytes[8_192 * 3..half].fill(7);
    fs::write(folder.path().join("a.db"), bytes).unwrap();
    fails(&backup("c.db", "a.db").await, &["a.db is damaged", "a2ad check --store a.db"]);
    assert!(!folder.path().join("c.db").exists());
}

#[tokio::test]
async fn a_store_is_not_copied_through_a_hard_link() {
    let folder = tempfile::tempdir().unwrap();
    let server = serve(folder.path(), "a.db").await;
    send(&mut Caller::new(server.address), "echo", "kept", false).await;
    fs::hard_link(folder.path().join("a.db"), folder.path().join("link.db")).unwrap();
    for name in ["link.db", "a.db"] {
        let refused = run(folder.path(), &["backup", "b.db", "--store", name]).await;
        fails(&refused, &[name, "has 2 names (hard links)"]);
    }
    fs::remove_file(folder.path().join("link.db")).unwrap();
    succeeds(run(folder.path(), &["backup", "b.db", "--store", "a.db"]).await);
    // A backup may have several names, as in directories of rotated backups.
    fs::hard_link(folder.path().join("b.db"), folder.path().join("link.db")).unwrap();
    let shown = succeeds(run(folder.path(), &["restore", "link.db", "--store", "c.db"]).await);
    assert!(shown.starts_with("restored 1 task from link.db"), "{shown}");
}

#[tokio::test]
async fn the_store_is_found_as_by_the_server() {
    let folder = configured("[store]\nurl = \"named.db\"\n");
    fs::write(folder.path().join("other.toml"), "[store]\nurl = \"other.db\"\n").unwrap();
    fs::create_dir(folder.path().join("backups")).unwrap();
    for store in ["named.db", "other.db", "variable.db"] {
        stop(serve(folder.path(), store).await).await;
    }
    for (name, arguments, variable) in [
        ("named", &["backup", "backups"][..], None),
        ("other", &["backup", "backups", "--config", "other.toml"], None),
        ("variable", &["backup", "backups"], Some("variable.db")),
    ] {
        let mut command = a2ad(folder.path(), arguments);
        command.envs(variable.map(|store| ("A2AD_STORE", store)));
        let shown = succeeds(finish(command).await);
        let start = format!("backed up 0 tasks and 2 key files from {name}.db to backups/{name}-2");
        assert!(shown.starts_with(&start) && shown.contains("Z.db ("), "{shown}");
    }
    assert_eq!(files(&folder.path().join("backups")).len(), 6);
    run(folder.path(), &["backup", "backups", "--config", "none.toml"]).await.ends(2, &[]);
}
