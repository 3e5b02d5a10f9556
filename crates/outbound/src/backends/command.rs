//! The backend `command`: each call runs a program once.
//!
//! The program gets the arguments of the call as JSON on standard input, or the message with them, and the facts of the
//! call in the environment (`A2AD_CALL_*`), the files of a message in a folder. What it writes is the result ([`Protocol::Plain`]), or lines by which it reports progress, keeps a
//! state and asks back ([`Protocol::Jsonl`]). Everything it has started ends with the call. `docs/commands.md` describes
//! this for authors of commands.

mod facts;
mod failure;
mod jsonl;
mod output;
mod plain;

use std::{collections::BTreeMap, io, path::PathBuf, pin::pin, time::Duration};

use engine::{AgentError, AgentResult, OnCrash, metrics::BackendKind};
use futures_util::future::{BoxFuture, FusedFuture as _, FutureExt as _};
use tokio::{
    io::AsyncWriteExt as _,
    process::{ChildStderr, ChildStdin, ChildStdout},
    time::{sleep, timeout},
};

use self::{
    facts::Facts,
    output::{Interrupted, Output, Tail},
};
use crate::{
    backend::{Backend, Call, Reply},
    masked::masked_command,
    process::{Exit, Launch, Launcher, Process},
};

/// Time between SIGTERM and SIGKILL. With the time that killing takes it is less than what the engine gives a backend to
/// stop.
const STOP_GRACE: Duration = Duration::from_secs(3);
/// Maximum time to stop a command and to read the rest of its output.
const STOP_TIME: Duration = Duration::from_millis(4500);

/// A program that answers calls.
#[derive(Clone, Debug)]
pub struct CommandTool {
    /// Starts it.
    pub launcher: Launcher,
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// The environment; see [`Launch::env`].
    pub env: BTreeMap<String, String>,
    /// The working directory; `None`: that of the server.
    pub cwd: Option<PathBuf>,
    /// How long a call may take.
    pub timeout: Duration,
    /// Maximum size of what it writes to standard output, in bytes.
    pub max_output: u64,
    /// Maximum memory; see [`Launch::memory`].
    pub memory: Option<u64>,
    /// What its output means.
    pub protocol: Protocol,
}

/// What the output of a command means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// It is the result: data if it is one JSON object or array, else text that is streamed.
    #[default]
    Plain,
    /// Each line is a JSON object with a `type`.
    Jsonl,
}

impl Protocol {
    /// What to do with a call whose server crashed, where the skill sets nothing else.
    pub fn on_crash(self) -> OnCrash {
        match self {
            Self::Plain => OnCrash::Retry,
            Self::Jsonl => OnCrash::Resume,
        }
    }
}

impl CommandTool {
    /// A command with the default limits: 60 s, 16 MiB of output.
    pub fn new(launcher: Launcher, argv: Vec<String>) -> Self {
        Self {
            launcher,
            argv,
            env: BTreeMap::new(),
            cwd: None,
            timeout: Duration::from_secs(60),
            max_output: 16 << 20,
            memory: None,
            protocol: Protocol::Plain,
        }
    }

    async fn run(&self, call: Call<'_>) -> AgentResult<Reply> {
        let facts = Facts::of(&call, self.protocol).map_err(NotStarted)?;
        let mut process = self.start(&facts).map_err(NotStarted)?;
        let stderr = Tail::default();
        let mut exchange = pin!(self.exchange(Streams::take(&mut process)?, &call, &stderr).fuse());
        let interrupted = tokio::select! {
            biased;
            () = call.cancelled().cancelled() => {
                let rest = async {
                    // What it writes when it is asked to end is recorded at a shutdown. Otherwise it is rejected, which
                    // ends the exchange.
                    if !exchange.is_terminated() {
                        let _ = exchange.await;
                    }
                };
                let stopped = async { tokio::join!(process.stop(STOP_GRACE), rest) };
                let _ = timeout(STOP_TIME, stopped).await;
                return Ok(Reply::fail("the call was canceled"));
            }
            () = sleep(self.timeout) => Interrupted::Failed(failure::timed_out(self.timeout)),
            ended = ended(exchange.as_mut(), &mut process) => match ended {
                // It has given the reason itself.
                Ok((failed @ Reply::Failed(_), _)) => return Ok(failed),
                Ok((reply, Exit::Code(0))) => return Ok(reply),
                Ok((_, exit)) => return Ok(failure::ended(exit, &stderr)),
                Err(interrupted) => interrupted,
            },
        };
        process.stop(STOP_GRACE).await;
        match interrupted {
            Interrupted::Failed(text) => Ok(Reply::fail(stderr.appended_to(text))),
            Interrupted::Error(error) => Err(error),
        }
    }

