//! A server whose runtime hangs is ended by its watchdog.

use std::{
    io::{BufRead as _, BufReader},
    process::{Command, Stdio},
    thread,
    time::Duration,
};

use a2ad::{Card, Server, agents::Echo};

/// Set in the process that hangs.
const HANGS: &str = "A2AD_TEST_HANGS";

/// Not a test: what the test below starts. Its runtime has one thread, and that hangs.
#[test]
fn hanging_server() {
    if std::env::var_os(HANGS).is_none() {
        return;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let server = Server::builder().agent(Card::new("echo"), Echo);
    runtime.block_on(async move {
        let serving = server.serve("127.0.0.1:0");
        #[expect(clippy::disallowed_methods, reason = "it must run on the thread of the runtime")]
        let hang = tokio::spawn(async {
            tokio::time::sleep(Duration::from_millis(500)).await;
            println!("hangs");
            thread::park_timeout(Duration::from_secs(120));
        });
        let _ = tokio::join!(serving, hang);
    });
}

#[test]
fn second_signal_ends_a_process_whose_runtime_hangs() {
    let mut server = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "watchdog::hanging_server", "--nocapture"])
        .env(HANGS, "1")
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(server.stdout.take().unwrap()).lines().map_while(|line| line.ok());
    assert!(lines.any(|line| line.contains("hangs")));
    let id = server.id().to_string();
    let signal = |wait| {
        assert!(Command::new("kill").arg(&id).status().unwrap().success());
        thread::park_timeout(Duration::from_millis(wait));
    };
    signal(1_000);
    assert!(server.try_wait().unwrap().is_none(), "it has time for a graceful shutdown");
    signal(0);
    let ended = (0..100).find_map(|_| {
        thread::park_timeout(Duration::from_millis(100));
        server.try_wait().unwrap()
    });
    let _ = server.kill();
    assert_eq!(ended.expect("it has not ended").code(), Some(75));
}
