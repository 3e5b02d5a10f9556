//! The commands and configurations of README.md and of the pages below `docs` work as they are written.
//!
//! A block of the language `sh` is run, unless its fence has `no_run`: such a block needs the network, another program
//! or minutes. The blocks of a page run in one shell, in a folder of their own, beside a server with the demo agents
//! whose address replaces that of the page. A comment `# prints: TEXT` states what a command before it prints. A block
//! of the language `toml` is a configuration that `a2ad check` accepts. The Python and JavaScript programs of the README
//! are run in `tests/interop`, the commands of `docs/operators.md` in `program/operators.rs`.

#![allow(clippy::unwrap_used, reason = "a test fails on any error")]

use std::{
    fs,
    net::TcpListener,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::{Path, PathBuf},
    process::Stdio,
    sync::atomic::{AtomicU16, Ordering},
    time::Duration,
};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use rcgen::{CertificateParams, KeyPair};
use testkit::process::{self, Server};
use tokio::task::JoinSet;

const LIMIT: Duration = Duration::from_secs(90);
/// The page whose server has other agents than the demo: those of its first configuration.
const CONFIGURED: &str = "docs/security.md";
const RUN_ELSEWHERE: &str = "docs/operators.md";
/// What a shell does for each page: failed commands and HTTP statuses are shown. Killed servers are waited for.
const PRELUDE: &str = r#"exec 2>&1
trap '[[ $BASH_COMMAND == wait* ]] || echo "FAILED: $BASH_COMMAND"' ERR
curl() { case $1 in -sf) command curl "$@" ;; *) command curl --fail-with-body "$@" ;; esac; }
"#;

struct Page {
    name: String,
    text: String,
}

impl Page {
    /// The blocks of a language, with what follows it on their fence.
    fn blocks(&self, language: &str) -> Vec<(&str, &str)> {
        let blocks = self.text.split("\n```").skip(1).step_by(2).filter_map(|block| block.split_once('\n'));
        let of_language = blocks.map(|(fence, block)| (fence.split_once(' ').unwrap_or((fence, "")), block));
        of_language
            .filter(|((name, _), _)| *name == language)
            .map(|((_, more), block)| (more, block))
            .collect()
    }

    /// The commands that are run; empty if there are none.
    fn script(&self) -> String {
        let blocks = self.blocks("sh").into_iter();
        blocks.filter(|(more, _)| *more != "no_run").map(|(_, block)| format!("{block}\n")).collect()
    }
}

fn pages() -> Vec<Page> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let docs = fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let docs = docs.filter(|path| path.extension().is_some_and(|end| end == "md"));
    let page = |path: PathBuf| Page {
        name: path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned(),
        text: fs::read_to_string(&path).unwrap(),
    };
    docs.chain([root.join("README.md")]).map(page).collect()
}

/// A port that is free, below those that the system gives to other tests.
fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let first = 10_240 + (std::process::id() % 18_000) as u16;
    loop {
        let port = first + NEXT.fetch_add(1, Ordering::Relaxed);
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

fn executable(path: &Path) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, "#!/bin/sh\n").unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

fn pem(label: &str, der: &[u8]) -> String {
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", BASE64_STANDARD.encode(der))
}

/// Runs the commands of a page and returns what they print.
async fn run(page: &Page) -> String {
    let folder = tempfile::tempdir().unwrap();
    let programs = folder.path().join("target/release");
    fs::create_dir_all(&programs).unwrap();
    symlink(env!("CARGO_BIN_EXE_a2ad"), programs.join("a2ad")).unwrap();
    if page.name == CONFIGURED {
        fs::write(folder.path().join("a2ad.toml"), page.blocks("toml")[0].1).unwrap();
    }
    let mut serve = process::command(env!("CARGO_BIN_EXE_a2ad"));
    serve.args(["serve", "--listen", process::ANY_PORT]).current_dir(folder.path());
    let server = Server::start_command(serve).await.unwrap();
    let mut script = format!("{PRELUDE}{}", page.script());
    let ports = [("4242", server.address.port()), ("4343", free_port()), ("4250", free_port())];
    for (written, port) in ports {
        script = script.replace(&format!(":{written}"), &format!(":{port}"));
    }
    let mut shell = process::command("bash");
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    shell.args(["-c", &script]).current_dir(folder.path()).env("PATH", path).env("A2AD_URL", server.url());
    shell.stdout(Stdio::piped());
    let Ok(output) = tokio::time::timeout(LIMIT, shell.output()).await else {
        panic!("{}: its commands do not end", page.name);
    };
    let printed = String::from_utf8(output.unwrap().stdout).unwrap();
    assert!(server.terminate(LIMIT).await.unwrap().success());
    printed
}

