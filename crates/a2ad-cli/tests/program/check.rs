//! `a2ad check` on valid and invalid configuration files and stores, and servers started from a file.

use std::{
    path::Path,
    process::{Command, Output},
};

use client::Client;
use protocol::TaskState;
use testkit::process::Server;

use super::common::{self, SHOP, client, request, within};

/// The program, run to its end.
fn a2ad(folder: &Path, arguments: &[&str]) -> Command {
    common::a2ad(folder, arguments).into_std()
}

/// Checks a file with this text; returns the exit code, stdout and stderr.
fn check(text: &str, variables: &[(&str, &str)], more: &[&str]) -> (i32, String, String) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.toml"), text).unwrap();
    std::fs::write(folder.path().join("shop.json"), SHOP).unwrap();
    let arguments = [&["check", "a.toml"], more].concat();
    let mut command = a2ad(folder.path(), &arguments);
    read(&command.envs(variables.iter().copied()).output().unwrap())
}

fn read(output: &Output) -> (i32, String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
}

const SKILL: &str = "[skills.hello]\nbuiltin = \"echo\"\n";

#[test]
fn named_files_are_regular_and_bounded() {
    let folder = tempfile::tempdir().unwrap();
    assert!(Command::new("mkfifo").arg(folder.path().join("pipe")).status().unwrap().success());
    let large = std::fs::File::create(folder.path().join("large")).unwrap();
    large.set_len(33 << 20).unwrap();
    for (name, problem) in [
        ("pipe", "it is not a regular file"),
        ("/dev/zero", "it is not a regular file"),
        (".", "it is not a regular file"),
        ("absent", "No such file"),
        ("large", "it is larger than"),
    ] {
        let text = format!(
            "[skills.a]\ncommand = {{ argv = [\"true\"] }}\ninput_schema = {name:?}\n[openapi.b]\nfile = {name:?}\n"
        );
        std::fs::write(folder.path().join("a.toml"), text).unwrap();
        let (code, _, errors) = read(&a2ad(folder.path(), &["check", "a.toml"]).output().unwrap());
        assert_eq!(code, 2, "{errors}");
        for place in ["a.toml:3: skills.a.input_schema: ", "a.toml:5: openapi.b.file: "] {
            let line = errors.lines().find(|line| line.contains(place)).unwrap_or_else(|| panic!("{errors}"));
            assert!(line.contains(problem), "{line}");
        }
    }
    let (code, _, errors) = read(&a2ad(folder.path(), &["check", "/dev/zero"]).output().unwrap());
    assert!(
        code == 2 && errors.contains("/dev/zero cannot be read: it is larger than 1MiB"),
        "{code} {errors}"
    );
}

#[test]
fn a_valid_file_is_shown_as_json() {
    let (code, stdout, stderr) = check(include_str!("check/valid.toml"), &[], &["--json"]);
    assert_eq!((code, stderr.as_str()), (0, ""));
    // The document is one line.
    assert_eq!(stdout.trim_end(), include_str!("check/valid.json").replace('\n', ""));
}

