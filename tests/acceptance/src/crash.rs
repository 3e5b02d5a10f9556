//! Crash recovery: a server is killed (SIGKILL) while one task runs, one is queued and one has completed, and is
//! then restarted with the same store.

use super::{
    CheckError,
    fixture::start_server,
    http::Response,
    mismatch,
    server_process::{Plan, ServerProcess},
    test_client::{TestClient, has_begun},
};

/// The three tasks with the responses from before the crash, and the restarted server.
pub(crate) struct Crash {
    /// Completed before the crash.
    pub(crate) finished: (String, Response),
    /// Accepted, and working when the process died.
    pub(crate) running: (String, Response),
    /// Accepted, and still queued when the process died.
    pub(crate) queued: (String, Response),
    /// The first `tasks/get` response of the restarted server for the task that was running.
    pub(crate) after_restart: Response,
    restarted: ServerProcess,
}

/// The number of sections that the running task writes.
pub(crate) const SECTIONS: usize = 4;

impl Crash {
    /// The configuration of `plan` must limit the server to one running task.
    pub(crate) async fn run(plan: Plan) -> Result<Self, CheckError> {
        let program = start_server(&plan).await?;
        let client = TestClient::new(&program.server, "/_a2a/", "echo");
        let writer = client.with_skill("slow-writer");
        let finished = client.send_text("before").await?;
        let running = writer.send_async(&format!("the sea sections={SECTIONS} delay=250ms")).await?;
        writer.poll_until(&running.0, "a first section", has_begun).await?;
        let queued = client.send_async("after").await?;
        queued.1.has_state("submitted")?;
        program.kill().await.map_err(|error| mismatch("the process to be killed", error))?;
        let restarted = start_server(&plan).await?;
        let after_restart = TestClient { server: restarted.server.clone(), ..client }.get(&running.0).await?;
        Ok(Self { finished, running, queued, after_restart, restarted })
    }

    /// A client of the restarted server.
    pub(crate) fn client(&self) -> TestClient {
        TestClient::new(&self.restarted.server, "/_a2a/", "echo")
    }
}
