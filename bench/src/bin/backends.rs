//! `backends --a2ad PROGRAM --dir DIR --rounds N --calls N`: what calling a tool through a2ad adds to calling it directly,
//! as a table in Markdown. `backends mcp` and `backends command` are tools that it starts, also through a2ad.
//!
//! In each round every tool is called directly, then through a2ad, one call at a time. Beside them are measured a sync of
//! 1.6 KB to the same disk, because a task of a tool takes two commits, and a bare server, which does nothing but
//! sync, call the MCP server and sync again: what a call costs that leaves the process and is recorded twice.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use a2ad_bench::args::Args;
use a2ad_bench::exchange::{Exchange, read_message};
use a2ad_bench::tools;
use anyhow::{Context, Result, ensure};
use uuid::Uuid;

const ARGUMENTS: &str = r#"{"text":"hello"}"#;
/// Bytes written before a sync: about what a task of a tool writes in a commit.
const SYNCED: usize = 1600;
const START_LIMIT: Duration = Duration::from_secs(30);
/// A call of a command starts two processes, so fewer of them are enough.
const COMMAND_SHARE: usize = 10;

fn main() -> Result<()> {
    let mut args = Args::from_env()?;
    match args.subcommand().as_deref() {
        Some("mcp") => return tools::mcp(),
        Some("command") => return tools::command(),
        _ => {}
    }
    let (program, folder): (PathBuf, PathBuf) = (args.required("--a2ad")?, args.required("--dir")?);
    let (rounds, calls): (usize, usize) = (args.required("--rounds")?, args.required("--calls")?);
    args.finish()?;
    let mut bench = Bench::start(&program, &folder)?;
    let mut medians = Vec::new();
    for round in 0..=rounds {
        let measured = bench.round(calls)?;
        // The first one warms everything up.
        if round > 0 {
            medians.push(measured);
        }
    }
    print!("{}", table(&medians)?);
    Ok(())
}

/// The medians of one round, in milliseconds.
struct Round {
    sync: f64,
    /// The MCP server through the bare server.
    bare: f64,
    /// By tool: directly, and through a2ad.
    tools: [(f64, f64); 3],
}

const TOOLS: [&str; 3] = ["mcp", "http", "command"];

struct Bench {
    a2ad: Exchange,
    function: Exchange,
    mcp: McpServer,
    bare: Exchange,
    log: SyncedFile,
    _server: Server,
}

/// Killed when it is dropped.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        // An error means that it has ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Bench {
    fn start(program: &Path, folder: &Path) -> Result<Self> {
        let (own, function) = (std::env::current_exe()?, tools::http()?);
        let config = folder.join("a2ad.toml");
        let tool = |name: &str| format!("[{:?}, {name:?}]", own.to_string_lossy());
        fs::write(
            &config,
            format!(
                "[mcp.bench]\ncommand = {}\n[skills.http]\nhttp = {{ url = \"http://{function}/\" }}\n\
                 [skills.command]\ncommand = {{ argv = {} }}\n",
                tool("mcp"),
                tool("command")
            ),
        )?;
        let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let log = File::create(folder.join("log"))?;
        let child = Command::new(program)
            .args(["serve", "--listen", &address.to_string(), "--config"])
            .arg(&config)
            .arg("--store")
            .arg(folder.join("a2ad.db"))
            .stderr(log)
            .spawn()
            .context("a2ad does not start")?;
        let server = Server(child);
        Ok(Self {
            a2ad: connect(address)?,
            function: Exchange::open(function)?,
            mcp: McpServer::start(&own)?,
            bare: Exchange::open(bare_server(&own, folder)?)?,
            log: SyncedFile::create(&folder.join("synced"))?,
            _server: server,
        })
    }

    fn round(&mut self, calls: usize) -> Result<Round> {
        let sync = median(calls, || self.log.append())?;
        let own = std::env::current_exe()?;
        let mcp = (median(calls, || self.mcp.call().map(drop))?, self.through("mcp", calls)?);
        let bare = median(calls, || {
            let response = self.bare.post("/", ARGUMENTS)?;
            ensure!(String::from_utf8_lossy(&response).contains("hello"), "another result");
            Ok(())
        })?;
        let direct = median(calls, || {
            ensure!(self.function.post("/", ARGUMENTS)? == ARGUMENTS.as_bytes(), "another result");
            Ok(())
        })?;
        let http = (direct, self.through("http", calls)?);
        let calls = calls.div_ceil(COMMAND_SHARE);
        let command = (median(calls, || run_command(&own))?, self.through("command", calls)?);
        Ok(Round { sync, bare, tools: [mcp, http, command] })
    }

    fn through(&mut self, skill: &str, calls: usize) -> Result<f64> {
        median(calls, || {
            let body = format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{{"metadata":{{"skillId":"{skill}"}},"message":{{"messageId":"{}","role":"ROLE_USER","parts":[{{"data":{ARGUMENTS}}}]}}}}}}"#,
                Uuid::from_u128(fastrand::u128(..))
            );
            let response = String::from_utf8(self.a2ad.post("/", &body)?)?;
            ensure!(response.contains("TASK_STATE_COMPLETED"), "{skill}: {response}");
            Ok(())
        })
    }
}

