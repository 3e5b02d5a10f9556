//! A command whose output is the result.

use a2ad_outbound::backends::command::CommandTool;
use protocol::{Message, Part};

use super::common::{TestServer, data, message, run, shell, text_of};

#[tokio::test]
async fn one_object_or_array_is_data_however_slowly_it_is_written() {
    let lines = run(shell("echo ' {\"n\": 1.50}'"), "x").await;
    assert_eq!(lines, ["tool-result: json {\"n\":1.50}", "completed"]);
    let lines = run(shell("printf '[1,'; sleep 0.3; echo 2]; sleep 0.3; echo"), "x").await;
    assert_eq!(lines, ["tool-result: json [1,2]", "completed"]);
}

#[tokio::test]
async fn other_output_is_text_and_no_output_is_no_result() {
    for (script, text) in [
        ("printf 'two\\nlines\\n'", "two\nlines\n"),
        ("echo 42", "42\n"),
        ("echo '{\"n\": 1}'; sleep 0.3; echo '{\"n\": 2}'", "{\"n\": 1}\n{\"n\": 2}\n"),
        ("echo '[info] begin'; sleep 0.3; echo end", "[info] begin\nend\n"),
        ("echo '{'", "{\n"),
    ] {
        assert_eq!(text_of(&run(shell(script), "x").await), text, "{script}");
    }
    assert_eq!(run(shell("true"), "x").await, ["completed"]);
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
    let text = text_of(&run(shell("seq 1 300000"), "x").await);
    let expected: String = (1..=300_000).map(|number| format!("{number}\n")).collect();
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
    let text = text_of(&output.lines);
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
            "TRACEPARENT" => assert!(value.starts_with("00-") && value.len() == 55, "{value}"),
            "LISTED" => assert_eq!(value, "yes"),
            "PATH" | "HOME" | "LANG" | "TMPDIR" => continue,
            _ => panic!("unexpected variable {name}={value}"),
        }
        names.push(name);
    }
    assert_eq!(names.len(), 7, "{names:?}");
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
    let lines = run(shell("no-such-program"), "x").await;
    let text = lines.last().unwrap();
    assert!(
        text.starts_with("failed: the command ended with exit code 127 (a program was not found): "),
        "{text}"
    );
}

#[tokio::test]
async fn exit_code_75_is_retried() {
    let script = "echo attempt $A2AD_CALL_ATTEMPT; [ $A2AD_CALL_ATTEMPT = 2 ] || exit 75";
    let lines = run(shell(script), "x").await;
    assert_eq!(lines.last().unwrap(), "completed");
    assert!(text_of(&lines).ends_with("attempt 2\n"), "{lines:?}");
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

#[tokio::test]
async fn context_id_that_a_variable_cannot_contain_is_encoded() {
    let folder = tempfile::tempdir().unwrap();
    let server = TestServer::start(folder.path(), shell("echo $A2AD_CALL_CONTEXT"));
    let message = Message { context_id: Some("a\0b".into()), ..message(vec![Part::text("x")]) };
    assert_eq!(text_of(&server.send(message).await.lines), "a%00b\n");
}
