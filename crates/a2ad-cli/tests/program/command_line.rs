//! The command line: commands, addresses, exit codes, error messages, and conflicts with a running server.

mod backends;
mod diagnostics;
mod proxies;

use std::{net::TcpListener, process::Stdio};

use protocol::Json;
use testkit::process::Signal;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    task::JoinSet,
};

use super::common::{DIALECTS, Running, a2ad, finish, member, run, sections, shell, within};

#[tokio::test]
async fn agents_lists_what_a_server_serves() {
    let server = Running::start().await;
    for listed in [
        server.run(&["agents"]).await,
        run(server.path(), &["agents", &server.address()]).await,
        run(server.path(), &["agents", "--server", &server.url()]).await,
    ] {
        assert_eq!(listed.code, 0, "{}", listed.err);
        for expected in [
            "demo (default): ",
            "\necho: Gives back what it is given\n  echo: Gives back what it is given\n",
            "\nslow-writer: ",
        ] {
            assert!(format!("\n{}", listed.out).contains(expected), "{expected:?} is not in {}", listed.out);
        }
    }
    let listed = server.run(&["agents", "--json"]).await;
    let document = Json::parse(listed.out.trim()).unwrap();
    assert_eq!((listed.code, member(&document, "defaultAgent").as_str()), (0, "demo"), "{}", listed.out);
    assert_eq!(member(&document, "server"), server.url());
    let echo = format!(
        r#"{{"id":"echo","name":"Echo","description":"Gives back what it is given","url":"{}/a2a/echo""#,
        server.url()
    );
    assert!(listed.out.contains(&echo) && listed.out.contains(r#""skills":[{"id":"echo""#), "{}", listed.out);
    // A server without a list is represented by its own card.
    let one = server.run(&["agents", &format!("{}/a2a/currency", server.url())]).await;
    assert!(one.code == 0 && one.out.to_lowercase().contains("currency"), "{}{}", one.out, one.err);
    run(server.path(), &["agents", "127.0.0.1:1"]).await.ends(1, &["http://127.0.0.1:1"]);
    server.run(&["agents", "no server"]).await.ends(2, &["\"no server\"", "host:port"]);
}

#[tokio::test]
async fn watch_follows_a_task_across_restarts_and_exits_by_its_state() {
    const SECTIONS: usize = 40;
    let mut server = Running::start().await;
    for dialect in DIALECTS {
        let message = format!("the sea sections={SECTIONS} delay=25ms");
        let sent = server.run(&["send", "slow-writer", &message, "--async", "--dialect", dialect]).await;
        let mut command =
            server.client(&["tasks", "watch", "slow-writer", &sent.task(), "--dialect", dialect]);
        let mut child = command.spawn().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut seen = String::new();
        for _ in 0..5 {
            within(out.read_line(&mut seen)).await.unwrap();
        }
        server = server.kill_and_restart().await;
        within(out.read_to_string(&mut seen)).await.unwrap();
        let output = within(child.wait_with_output()).await.unwrap();
        let err = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), seen), (Some(0), sections(SECTIONS).concat()), "{dialect}: {err}");
        // In the draft the task is polled, which may miss a short interruption.
        assert!(dialect == "draft" || err.contains("connection lost; reconnecting"), "{err}");
        // The task has ended: printed completely.
        let again = server.run(&["tasks", "watch", "slow-writer", &sent.task(), "--dialect", dialect]).await;
        again.prints(0, &sections(SECTIONS).concat(), "");

        let asked = server.run(&["send", "approver", "delete it", "--dialect", dialect]).await;
        let watch = ["tasks", "watch", "approver", &asked.task(), "--dialect", dialect];
        server.run(&watch).await.ends(4, &["input-required; answer with: a2ad reply approver "]);
        server.run(&["tasks", "cancel", "approver", &asked.task()]).await.prints(0, "", "");
        server.run(&watch).await.ends(3, &[" canceled"]);
        server
            .run(&["tasks", "watch", "echo", "task_none", "--dialect", dialect])
            .await
            .ends(6, &["not found"]);
    }
    let held = server.run(&["send", "echo", "hold on", "--async"]).await;
    let watch = ["tasks", "watch", "echo", &held.task(), "--timeout", "300ms"];
    server.run(&watch).await.ends(7, &["is still running; follow it with: a2ad tasks watch echo "]);
    let json = server.run(&["tasks", "watch", "echo", &held.task(), "--timeout", "300ms", "--json"]).await;
    assert!(json.out.starts_with(r#"{"task":{"id":""#), "{}", json.out);
}

#[tokio::test]
async fn completions_are_printed_for_each_shell() {
    let folder = tempfile::tempdir().unwrap();
    for (shell, expected) in [("bash", "complete -F"), ("zsh", "#compdef a2ad"), ("fish", "complete -c a2ad")]
    {
        let script = run(folder.path(), &["completions", shell]).await;
        assert!(script.code == 0 && script.out.contains(expected), "{shell}: {}", script.err);
        for subcommand in ["agents", "watch", "selftest", "backup", "restore", "bearer-env"] {
            assert!(script.out.contains(subcommand), "{subcommand} is not in the script for {shell}");
        }
    }
    run(folder.path(), &["completions", "dash"]).await.ends(2, &["dash", "bash, ", "zsh"]);
    // bash accepts the script.
    let script = "source <(\"$0\" completions bash) && complete -p a2ad";
    let sourced = finish(shell("bash", folder.path(), script)).await;
    assert!(sourced.succeeds("").contains("a2ad"), "{sourced:?}");
}

#[tokio::test]
async fn host_and_port_are_accepted_wherever_a_url_is() {
    let server = Running::start().await;
    let port = server.address().rsplit_once(':').unwrap().1.to_owned();
    for host in [format!("localhost:{port}"), format!("127.0.0.1:{port}")] {
        let at = async |arguments: &[&str]| run(server.path(), arguments).await;
        at(&["send", &format!("{host}/a2a/echo"), "hi"]).await.prints(0, "hi\n", "");
        at(&["send", "echo", "hi", "--server", &host]).await.prints(0, "hi\n", "");
        assert!(at(&["card", &host]).await.out.starts_with("name "), "{host}");
        let mut by_variable = a2ad(server.path(), &["send", "echo", "hi"]);
        by_variable.env("A2AD_URL", &host);
        finish(by_variable).await.prints(0, "hi\n", "");
        let checked = at(&["selftest", "--url", &host]).await;
        assert_eq!(checked.code, 0, "{}{}", checked.out, checked.err);
    }
    // For other machines the scheme is https, which is reported.
    let elsewhere = server.run(&["card", "agents.invalid:4242", "--timeout", "20s"]).await;
    elsewhere.ends(1, &["agents.invalid:4242 has no scheme; using https://agents.invalid:4242\n"]);
    let mut wrong = server.client(&["card", "echo"]);
    wrong.env("A2AD_URL", "not an address");
    finish(wrong).await.ends(2, &["A2AD_URL: \"not an address\" is neither a URL nor host:port"]);
}

#[tokio::test]
async fn a_mistyped_agent_gets_the_nearest_name_and_the_list() {
    let server = Running::start().await;
    let there = "available agents: approver, currency, demo, echo, slow-writer\n";
    for subcommand in [&["send"][..], &["stream"], &["card"], &["tasks", "ls"]] {
        let message: &[&str] = if subcommand.len() == 1 && subcommand[0] != "card" { &["hi"] } else { &[] };
        let near = server.run(&[subcommand, &["ecko"], message].concat()).await;
        near.ends(
            6,
            &["there is no agent ecko at http://127.0.0.1:", &format!("; did you mean echo? {there}")],
        );
        let far = server.run(&[subcommand, &["weather-forecast"], message].concat()).await;
        far.ends(6, &["there is no agent weather-forecast at ", &format!("; {there}")]);
        let url = format!("{}/a2a/curency", server.url());
        server.run(&[subcommand, &[&url], message].concat()).await.ends(6, &["did you mean currency?"]);
    }
}

#[tokio::test]
async fn explain_reads_a_file_or_stdin() {
    let folder = tempfile::tempdir().unwrap();
    let message = r#"{"role":"user","parts":[{"type":"text","text":"hello"}]}"#;
    std::fs::write(folder.path().join("message.json"), message).unwrap();
    let shown = run(folder.path(), &["explain", "message.json"]).await;
    assert!(shown.code == 0 && shown.out.starts_with("a message of draft"), "{}{}", shown.out, shown.err);
    for arguments in [&["explain"][..], &["explain", "-"]] {
        let mut child = a2ad(folder.path(), arguments).stdin(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(message.as_bytes()).await.unwrap();
        let output = within(child.wait_with_output()).await.unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap(), shown.out);
    }
    run(folder.path(), &["explain", "none.json"]).await.ends(2, &["none.json cannot be read: No such file"]);
}

#[tokio::test]
async fn errors_are_json_with_the_json_flag() {
    let server = Running::start().await;
    let broken = server.path().join("broken.toml");
    std::fs::write(&broken, "[server]\nlissten = \"x\"\n[limits]\nwiat = \"1s\"\n").unwrap();
    let cases: [(&[&str], i32, &str); 14] = [
        (&["send", "ecko", "hi"], 6, "there is no agent ecko"),
        (&["send", "echo"], 2, "the message is empty"),
        (&["send", "h/a", "hi"], 2, "neither a URL"),
        (&["send", "echo", "hi", "--dialect", "0.9"], 2, "expected draft, 0.3 or 1.0"),
        (&["stream", "echo", "hi", "--server", "127.0.0.1:1"], 1, "http://127.0.0.1:1"),
        (&["reply", "echo", "task_none", "hi"], 6, "not found"),
        (&["card", "ecko"], 6, "there is no agent ecko"),
        (&["skills", "ecko"], 6, "there is no agent ecko"),
        (&["agents", "127.0.0.1:1"], 1, "http://127.0.0.1:1"),
        (&["tasks", "get", "echo", "task_none"], 6, "not found"),
        (&["tasks", "watch", "echo", "task_none"], 6, "not found"),
        (&["tasks", "ls", "echo", "--status", "odd"], 2, "expected one of"),
        (&["check", "broken.toml"], 2, "the configuration cannot be used"),
        (&["selftest", "--url", "ftp://h"], 2, "is no origin"),
    ];
    for (arguments, code, expected) in cases {
        let output = server.run(&[arguments, &["--json"]].concat()).await;
        assert_eq!(output.code, code, "{arguments:?}: {}{}", output.out, output.err);
        let error = output.error();
        assert_eq!(member(&error, "error.exitCode"), code.to_string(), "{error:?}");
        assert!(member(&error, "error.message").contains(expected), "{arguments:?}: {error:?}");
    }
    let near = server.run(&["card", "ecko", "--json"]).await.error();
    assert!(member(&near, "error.hint").starts_with("did you mean echo? available agents: "), "{near:?}");
    let missing = server.run(&["tasks", "get", "echo", "task_none", "--json"]).await.error();
    assert_eq!(member(&missing, "error.reason"), "TASK_NOT_FOUND");
    let details = member(&server.run(&["check", "broken.toml", "--json"]).await.error(), "error.details");
    assert!(
        details.contains("broken.toml:2: server.lissten: ") && details.contains("limits.wiat"),
        "{details}"
    );
    let store = server.run(&["check", "--store", "a2ad.db", "--json"]).await.error();
    assert!(member(&store, "error.message").contains("in use by another a2ad (PID "), "{store:?}");
}

#[tokio::test]
async fn connection_errors_name_the_address_and_the_likely_cause() {
    let server = Running::start().await;
    let address = &server.address();
    let run = async |url: &str| run(server.path(), &["send", url, "hi", "--timeout", "20s"]).await;
    // Nothing listens.
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let down = run(&format!("http://{free}/a2a/echo")).await;
    let start = format!("; nothing listens there; start a server with: a2ad serve --listen {free}\n");
    down.ends(1, &[&format!("cannot connect to http://{free}: Connection refused"), &start]);
    // https to a plain http port.
    let plain = run(&format!("https://{address}/a2a/echo")).await;
    let hint = format!("; that port answers plain http: try http://{address}/a2a/echo\n");
    plain.ends(1, &[&format!("https://{address}: "), &hint]);
    // http to a TLS port, which responds with an alert.
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let tls = listener.local_addr().unwrap().to_string();
    let mut serving = JoinSet::new();
    serving.spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.read(&mut [0; 1_024]).await;
            let _ = stream.write_all(b"\x15\x03\x01\x00\x02\x02\x46").await;
        }
    });
    let hint = format!("; that port expects TLS: try https://{tls}/a2a/echo\n");
    run(&format!("http://{tls}/a2a/echo")).await.ends(1, &[&format!("http://{tls} failed: "), &hint]);
    // A host name that does not resolve.
    let nowhere = run("https://agents.invalid/a2a/echo").await;
    nowhere.ends(1, &["cannot connect to https://agents.invalid: ", "check the host name"]);
}

