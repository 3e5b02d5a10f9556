//! The commands that the page shows for each agent.

use protocol::{Dialect, Message, Operation, Part, Role, SendMessage, TaskId, json::write::Writer, rest};

use crate::request::version::AcceptedVersions;

/// An agent, and the headers with credentials that its commands send.
#[derive(Clone, Copy)]
pub(super) struct CommandTarget<'a> {
    pub(super) endpoint: &'a str,
    /// Names and values; a value names the shell variable with the secret.
    pub(super) headers: &'a [(&'a str, &'static str)],
}

impl CommandTarget<'_> {
    /// The headers as arguments of curl. In double quotes, so that the shell inserts the variables.
    fn curl_headers(&self) -> String {
        self.headers.iter().map(|(name, value)| format!(" -H \"{name}: {value}\"")).collect()
    }

    /// The headers as flags of the client, which reads the variables itself.
    fn client_flags(&self) -> String {
        let flag = |(name, value): &(&str, &str)| {
            let variable = value.rsplit('$').next().unwrap_or_default();
            let flag = match *name {
                "Authorization" => "--bearer-env",
                "X-End-User-Token" => "--end-user-token-env",
                _ => "--api-key-env",
            };
            format!("{flag} {variable} ")
        };
        self.headers.iter().map(flag).collect()
    }
}

/// The command of the client that sends this text.
pub(super) fn client_command(target: CommandTarget<'_>, example: &str, streaming: bool) -> String {
    let command = if streaming { "stream" } else { "send" };
    let separator = if example.starts_with('-') { "-- " } else { "" };
    format!("a2ad {command} {} {}{separator}{}", target.endpoint, target.client_flags(), quoted(example))
}

/// The shortest command without a client of A2A: sends plain text.
pub(super) fn text_command(target: CommandTarget<'_>, example: &str) -> String {
    // After `-d`, a text that begins with `@` names a file.
    let data = if example.starts_with('@') { "--data-raw" } else { "-d" };
    let (endpoint, headers) = (target.endpoint, target.curl_headers());
    format!("curl -s {endpoint}{headers} \\\n  -H 'Content-Type: text/plain' {data} {}", quoted(example))
}

/// An example command for each version and binding. The request bodies are encoded by the version's own codec.
pub(super) fn examples(
    target: CommandTarget<'_>,
    example: &str,
    accepted_versions: AcceptedVersions,
) -> Vec<(&'static str, String)> {
    let mut examples = Vec::new();
    let (endpoint, headers) = (target.endpoint, target.curl_headers());
    for (dialect, title) in
        [(Dialect::V1, "A2A 1.0"), (Dialect::V03, "A2A 0.2 and 0.3"), (Dialect::Draft, "A2A draft (0.1)")]
    {
        if accepted_versions.accepts(dialect) {
            let version = match dialect {
                Dialect::V1 => " -H 'A2A-Version: 1.0'",
                Dialect::Draft | Dialect::V03 | Dialect::V03Proto => "",
            };
            let body = quoted(&request(dialect, example));
            let command = format!(
                "curl -s {endpoint} -H 'Content-Type: application/json'{version}{headers} \\\n  -d {body}"
            );
            examples.push((title, command));
        }
    }
    for (dialect, title) in
        [(Dialect::V1, "A2A 1.0 over HTTP+JSON"), (Dialect::V03Proto, "A2A 0.3 over HTTP+JSON")]
    {
        let operation = send(dialect, example);
        if let Some((_, path)) =
            rest::target(dialect, &operation).filter(|_| accepted_versions.accepts(dialect))
        {
            let mut writer = Writer::new();
            dialect.encode_request(&mut writer, &operation);
            let body = quoted(&String::from_utf8_lossy(&writer.finish()));
            let command = format!(
                "curl -s {endpoint}{path} -H 'Content-Type: application/json'{headers} \\\n  -d {body}"
            );
            examples.push((title, command));
        }
    }
    examples
}

fn send(dialect: Dialect, example: &str) -> Operation {
    let mut send = SendMessage::new(Message::new("try-1", Role::User, vec![Part::text(example)]));
    if dialect.rules().clients_choose_task_ids {
        send.message.task_id = Some(TaskId::from("try-1"));
        send.message.id = "".into();
        send.history_length = Some(0);
    }
    Operation::SendMessage(send)
}

/// The JSON-RPC request that sends this text.
fn request(dialect: Dialect, example: &str) -> String {
    let operation = send(dialect, example);
    let mut writer = Writer::new();
    writer.object(|writer| {
        writer.text("jsonrpc", "2.0");
        writer.key("id").int(1);
        writer.maybe_text("method", dialect.method(operation.kind()));
        dialect.encode_operation(writer.key("params"), &operation);
    });
    String::from_utf8_lossy(&writer.finish()).into_owned()
}

/// A text as one quoted shell argument.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}