    fn start(&self, facts: &Facts) -> io::Result<Process> {
        let env = self.env.clone().into_iter().chain(facts.environment()).collect();
        let launch = Launch { argv: self.argv.clone(), env, cwd: self.cwd.clone(), memory: self.memory };
        self.launcher.start_with_folder(&launch, facts.folder())
    }

    /// Writes the input and reads the output until its end.
    async fn exchange(&self, streams: Streams, call: &Call<'_>, stderr: &Tail) -> Result<Reply, Interrupted> {
        let output = Output::new(streams.stdout, self.max_output);
        let read = async {
            match self.protocol {
                Protocol::Plain => plain::read(call, output).await,
                Protocol::Jsonl => jsonl::read(call, output).await,
            }
        };
        let write = async {
            write(streams.stdin, call.input()).await;
            Ok(())
        };
        let read_stderr = async {
            stderr.read(streams.stderr).await;
            Ok(())
        };
        let (reply, (), ()) = tokio::try_join!(read, write, read_stderr)?;
        Ok(reply)
    }
}

/// Waits for the end of the output and of the process.
async fn ended(
    exchange: impl Future<Output = Result<Reply, Interrupted>>,
    process: &mut Process,
) -> Result<(Reply, Exit), Interrupted> {
    let exit = async { process.exit().await.map_err(|error| NotObserved(error).into()) };
    tokio::try_join!(exchange, exit)
}

impl Backend for CommandTool {
    fn kind(&self) -> BackendKind {
        BackendKind::Command
    }

    fn target(&self) -> String {
        masked_command(&self.argv)
    }

    fn call<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, AgentResult<Reply>> {
        Box::pin(async move { self.run(call).await.or_else(not_run) })
    }
}

/// The streams of a process that has just been started.
struct Streams {
    stdin: ChildStdin,
    stdout: ChildStdout,
    stderr: ChildStderr,
}

impl Streams {
    fn take(process: &mut Process) -> AgentResult<Self> {
        match (process.stdin.take(), process.stdout.take(), process.stderr.take()) {
            (Some(stdin), Some(stdout), Some(stderr)) => Ok(Self { stdin, stdout, stderr }),
            _ => Err(AgentError::new("the streams of the command are used already")),
        }
    }
}

/// Writes the input and closes the stream. A command need not read them, so an error has no consequence.
async fn write(mut stdin: ChildStdin, input: &[u8]) {
    let _ = stdin.write_all(input).await;
    let _ = stdin.write_all(b"\n").await;
    let _ = stdin.shutdown().await;
}

/// A program that did not run is a failure of the backend; other errors are those of the turn.
fn not_run(error: AgentError) -> AgentResult<Reply> {
    let is_ours =
        error.downcast_ref::<NotStarted>().is_some() || error.downcast_ref::<NotObserved>().is_some();
    let failed = error.causes().next().map(|cause| Reply::fail_because(error.to_string(), cause));
    failed.filter(|_| is_ours).ok_or(error)
}

/// The text is for the client, the cause for the log.
#[derive(Debug, thiserror::Error)]
#[error("the command of the skill cannot be started; the server's log has the reason")]
struct NotStarted(#[source] io::Error);

#[derive(Debug, thiserror::Error)]
#[error("the command was lost; the server's log has the reason")]
struct NotObserved(#[source] io::Error);
