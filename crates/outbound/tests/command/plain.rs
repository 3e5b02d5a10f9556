//! A command whose output is the result.

use a2ad_outbound::backends::command::CommandTool;
use protocol::Part;

use crate::common::{TestServer, data, message, run, shell};

#[tokio::test]
async fn short_json_output_is_data_and_other_output_is_text() {
    let lines = run(shell("echo ' {\"n\": 1.50}'"), "x").await;
    assert_eq!(lines, ["tool-result: json {\"n\":1.50}", "completed"]);
    let lines = run(shell("printf 'two\\nlines\\n'"), "x").await;
    assert_eq!(lines, ["tool-result: two\nlines\n", "completed"]);
    let lines = run(shell("true"), "x").await;
    assert_eq!(lines, ["tool-result: ", "completed"]);
}

#[tokio::test]
async fn output_of_a_running_command_is_streamed() {
    let folder = tempfile::tempdir().unwrap();
    let goes_on = folder.path().join("go on");
    // It waits until its first line was received, so the order does not depend on time.
    let script = "echo one; until [ -e \"$GOES_ON\" ]; do sleep 0.02; done; echo two";
    let mut tool = shell(script);
    tool.env.insert("GOES_ON".into(), goes_on.to_str().unwrap().into());
    let server = TestServer::start(folder.path(), tool);
    let output = server
        .send_and_watch(message(vec![Part::text("x")]), |_, line| {
            if line.starts_with("tool-result") {
                std::fs::write(&goes_on, "").unwrap();
            }
        })
        .await;
    assert_eq!(output.lines, ["tool-result: one\n…", "tool-result+: two\n…", "completed"]);
}

#[tokio::test]
async fn large_output_is_streamed_completely() {
    let lines = run(shell("seq 1 60000"), "x").await;
    let text: String = lines
        .iter()
        .filter_map(|line| line.strip_prefix("tool-result"))
        .map(|line| line.trim_start_matches('+').strip_prefix(": ").unwrap().trim_end_matches('…'))
        .collect();
    let expected: String = (1..=60000).map(|number| format!("{number}\n")).collect();
    assert!(text == expected, "{} of {} bytes", text.len(), expected.len());
}

#[tokio::test]
async fn command_gets_bare_arguments_and_facts_of_the_call_in_a_clean_environment() {
    let folder = tempfile::tempdir().unwrap();
    let script = "cat; pwd; env | sort | grep -v '^PWD=\\|^_=\\|^SHLVL=\\|^OLDPWD='";
    let cwd = folder.path().canonicalize().unwrap();
    let tool = CommandTool { cwd: Some(cwd.clone()), ..shell(script) };
    let tool = CommandTool { env: [("LISTED".into(), "yes".into())].into(), ..tool };
    let server = TestServer::start(folder.path(), tool);
    let output = server.send(data("{\"a\": [1, 2]}")).await;
    let text = output.lines[0].strip_prefix("tool-result: ").unwrap();
    let mut lines = text.lines();
    assert_eq!((lines.next(), lines.next()), (Some("{\"a\":[1,2]}"), cwd.to_str()));
    let task = server.get(&output.task.unwrap()).await;
    let mut names = Vec::new();
    for (name, value) in lines.map(|line| line.split_once('=').unwrap()) {
        match name {
            "A2AD_CALL_TASK" => assert_eq!(value, task.id.as_str()),
            "A2AD_CALL_CONTEXT" => assert_eq!(value, task.context_id.as_str()),
            "A2AD_CALL_SKILL" => assert_eq!(value, "tool"),
            "A2AD_CALL_ATTEMPT" => assert_eq!(value, "1"),
            "A2AD_CALL_IDEMPOTENCY_KEY" => assert!(value.starts_with("a2ad:"), "{value}"),
            "LISTED" => assert_eq!(value, "yes"),
            "PATH" | "HOME" | "LANG" | "TMPDIR" => continue,
            _ => panic!("unexpected variable {name}={value}"),
        }
        names.push(name);
    }
    assert_eq!(names.len(), 6, "{names:?}");
}

#[tokio::test]
async fn exit_code_and_signal_fail_the_task_with_the_end_of_standard_error() {
    let lines = run(shell("echo partly; echo broken >&2; exit 3"), "x").await;
    assert_eq!(lines.last().unwrap(), "failed: the command ended with exit code 3: broken");
    let lines = run(shell("kill -9 $$"), "x").await;
    assert_eq!(lines.last().unwrap(), "failed: the command was ended by signal 9 (SIGKILL)");
    let lines = run(shell("seq 1 100000 >&2; exit 1"), "x").await;
    let text = lines.last().unwrap();
    assert!(text.len() < 2200 && text.ends_with("\n100000"), "{text}");
}

#[tokio::test]
async fn exit_code_75_is_retried() {
    let script = "echo attempt $A2AD_CALL_ATTEMPT; [ $A2AD_CALL_ATTEMPT = 2 ] || exit 75";
    let lines = run(shell(script), "x").await;
    assert_eq!(lines[lines.len() - 2..], ["tool-result: attempt 2\n", "completed"]);
}

#[tokio::test]
async fn missing_program_fails_the_task_without_details() {
    let mut tool = shell("");
    tool.argv[0] = "no-such-program".into();
    let lines = run(tool, "x").await;
    let expected = "failed: the command of the skill cannot be started; the server's log has the reason";
    assert_eq!(lines.last().unwrap(), expected);
}

#[tokio::test]
async fn command_that_does_not_read_its_input_succeeds() {
    let folder = tempfile::tempdir().unwrap();
    let server = TestServer::start(folder.path(), shell("exec <&-; echo done"));
    let text = "x".repeat(1 << 20);
    assert_eq!(server.result(&text).await.last().unwrap(), "completed");
}
