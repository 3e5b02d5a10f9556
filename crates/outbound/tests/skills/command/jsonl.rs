//! A command that writes JSON lines.

use super::common::{TestServer, answer, jsonl, message, run, with_timeout};

use protocol::Part;

#[tokio::test]
async fn lines_are_progress_chunks_and_the_result() {
    let script = r#"
        echo '{"type":"progress","text":"half"}'
        echo
        echo '{"type":"artifact","text":"a"}'
        echo '{"type":"artifact","data":{"b":1.0},"last":true}'
    "#;
    let lines = run(jsonl(script), "x").await;
    assert_eq!(lines, ["working: half", "tool-result: a…", "tool-result+: json {\"b\":1.0}", "completed"]);
    let lines = run(jsonl(r#"printf '{"type":"result","text":"t","data":[1]}'"#), "x").await;
    assert_eq!(lines, ["tool-result: t | json [1]", "completed"]);
    let lines = run(jsonl(r#"echo '{"type":"failed","text":"no paper"}'; exit 1"#), "x").await;
    assert_eq!(lines, ["failed: no paper"]);
}

#[tokio::test]
async fn invalid_line_fails_the_task_and_names_the_line() {
    let script = r#"echo '{"type":"progress","text":"x"}'; echo hello; sleep 60"#;
    let lines = with_timeout(run(jsonl(script), "x")).await;
    assert_eq!(
        lines.last().unwrap(),
        "failed: line 2 of the command's output, \"hello\": expected one JSON object with \"type\": progress, \
         artifact, checkpoint, ask, result or failed"
    );
    let script = r#"echo '{"type":"result","text":"x"}'; echo '{"type":"result","text":"y"}'"#;
    let text = run(jsonl(script), "x").await.pop().unwrap();
    assert!(text.starts_with("failed: line 2 of the command's output, "), "{text}");
    assert!(text.ends_with(": no line may follow ask, result or failed"), "{text}");
}

#[tokio::test]
async fn success_needs_exit_code_0() {
    let lines = run(jsonl(r#"echo '{"type":"result","text":"x"}'; exit 4"#), "x").await;
    assert_eq!(lines, ["failed: the command ended with exit code 4"]);
}

#[tokio::test]
async fn question_gets_its_answer_with_the_same_arguments_and_the_last_checkpoint() {
    let folder = tempfile::tempdir().unwrap();
    let script = r#"
        if [ -z "$A2AD_CALL_ANSWER" ]; then
            echo '{"type":"checkpoint","data":{"n":1}}'
            echo '{"type":"checkpoint","data":{"n":2.0}}'
            echo '{"type":"ask","text":"Which colour?","schema":{"type":"string"}}'
        else
            modes=$(stat -c %a "$A2AD_CALL_SAVED" "$(dirname "$A2AD_CALL_SAVED")")
            printf '{"type":"result","data":{"saved":%s,"answer":%s,"arguments":%s,"modes":"%s","folder":"%s"}}' \
                "$(cat "$A2AD_CALL_SAVED")" "$(cat "$A2AD_CALL_ANSWER")" "$(cat)" "$(echo $modes)" \
                "$(dirname "$A2AD_CALL_SAVED")"
        fi
    "#;
    let server = TestServer::start(folder.path(), jsonl(script));
    let asked = server.send(message(vec![Part::text("paint")])).await;
    assert_eq!(asked.lines, ["input_required: Which colour? | json {\"type\":\"string\"}"]);
    let answered = server.send(answer(&asked, "blue")).await;
    let expected = "tool-result: json {\"saved\":{\"n\":2.0},\"answer\":{\"text\":\"blue\",\"data\":null},\
        \"arguments\":{\"text\":\"paint\"},\"modes\":\"600 700\",\"folder\":\"";
    let result = answered.lines.iter().find(|line| line.starts_with("tool-result")).unwrap();
    let folder = result.strip_prefix(expected).unwrap_or_else(|| panic!("{result}")).trim_end_matches("\"}");
    assert!(!std::path::Path::new(folder).exists(), "{folder} was not removed");
}

#[tokio::test]
async fn question_without_checkpoint_has_no_saved_state() {
    let folder = tempfile::tempdir().unwrap();
    let script = r#"
        if [ -z "$A2AD_CALL_ANSWER" ]; then echo '{"type":"ask","text":"?"}'; exit; fi
        echo "{\"type\":\"result\",\"text\":\"saved: ${A2AD_CALL_SAVED-none}\"}"
    "#;
    let server = TestServer::start(folder.path(), jsonl(script));
    let asked = server.send(message(vec![Part::text("x")])).await;
    let lines = server.send(answer(&asked, "y")).await.lines;
    assert_eq!(lines.last_chunk().unwrap(), &["tool-result: saved: none", "completed"]);
}

#[tokio::test]
async fn retried_call_goes_on_from_its_checkpoint() {
    let script = r#"
        if [ -z "$A2AD_CALL_SAVED" ]; then
            echo '{"type":"artifact","text":"one ","checkpoint":[1]}'
            exit 75
        fi
        printf '{"type":"artifact","text":"two %s %s"}' "$A2AD_CALL_ATTEMPT" "$(cat "$A2AD_CALL_SAVED")"
    "#;
    let lines = run(jsonl(script), "x").await;
    let chunks: Vec<_> = lines.iter().filter(|line| line.starts_with("tool-result")).collect();
    assert_eq!(chunks, ["tool-result: one …", "tool-result+: two 2 [1]…"]);
}

#[tokio::test]
async fn shut_down_call_goes_on_from_what_it_wrote_when_it_was_asked_to_end() {
    let folder = tempfile::tempdir().unwrap();
    let script = r#"
        if [ -z "$A2AD_CALL_SAVED" ]; then
            trap 'echo "{\"type\":\"checkpoint\",\"data\":\"asked\"}"; exit 1' TERM
            echo '{"type":"artifact","text":"one ","checkpoint":"begun"}'
            sleep 60 & wait
        fi
        printf '{"type":"artifact","data":%s}' "$(cat "$A2AD_CALL_SAVED")"
    "#;
    let server = TestServer::start(folder.path(), jsonl(script));
    let mut task = None;
    let (reached, mut wait) = tokio::sync::mpsc::channel(1);
    let watch = server.send_and_watch(message(vec![Part::text("x")]), |id, line| {
        if line.starts_with("tool-result") {
            task.clone_from(id);
            reached.try_send(()).unwrap();
        }
    });
    let stop = async {
        wait.recv().await;
        server.shut_down().await;
    };
    tokio::join!(watch, stop);
    drop(server);
    let server = TestServer::start(folder.path(), jsonl(script));
    let lines = server.subscribe(task.unwrap()).await.lines;
    assert_eq!(lines.last_chunk().unwrap(), &["tool-result+: json \"asked\"…", "completed"]);
}