#[test]
fn a_valid_file_is_shown_as_text() {
    let (code, stdout, stderr) = check(SKILL, &[], &[]);
    assert_eq!((code, stderr.as_str()), (0, ""));
    let expected = "mode      dev\nlisten    127.0.0.1:4242\nstore     a2ad.db\ndialects  draft, 0.3, 1.0\n\
                    agent     Echo at /a2a/main, also at /\n  profile neutral\n  \
                    auth    anonymous, because nothing is configured\n  \
                    skill   hello: Gives back what it is given\n";
    assert_eq!(stdout, expected);
    // Agents that accept no call are marked.
    let shut = "[server]\ndefault_agent = \"shut\"\n[agents.off]\nenabled = false\n\
                [agents.shut]\nprofile = \"fold\"\nauth = [\"jwt\", \"oidc\"]\n";
    let (_, stdout, _) = check(&format!("{SKILL}{shut}"), &[], &[]);
    let expected = "agent     Echo at /a2a/off, disabled: not served\nagent     Echo at /a2a/shut, also at /\n  \
                    profile fold\n  auth    jwt, oidc: refuses every call\n  warning jwt is listed and ";
    assert!(stdout.contains(expected), "{stdout}");
    // A built-in agent with several skills has its main one under the configured id and the others unchanged; one
    // without a main skill keeps the ids of its skills.
    let (_, stdout, _) =
        check("[skills.sign-off]\nbuiltin = \"approver\"\ndescription = \"Asks\"\n", &[], &[]);
    assert!(stdout.contains("  skill   sign-off: Asks\n  skill   approver-auth: "), "{stdout}");
    let (_, stdout, _) = check("[skills.all]\nbuiltin = \"demo\"\n", &[], &[]);
    assert!(stdout.contains("  skill   currency: ") && !stdout.contains("skill   all"), "{stdout}");
    let (_, stdout, _) =
        check("[skills.all]\nbuiltin = \"demo\"\n[skills.b]\nbuiltin = \"echo\"\n", &[], &[]);
    assert!(stdout.contains("  skill   all: Shows what a2ad does"), "{stdout}");
    // Execution settings are shown for skills that have some.
    let (_, stdout, _) = check(&format!("{SKILL}attempts = 2\ndeadline = \"90s\"\n"), &[], &[]);
    let expected =
        "  runs    hello: on_crash retry, run_time 600s, attempts 2, deadline 90s, interrupted_ttl 86400s\n";
    assert!(stdout.contains(expected), "{stdout}");
    // A skill has the same settings in every agent; one without a setting has its own built-in agent's.
    let text = "[skills.a]\nbuiltin = \"echo\"\non_crash = \"fail\"\n[skills.b]\nbuiltin = \"slow-writer\"\nattempts = 2\n\
                [agents.main]\n[agents.one]\nskills = [\"a\"]\n";
    let (_, stdout, _) = check(text, &[], &[]);
    assert_eq!(stdout.matches("  runs    a: on_crash fail, ").count(), 2, "{stdout}");
    assert_eq!(stdout.matches("  runs    b: on_crash resume, ").count(), 1, "{stdout}");
    // Operations of a document in a file are known; tools of MCP servers only when the server runs.
    let text = "[openapi.shop]\nfile = \"shop.json\"\n[mcp.clock]\ncommand = [\"sh\", \"-x\"]\n";
    let (_, stdout, _) = check(text, &[], &[]);
    for line in [
        "mcp       clock: sh -x\n",
        "  skill   list: ",
        "  skills  mcp:clock/*: listed when the server starts",
    ] {
        assert!(stdout.contains(line), "{line:?} is not in {stdout}");
    }
    // A file with neither skills nor agents runs the demo.
    let (code, stdout, _) = check("[limits]\nconcurrent = 3\n", &[], &[]);
    assert_eq!(code, 0);
    for line in [
        "agent     Demo at /a2a/demo, also at /",
        "agent     Approver at /a2a/approver",
        "  skill   slow-writer: ",
    ] {
        assert!(stdout.contains(line), "{line:?} is not in {stdout}");
    }
}

/// The cases of a file: what follows `a.toml:` in the error, and the text of the configuration.
fn cases(file: &str) -> Vec<(&str, &str)> {
    let cases = file.split("=> ").skip(1).map(|case| case.split_once('\n').unwrap());
    cases.map(|(expected, text)| (expected, text.trim_end())).collect()
}

