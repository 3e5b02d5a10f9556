//! The slow writer writes section by section.

use super::common::TestServer;

#[tokio::test]
async fn second_text_in_the_same_task_starts_at_section_one() {
    let server = TestServer::kept_open("slow-writer");
    let seen = server.send_all(&["the sea sections=1 delay=0ms", "the moon sections=2 delay=0ms"]).await;
    assert_eq!(
        seen,
        [
            "working: writing section 1 of 2",
            "artifact text: Section 1 of 2: more about the moon.\n…",
            "working: writing section 2 of 2",
            "artifact text+: Section 2 of 2: more about the moon.\n",
            "input_required: (done)",
        ]
    );
}

#[tokio::test]
async fn each_section_is_drafted_in_a_step() {
    let server = TestServer::kept_open("slow-writer");
    let seen = server.send_all(&["the sea sections=2 delay=0ms steps=on"]).await;
    let draft = |line: &str| line.rsplit(' ').next().unwrap().to_owned();
    let drafts: Vec<_> =
        seen.iter().filter(|line| line.contains("is draft")).map(|line| draft(line)).collect();
    let [one, two] = drafts.as_slice() else { panic!("{seen:?}") };
    assert_eq!(
        seen[seen.len() - 7..],
        [
            "working: writing section 1 of 2".to_owned(),
            format!("working: section 1 is draft {one}"),
            format!("artifact text: Section 1 of 2, draft {one}: more about the sea.\n…"),
            "working: writing section 2 of 2".to_owned(),
            format!("working: section 2 is draft {two}"),
            format!("artifact text+: Section 2 of 2, draft {two}: more about the sea.\n"),
            "input_required: (done)".to_owned(),
        ]
    );
}
