//! Configuration from outside: what `a2ad check` says of good files and of wrong ones, and that the good ones run.

#![allow(clippy::unwrap_used, reason = "a test that meets an error is to fail")]

use std::{
    io::{BufRead as _, BufReader},
    path::Path,
    process::{Command, Output, Stdio},
    time::Duration,
};

use client::Client;
use protocol::{Message, Operation, Part, Reply, Role, SendMessage, TaskState};

/// The program in this folder, hearing nothing of the environment the tests run in.
fn a2ad(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_a2ad"));
    command.current_dir(folder).args(arguments).stdin(Stdio::null());
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("A2AD_")) {
        command.env_remove(name);
    }
    command
}

/// Checks a file with this text; gives the exit code, what was given and what was said.
fn check(text: &str, variables: &[(&str, &str)], more: &[&str]) -> (i32, String, String) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.toml"), text).unwrap();
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
fn a_good_file_is_told_back() {
    let text = r#"
        [server]
        listen = ["[::1]:1"]
        public_url = "https://agents.example.com/"
        trusted_proxies = ["10.0.0.0/8", "::1"]
        default_agent = "research"
        [store]
        url = "x.db"
        retention = { max_age = "2s", max_tasks = 7, keys = "1h" }
        [card]
        style = "v1"
        max_age = "5m"
        [protocol]
        dialects = ["1.0", "draft"]
        errors = "1.0.0"
        lenient_version = false
        [limits]
        max_body = "1MiB"
        max_task = "64KiB"
        concurrent = 3
        run_time = "10m"
        wait = "30s"
        [skills.hello]
        builtin = "echo"
        description = "Says it again"
        tags = ["t"]
        examples = ["e"]
        [skills.fx]
        builtin = "currency"
        [agents.research]
        name = "Research"
        description = "Finds things"
        skills = ["fx", "hello"]
        streaming = false
        push = false
        extended_card = "protected"
        extended_skills = ["hello"]
        extensions = [{ uri = "urn:example:must", required = true }]
        check_media_types = false
        profile = "agent-native"
        reply = "message"
        auth = ["anonymous", "jwt"]
        dedupe = "always"
        retention = { max_tasks = 0 }
        [agents.spare]
        skills = ["hello"]
        enabled = false
        [[agents.spare.extensions]]
        uri = "https://example.com/may"
        description = "Says where"
        params = { unit = "km", list = [1, 2.5, true, { deep = "x" }] }
    "#;
    let (code, given, said) = check(text, &[], &["--json"]);
    assert_eq!((code, said.as_str()), (0, ""));
    let expected = concat!(
        r#"{"server":{"listen":"[::1]:1","public_url":"https://agents.example.com","#,
        r#""trusted_proxies":["10.0.0.0/8","::1/128"],"default_agent":"research"},"#,
        r#""store":{"url":"x.db","retention":{"max_age_ms":2000,"max_tasks":7,"keys_ms":3600000}},"#,
        r#""card":{"style":"v1","max_age_ms":300000,"grpc_scheme":false},"#,
        r#""protocol":{"dialects":["draft","1.0"],"errors":"1.0.0","lenient_version":false},"#,
        r#""limits":{"max_body_bytes":1048576,"max_task_bytes":65536,"concurrent":3,"run_time_ms":600000,"wait_ms":30000},"#,
        r#""agents":[{"id":"research","name":"Research","description":"Finds things","#,
        r#""skills":[{"id":"fx","description":"Converts amounts between currencies, at bundled rates of April 2025"},"#,
        r#"{"id":"hello","description":"Says it again"}],"#,
        r#""backends":[{"skill":"fx","builtin":"currency"},{"skill":"hello","builtin":"echo"}],"#,
        r#""enabled":true,"streaming":false,"push":false,"extended_card":"protected","extended_skills":["hello"],"#,
        r#""extensions":[{"uri":"urn:example:must","required":true}],"check_media_types":false,"#,
        r#""profile":"agent-native","reply":"message","#,
        r#""auth":["anonymous","jwt"],"dedupe":"always","retention":{"max_age_ms":2000,"max_tasks":0,"keys_ms":3600000}},"#,
        r#"{"id":"spare","name":"Echo","description":"Gives back what it is given","#,
        r#""skills":[{"id":"hello","description":"Says it again"}],"backends":[{"skill":"hello","builtin":"echo"}],"#,
        r#""enabled":false,"streaming":true,"push":false,"extended_card":"off","extended_skills":[],"#,
        r#""extensions":[{"uri":"https://example.com/may","description":"Says where","required":false,"#,
        r#""params":{"unit":"km","list":[1,2.5,true,{"deep":"x"}]}}],"check_media_types":true,"#,
        r#""profile":"neutral","auth":["anonymous"],"#,
        r#""dedupe":"auto","retention":{"max_age_ms":2000,"max_tasks":7,"keys_ms":3600000}}]}"#,
    );
    assert_eq!(given.trim_end(), expected);
}

