//! `a2ad check` on valid and invalid configuration files and stores, and servers started from a file.

#![allow(clippy::unwrap_used, reason = "a test fails on any error")]

use std::{
    path::Path,
    process::{Command, Output},
    time::Duration,
};

use client::{Client, SendReply};
use protocol::{Message, Part, Role, TaskState};
use testkit::process::{self, Server};

/// Runs the program in this directory without the `A2AD_` variables of the test's environment.
fn a2ad(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = process::command(env!("CARGO_BIN_EXE_a2ad")).into_std();
    command.current_dir(folder).args(arguments);
    command
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

/// An OpenAPI document with one operation.
const SHOP: &str = r#"{"openapi": "3.1.0", "info": {"title": "Shop", "version": "1"},
    "servers": [{"url": "http://127.0.0.1:9"}],
    "paths": {"/items": {"get": {"operationId": "list", "responses": {"200": {"description": "all"}}}}}}"#;

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
    let text = r#"
        [server]
        listen = ["[::1]:1"]
        public_url = "https://agents.example.com/"
        trusted_proxies = ["10.0.0.0/8", "::1"]
        allowed_hosts = ["Agents.Example.", "[::1]:80"]
        cors_origins = ["https://App.example", "http://localhost:3000"]
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
        max_saved = "2KiB"
        max_journal = "3KiB"
        concurrent = 3
        queued = 0
        run_time = "10m"
        interrupted_ttl = "1h"
        wait = "30s"
        min_free_disk = "0B"
        rate = { per_key = "20/s", per_agent = "1000/h" }
        per_principal = { tasks = 5, stored = "2MiB" }
        [skills.hello]
        builtin = "echo"
        description = "Repeats it"
        tags = ["t"]
        examples = ["e"]
        [skills.fx]
        builtin = "currency"
        on_crash = "fail"
        run_time = "5s"
        attempts = 1000
        deadline = "1h"
        interrupted_ttl = "2h"
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
        concurrent = 2
        retention = { max_tasks = 0 }
        [agents.spare]
        skills = ["hello"]
        enabled = false
        [[agents.spare.extensions]]
        uri = "https://example.com/may"
        description = "Adds a location"
        params = { unit = "km", list = [1, 2.5, true, { deep = "x" }] }
    "#;
    let (code, stdout, stderr) = check(text, &[], &["--json"]);
    assert_eq!((code, stderr.as_str()), (0, ""));
    let expected = concat!(
        r#"{"server":{"mode":"dev","listen":"[::1]:1","listeners":[{"address":"[::1]:1","url":"http://[::1]:1","serves":"all"}],"public_url":"https://agents.example.com","#,
        r#""trusted_proxies":["10.0.0.0/8","::1/128"],"allowed_hosts":["agents.example","[::1]:80"],"#,
        r#""cors_origins":["https://app.example","http://localhost:3000"],"default_agent":"research"},"#,
        r#""store":{"url":"x.db","retention":{"max_age_ms":2000,"max_tasks":7,"keys_ms":3600000}},"#,
        r#""card":{"style":"v1","max_age_ms":300000,"grpc_scheme":false},"#,
        r#""protocol":{"dialects":["draft","1.0"],"errors":"1.0.0","lenient_version":false},"#,
        r#""auth":{"audiences":["https://agents.example.com"],"org_secrets":[],"bearer":false,"issuers":[],"#,
        r#""api_keys":{"prefix":"a2ad_","max_per_agent":20}},"#,
        r#""limits":{"max_body_bytes":1048576,"max_task_bytes":65536,"max_saved_bytes":2048,"max_journal_bytes":3072,"concurrent":3,"queued":0,"run_time_ms":600000,"interrupted_ttl_ms":3600000,"wait_ms":30000,"min_free_disk_bytes":0,"per_principal":{"tasks":5,"streams":1000,"interrupted":100,"stored_bytes":2097152},"rate":{"per_key":"20/s","per_agent":"1000/h"}},"#,
        r#""agents":[{"id":"research","name":"Research","description":"Finds things","#,
        r#""skills":[{"id":"fx","description":"Converts amounts between currencies, at bundled rates of April 2025"},"#,
        r#"{"id":"hello","description":"Repeats it"}],"#,
        r#""selectors":[],"backends":[{"skill":"fx","kind":"builtin","builtin":"currency","on_crash":"fail","run_time_ms":5000,"attempts":1000,"#,
        r#""deadline_ms":3600000,"interrupted_ttl_ms":7200000},"#,
        r#"{"skill":"hello","kind":"builtin","builtin":"echo","on_crash":"retry","run_time_ms":600000,"attempts":6,"#,
        r#""deadline_ms":0,"interrupted_ttl_ms":3600000}],"#,
        r#""enabled":true,"streaming":false,"push":false,"extended_card":"protected","extended_skills":["hello"],"#,
        r#""extensions":[{"uri":"urn:example:must","required":true}],"check_media_types":false,"keep_alive":true,"#,
        r#""profile":"agent-native","reply":"message","#,
        r#""auth":["anonymous","jwt"],"auth_source":"agent","end_user":"off","#,
        r#""warnings":["jwt is listed and no secret is configured; set A2A_SECRET, or auth.org_secrets"],"#,
        r#""dedupe":"always","concurrent":2,"retention":{"max_age_ms":2000,"max_tasks":0,"keys_ms":3600000}},"#,
        r#"{"id":"spare","name":"Echo","description":"Gives back what it is given","#,
        r#""skills":[{"id":"hello","description":"Repeats it"}],"selectors":[],"#,
        r#""backends":[{"skill":"hello","kind":"builtin","builtin":"echo","#,
        r#""on_crash":"retry","run_time_ms":600000,"attempts":6,"deadline_ms":0,"interrupted_ttl_ms":3600000}],"#,
        r#""enabled":false,"streaming":true,"push":true,"extended_card":"off","extended_skills":[],"#,
        r#""extensions":[{"uri":"https://example.com/may","description":"Adds a location","required":false,"#,
        r#""params":{"unit":"km","list":[1,2.5,true,{"deep":"x"}]}}],"check_media_types":true,"keep_alive":true,"#,
        r#""profile":"neutral","auth":["anonymous"],"auth_source":"mode","end_user":"off","warnings":[],"#,
        r#""dedupe":"auto","concurrent":0,"retention":{"max_age_ms":2000,"max_tasks":7,"keys_ms":3600000}}]}"#,
    );
    assert_eq!(stdout.trim_end(), expected);
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

