//! One process or session of a server, from its start to its end.

use std::{sync::Arc, time::Duration};

use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use super::{STOP_GRACE, Server, random};
use crate::{
    backends::mcp::{
        Transport,
        sdk::{ConnectError, Connection, Options},
        stderr::{self, LastLine},
    },
    process::{Exit, Launch, Process},
};

/// How long the last output of a process that has ended is waited for.
const OUTPUT_TIMEOUT: Duration = Duration::from_millis(500);

/// A process or session that is ready.
pub(in super::super) struct Endpoint {
    pub(in super::super) connection: Connection,
}

/// A process with the last line that it wrote.
struct Started {
    process: Process,
    last_line: Arc<LastLine>,
}

impl Server {
    /// Starts an endpoint, keeps it until it ends or is to be retired, and ends its process.
    pub(super) async fn run_slot(self: Arc<Self>, id: u64, retire: CancellationToken) {
        let connected = tokio::select! {
            connected = self.connect() => connected,
            () = retire.cancelled() => return,
        };
        let (endpoint, mut started) = match connected {
            Ok(connected) => connected,
            Err(error) => {
                let destination = self.config.transport.target();
                tracing::warn!(server = self.config.name, destination, %error, "an MCP server did not start");
                self.change(|slots| slots.failed(id, error, Instant::now(), random()));
                return self.start_failed.cancel();
            }
        };
        let exclusive = endpoint.connection.server_asks();
        self.change(|slots| slots.ready(id, Arc::clone(&endpoint), exclusive, Instant::now()));
        self.refresh_tools();
        tokio::select! {
            () = endpoint.connection.closed() => {}
            () = exited(started.as_mut()) => {}
            () = retire.cancelled() => {}
        }
        // At once, so that no further call gets it.
        self.change(|slots| slots.ended(id, Instant::now(), random()));
        if !retire.is_cancelled() {
            // The last response may still be in the pipe.
            let _ = timeout(OUTPUT_TIMEOUT, endpoint.connection.closed()).await;
        }
        endpoint.connection.close();
        if let Some(Started { process, last_line }) = &mut started {
            process.stop(STOP_GRACE).await;
            let _ = timeout(OUTPUT_TIMEOUT, last_line.complete()).await;
            if !retire.is_cancelled() {
                let last_line = last_line.text();
                tracing::warn!(server = self.config.name, last_line, "a process of an MCP server has ended");
            }
        }
    }

    async fn connect(&self) -> Result<(Arc<Endpoint>, Option<Started>), ConnectError> {
        let options = Options {
            elicitation: self.config.elicitation,
            tools_changed: Arc::clone(&self.tools_changed),
            tasks: self.tasks.clone(),
        };
        let (connection, started) = match &self.config.transport {
            Transport::Stdio(launch) => {
                let (connection, started) = self.launch(launch, &options).await?;
                (connection, Some(started))
            }
            Transport::Http { url, headers } => {
                (Connection::http(url, headers, self.dialer.clone(), &options).await?, None)
            }
        };
        Ok((Arc::new(Endpoint { connection }), started))
    }

    async fn launch(
        &self,
        launch: &Launch,
        options: &Options,
    ) -> Result<(Connection, Started), ConnectError> {
        let mut process =
            self.launcher.start(launch).map_err(|error| ConnectError::Failed(error.to_string()))?;
        let pipes = (process.stdout.take(), process.stdin.take(), process.stderr.take());
        let (Some(stdout), Some(stdin), Some(stderr)) = pipes else {
            return Err(ConnectError::Failed("the process has no pipes".into()));
        };
        let last_line = Arc::<LastLine>::default();
        let (name, tail, last) = (self.config.name.clone(), Arc::clone(&self.stderr), Arc::clone(&last_line));
        self.tasks.spawn(async move { stderr::read(&name, stderr, &tail, &last).await });
        match Connection::stdio(stdout, stdin, options).await {
            Ok(connection) => Ok((connection, Started { process, last_line })),
            Err(error) => {
                let exit = timeout(OUTPUT_TIMEOUT, process.exit()).await;
                process.stop(STOP_GRACE).await;
                let _ = timeout(OUTPUT_TIMEOUT, last_line.complete()).await;
                Err(with_output(error, exit.ok().and_then(Result::ok), &last_line.text()))
            }
        }
    }
}

/// Resolves when the process has ended; never without one.
async fn exited(started: Option<&mut Started>) {
    match started {
        Some(started) => {
            let _ = started.process.wait().await;
        }
        None => std::future::pending().await,
    }
}

/// Adds how the process has ended, if it has by itself, and what it wrote last.
fn with_output(error: ConnectError, exit: Option<Exit>, line: &str) -> ConnectError {
    let ConnectError::Failed(text) = error else { return error };
    let text = match exit {
        // The end of the process explains the end of the connection.
        Some(exit) => format!("the process ended {exit}"),
        None => text,
    };
    ConnectError::Failed(if line.is_empty() { text } else { format!("{text}; its last output: {line}") })
}