#[test]
fn what_would_run_is_said_in_words() {
    let (code, given, said) = check(SKILL, &[], &[]);
    assert_eq!((code, said.as_str()), (0, ""));
    let expected = "listen    127.0.0.1:4242\nstore     a2ad.db\ndialects  draft, 0.3, 1.0\n\
                    agent     Echo at /a2a/main, also at /\n  style   neutral\n  auth    anonymous\n  \
                    skill   hello: Gives back what it is given\n";
    assert_eq!(given, expected);
    // What nobody can call is marked.
    let shut = "[server]\ndefault_agent = \"shut\"\n[agents.off]\nenabled = false\n\
                [agents.shut]\nprofile = \"fold\"\nauth = [\"jwt\", \"mtls\"]\n";
    let (_, given, _) = check(&format!("{SKILL}{shut}"), &[], &[]);
    let expected = "agent     Echo at /a2a/off, disabled: not served\nagent     Echo at /a2a/shut, also at /\n  \
                    style   fold\n  auth    jwt, mtls: refuses everybody, no credentials can be checked yet\n";
    assert!(given.contains(expected), "{given}");
    // A built-in agent with several skills has its main one under the configured id, and the others as they are;
    // one that only has others' skills keeps their ids.
    let (_, given, _) =
        check("[skills.sign-off]\nbuiltin = \"approver\"\ndescription = \"Asks\"\n", &[], &[]);
    assert!(given.contains("  skill   sign-off: Asks\n  skill   approver-auth: "), "{given}");
    let (_, given, _) = check("[skills.all]\nbuiltin = \"demo\"\n", &[], &[]);
    assert!(given.contains("  skill   currency: ") && !given.contains("skill   all"), "{given}");
    let (_, given, _) = check("[skills.all]\nbuiltin = \"demo\"\n[skills.b]\nbuiltin = \"echo\"\n", &[], &[]);
    assert!(given.contains("  skill   all: Shows what a2ad does"), "{given}");
    // Neither skills nor agents: the demo.
    let (code, given, _) = check("[limits]\nconcurrent = 3\n", &[], &[]);
    assert_eq!(code, 0);
    for line in [
        "agent     Demo at /a2a/demo, also at /",
        "agent     Approver at /a2a/approver",
        "  skill   slow-writer: ",
    ] {
        assert!(given.contains(line), "{line:?} is not in {given}");
    }
}