#[tokio::test]
async fn a_draining_server_is_reported_as_the_cause() {
    let server = Running::start().await;
    let held = server.run(&["send", "echo", "hold on", "--async"]).await;
    assert_eq!(held.code, 0, "{}", held.err);
    server.server.signal(Signal::TERM).unwrap();
    // No new work is accepted while the run may finish.
    let missed = within(async {
        loop {
            let missed = server.run(&["send", "echo", "hi"]).await;
            if missed.code != 0 {
                return missed;
            }
        }
    })
    .await;
    missed.ends(1, &["the server is shutting down; ", "it accepts new work again when it has restarted"]);
    // A second server for the same store reports it too.
    let second = run(server.path(), &["serve", "--listen", "127.0.0.1:0"]).await;
    let (pid, address) = (server.pid(), &server.address());
    let holder = format!("in use by another a2ad (PID {pid}, draining at {address} for ");
    second.ends(1, &["a2ad.db", &holder, " s and at most 2", " s more, up ", "--store"]);
}

#[tokio::test]
async fn a_second_start_names_the_process_that_holds_port_or_store() {
    let server = Running::start().await;
    let folder = tempfile::tempdir().unwrap();
    let port = run(folder.path(), &["serve", "--listen", &server.address()]).await;
    let holder = format!("in use (os error 98), held by a2ad (PID {}, serving, up ", server.pid());
    let expected = if cfg!(target_os = "linux") { holder } else { "held by a2ad (serving)".to_owned() };
    port.ends(1, &[&format!("cannot listen on {}: ", server.address()), &expected, "--listen"]);
    let store = run(server.path(), &["serve", "--listen", "127.0.0.1:0"]).await;
    let holder =
        format!("in use by another a2ad (PID {}, serving at {}, up ", server.pid(), server.address());
    store.ends(1, &["a2ad.db", &holder, "--store"]);
    // A port of another program: only its process is named.
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = other.local_addr().unwrap().to_string();
    let port = run(folder.path(), &["serve", "--listen", &taken]).await;
    let own = format!("(PID {}, up ", std::process::id());
    port.ends(1, &[&taken, "in use", if cfg!(target_os = "linux") { &own } else { "" }, "--listen"]);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing was touched");
}

#[tokio::test(flavor = "multi_thread")]
async fn selftest_ends_with_a_summary_and_leaves_no_open_task() {
    let server = Running::start().await;
    let checked = server.run(&["selftest", "--url", &server.address()]).await;
    assert!(!checked.out.contains("left open"), "{}", checked.out);
    let last = checked.out.lines().last().unwrap().to_owned();
    assert!(
        last.starts_with("selftest passed: ") && last.contains(" passed, 0 failed, "),
        "{}{}",
        checked.out,
        checked.err
    );
    assert_eq!(checked.code, 0, "{}", checked.err);
    for agent in ["demo", "echo", "currency", "approver", "slow-writer"] {
        for state in ["submitted", "working", "input-required", "auth-required"] {
            let open = server.run(&["tasks", "ls", agent, "--status", state]).await;
            assert_eq!((open.code, open.out.as_str()), (0, ""), "{agent} has {state} tasks");
        }
    }
    let some = server.run(&["tasks", "ls", "slow-writer", "--status", "canceled"]).await;
    assert!(!some.out.is_empty(), "tasks were started");
}
