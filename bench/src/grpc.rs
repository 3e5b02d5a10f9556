//! `SendMessage` of `lf.a2a.v1.A2AService` as bytes: encodes the protobuf request and checks the response.

use anyhow::{Context, Result, ensure};

/// The path of the method.
pub const SEND_MESSAGE: &str = "/lf.a2a.v1.A2AService/SendMessage";

const ROLE_USER: u8 = 1;
const TASK_STATE_COMPLETED: u64 = 3;
/// Bytes before each gRPC message: the compression flag and the length.
const PREFIX: usize = 5;

/// A request to `tenant` with the prefix of a gRPC message.
pub fn send_message(tenant: &str, message_id: &str, text: &str) -> Vec<u8> {
    let mut part = Vec::new();
    push_field(&mut part, 1, text.as_bytes());
    let mut message = Vec::new();
    push_field(&mut message, 1, message_id.as_bytes());
    message.extend([4 << 3, ROLE_USER]);
    push_field(&mut message, 5, &part);
    let mut request = vec![0; PREFIX];
    push_field(&mut request, 1, tenant.as_bytes());
    push_field(&mut request, 2, &message);
    let length = (request.len() - PREFIX) as u32;
    request[1..PREFIX].copy_from_slice(&length.to_be_bytes());
    request
}

/// Rejects a response that is not a completed task with `text` in an artifact.
pub fn expect_echo(response: &[u8], text: &str) -> Result<()> {
    let (prefix, response) = response.split_at_checked(PREFIX).context("the response has no message")?;
    let length = u32::from_be_bytes([prefix[1], prefix[2], prefix[3], prefix[4]]);
    ensure!(
        prefix[0] == 0 && length as usize == response.len(),
        "the response is not one uncompressed message"
    );
    let task = bytes(response, 1).context("the response has no task")?;
    let state = bytes(task, 3).and_then(|status| number(status, 1));
    ensure!(state == Some(TASK_STATE_COMPLETED), "the task is not completed but in state {state:?}");
    let part = bytes(task, 4).and_then(|artifact| bytes(artifact, 4));
    let echo = part.and_then(|part| bytes(part, 1));
    ensure!(echo == Some(text.as_bytes()), "the artifact does not contain the text");
    Ok(())
}

fn push_field(into: &mut Vec<u8>, number: u8, bytes: &[u8]) {
    into.push(number << 3 | 2);
    let mut length = bytes.len();
    while length > 0x7f {
        into.push(length as u8 | 0x80);
        length >>= 7;
    }
    into.push(length as u8);
    into.extend_from_slice(bytes);
}

/// The first field with this number, if it is length-delimited.
fn bytes(message: &[u8], number: u64) -> Option<&[u8]> {
    Fields(message).find(|field| field.0 == number).and_then(|field| match field.1 {
        Value::Bytes(bytes) => Some(bytes),
        Value::Number(_) => None,
    })
}

/// The first field with this number, if it is a varint.
fn number(message: &[u8], number: u64) -> Option<u64> {
    Fields(message).find(|field| field.0 == number).and_then(|field| match field.1 {
        Value::Bytes(_) => None,
        Value::Number(value) => Some(value),
    })
}

enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// The unread rest of a message. Iteration ends where the rest cannot be parsed: then the field is not found.
struct Fields<'a>(&'a [u8]);

impl<'a> Iterator for Fields<'a> {
    type Item = (u64, Value<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let key = self.varint()?;
        let value = match key & 7 {
            0 => Value::Number(self.varint()?),
            2 => {
                let length = usize::try_from(self.varint()?).ok()?;
                let (bytes, rest) = self.0.split_at_checked(length)?;
                self.0 = rest;
                Value::Bytes(bytes)
            }
            _ => return None,
        };
        Some((key >> 3, value))
    }
}

impl Fields<'_> {
    fn varint(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let (&byte, rest) = self.0.split_first()?;
            self.0 = rest;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }
}