#[test]
fn every_mistake_is_named_with_its_line_and_key() {
    // What stands in the file, and what is said after `a.toml:`.
    let cases = [
        ("[serve]\n", "1: serve: unknown key; did you mean server?"),
        ("colour = 1\n", "1: colour: unknown key; there are server, store,"),
        ("[server]\nlissten = \"x\"\n", "2: server.lissten: unknown key; did you mean listen?"),
        ("[server]\nlisten = \"here\"\n", "2: server.listen: \"here\" is not an address with a port"),
        ("[server]\nlisten = 4242\n", "2: server.listen: expected a text in quotes, not a number"),
        (
            "[server]\nlisten = [\"127.0.0.1:1\", \"127.0.0.1:2\"]\n",
            "2: server.listen: this version of a2ad listens on exactly one",
        ),
        (
            "[server]\nlisten = \"0.0.0.0:4242\"\n",
            "2: server.listen: listening on 0.0.0.0:4242 would let anybody in",
        ),
        (
            "[server]\npublic_url = \"agents.example.com\"\n",
            "2: server.public_url: \"agents.example.com\" is not a URL such as https://",
        ),
        ("[server]\npublic_url = \"https://a b\"\n", "2: server.public_url: "),
        (
            "[server]\ntrusted_proxies = [\"10.0.0.0/8\",\n\"10.0.0.0/33\"]\n",
            "3: server.trusted_proxies: \"10.0.0.0/33\" is neither",
        ),
        (
            "[server]\ntrusted_proxies = \"10.0.0.0/8\"\n",
            "2: server.trusted_proxies: expected a list, not a text",
        ),
        ("[server]\nmode = \"prod\"\n", "2: server.mode: a2ad 0.1.0 does not serve this key yet"),
        (
            "[server]\ndefault_agent = \"ecko\"\n",
            "2: server.default_agent: no agent \"ecko\" is enabled; did you mean echo?",
        ),
        ("server = 3\n", "1: server: expected a table, not a number"),
        (
            "[store]\nurl = \"postgres://host/db\"\n",
            "2: store.url: \"postgres://host/db\": this version of a2ad keeps its tasks in a file",
        ),
        ("[store]\nurl = \"\"\n", "2: store.url: expected the path of a file"),
        (
            "[store]\nretention = { max_age = 5 }\n",
            "2: store.retention.max_age: expected a text in quotes, not a number",
        ),
        (
            "[store.retention]\nmax_task = 5\n",
            "2: store.retention.max_task: unknown key; did you mean max_tasks?",
        ),
        (
            "[store.retention]\nmax_tasks = -1\n",
            "2: store.retention.max_tasks: expected a whole number of 0 or more, not -1",
        ),
        ("[card]\nstyle = \"v2\"\n", "2: card.style: \"v2\" is none of merged, v1, v03"),
        ("[card]\nsign = true\n", "2: card.sign: a2ad 0.1.0 does not serve this key yet"),
        ("[protocol]\ndialects = []\n", "2: protocol.dialects: expected at least one of draft, 0.3, 1.0"),
        (
            "[protocol]\ndialects = [\"1.0\", \"2.0\"]\n",
            "2: protocol.dialects: \"2.0\" is none of draft, 0.3, 1.0",
        ),
        (
            "[protocol]\nerrors = 1.0\n",
            "2: protocol.errors: expected a text in quotes, not a number with a point",
        ),
        (
            "[protocol]\nlenient_version = \"yes\"\n",
            "2: protocol.lenient_version: expected true or false, not a text",
        ),
        ("[limits]\nwait = 5\n", "2: limits.wait: expected a text in quotes, not a number"),
        ("[limits]\nconcurent = 3\n", "2: limits.concurent: unknown key; did you mean concurrent?"),
        ("[limits]\nconcurrent = 0\n", "2: limits.concurrent: expected more than 0"),
        (
            "[limits]\nmax_body = \"16\"\n",
            "2: limits.max_body: \"16\" is not a size; write 512B, 64KiB, 16MiB or 1GiB",
        ),
        (
            "[limits]\nrun_time = \"soon\"\n",
            "2: limits.run_time: \"soon\" is not a duration; write 250ms, 10s, 10m",
        ),
        (
            "[limits]\nrate = { per_key = \"1/min\" }\n",
            "2: limits.rate: a2ad 0.1.0 does not serve this key yet",
        ),
        ("[auth]\nsecret_env = \"X\"\n", "1: auth: a2ad 0.1.0 does not serve this key yet"),
        ("[mcp.clock]\ncommand = [\"x\"]\n", "1: mcp: a2ad 0.1.0 does not serve this key yet"),
        (
            "[skills.a]\nbuiltin = \"ecko\"\n",
            "2: skills.a.builtin: \"ecko\" is none of adder, approver, clerk, currency, demo, echo",
        ),
        ("[skills.a]\ndescription = \"x\"\n", "1: skills.a.builtin: expected what does the work"),
        ("[skills.a]\nhttp = { url = \"x\" }\n", "2: skills.a.http: a2ad 0.1.0 does not serve this key yet"),
        (
            "[skills.a]\nbuiltin = \"echo\"\ntags = [1]\n",
            "3: skills.a.tags: expected a text in quotes, not a number",
        ),
        ("[skills.\"a b\"]\nbuiltin = \"echo\"\n", "1: skills.a b: expected a name of 1 to 64 letters"),
        ("[skills]\n", "1: skills: expected at least one skill"),
        ("[agents]\n", "1: agents: expected at least one agent"),
        ("[agents.a]\n", "1: agents.a.skills: expected at least one skill"),
        (
            "[agents.a]\nskills = [\"x\"]\n",
            "2: agents.a.skills: there is no skill \"x\"; [skills.x] with a builtin makes it",
        ),
    ];
    for (text, expected) in cases {
        let (code, given, said) = check(text, &[], &[]);
        assert_eq!((code, given.as_str()), (2, ""), "{text}");
        assert!(said.lines().any(|line| line.starts_with(&format!("a.toml:{expected}"))), "{text}: {said}");
    }
    // The same behind a skill that is there.
    let cases = [
        (
            "[agents.a]\nskills = [\"helo\"]\n",
            "4: agents.a.skills: there is no skill \"helo\"; did you mean hello?",
        ),
        ("[agents.a]\nskills = []\n", "4: agents.a.skills: expected at least one skill"),
        ("[agents.a]\nskills = [\"hello\", \"hello\"]\n", "4: agents.a.skills: \"hello\" is there already"),
        (
            "[agents.a]\nskills = [\"mcp:clock/*\"]\n",
            "4: agents.a.skills: \"mcp:clock/*\": this version of a2ad does not serve",
        ),
        ("[agents.a]\nskills = \"hello\"\n", "4: agents.a.skills: expected a list, not a text"),
        ("[agents.a]\nskils = []\n", "4: agents.a.skils: unknown key; did you mean skills?"),
        (
            "[agents.a]\nprofile = \"folk\"\n",
            "4: agents.a.profile: \"folk\" is none of neutral, fold, pinkfish, agent-native, agentos",
        ),
        ("[agents.a]\npush = true\n", "4: agents.a.push: this version of a2ad does not push yet"),
        (
            "[agents.a]\nextended_card = \"on\"\n",
            "4: agents.a.extended_card: \"on\" is none of off, open, protected, missing",
        ),
        (
            "[agents.a]\nprofile = \"pinkfish\"\nextended_card = \"open\"\n",
            "5: agents.a.extended_card: this profile serves sends and nothing else",
        ),
        (
            "[agents.a]\nextended_card = \"open\"\nextended_skills = [\"helo\"]\n",
            "5: agents.a.extended_skills: the agent has no skill \"helo\"; did you mean hello?",
        ),
        (
            "[agents.a]\nextended_skills = [\"hello\"]\n",
            "4: agents.a.extended_skills: there is no extended card to show them",
        ),
        (
            "[agents.a]\nextensions = \"urn:x\"\n",
            "4: agents.a.extensions: expected a list of tables, not a text",
        ),
        ("[agents.a]\nextensions = [\"urn:x\"]\n", "4: agents.a.extensions: expected a table, not a text"),
        (
            "[agents.a]\nextensions = [{ uri = \"urn:x\" },\n{ required = true }]\n",
            "5: agents.a.extensions[1].uri: expected the URI that names the extension",
        ),
        (
            "[agents.a]\nextensions = [{ uri = \"urn:x, urn:y\" }]\n",
            "4: agents.a.extensions[0].uri: \"urn:x, urn:y\" is not a URI such as",
        ),
        (
            "[[agents.a.extensions]]\nuri = \"urn:x\"\n[[agents.a.extensions]]\nuri = \"urn:x\"\n",
            "6: agents.a.extensions[1].uri: \"urn:x\" is there already",
        ),
        (
            "[agents.a]\nextensions = [{ uri = \"urn:x\", must = true }]\n",
            "4: agents.a.extensions[0].must: unknown key; there are uri, description, required, params",
        ),
        (
            "[agents.a]\nextensions = [{ uri = \"urn:x\", required = 1 }]\n",
            "4: agents.a.extensions[0].required: expected true or false, not a number",
        ),
        (
            "[agents.a]\nextensions = [{ uri = \"urn:x\", params = { on = 2026-01-02 } }]\n",
            "4: agents.a.extensions[0].params: a date has no place in JSON",
        ),
        (
            "[agents.a]\ncheck_media_types = \"no\"\n",
            "4: agents.a.check_media_types: expected true or false, not a text",
        ),
        ("[agents.a]\nreply = \"both\"\n", "4: agents.a.reply: \"both\" is none of task, message"),
        ("[agents.a]\nauth = []\n", "4: agents.a.auth: expected at least one way in"),
        (
            "[agents.a]\nauth = [\"password\"]\n",
            "4: agents.a.auth: \"password\" is none of anonymous, api-key",
        ),
        ("[agents.a]\ndedupe = true\n", "4: agents.a.dedupe: expected a text in quotes, not true or false"),
        (
            "[agents.a]\nretention = { max_age = \"1y\" }\n",
            "4: agents.a.retention.max_age: \"1y\" is not a duration",
        ),
        ("[agents.a]\napprove = \"ask\"\n", "4: agents.a.approve: a2ad 0.1.0 does not serve this key yet"),
        ("[agents.tasks]\n", "3: agents.tasks: \"tasks\" is a path of its own below /a2a"),
        ("[agents.\".well-known\"]\n", "3: agents..well-known: \".well-known\" is a path of its own"),
        ("[agents.\"a/b\"]\n", "3: agents.a/b: expected a name of 1 to 64 letters"),
        (
            "[agents.a]\n[agents.b]\n",
            "1: server.default_agent: say which agent is at /, one of those enabled: a, b",
        ),
        (
            "[agents.a]\n[agents.b]\nenabled = false\n[server]\ndefault_agent = \"b\"\n",
            "7: server.default_agent: no agent \"b\" is enabled",
        ),
    ];
    // A skill that is wrong is one mistake, not two.
    for text in ["[skills.x]\nbuiltin = \"ech\"\n", "[skills.x]\n[agents.a]\nskills = [\"x\"]\n"] {
        let (code, _, said) = check(text, &[], &[]);
        assert_eq!((code, said.lines().count()), (2, 1), "{said}");
    }
    for (text, expected) in cases {
        let (code, given, said) = check(&format!("{SKILL}{text}"), &[], &[]);
        assert_eq!((code, given.as_str()), (2, ""), "{text}");
        assert!(
            said.starts_with(&format!("a.toml:{expected}")) && said.lines().count() == 1,
            "{text}: {said}"
        );
    }
}

