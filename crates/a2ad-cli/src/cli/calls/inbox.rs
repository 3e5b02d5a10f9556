//! `a2ad inbox`: receives push notifications, verifies them and prints one line for each, for people without a service of
//! their own.

mod checks;
mod notification;
mod receiver;
mod server_token;

use std::sync::Arc;

use clap::Args;
use inbound::listen;
use outbound::webhooks::signature::SigningKey;
use protocol::{json::write::Writer, model::Secret};
use tokio::{net::TcpListener, sync::mpsc, task::JoinSet};
use tokio_util::sync::CancellationToken;

use self::{
    checks::Checks,
    receiver::{ReceivedDelivery, Receiver, Verdict},
    server_token::ServerKeys,
};
use crate::cli::failure::{Failure, code};
use crate::cli::output::Output;
use crate::cli::runtime;

/// Deliveries that wait to be printed.
const QUEUE: usize = 64;
/// Connections at a time.
const CONNECTIONS: usize = 256;
/// The most characters of a notification's text in a line.
const MAX_SHOWN: usize = 200;

/// The help after the options.
pub(crate) const INBOX_HELP: &str = "\
Register the URL that is printed as the webhook of a task. A line has time, webhook-id, task, state, whether the
delivery is verified, and the text of the status. Deliveries that cannot be verified get 401, others that are no
notification 400. A GET with ?validationToken=TEXT is answered with that text.

Exit codes:
  0    --count deliveries have arrived, and all were accepted
  1    the address cannot be used, the output cannot be written, or the keys of --jwks could not be loaded
  2    invalid arguments
  5    --count deliveries have arrived, and at least one was not verified
  8    --count deliveries have arrived, and at least one was not a notification
  130  Ctrl-C";

#[derive(Debug, Args)]
pub(crate) struct InboxFlags {
    /// Address to listen on.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:4250")]
    listen: String,
    /// Secret of the signatures (Standard Webhooks): whsec_…, or a token of at least 24 bytes. Other users of this machine
    /// can see arguments; --secret-env is safer.
    #[arg(long, value_name = "SECRET", conflicts_with = "secret_env")]
    secret: Option<String>,
    /// Environment variable with that secret.
    #[arg(long, value_name = "VAR")]
    secret_env: Option<String>,
    /// Where the server publishes its keys, such as http://127.0.0.1:4242/.well-known/jwks.json: verifies the tokens of
    /// servers that were asked for the scheme jwt.
    #[arg(long, value_name = "URL")]
    jwks: Option<String>,
    /// Token that the header X-A2A-Notification-Token has to have. Without --secret, a token of at least 24 bytes also
    /// verifies the signatures that deliveries have.
    #[arg(long, value_name = "TOKEN")]
    token: Option<String>,
    /// End after so many deliveries, duplicates and refused ones among them [default: Ctrl-C ends it].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Status of the response to valid deliveries, to see how the sender retries.
    #[arg(long, value_name = "STATUS", default_value_t = 204, value_parser = clap::value_parser!(u16).range(200..=599))]
    status: u16,
    /// Print each delivery as one JSON document, with its body.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(flags: &InboxFlags) -> Result<u8, Failure> {
    let checks = checks(flags)?;
    let runtime = runtime()?;
    runtime.block_on(async {
        tokio::select! {
            // First, so that a signal is handled as soon as the address is printed.
            biased;
            _ = tokio::signal::ctrl_c() => Ok(code::INTERRUPTED),
            ended = receive(flags, checks) => ended,
        }
    })
}

/// What deliveries are verified with.
fn checks(flags: &InboxFlags) -> Result<Checks, Failure> {
    let secret = match (&flags.secret, &flags.secret_env) {
        (Some(secret), _) => Some(("--secret", secret.clone())),
        (None, Some(variable)) => {
            let value = std::env::var(variable).ok().filter(|value| !value.is_empty());
            let missing =
                || Failure::usage(format!("--secret-env: the environment variable {variable} is not set"));
            Some(("--secret-env", value.ok_or_else(missing)?))
        }
        (None, None) => None,
    };
    let wanted = "expected whsec_ and at least 24 bytes in base64, or a text of at least 24 bytes";
    let key = |(flag, secret): (&str, String)| {
        SigningKey::from_token(&secret).ok_or_else(|| Failure::usage(format!("{flag}: {wanted}")))
    };
    if flags.token.as_ref().is_some_and(String::is_empty) {
        return Err(Failure::usage("--token: expected the token of the webhook"));
    }
    let keys = flags.jwks.as_deref().map(ServerKeys::at).transpose().map_err(Failure::usage)?;
    let token = flags.token.clone().map(Secret::new);
    Ok(Checks { key: secret.map(key).transpose()?, token, keys })
}