#[test]
fn every_problem_is_reported_with_line_and_key() {
    let secrets = [("SHORT", "s3cret"), ("SPACED", "s3cret with spaces")];
    let (alone, after_a_skill) =
        (cases(include_str!("check/problems.txt")), cases(include_str!("check/problems_after_a_skill.txt")));
    assert!(alone.len() >= 120 && after_a_skill.len() >= 38);
    for (expected, text) in alone {
        let (code, stdout, stderr) = check(text, &secrets, &[]);
        assert_eq!((code, stdout.as_str()), (2, ""), "{text}");
        let start = format!("a.toml:{expected}");
        assert!(stderr.lines().any(|line| line.starts_with(&start)), "{text}: {stderr}");
        assert!(!stderr.contains("s3cret"), "{stderr}");
    }
    for (expected, text) in after_a_skill {
        let (code, stdout, stderr) = check(&format!("{SKILL}{text}"), &[], &[]);
        assert_eq!((code, stdout.as_str()), (2, ""), "{text}");
        assert!(stderr.starts_with(&format!("a.toml:{expected}")), "{text}: {stderr}");
        assert_eq!(stderr.lines().count(), 1, "{text}: {stderr}");
    }
    // What is invalid is reported once, not again where it is used.
    for text in [
        "[skills.x]\nbuiltin = \"ech\"\n",
        "[skills.x]\n[agents.a]\nskills = [\"x\"]\n",
        "[skills.x]\nhttp = { url = \"no\" }\ninput_schema = {}\n[agents.a]\nskills = [\"x\"]\nskills_allow = [\"x\"]\n",
        "[mcp.x]\ncommand = [\"no-such-program\"]\n",
        "[openapi.x]\nfile = \"nothing.yaml\"\n[agents.a]\nskills = [\"openapi:x/*\"]\n",
        "[openapi.x]\nfile = \"shop.json\"\noperations = [\"lst\"]\n[agents.a]\nskills = [\"openapi:x/*\"]\n",
    ] {
        let (code, _, stderr) = check(text, &[], &[]);
        assert_eq!((code, stderr.lines().count()), (2, 1), "{stderr}");
    }
}

#[test]
fn all_problems_are_reported_together_in_file_order() {
    let text = "[limits]\nconcurrent = 0\nmax_body = \"much\"\n[server]\nlissten = 1\n";
    let (code, _, stderr) = check(text, &[], &[]);
    let locations: Vec<&str> =
        stderr.lines().map(|line| line.rsplit_once(": ").unwrap().0.get(..9).unwrap()).collect();
    assert_eq!((code, locations), (2, vec!["a.toml:2:", "a.toml:3:", "a.toml:5:"]), "{stderr}");
    let (code, _, stderr) = check("[server\nlisten = 1\n", &[], &[]);
    assert_eq!(code, 2);
    assert!(stderr.starts_with("a.toml:1: invalid TOML: "), "{stderr}");
    assert_eq!(stderr.lines().count(), 1, "the rest is not interpreted: {stderr}");
    let (code, _, stderr) = check("[server]\nlisten = \"127.0.0.1:1\"\nlisten = \"127.0.0.1:2\"\n", &[], &[]);
    assert!(code == 2 && stderr.starts_with("a.toml:3: invalid TOML: duplicate key"), "{stderr}");
}

