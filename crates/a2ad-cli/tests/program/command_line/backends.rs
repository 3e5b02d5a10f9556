//! `a2ad add` and `a2ad try`: backends are put into the configuration file, and skills run without a server.

use std::{fs::Permissions, os::unix::fs::PermissionsExt as _, path::Path};

use crate::common::{SHOP, run};

const BEFORE: &str = "# mine\n[limits] # all of them\nwait = \"5s\"\n";

fn file(folder: &Path) -> String {
    std::fs::read_to_string(folder.join("a2ad.toml")).unwrap()
}

#[tokio::test]
async fn added_command_can_be_tried_and_the_rest_of_the_file_stays() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::write(folder.join("a2ad.toml"), BEFORE).unwrap();
    std::fs::set_permissions(folder.join("a2ad.toml"), Permissions::from_mode(0o640)).unwrap();
    let command = ["--", "sh", "-c", "tr a-z A-Z"];
    let added =
        run(folder, &[&["add", "command", "shout", "--description", "Shouts"], &command[..]].concat()).await;
    assert_eq!(added.code, 0, "{}", added.err);
    assert!(added.err.contains("added [skills.shout]") && added.err.contains("agent main"), "{}", added.err);
    let text = file(folder);
    assert!(text.starts_with(BEFORE) && text.contains("[skills.shout]\n"), "{text}");
    let mode = std::fs::metadata(folder.join("a2ad.toml")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o640);

    let tried = run(folder, &["try", "shout", "hello"]).await;
    assert!(tried.code == 0 && tried.out.contains("HELLO"), "{}{}", tried.out, tried.err);
    let tried = run(folder, &["try", "shout", "--data", r#"{"a": "b"}"#, "--json"]).await;
    assert!(tried.code == 0 && tried.out.contains(r#""TASK_STATE_COMPLETED""#), "{}{}", tried.out, tried.err);
    run(folder, &["try", "shoot", "x"])
        .await
        .ends(2, &["there is no skill \"shoot\"", "did you mean shout?"]);
    run(folder, &["try", "shout", "--data", "{"]).await.ends(2, &["--data"]);

    let again = run(folder, &[&["add", "command", "shout"], &command[..]].concat()).await;
    again.ends(2, &["[skills.shout] exists already"]);
    let missing = run(folder, &["add", "command", "other", "--", "no-such-program"]).await;
    missing.ends(2, &["skills.other.command.argv", "\"no-such-program\" was not found in PATH"]);
    assert_eq!(file(folder), text);
    assert_eq!(std::fs::read_dir(folder).unwrap().count(), 1, "a temporary file was left");
}

#[tokio::test]
async fn trial_start_shows_what_was_found_and_its_failure_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::write(folder.join("shop.json"), SHOP).unwrap();
    let added = run(folder, &["add", "openapi", "shop", "shop.json"]).await;
    assert!(added.code == 0 && added.err.contains("list: Lists all items"), "{}", added.err);
    let text = file(folder);
    assert_eq!(text, "[openapi.shop]\nfile = \"shop.json\"\n");

    let script = "echo no licence found >&2; exit 3";
    let failed = run(folder, &["add", "mcp", "clock", "--", "sh", "-c", script]).await;
    failed
        .ends(1, &["the MCP server clock did not list its tools", "no licence found", "nothing was written"]);
    assert_eq!(file(folder), text);
    let added = run(folder, &["add", "mcp", "clock", "--no-trial", "--", "sh", "-c", script]).await;
    assert_eq!(added.code, 0, "{}", added.err);
    assert!(file(folder).starts_with(&text) && file(folder).contains("[mcp.clock]"), "{}", file(folder));
}