#[tokio::test]
async fn commands_of_the_pages_work_as_pasted() {
    let mut running = JoinSet::new();
    for page in pages().into_iter().filter(|page| page.name != RUN_ELSEWHERE && !page.script().is_empty()) {
        running.spawn(async move { (run(&page).await, page) });
    }
    let mut problems = Vec::new();
    let (mut pages, mut promises) = (0, 0);
    while let Some(ran) = running.join_next().await {
        let (printed, page) = ran.unwrap();
        let script = page.script();
        let failed = printed.contains("FAILED: ") || printed.contains(r#""error":{"code":-"#);
        let expected: Vec<&str> =
            script.lines().filter_map(|line| line.split_once("# prints: ")).map(|(_, text)| text).collect();
        let missing: Vec<&str> = expected.iter().filter(|text| !printed.contains(**text)).copied().collect();
        if failed || !missing.is_empty() {
            problems.push(format!("{}: not printed: {missing:?}\n{printed}", page.name));
        }
        pages += 1;
        promises += expected.len();
    }
    assert!(problems.is_empty(), "{}", problems.join("\n\n"));
    assert!(pages >= 8 && promises >= 20, "{pages} pages, {promises} promises");
}

#[tokio::test]
async fn configurations_of_the_pages_are_valid() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    for name in ["lint", "bin/npx", "tools/bin/mcp-server-time"] {
        executable(&file(name));
    }
    fs::create_dir(file("data")).unwrap();
    fs::write(file("jsonl-agent.py"), "").unwrap();
    let operation =
        |id: &str| format!("get: {{ operationId: {id}, responses: {{ '200': {{ description: done }} }} }}");
    let paths =
        format!("  /items: {{ {} }}\n  /item: {{ {} }}\n", operation("listItems"), operation("getItem"));
    let document = format!(
        "openapi: 3.1.0\ninfo: {{ title: Shop, version: '1' }}\nservers: [{{ url: 'http://127.0.0.1:9' }}]\npaths:\n{paths}"
    );
    fs::write(file("shop.yaml"), document).unwrap();
    let key = KeyPair::generate().unwrap();
    let certificate =
        CertificateParams::new(["agents.example.com".to_owned()]).unwrap().self_signed(&key).unwrap();
    fs::write(file("cert.pem"), pem("CERTIFICATE", certificate.der())).unwrap();
    fs::write(file("key.pem"), pem("PRIVATE KEY", &key.serialize_der())).unwrap();
    let path = format!("{}:{}", file("bin").display(), std::env::var("PATH").unwrap());
    let mut checked = 0;
    for page in pages() {
        for (_, text) in page.blocks("toml") {
            fs::write(file("a2ad.toml"), text).unwrap();
            let mut check = process::command(env!("CARGO_BIN_EXE_a2ad"));
            check
                .arg("check")
                .current_dir(folder.path())
                .env("PATH", &path)
                .env("FX_TOKEN", "a token of 16 bytes");
            let output = check.output().await.unwrap();
            let shown = [output.stdout, output.stderr].concat();
            assert!(output.status.success(), "{}: {text}{}", page.name, String::from_utf8(shown).unwrap());
            checked += 1;
        }
    }
    assert!(checked >= 6, "only {checked} configurations");
}
