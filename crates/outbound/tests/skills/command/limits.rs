//! Timeouts, output limits, and the end of a command with everything it has started.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use a2ad_outbound::backends::command::CommandTool;
use protocol::{Part, TaskState};

use super::common::{TestServer, message, run, shell, text_of, with_timeout};

/// How long a canceled call may still have processes.
const STOP_TIME: Duration = Duration::from_secs(6);

#[tokio::test]
async fn command_is_ended_after_its_timeout() {
    let script = "echo 'waiting for the lock' >&2; sleep 60 & sleep 60";
    let tool = CommandTool { timeout: Duration::from_millis(500), ..shell(script) };
    let lines = run(tool, "x").await;
    assert_eq!(
        lines.last().unwrap(),
        "failed: the command took longer than 0.5 s and was ended: waiting for the lock"
    );
}

#[tokio::test]
async fn command_with_too_much_output_is_ended() {
    let tool = CommandTool { max_output: 1 << 20, ..shell("yes") };
    let lines = run(tool, "x").await;
    assert_eq!(
        lines.last().unwrap(),
        "failed: the command wrote more than 1048576 bytes of output and was ended"
    );
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn memory_of_a_command_is_limited() {
    let script = "import time; time.sleep(0.2); bytearray(200 << 20)";
    let mut tool = CommandTool { memory: Some(100 << 20), ..shell("") };
    tool.argv = ["python3", "-c", script].map(Into::into).to_vec();
    let lines = run(tool, "x").await;
    assert!(lines.last().unwrap().ends_with("MemoryError"), "{lines:?}");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn canceled_command_that_ignores_sigterm_is_killed_with_its_children() {
    let folder = tempfile::tempdir().unwrap();
    let pids = folder.path().join("pids");
    let script = "trap '' TERM; sh -c 'trap \"\" TERM; echo $$ >>\"$PIDS\"; sleep 60 & wait' &
        echo $$ >>\"$PIDS\"; while :; do sleep 0.1; done";
    let mut tool = shell(script);
    tool.env.insert("PIDS".into(), pids.to_str().unwrap().into());
    let server = TestServer::start(folder.path(), tool);
    let task = server.send_immediate(message(vec![Part::text("x")])).await;
    let running = with_timeout(async {
        loop {
            let text = std::fs::read_to_string(&pids).unwrap_or_default();
            if text.lines().count() == 2 {
                return text;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    let begun = Instant::now();
    assert_eq!(server.cancel(&task.id).await.status.state, TaskState::Canceled);
    for pid in running.lines() {
        while Path::new("/proc").join(pid).exists() {
            assert!(begun.elapsed() < STOP_TIME, "process {pid} is still there");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn child_of_a_command_ends_with_it() {
    // The child would keep the output open.
    let text = text_of(&with_timeout(run(shell("sleep 60 & echo $!"), "x")).await);
    let pid = text.trim();
    assert!(!Path::new("/proc").join(pid).join("exe").exists(), "process {pid} is still there");
}
