//! The text of messages and tasks.

use protocol::{Content, Message, Part, Role, Task};

/// The text of these parts: text parts are concatenated, data and URLs get their own lines, file bytes are
/// omitted. Appending parts only appends to the text.
pub fn of_parts(parts: &[Part]) -> String {
    let mut text = String::new();
    parts.iter().for_each(|part| append(&mut text, part));
    text
}

/// The result of a task: its artifacts, else its status message, else the agent's last message.
pub fn of_task(task: &Task) -> String {
    let mut text = String::new();
    for artifact in &task.artifacts {
        end_line(&mut text);
        text += &of_parts(&artifact.parts);
    }
    if !text.is_empty() {
        return text;
    }
    let last = || task.history.iter().rev().find(|message| message.role == Role::Agent);
    task.status.message.as_ref().or_else(last).map(of_message).unwrap_or_default()
}

/// The text of a message.
pub fn of_message(message: &Message) -> String {
    of_parts(&message.parts)
}

fn append(text: &mut String, part: &Part) {
    let line = match &part.content {
        Content::Text(chunk) => return text.push_str(chunk),
        Content::Raw(_) => return,
        Content::Url(url) => url.as_str(),
        Content::Data(json) => json.as_str(),
    };
    end_line(text);
    text.push_str(line);
    text.push('\n');
}

fn end_line(text: &mut String) {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
}
