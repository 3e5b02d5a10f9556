//! The slow writer writes section by section.

use crate::common::TestServer;

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