#[test]
fn all_mistakes_are_told_at_once_and_in_order() {
    let text = "[limits]\nconcurrent = 0\nmax_body = \"much\"\n[server]\nlissten = 1\n";
    let (code, _, said) = check(text, &[], &[]);
    let places: Vec<&str> =
        said.lines().map(|line| line.rsplit_once(": ").unwrap().0.get(..9).unwrap()).collect();
    assert_eq!((code, places), (2, vec!["a.toml:2:", "a.toml:3:", "a.toml:5:"]), "{said}");
    let (code, _, said) = check("[server\nlisten = 1\n", &[], &[]);
    assert_eq!(code, 2);
    assert!(said.starts_with("a.toml:1: this is no TOML: "), "{said}");
    assert_eq!(said.lines().count(), 1, "nothing is made of the rest: {said}");
    let (code, _, said) = check("[server]\nlisten = \"127.0.0.1:1\"\nlisten = \"127.0.0.1:2\"\n", &[], &[]);
    assert!(code == 2 && said.starts_with("a.toml:3: this is no TOML: duplicate key"), "{said}");
}

#[test]
fn the_environment_counts_before_the_file() {
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
    let (code, given, said) = check(text, &variables, &["--json"]);
    assert_eq!((code, said.as_str()), (0, ""));
    for part in [
        r#""concurrent":3"#,
        r#""listen":"127.0.0.1:5""#,
        r#""store":{"url":"7","retention":{"max_age_ms":2000,"max_tasks":9,"keys_ms":86400000}}"#,
        r#""dialects":["0.3","1.0"]"#,
        r#""streaming":false"#,
        r#""extended_card":"open""#,
        r#""extensions":[{"uri":"urn:x","required":true}]"#,
    ] {
        assert!(given.contains(part), "{part} is not in {given}");
    }
    for (name, value, expected) in [
        ("A2AD_LIMITS__CONCURRENT", "many", "expected a whole number of 0 or more, not many"),
        ("A2AD_LIMITS__CONCURENT", "3", "unknown key; did you mean A2AD_LIMITS__CONCURRENT?"),
        ("A2AD_LIMIT__CONCURRENT", "3", "unknown key; did you mean A2AD_LIMITS__CONCURRENT?"),
        ("A2AD_LISTEN", "here", "\"here\" is not an address with a port"),
        ("A2AD_PROTOCOL__DIALECTS", "0.4", "\"0.4\" is none of draft, 0.3, 1.0"),
        ("A2AD_LIMITS__CONCURRENT__MORE", "3", "concurrent is no table"),
    ] {
        let (code, given, said) = check(text, &[(name, value)], &[]);
        assert_eq!((code, given.as_str()), (2, ""), "{name}");
        assert!(said.starts_with(&format!("a2ad: {name}: {expected}")), "{said}");
    }
}