/// Receives until there were enough deliveries.
async fn receive(flags: &InboxFlags, checks: Checks) -> Result<u8, Failure> {
    let output = Output::new();
    let refused = |error| {
        let text = format!("cannot listen on {}: {error}", flags.listen);
        Failure::new(code::ERROR, text).with_next("choose another address with --listen")
    };
    let listener = TcpListener::bind(&flags.listen).await.map_err(refused)?;
    let url = format!("http://{}/", listener.local_addr().map_err(refused)?);
    let (sender, mut deliveries) = mpsc::channel(QUEUE);
    let verified_with = checks.describe();
    let receiver = Arc::new(Receiver::new(checks, flags.status, sender));
    let (shutdown, mut serving) = (CancellationToken::new(), JoinSet::new());
    let caps = listen::Caps { connections: CONNECTIONS, per_address: CONNECTIONS, ..listen::Caps::default() };
    serving.spawn(listen::serve(listener, receiver::router(receiver), caps, shutdown.clone()));
    output.message(&format!("a2ad: webhooks to {url} are printed here; {verified_with}"));

    let (mut received, mut exit) = (0, code::SUCCESS);
    while let Some(delivery) = deliveries.recv().await {
        print(&delivery, flags.json, &output)?;
        exit = match delivery.verdict {
            Verdict::NotVerified(_) => code::AUTH,
            Verdict::NotANotification(_) if exit == code::SUCCESS => code::PROTOCOL,
            Verdict::Unavailable(_) if exit == code::SUCCESS => code::ERROR,
            _ => exit,
        };
        received += 1;
        if flags.count == Some(received) {
            break;
        }
    }
    // The last response is sent before the listener ends.
    drop(deliveries);
    shutdown.cancel();
    while serving.join_next().await.is_some() {}
    Ok(exit)
}

fn print(delivery: &ReceivedDelivery, json: bool, output: &Output) -> Result<(), Failure> {
    if json {
        output.document(&as_json(delivery))?;
    } else {
        output.text(&as_line(delivery))?;
    }
    Ok(())
}

/// Time, id, task, state, verification, text.
fn as_line(delivery: &ReceivedDelivery) -> String {
    let notification = delivery.notification.as_ref();
    let shown = |value: Option<&str>| match value {
        Some(value) if !value.is_empty() => one_line(value),
        _ => "-".to_owned(),
    };
    let mut columns = vec![
        delivery.time.to_string(),
        shown(delivery.id.as_deref()),
        shown(notification.map(|notification| notification.task.as_str())),
        shown(notification.map(|notification| notification.state)),
        one_line(&delivery.verdict.describe()),
    ];
    if delivery.is_duplicate {
        columns.push("duplicate".to_owned());
    }
    let text = notification.map(|notification| one_line(&notification.text)).unwrap_or_default();
    columns.extend(Some(text).filter(|text| !text.is_empty()));
    columns.join("  ") + "\n"
}

fn one_line(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MAX_SHOWN) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

fn as_json(delivery: &ReceivedDelivery) -> Vec<u8> {
    let mut writer = Writer::new();
    writer.object(|out| {
        out.text("time", &delivery.time.to_string());
        out.maybe_text("webhookId", delivery.id.as_deref());
        if let Some(notification) = &delivery.notification {
            out.text("task", &notification.task);
            out.text("state", notification.state);
            out.text("event", notification.event);
            out.text("version", notification.version);
            out.text("text", &notification.text);
        }
        out.key("verified").boolean(matches!(delivery.verdict, Verdict::Verified(_)));
        out.texts("checks", delivery.verdict.checks());
        out.maybe_text("problem", delivery.verdict.problem());
        out.key("duplicate").boolean(delivery.is_duplicate);
        out.key("status").int(delivery.status.into());
        match notification::on_one_line(&delivery.body) {
            Some(body) => out.key("body").raw(&body),
            None => out.text("bodyText", &String::from_utf8_lossy(&delivery.body)),
        }
    });
    writer.finish()
}
