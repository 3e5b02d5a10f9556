//! Runs a test again in a process with its own network and its own files in `/etc`.
//!
//! Every address is an address of this machine there (a local default route), names are resolved by the server of
//! [`name_server`](super::name_server), and variables name a proxy, which must not be used.

use std::{
    env, fs,
    io::Write as _,
    path::Path,
    process::{Command, Stdio},
};

use tempfile::TempDir;

const INSIDE: &str = "A2AD_TEST_NAMESPACE";
/// With and without the right to make namespaces for other users.
const UNSHARE: [&[&str]; 2] = [&["--net", "--mount"], &["--user", "--map-root-user", "--net", "--mount"]];
/// The address of the proxy that must not be used.
pub(crate) const PROXY: &str = "http://172.20.0.1:80";

/// Runs a test of this name in a namespace. On a machine without namespaces the test is skipped and reports that.
pub(crate) fn run(name: &str, test: impl AsyncFnOnce()) {
    if env::var_os(INSIDE).is_some() {
        let _files = set_up();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(test());
        // The resolution of a name that is not answered still occupies a thread.
        runtime.shutdown_background();
        return;
    }
    let Some(options) = UNSHARE.into_iter().find(|options| can_unshare(options)) else {
        // Written past the test runner, which hides the output of tests that pass.
        let note = format!("{name}: skipped, as there is no network namespace on this machine\n");
        std::io::stderr().write_all(note.as_bytes()).unwrap();
        return;
    };
    let mut command = Command::new("unshare");
    command.args(options).arg("--").arg(env::current_exe().unwrap());
    command.args(["--exact", name, "--nocapture"]).env(INSIDE, "1");
    for variable in ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"] {
        command.env(variable, PROXY);
    }
    let output = command.output().unwrap();
    let text =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
    assert!(output.status.success() && text.contains("1 passed"), "{name} in its namespace:\n{text}");
}

fn can_unshare(options: &[&str]) -> bool {
    let mut command = Command::new("unshare");
    command.args(options).args(["ip", "link", "set", "lo", "up"]).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// The network and the files of the namespace; dropping the result removes the files.
fn set_up() -> TempDir {
    succeed("ip", &["link", "set", "lo", "up"]);
    succeed("ip", &["-4", "route", "add", "local", "default", "dev", "lo"]);
    succeed("ip", &["-6", "route", "add", "local", "default", "dev", "lo"]);
    let files = TempDir::new().unwrap();
    replace(&files, "/etc/resolv.conf", "nameserver 127.0.0.1\noptions timeout:30 attempts:1\n");
    replace(&files, "/etc/nsswitch.conf", "hosts: files dns\n");
    replace(&files, "/etc/hosts", "127.0.0.1 localhost\n");
    files
}

/// Puts another content in the place of a file, in this namespace only.
fn replace(files: &TempDir, path: &str, content: &str) {
    let file = files.path().join(Path::new(path).file_name().unwrap());
    fs::write(&file, content).unwrap();
    if Path::new(path).exists() {
        succeed("mount", &["--bind", file.to_str().unwrap(), path]);
    }
}

fn succeed(program: &str, arguments: &[&str]) {
    let status = Command::new(program).args(arguments).status().unwrap();
    assert!(status.success(), "{program} {}", arguments.join(" "));
}
