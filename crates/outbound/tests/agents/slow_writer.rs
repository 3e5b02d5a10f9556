//! Writes a text section by section.

use crate::common::House;

#[tokio::test]
async fn a_second_text_in_the_same_task_begins_anew() {
    let house = House::reopening("slow-writer");
    let seen = house.talk(&["the sea sections=1 delay=0ms", "the moon sections=2 delay=0ms"]).await;
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
