//! Functions whose output is a stream.

use serde_json::Value;

use crate::{
    CheckError, CheckResult,
    fixture::Fixture,
    function_server::{FunctionServer, PIECES, piece},
    http::Events,
    json::ValueChecks as _,
    mismatch,
    test_client::{TestClient, ends_with_final, states, unique_id},
};

use super::CITY;

/// A function sends each piece only after the client has received the one before, so a server that buffers would not get
/// any further.
pub(super) async fn forwarded_unbuffered(at: &Fixture) -> CheckResult {
    let functions = FunctionServer::start().await?;
    let program = at.functions_server(functions.host()).await?;
    for (skill, pieces, end) in
        [("events", PIECES, "completed"), ("lines", PIECES, "completed"), ("broken", 1, "failed")]
    {
        let client = TestClient::new(&program.server, "/_a2a/", skill);
        let task = unique_id();
        let mut events = client.stream("tasks/sendSubscribe", &client.params(&task, CITY, "")).await?;
        for number in 1..=pieces {
            functions.allow_piece();
            let received = next_artifact(&mut events).await?;
            received.is("result.artifact.parts.0.text", piece(number))?;
        }
        let rest = events.all().await?;
        ends_with_final(&rest)?;
        if states(&rest).last() != Some(&end) {
            return Err(mismatch(format!("{skill}: {end}"), states(&rest).join(", ")));
        }
        let got = client.get(&task).await?;
        got.has_state(end)?;
        let all: Vec<String> = (1..=pieces).map(piece).collect();
        let parts = got.list("result.artifacts.0.parts")?.iter().map(|part| part.text("text"));
        got.ensure(parts.collect::<Result<Vec<_>, _>>()? == all, "every piece once, in order")?;
    }
    Ok(())
}

/// The next event with an artifact.
async fn next_artifact(events: &mut Events) -> Result<Value, CheckError> {
    while let Some(event) = events.next().await? {
        if event.data.find("result.artifact").is_some() {
            return Ok(event.data);
        }
    }
    Err(mismatch("an artifact event", "the end of the stream"))
}