#[test]
fn every_problem_is_reported_with_line_and_key() {
    // The text of the file, and the error after `a.toml:`.
    let cases = [
        ("[serve]\n", "1: serve: unknown key; did you mean server?"),
        ("colour = 1\n", "1: colour: unknown key; expected one of server, store,"),
        ("[server]\nlissten = \"x\"\n", "2: server.lissten: unknown key; did you mean listen?"),
        ("[server]\nlisten = \"here\"\n", "2: server.listen: \"here\" is not an address with a port"),
        ("[server]\nlisten = 4242\n", "2: server.listen: expected a quoted string, not a number"),
        (
            "[server]\nlisten = [\"127.0.0.1:1\", \"127.0.0.1:1\"]\n",
            "2: server.listen: 127.0.0.1:1 is listed twice",
        ),
        (
            "[server]\nlisten = [{ address = \"127.0.0.1:1\", tsl = {} }]\n",
            "2: server.listen[0].tsl: unknown key; did you mean tls?",
        ),
        (
            "[server]\nadmin_listen = { adress = \"127.0.0.1:1\" }\n",
            "2: server.admin_listen[0].adress: unknown key; did you mean address?",
        ),
        ("[server]\nlisten = []\n", "2: server.listen: expected at least one address"),
        (
            "[server]\nlisten = \"0.0.0.0:4242\"\n",
            "2: server.listen: listening on 0.0.0.0:4242 would accept calls from anyone: nobody has decided who may call demo",
        ),
        (
            "[server]\npublic_url = \"agents.example.com\"\n",
            "2: server.public_url: \"agents.example.com\" is not a URL such as https://",
        ),
        ("[server]\npublic_url = \"https://a b\"\n", "2: server.public_url: "),
        ("[server]\npublic_url = \"https://a.example:x\"\n", "2: server.public_url: "),
        (
            "[server]\nallowed_hosts = [\"a.example\",\n\"https://b.example\"]\n",
            "3: server.allowed_hosts: \"https://b.example\" is not a host with or without a port, such as agents.",
        ),
        ("[server]\nallowed_hosts = [\"*\"]\n", "2: server.allowed_hosts: \"*\" is not a host with"),
        ("[server]\nallowed_hosts = \"a\"\n", "2: server.allowed_hosts: expected a list, not a string"),
        (
            "[server]\ncors_origins = [\"app.example\"]\n",
            "2: server.cors_origins: \"app.example\" is not an origin such as https://app.example.com or",
        ),
        ("[server]\ncors_origins = [\"*\"]\n", "2: server.cors_origins: \"*\" is not an origin; list each"),
        ("[server]\ncors_origins = [\"null\"]\n", "2: server.cors_origins: \"null\" cannot be allowed"),
        (
            "[server]\ntrusted_proxies = [\"10.0.0.0/8\",\n\"10.0.0.0/33\"]\n",
            "3: server.trusted_proxies: \"10.0.0.0/33\" is neither",
        ),
        (
            "[server]\ntrusted_proxies = \"10.0.0.0/8\"\n",
            "2: server.trusted_proxies: expected a list, not a string",
        ),
        ("[server]\nmode = \"live\"\n", "2: server.mode: \"live\" is not one of dev, prod"),
        ("[server]\nmode = true\n", "2: server.mode: expected a quoted string, not a boolean"),
        (
            "[server]\ndefault_agent = \"ecko\"\n",
            "2: server.default_agent: no agent \"ecko\" is enabled; did you mean echo?",
        ),
        ("server = 3\n", "1: server: expected a table, not a number"),
        (
            "[store]\nurl = \"postgres://host/db\"\n",
            "2: store.url: \"postgres://host/db\": this version of a2ad stores its tasks in a file",
        ),
        ("[store]\nurl = \"\"\n", "2: store.url: expected the path of a file"),
        (
            "[store]\nretention = { max_age = 5 }\n",
            "2: store.retention.max_age: expected a quoted string, not a number",
        ),
        (
            "[store.retention]\nmax_task = 5\n",
            "2: store.retention.max_task: unknown key; did you mean max_tasks?",
        ),
        (
            "[store.retention]\nmax_tasks = -1\n",
            "2: store.retention.max_tasks: expected a whole number of 0 or more, not -1",
        ),
        ("[card]\nstyle = \"v2\"\n", "2: card.style: \"v2\" is not one of merged, v1, v03"),
        ("[card]\nsign = true\n", "2: card.sign: a2ad 0.1.0 does not support this key yet"),
        ("[protocol]\ndialects = []\n", "2: protocol.dialects: expected at least one of draft, 0.3, 1.0"),
        (
            "[protocol]\ndialects = [\"1.0\", \"2.0\"]\n",
            "2: protocol.dialects: \"2.0\" is not one of draft, 0.3, 1.0",
        ),
        (
            "[protocol]\nerrors = 1.0\n",
            "2: protocol.errors: expected a quoted string, not a floating-point number",
        ),
        (
            "[protocol]\nlenient_version = \"yes\"\n",
            "2: protocol.lenient_version: expected true or false, not a string",
        ),
        ("[limits]\nwait = 5\n", "2: limits.wait: expected a quoted string, not a number"),
        ("[limits]\nconcurent = 3\n", "2: limits.concurent: unknown key; did you mean concurrent?"),
        ("[limits]\nconcurrent = 0\n", "2: limits.concurrent: expected more than 0"),
        ("[limits]\nqueued = -1\n", "2: limits.queued: expected a whole number of 0 or more, not -1"),
        ("[limits]\nqueued = \"10\"\n", "2: limits.queued: expected a whole number, not a string"),
        (
            "[skills.a]\nbuiltin = \"echo\"\n[agents.b]\nconcurrent = -1\n",
            "4: agents.b.concurrent: expected a whole number of 0 or more, not -1",
        ),
        (
            "[skills.a]\nbuiltin = \"echo\"\n[agents.b]\nconcurrent = 0.5\n",
            "4: agents.b.concurrent: expected a whole number",
        ),
        (
            "[limits]\nmax_body = \"16\"\n",
            "2: limits.max_body: \"16\" is not a size; write 512B, 64KiB, 16MiB or 1GiB",
        ),
        (
            "[limits]\nrun_time = \"soon\"\n",
            "2: limits.run_time: \"soon\" is not a duration; write 250ms, 10s, 10m",
        ),
        (
            "[limits]\nrate = { per_key = \"1/m\" }\n",
            "2: limits.rate.per_key: \"1/m\" is not a rate; write 20/s, 600/min or 1000/h, with 1 to 1000000 calls",
        ),
        (
            "[limits]\nper_principal = { taks = 1 }\n",
            "2: limits.per_principal.taks: unknown key; did you mean tasks?",
        ),
        (
            "[limits]\nmin_free_disk = \"0\"\n",
            "2: limits.min_free_disk: \"0\" is not a size; write 512B, 64KiB, 16MiB or 1GiB",
        ),
        ("[limits]\nmax_hops = 3\n", "2: limits.max_hops: a2ad 0.1.0 does not support this key yet"),
        (
            "[auth]\nsecret_env = \"A2AD_NOT_SET\"\n",
            "2: auth.secret_env: the environment variable A2AD_NOT_SET is not set; set it before starting",
        ),
        ("[auth]\nsecret_env = 5\n", "2: auth.secret_env: expected a quoted string, not a number"),
        (
            "[auth]\nsecret_env = \"SHORT\"\n",
            "2: auth.secret_env: the environment variable SHORT has fewer than 16 bytes; use a random secret",
        ),
        ("[auth]\nsecret = \"abc\"\n", "2: auth.secret: unknown key; expected one of secret_env, "),
        ("[auth]\naudience = [\"a\"]\n", "2: auth.audience: expected a quoted string, not a list"),
        (
            "[auth]\nbearer_env = \"A2AD_NOT_SET\"\n",
            "2: auth.bearer_env: the environment variable A2AD_NOT_SET is not set",
        ),
        (
            "[auth]\nbearer_env = \"SHORT\"\n",
            "2: auth.bearer_env: the environment variable SHORT has fewer than",
        ),
        (
            "[auth]\nbearer_env = \"SPACED\"\n",
            "2: auth.bearer_env: the environment variable SPACED has characters that cannot be in a header",
        ),
        (
            "[auth]\norg_secrets = { \"acme.example\" = \"ACME\" }\n",
            "2: auth.org_secrets.\"acme.example\": expected a table, not a string",
        ),
        (
            "[auth]\norg_secrets = { \"acme.example\" = {} }\n",
            "2: auth.org_secrets.\"acme.example\".env: expected the environment variable with the secret",
        ),
        (
            "[auth]\norg_secrets = { \"acme.example\" = { env = \"\" } }\n",
            "2: auth.org_secrets.\"acme.example\".env: expected the name of an environment variable",
        ),
        (
            "[auth.org_secrets.\"acme.example\"]\nenv = \"A2AD_NOT_SET\"\n",
            "2: auth.org_secrets.\"acme.example\".env: the environment variable A2AD_NOT_SET is not set",
        ),
        (
            "[auth.org_secrets.\"acme.example\"]\nenv = \"SHORT\"\n",
            "2: auth.org_secrets.\"acme.example\".env: the environment variable SHORT has fewer than 16",
        ),
        (
            "[auth.org_secrets.acme]\nenvv = \"PATH\"\n",
            "2: auth.org_secrets.acme.envv: unknown key; did you mean env?",
        ),
        (
            "[auth.org_secrets.\"Acme Inc\"]\nenv = \"PATH\"\n",
            "1: auth.org_secrets.\"Acme Inc\": \"Acme Inc\" is not a domain in lower case, such as acme.example",
        ),
        (
            "[auth.org_secrets.\"acme.example\"]\nenv = \"PATH\"\n[auth.org_secrets.\"ACME.example\"]\nenv = \"PATH\"\n",
            "3: auth.org_secrets.\"ACME.example\": \"ACME.example\" is not a domain in lower case",
        ),
        ("[auth]\nissuers = { issuer = \"x\" }\n", "2: auth.issuers: expected a list of tables, not a table"),
        ("[auth]\nissuers = [\"https://id.example\"]\n", "2: auth.issuers: expected a table, not a string"),
        (
            "[auth]\nissuers = [{ issuer = \"https://id.example\" }]\n",
            "2: auth.issuers[0].audience: expected the audience that its tokens must have",
        ),
        (
            "[auth]\nissuers = [{ issuer = \"https://id.example\", audience = \"\" }]\n",
            "2: auth.issuers[0].audience: expected the audience that its tokens must have",
        ),
        (
            "[[auth.issuers]]\naudience = \"a\"\n",
            "1: auth.issuers[0].issuer: expected the issuer, which its tokens name as iss",
        ),
        (
            "[[auth.issuers]]\nissuer = \"http://id.example\"\naudience = \"a\"\n",
            "2: auth.issuers[0].issuer: \"http://id.example\" is not an https URL such as https://id.example",
        ),
        (
            "[[auth.issuers]]\nissuer = \"https://id.example?x\"\naudience = \"a\"\n",
            "2: auth.issuers[0].issuer: \"https://id.example?x\" has a query or a fragment",
        ),
        (
            "[[auth.issuers]]\nissuer = \"https://id.example\"\naudience = \"a\"\njwks_uri = \"http://id.example/keys\"\n",
            "4: auth.issuers[0].jwks_uri: \"http://id.example/keys\" is not an https URL",
        ),
        (
            "[[auth.issuers]]\nissuer = \"https://id.example\"\naudience = \"a\"\n\
             [[auth.issuers]]\nissuer = \"https://id.example\"\naudience = \"b\"\n",
            "5: auth.issuers[1].issuer: \"https://id.example\" is listed twice",
        ),
        (
            "[auth]\nissuers = [{ issuer = \"https://id.example\", audience = \"a\", key = \"x\" }]\n",
            "2: auth.issuers[0].key: unknown key; expected one of issuer, audience, jwks_uri",
        ),
        (
            "[auth]\napi_keys = { prefix = \"\" }\n",
            "2: auth.api_keys.prefix: \"\" is not a prefix of 1 to 32 letters, digits, '_' or '-'",
        ),
        ("[auth]\napi_keys = { prefix = \"a b\" }\n", "2: auth.api_keys.prefix: \"a b\" is not a prefix"),
        (
            "[auth.api_keys]\nmax_per_agent = 0\n",
            "2: auth.api_keys.max_per_agent: 0 is not a number from 1 to 1000",
        ),
        ("[auth.api_keys]\nmax_per_agent = 1001\n", "2: auth.api_keys.max_per_agent: 1001 is not a number"),
        (
            "[auth.api_keys]\nmax_per_agent = \"20\"\n",
            "2: auth.api_keys.max_per_agent: expected a whole number",
        ),
        (
            "[mcp.clock]\nurl = \"http://127.0.0.1:1/mcp\"\ncommand = [\"sh\"]\n",
            "2: mcp.clock.url: a server has either a command or a url, not both",
        ),
        ("[mcp.clock]\ntimeout = \"5s\"\n", "1: mcp.clock.command: expected how to reach the server"),
        (
            "[mcp.clock]\ncommand = [\"no-such-program\"]\n",
            "2: mcp.clock.command: the program \"no-such-program\" was not found in PATH",
        ),
        (
            "[mcp.clock]\ncommand = [\"sh\"]\npool = { min = 3, max = 2 }\n",
            "3: mcp.clock.pool.min: expected at most max, which is 2",
        ),
        (
            "[mcp.clock]\ncommand = [\"sh\"]\nbearer_env = \"X\"\n",
            "3: mcp.clock.bearer_env: a server with a command has no request headers",
        ),
        (
            "[mcp.clock]\nurl = \"http://127.0.0.1:1/mcp\"\nbearer_env = \"A2AD_NOT_SET\"\n",
            "3: mcp.clock.bearer_env: the environment variable A2AD_NOT_SET is not set",
        ),
        ("[mcp.clock]\nurl = \"clock\"\n", "2: mcp.clock.url: \"clock\" is not a URL such as http://"),
        (
            "[mcp.clock]\ncommand = [\"sh\"]\n[agents.a]\nskills = [\"mcp:clok/*\"]\n",
            "4: agents.a.skills: \"mcp:clok/*\": there is no \"clok\" in [mcp]; did you mean clock?",
        ),
        (
            "[mcp.clock]\ncommand = [\"sh\"]\n[agents.a]\nskills = [\"mcp:clock\"]\n",
            "4: agents.a.skills: \"mcp:clock\": expected mcp:NAME/ITEM or mcp:NAME/*",
        ),
        (
            "[skills.a]\nmcp = { server = \"clock\", tool = \"now\" }\n",
            "2: skills.a.mcp.server: there is no MCP server \"clock\"; define it as [mcp.clock]",
        ),
        (
            "[openapi.shop]\nfile = \"nothing.yaml\"\n",
            "2: openapi.shop.file: the file nothing.yaml cannot be read",
        ),
        (
            "[openapi.shop]\nfile = \"shop.json\"\n[agents.a]\nskills = [\"openapi:shop/lst\"]\n",
            "4: agents.a.skills: \"openapi:shop/lst\": the document has no operation \"lst\"; did you mean list?",
        ),
        (
            "[skills.a]\nbuiltin = \"ecko\"\n",
            "2: skills.a.builtin: \"ecko\" is not one of adder, approver, clerk, currency, demo, echo",
        ),
        ("[skills.a]\ndescription = \"x\"\n", "1: skills.a.builtin: expected what does the work, one of: "),
        ("[skills.a]\nhttp = { url = \"x\" }\n", "2: skills.a.http.url: "),
        (
            "[skills.a]\nhttp = { url = \"http://127.0.0.1:1/\", method = \"TRACE\" }\n",
            "2: skills.a.http.method: \"TRACE\" is not one of GET, HEAD, POST, PUT, PATCH, DELETE",
        ),
        (
            "[skills.a]\ncommand = { argv = [\"./no-such-program\"] }\n",
            "2: skills.a.command.argv: the program \"./no-such-program\" does not exist",
        ),
        (
            "[skills.a]\ncommand = { argv = [\"sh\"], cwd = \"nowhere\" }\n",
            "2: skills.a.command.cwd: \"nowhere\" is not a directory",
        ),
        (
            "[skills.a]\nbuiltin = \"echo\"\ncommand = { argv = [\"sh\"] }\n",
            "3: skills.a.command: a skill has one backend, not builtin and command",
        ),
        (
            "[skills.a]\ncommand = { argv = [\"sh\"] }\ninput_schema = \"nothing.json\"\n",
            "3: skills.a.input_schema: the file nothing.json cannot be read",
        ),
        ("[outbound]\nallow = [\"10.0.0.0/33\"]\n", "2: outbound.allow: \"10.0.0.0/33\" is neither"),
        (
            "[skills.a]\nllm = { model = \"m\" }\n",
            "2: skills.a.llm: a2ad 0.1.0 does not support this key yet",
        ),
        (
            "[skills.a]\nbuiltin = \"echo\"\ntags = [1]\n",
            "3: skills.a.tags: expected a quoted string, not a number",
        ),
        (
            "[skills.a]\nbuiltin = \"echo\"\non_crash = \"again\"\n",
            "3: skills.a.on_crash: \"again\" is not one of retry, resume, fail",
        ),
        (
            "[skills.a]\nbuiltin = \"echo\"\nattempts = 0\n",
            "3: skills.a.attempts: expected 1 to 1000 attempts, not 0",
        ),
        (
            "[skills.a]\nbuiltin = \"echo\"\nattempts = 1001\n",
            "3: skills.a.attempts: expected 1 to 1000 attempts, not 1001",
        ),
        (
            "[skills.a]\nbuiltin = \"echo\"\nattempts = \"6\"\n",
            "3: skills.a.attempts: expected a whole number, not a string",
        ),
        ("[skills.a]\nbuiltin = \"echo\"\nrun_time = \"0s\"\n", "3: skills.a.run_time: expected more than 0"),
        (
            "[skills.a]\nbuiltin = \"echo\"\nrun_time = \"\"\n",
            "3: skills.a.run_time: \"\" is not a duration; write 250ms, 10s, 10m",
        ),
        ("[skills.a]\nbuiltin = \"echo\"\ndeadline = \"0s\"\n", "3: skills.a.deadline: expected more than 0"),
        (
            "[skills.a]\nbuiltin = \"echo\"\ndeadline = \"soon\"\n",
            "3: skills.a.deadline: \"soon\" is not a duration; write 250ms, 10s, 10m",
        ),
        (
            "[skills.a]\nbuiltin = \"echo\"\ninterrupted_ttl = 5\n",
            "3: skills.a.interrupted_ttl: expected a quoted string, not a number",
        ),
        ("[limits]\ninterrupted_ttl = \"0s\"\n", "2: limits.interrupted_ttl: expected more than 0"),
        (
            "[skills.a]\nbuiltin = \"demo\"\n[agents.a]\nskills_allow = [\"echo\"]\n",
            "4: agents.a.skills_allow: the built-in agent of \"a\" chooses among its skills itself; give the agent",
        ),
        ("[skills.\"a b\"]\nbuiltin = \"echo\"\n", "1: skills.\"a b\": expected a name of 1 to 64 letters"),
        ("\"\" = 1\n", "1: \"\": unknown key; expected one of server"),
        ("[skills]\n", "1: skills: expected at least one skill"),
        ("[agents]\n", "1: agents: expected at least one agent"),
        ("[agents.a]\n", "1: agents.a.skills: expected at least one skill"),
        (
            "[agents.a]\nskills = [\"x\"]\n",
            "2: agents.a.skills: there is no skill \"x\"; define it as [skills.x] with a backend",
        ),
    ];
    let secrets = [("SHORT", "s3cret"), ("SPACED", "s3cret with spaces")];
    for (text, expected) in cases {
        let (code, stdout, stderr) = check(text, &secrets, &[]);
        assert_eq!((code, stdout.as_str()), (2, ""), "{text}");
        assert!(
            stderr.lines().any(|line| line.starts_with(&format!("a.toml:{expected}"))),
            "{text}: {stderr}"
        );
        assert!(!stderr.contains("s3cret"), "{stderr}");
    }
    // The same after a valid skill.
    let cases = [
        (
            "[agents.a]\nauth = [\"jwt\", \"mtls\"]\n",
            "4: agents.a.auth: \"mtls\": no address of the server verifies client certificates; set client_ca",
        ),
        (
            "[agents.a]\nauth = [\"password\"]\n",
            "4: agents.a.auth: \"password\" is not one of anonymous, api-key, jwt, oidc, bearer",
        ),
        ("[agents.a]\nauth = [\"jwt\", \"jwt\"]\n", "4: agents.a.auth: \"jwt\" is listed twice"),
        ("[agents.a]\nauth = []\n", "4: agents.a.auth: expected at least one authentication method"),
        ("[agents.a]\nauth = \"jwt\"\n", "4: agents.a.auth: expected a list, not a string"),
        ("[agents.a]\nend_user = true\n", "4: agents.a.end_user: expected a quoted string, not a boolean"),
        ("[agents.a]\nend_user = \"on\"\n", "4: agents.a.end_user: \"on\" is not one of off, required"),
        (
            "[agents.a]\nskills = [\"helo\"]\n",
            "4: agents.a.skills: there is no skill \"helo\"; did you mean hello?",
        ),
        ("[agents.a]\nskills = []\n", "4: agents.a.skills: expected at least one skill"),
        ("[agents.a]\nskills = [\"hello\", \"hello\"]\n", "4: agents.a.skills: \"hello\" is listed twice"),
        (
            "[agents.a]\nskills = [\"mcp:clock/*\"]\n",
            "4: agents.a.skills: \"mcp:clock/*\": there is no \"clock\"; define it as [mcp.clock]",
        ),
        (
            "[agents.a]\nskills = [\"pipeline:p\"]\n",
            "4: agents.a.skills: \"pipeline:p\": this version of a2ad does not support",
        ),
        (
            "[agents.a]\nskills_allow = [\"helo\"]\n",
            "4: agents.a.skills_allow: the agent has no skill \"helo\"; did you mean hello?",
        ),
        ("[agents.a]\nskills = \"hello\"\n", "4: agents.a.skills: expected a list, not a string"),
        ("[agents.a]\nskils = []\n", "4: agents.a.skils: unknown key; did you mean skills?"),
        (
            "[agents.a]\nprofile = \"folk\"\n",
            "4: agents.a.profile: \"folk\" is not one of neutral, fold, pinkfish, agent-native, agentos",
        ),
        ("[agents.a]\npush = \"yes\"\n", "4: agents.a.push: "),
        (
            "[agents.a]\nextended_card = \"on\"\n",
            "4: agents.a.extended_card: \"on\" is not one of off, open, protected, missing",
        ),
        (
            "[agents.a]\nprofile = \"pinkfish\"\nextended_card = \"open\"\n",
            "5: agents.a.extended_card: this profile serves only sends",
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
            "4: agents.a.extensions: expected a list of tables, not a string",
        ),
        ("[agents.a]\nextensions = [\"urn:x\"]\n", "4: agents.a.extensions: expected a table, not a string"),
        (
            "[agents.a]\nextensions = [{ uri = \"urn:x\" },\n{ required = true }]\n",
            "5: agents.a.extensions[1].uri: expected the URI of the extension",
        ),
        (
            "[agents.a]\nextensions = [{ uri = \"urn:x, urn:y\" }]\n",
            "4: agents.a.extensions[0].uri: \"urn:x, urn:y\" is not a URI such as",
        ),
        (
            "[[agents.a.extensions]]\nuri = \"urn:x\"\n[[agents.a.extensions]]\nuri = \"urn:x\"\n",
            "6: agents.a.extensions[1].uri: \"urn:x\" is listed twice",
        ),
        (
            "[agents.a]\nextensions = [{ uri = \"urn:x\", must = true }]\n",
            "4: agents.a.extensions[0].must: unknown key; expected one of uri, description, required, params",
        ),
        (
            "[agents.a]\nextensions = [{ uri = \"urn:x\", required = 1 }]\n",
            "4: agents.a.extensions[0].required: expected true or false, not a number",
        ),
        (
            "[agents.a]\nextensions = [{ uri = \"urn:x\", params = { on = 2026-01-02 } }]\n",
            "4: agents.a.extensions[0].params: a date cannot be written as JSON",
        ),
        (
            "[agents.a]\ncheck_media_types = \"no\"\n",
            "4: agents.a.check_media_types: expected true or false, not a string",
        ),
        ("[agents.a]\nreply = \"both\"\n", "4: agents.a.reply: \"both\" is not one of task, message"),
        ("[agents.a]\ndedupe = true\n", "4: agents.a.dedupe: expected a quoted string, not a boolean"),
        (
            "[agents.a]\nretention = { max_age = \"1y\" }\n",
            "4: agents.a.retention.max_age: \"1y\" is not a duration",
        ),
        ("[agents.a]\napprove = \"ask\"\n", "4: agents.a.approve: a2ad 0.1.0 does not support this key yet"),
        ("[agents.tasks]\n", "3: agents.tasks: \"tasks\" is reserved: the server uses this path below /a2a"),
        ("[agents.\".well-known\"]\n", "3: agents.\".well-known\": \".well-known\" is reserved"),
        ("[agents.\"a/b\"]\n", "3: agents.\"a/b\": expected a name of 1 to 64 letters"),
        (
            "[agents.a]\n[agents.b]\nenabled = false\n[server]\ndefault_agent = \"b\"\n",
            "7: server.default_agent: no agent \"b\" is enabled",
        ),
    ];
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
    for (text, expected) in cases {
        let (code, stdout, stderr) = check(&format!("{SKILL}{text}"), &[], &[]);
        assert_eq!((code, stdout.as_str()), (2, ""), "{text}");
        assert!(
            stderr.starts_with(&format!("a.toml:{expected}")) && stderr.lines().count() == 1,
            "{text}: {stderr}"
        );
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
    let send = async |client: &Client, text: &str| {
        let message = Message::new("m", Role::User, vec![Part::text(text)]);
        let call = client.send(message);
        match tokio::time::timeout(Duration::from_secs(30), call).await.unwrap() {
            Ok(SendReply::Task(task)) => Ok(task),
            other => Err(format!("{other:?}")),
        }
    };
    // The default agent selects one of its skills.
    let front = Client::discover(&server.url()).await.unwrap();
    for (text, state) in [
        ("10 USD in INR", TaskState::Completed),
        ("report on tea sections=2 delay=1ms", TaskState::Completed),
        ("please sign this", TaskState::InputRequired),
        ("good morning", TaskState::InputRequired),
    ] {
        assert_eq!(send(&front, text).await.unwrap().status.state, state, "{text}");
    }
    let cashier = Client::connect(&format!("{}/a2a/cashier", server.url())).unwrap();
    assert_eq!(send(&cashier, "10 USD in INR").await.unwrap().status.state, TaskState::Completed);
    // Neither the disabled agent nor the demo is served.
    for absent in ["archive", "echo"] {
        let client = Client::connect(&format!("{}/a2a/{absent}", server.url())).unwrap();
        send(&client, "hello").await.unwrap_err();
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