#[test]
fn a_file_that_cannot_be_read_and_flags_that_do_not_go_together() {
    let folder = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| read(&a2ad(folder.path(), arguments).output().unwrap());
    let (code, _, said) = run(&["check", "missing.toml"]);
    assert_eq!(
        (code, said.starts_with("a2ad: the configuration file missing.toml cannot be read: ")),
        (2, true)
    );
    assert_eq!(run(&["check", "a.toml", "--store", "b.db"]).0, 2);
    // The other thing it checks.
    let (code, _, said) = run(&["check", "--store", "missing.db"]);
    assert_eq!((code, said.contains("missing.db")), (1, true), "{said}");
}

#[test]
fn a_store_is_looked_over_and_the_verdict_is_data() {
    let folder = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| read(&a2ad(folder.path(), arguments).output().unwrap());
    drop(Server::start(a2ad(folder.path(), &["--listen", "127.0.0.1:0", "--store", "b.db"])));
    let expected = (0, "the store b.db is whole\n".to_owned(), String::new());
    assert_eq!(run(&["check", "--store", "b.db"]), expected);
    let expected = (0, r#"{"store":"b.db","whole":true,"findings":[]}"#.to_owned() + "\n", String::new());
    assert_eq!(run(&["check", "--store", "b.db", "--json"]), expected);
    // Without a path it is the default store.
    let (code, given, said) = run(&["check", "--json", "--store"]);
    assert_eq!((code, given.as_str(), said.contains("a2ad.db")), (1, "", true), "{said}");

    let store = rusqlite::Connection::open(folder.path().join("b.db")).unwrap();
    // A row that its table does not allow.
    let damage = "CREATE TABLE rotten (x); INSERT INTO rotten VALUES (NULL); PRAGMA writable_schema = ON;
        UPDATE sqlite_master SET sql = 'CREATE TABLE rotten (x NOT NULL)' WHERE name = 'rotten';";
    store.execute_batch(damage).unwrap();
    drop(store);
    let (code, given, said) = run(&["check", "--store", "b.db"]);
    assert_eq!((code, said.as_str()), (1, ""), "{given}");
    assert!(given.starts_with("the store b.db is damaged; restore a backup:\n"), "{given}");
    let (code, given, _) = run(&["check", "--store", "b.db", "--json"]);
    let start = r#"{"store":"b.db","whole":false,"findings":[""#;
    assert!(code == 1 && given.starts_with(start) && given.lines().count() == 1, "{given}");
}

#[test]
fn output_that_cannot_be_written_is_no_success() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.toml"), SKILL).unwrap();
    std::fs::write(folder.path().join("m.json"), r#"{"role":"user","parts":[{"type":"text","text":"x"}]}"#)
        .unwrap();
    for arguments in [&["check", "a.toml"][..], &["check", "a.toml", "--json"], &["explain"]] {
        let input = || std::fs::File::open(folder.path().join("m.json")).unwrap();
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let output = a2ad(folder.path(), arguments).stdin(input()).stdout(full).output().unwrap();
        let (code, _, said) = read(&output);
        assert_eq!(code, 1, "{arguments:?}");
        let start = match arguments.contains(&"--json") {
            true => r#"{"error":{"exitCode":1,"message":"the output cannot be written: No space left"#,
            false => "a2ad: the output cannot be written: No space left",
        };
        assert!(said.starts_with(start), "{said}");
        // A reader that has left needs no telling.
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
        let (code, _, said) = read(&a2ad(&examples, &["check", path.to_str().unwrap()]).output().unwrap());
        assert_eq!((code, said.as_str()), (0, ""), "{}", path.display());
    }
}

/// A server that is gone when this is dropped.
struct Server {
    child: std::process::Child,
    url: String,
}

impl Server {
    fn start(mut command: Command) -> Self {
        let mut child = command.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let line = lines.find(|line| line.as_ref().unwrap().contains(r#""url":""#)).unwrap().unwrap();
        let url = line.split_once(r#""url":""#).unwrap().1;
        Self { url: url[..url.find('"').unwrap()].to_owned(), child }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[tokio::test]
async fn agents_of_a_file_run() {
    let folder = tempfile::tempdir().unwrap();
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/office.toml");
    let arguments = ["--config", example.to_str().unwrap(), "--listen", "127.0.0.1:0", "--store", "a.db"];
    let server = Server::start(a2ad(folder.path(), &arguments));
    let say = async |client: &Client, text: &str| {
        let message = Message::new("m", Role::User, vec![Part::text(text)]);
        let call = client.call(Operation::SendMessage(SendMessage::new(message)));
        match tokio::time::timeout(Duration::from_secs(30), call).await.unwrap() {
            Ok(Reply::SentTask(task)) => Ok(task),
            other => Err(format!("{other:?}")),
        }
    };
    // The default agent chooses among its skills.
    let front = Client::discover(&server.url).await.unwrap();
    for (text, state) in [
        ("10 USD in INR", TaskState::Completed),
        ("report on tea sections=2 delay=1ms", TaskState::Completed),
        ("please sign this", TaskState::InputRequired),
        ("good morning", TaskState::InputRequired),
    ] {
        assert_eq!(say(&front, text).await.unwrap().status.state, state, "{text}");
    }
    let cashier = Client::connect(&format!("{}/a2a/cashier", server.url)).unwrap();
    assert_eq!(say(&cashier, "10 USD in INR").await.unwrap().status.state, TaskState::Completed);
    // One that is switched off is not there, nor is the demo.
    for gone in ["archive", "echo"] {
        let client = Client::connect(&format!("{}/a2a/{gone}", server.url)).unwrap();
        say(&client, "hello").await.unwrap_err();
    }
}
