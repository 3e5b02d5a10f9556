//! Child processes of backends: a clean environment, pipes, and a process group that ends as a whole.

use std::{collections::BTreeMap, io, path::PathBuf, process::Stdio, time::Duration};

use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};

/// A command to start: no shell, and only the listed environment.
#[derive(Clone, Debug, Default)]
pub struct Launch {
    /// The program and its arguments; at least the program. A program without a slash is searched in the `PATH` of
    /// the server.
    pub argv: Vec<String>,
    /// The environment beside `PATH`, `HOME`, `LANG` and `TMPDIR` of the server.
    pub env: BTreeMap<String, String>,
    /// The working directory; `None`: that of the server.
    pub cwd: Option<PathBuf>,
    /// Maximum memory for data (`RLIMIT_DATA`), in bytes.
    pub memory: Option<u64>,
}

/// Starts processes. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Launcher {
    /// The program that supervises children with the hidden command `supervise`; `None`: children are started directly.
    pub supervisor: Option<PathBuf>,
}

/// A running process with everything it has started.
pub struct Process {
    child: Child,
    /// Standard input; dropped to close it.
    pub stdin: Option<ChildStdin>,
    /// Standard output.
    pub stdout: Option<ChildStdout>,
    /// Standard error.
    pub stderr: Option<ChildStderr>,
}

impl Launcher {
    /// Starts a command in a process group of its own.
    ///
    /// # Errors
    ///
    /// The program does not exist or cannot be executed.
    pub fn start(&self, launch: &Launch) -> io::Result<Process> {
        let (program, arguments) =
            launch.argv.split_first().ok_or_else(|| io::Error::other("the command is empty"))?;
        let mut command = Command::new(program);
        command.args(arguments).env_clear().envs(&launch.env).process_group(0).kill_on_drop(true);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        for name in ["PATH", "HOME", "LANG", "TMPDIR"] {
            if let Some(value) = std::env::var_os(name).filter(|_| !launch.env.contains_key(name)) {
                command.env(name, value);
            }
        }
        if let Some(cwd) = &launch.cwd {
            command.current_dir(cwd);
        }
        let mut child = command.spawn()?;
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        Ok(Process { child, stdin, stdout, stderr })
    }
}

impl Process {
    /// Waits for its end; the exit code, or `None` if a signal ended it. Cancel safe.
    pub async fn wait(&mut self) -> io::Result<Option<i32>> {
        Ok(self.child.wait().await?.code())
    }

    /// Asks the whole process group to end (SIGTERM), and kills what is left after `grace`.
    pub async fn stop(&mut self, grace: Duration) {
        let _ = tokio::time::timeout(grace, self.child.wait()).await;
        let _ = self.child.kill().await;
    }
}