#[test]
fn the_environment_overrides_the_file() {
    let text = "[limits]\nconcurrent = 7\n[skills.my-echo]\nbuiltin = \"echo\"\n[agents.my-agent]\nskills = [\"my-echo\"]\n";
    let variables = [
        ("A2AD_LIMITS__CONCURRENT", "3"),
        ("A2AD_LISTEN", "127.0.0.1:5"),
        ("A2AD_STORE", "7"),
        ("A2AD_PROTOCOL__DIALECTS", "0.3, 1.0"),
        ("A2AD_STORE__RETENTION", "{ max_age = \"2s\" }"),
        ("A2AD_STORE__RETENTION__MAX_TASKS", "9"),
        ("A2AD_AGENTS__MY_AGENT__STREAMING", "false"),
        ("A2AD_AGENTS__MY_AGENT__EXTENSIONS", "[{ uri = \"urn:x\", required = true }]"),
        ("A2AD_AGENTS__MY_AGENT__EXTENDED_CARD", "open"),
        ("A2AD_LOG", "debug"),
    ];
    let (code, stdout, stderr) = check(text, &variables, &["--json"]);
    assert_eq!((code, stderr.as_str()), (0, ""));
    for part in [
        r#""concurrent":3"#,
        r#""listen":"127.0.0.1:5""#,
        r#""store":{"url":"7","retention":{"max_age_ms":2000,"max_tasks":9,"keys_ms":86400000}}"#,
        r#""dialects":["0.3","1.0"]"#,
        r#""streaming":false"#,
        r#""extended_card":"open""#,
        r#""extensions":[{"uri":"urn:x","required":true}]"#,
    ] {
        assert!(stdout.contains(part), "{part} is not in {stdout}");
    }
    for (name, value, expected) in [
        ("A2AD_LIMITS__CONCURRENT", "many", "expected a whole number of 0 or more, not many"),
        ("A2AD_LIMITS__CONCURENT", "3", "unknown key; did you mean A2AD_LIMITS__CONCURRENT?"),
        ("A2AD_LIMIT__CONCURRENT", "3", "unknown key; did you mean A2AD_LIMITS__CONCURRENT?"),
        ("A2AD_LISTEN", "here", "\"here\" is not an address with a port"),
        ("A2AD_PROTOCOL__DIALECTS", "0.4", "\"0.4\" is not one of draft, 0.3, 1.0"),
        ("A2AD_LIMITS__CONCURRENT__MORE", "3", "concurrent is not a table"),
    ] {
        let (code, stdout, stderr) = check(text, &[(name, value)], &[]);
        assert_eq!((code, stdout.as_str()), (2, ""), "{name}");
        assert!(stderr.starts_with(&format!("a2ad: {name}: {expected}")), "{stderr}");
    }
}

#[test]
fn unreadable_files_and_conflicting_flags_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| read(&a2ad(folder.path(), arguments).output().unwrap());
    let (code, _, stderr) = run(&["check", "missing.toml"]);
    assert_eq!(
        (code, stderr.starts_with("a2ad: the configuration file missing.toml cannot be read: ")),
        (2, true)
    );
    assert_eq!(run(&["check", "a.toml", "--store", "b.db"]).0, 2);
    // A store instead of a configuration file.
    let (code, _, stderr) = run(&["check", "--store", "missing.db"]);
    assert_eq!((code, stderr.contains("missing.db")), (1, true), "{stderr}");
}