/// Waits until the server answers; it listens when its tools are known.
fn connect(address: SocketAddr) -> Result<Exchange> {
    let started = Instant::now();
    loop {
        match Exchange::open(address) {
            Ok(connection) => return Ok(connection),
            Err(error) => ensure!(started.elapsed() < START_LIMIT, "a2ad does not answer: {error}"),
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The tool, called by a client without any library.
struct McpServer {
    _process: Server,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl McpServer {
    fn start(own: &Path) -> Result<Self> {
        let mut process =
            Command::new(own).arg("mcp").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let stdin = process.stdin.take().context("it has a standard input")?;
        let stdout = BufReader::new(process.stdout.take().context("it has a standard output")?);
        Ok(Self { _process: Server(process), stdin, stdout })
    }

    fn call(&mut self) -> Result<String> {
        let request = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"mcp","arguments":{ARGUMENTS}}}}}"#
        );
        writeln!(self.stdin, "{request}")?;
        let mut response = String::new();
        self.stdout.read_line(&mut response)?;
        ensure!(response.contains("hello"), "{response}");
        Ok(response)
    }
}

/// A file that is synced after each record.
struct SyncedFile(File);

impl SyncedFile {
    fn create(path: &Path) -> Result<Self> {
        Ok(Self(File::create(path)?))
    }

    fn append(&mut self) -> Result<()> {
        self.0.write_all(&[b'r'; SYNCED])?;
        Ok(self.0.sync_data()?)
    }
}

/// Starts the bare server; it has one connection.
fn bare_server(own: &Path, folder: &Path) -> Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let (tool, log) = (McpServer::start(own)?, SyncedFile::create(&folder.join("bare"))?);
    // It ends with its connection.
    thread::spawn(move || serve_bare(listener.accept()?.0, tool, log));
    Ok(address)
}

fn serve_bare(mut connection: TcpStream, mut tool: McpServer, mut log: SyncedFile) -> Result<()> {
    connection.set_nodelay(true)?;
    let mut reader = BufReader::new(connection.try_clone()?);
    loop {
        read_message(&mut reader)?;
        log.append()?;
        let result = tool.call()?;
        log.append()?;
        let response = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{result}", result.len());
        connection.write_all(response.as_bytes())?;
    }
}

fn run_command(own: &Path) -> Result<()> {
    let mut process =
        Command::new(own).arg("command").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    process.stdin.take().context("it has a standard input")?.write_all(ARGUMENTS.as_bytes())?;
    ensure!(process.wait_with_output()?.stdout == ARGUMENTS.as_bytes(), "another result");
    Ok(())
}

/// The median time of a call in milliseconds.
fn median(calls: usize, mut call: impl FnMut() -> Result<()>) -> Result<f64> {
    let mut times = Vec::with_capacity(calls);
    for _ in 0..calls.max(1) {
        let started = Instant::now();
        call()?;
        times.push(started.elapsed());
    }
    times.sort();
    Ok(times[times.len() / 2].as_secs_f64() * 1e3)
}

fn table(rounds: &[Round]) -> Result<String> {
    let middle = |value: &dyn Fn(&Round) -> f64| {
        let mut values: Vec<f64> = rounds.iter().map(value).collect();
        values.sort_by(f64::total_cmp);
        (values[values.len() / 2], values[0], values[values.len() - 1])
    };
    let mut text = format!(
        "A sync takes {:.3} ms. A bare server, which syncs, calls the MCP server and syncs again, takes {:.3} ms for a call.\n\n",
        middle(&|round| round.sync).0,
        middle(&|round| round.bare).0
    );
    text += "| tool | directly, ms | through a2ad, ms | added, ms | added beside two syncs, ms |\n|---|--:|--:|--:|--:|\n";
    for (index, tool) in TOOLS.into_iter().enumerate() {
        let (direct, ..) = middle(&|round| round.tools[index].0);
        let (through, ..) = middle(&|round| round.tools[index].1);
        let added = |round: &Round| round.tools[index].1 - round.tools[index].0;
        let beside = |round: &Round| added(round) - 2.0 * round.sync;
        let ((added, ..), (beside, least, most)) = (middle(&added), middle(&beside));
        writeln!(
            text,
            "| {tool} | {direct:.3} | {through:.3} | {added:.3} | {beside:.3} ({least:.3}..{most:.3}) |"
        )?;
    }
    Ok(text)
}