#[tokio::test]
async fn a_store_check_prints_its_findings_to_stdout() {
    let folder = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| read(&a2ad(folder.path(), arguments).output().unwrap());
    let serve = a2ad(folder.path(), &["--listen", "127.0.0.1:0", "--store", "b.db"]);
    Server::start_command(serve.into()).await.unwrap().kill().await.unwrap();
    let expected = (0, "the store b.db is intact\n".to_owned(), String::new());
    assert_eq!(run(&["check", "--store", "b.db"]), expected);
    let expected = (0, r#"{"store":"b.db","whole":true,"findings":[]}"#.to_owned() + "\n", String::new());
    assert_eq!(run(&["check", "--store", "b.db", "--json"]), expected);
    // Without a path it is the default store.
    let (code, stdout, stderr) = run(&["check", "--json", "--store"]);
    assert_eq!((code, stdout.as_str(), stderr.contains("a2ad.db")), (1, "", true), "{stderr}");

    let store = rusqlite::Connection::open(folder.path().join("b.db")).unwrap();
    // A row that violates a constraint of its table.
    let damage = "CREATE TABLE rotten (x); INSERT INTO rotten VALUES (NULL); PRAGMA writable_schema = ON;
        UPDATE sqlite_master SET sql = 'CREATE TABLE rotten (x NOT NULL)' WHERE name = 'rotten';";
    store.execute_batch(damage).unwrap();
    drop(store);
    let (code, stdout, stderr) = run(&["check", "--store", "b.db"]);
    assert_eq!((code, stderr.as_str()), (1, ""), "{stdout}");
    assert!(stdout.starts_with("the store b.db is damaged; restore a backup:\n"), "{stdout}");
    let (code, stdout, _) = run(&["check", "--store", "b.db", "--json"]);
    let start = r#"{"store":"b.db","whole":false,"findings":[""#;
    assert!(code == 1 && stdout.starts_with(start) && stdout.lines().count() == 1, "{stdout}");
}

#[test]
fn a_failed_write_to_stdout_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.toml"), SKILL).unwrap();
    std::fs::write(folder.path().join("m.json"), r#"{"role":"user","parts":[{"type":"text","text":"x"}]}"#)
        .unwrap();
    for arguments in [&["check", "a.toml"][..], &["check", "a.toml", "--json"], &["explain"]] {
        let input = || std::fs::File::open(folder.path().join("m.json")).unwrap();
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let output = a2ad(folder.path(), arguments).stdin(input()).stdout(full).output().unwrap();
        let (code, _, stderr) = read(&output);
        assert_eq!(code, 1, "{arguments:?}");
        let start = match arguments.contains(&"--json") {
            true => r#"{"error":{"exitCode":1,"message":"the output cannot be written: No space left"#,
            false => "a2ad: the output cannot be written: No space left",
        };
        assert!(stderr.starts_with(start), "{stderr}");
        // A closed pipe is not reported.
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = a2ad(folder.path(), arguments).stdin(input()).stdout(writer).output().unwrap();
        assert_eq!((read(&output).0, read(&output).2.as_str()), (1, ""), "{arguments:?}");
    }
}

#[test]
fn every_example_passes() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let files = std::fs::read_dir(&examples).unwrap().map(|entry| entry.unwrap().path());
    let files: Vec<_> = files.filter(|path| path.extension().is_some_and(|kind| kind == "toml")).collect();
    assert!(files.iter().any(|path| path.ends_with("tck.toml")));
    for path in files {
        let (code, _, stderr) = read(&a2ad(&examples, &["check", path.to_str().unwrap()]).output().unwrap());
        assert_eq!((code, stderr.as_str()), (0, ""), "{}", path.display());
    }
}

#[tokio::test]
async fn agents_of_a_file_are_served() {
    let folder = tempfile::tempdir().unwrap();
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/office.toml");
    let arguments = ["--config", example.to_str().unwrap(), "--listen", "127.0.0.1:0", "--store", "a.db"];
    let server = Server::start_command(a2ad(folder.path(), &arguments).into()).await.unwrap();
    // The default agent selects one of its skills.
    let front = Client::discover(&server.url()).await.unwrap();
    for (text, state) in [
        ("10 USD in INR", TaskState::Completed),
        ("report on tea sections=2 delay=1ms", TaskState::Completed),
        ("please sign this", TaskState::InputRequired),
        ("good morning", TaskState::InputRequired),
    ] {
        assert_eq!(common::send(&front, request(text, false)).await.status.state, state, "{text}");
    }
    let sent = common::send(&client(&server, "cashier"), request("10 USD in INR", false)).await;
    assert_eq!(sent.status.state, TaskState::Completed);
    // Neither the disabled agent nor the demo is served.
    for absent in ["archive", "echo"] {
        within(client(&server, absent).send(request("hello", false))).await.unwrap_err();
    }
}

#[test]
#[cfg(not(feature = "otel"))]
fn a_collector_needs_a_program_with_the_feature_otel() {
    let file = |otlp: &str| format!("{SKILL}[telemetry]\notlp = \"{otlp}\"\n");
    assert_eq!(check(&file(""), &[], &[]).0, 0);
    let (code, _, errors) = check(&file("http://127.0.0.1:4317"), &[], &[]);
    assert_eq!(code, 2, "{errors}");
    assert!(errors.contains("a.toml:4: telemetry.otlp: ") && errors.contains("--features otel"), "{errors}");
}
