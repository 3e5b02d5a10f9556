//! Replay of a duplicate message: the reply of the first call, from the status update that message caused.

use protocol::ErrorKind;

use super::{SendContext, Submitted, WaitMode};
use crate::{
    engine::ResponseNote,
    error::{Error, Result},
    store::{KeyUsed, Visibility},
    task::PublicIds,
};

/// Replays the reply of the first call; the same key with other content is an error.
pub(super) async fn replay(ctx: SendContext<'_>, used: KeyUsed) -> Result<Submitted> {
    let SendContext { engine, call, .. } = ctx;
    let ours = engine.ids.task(used.task, used.tag);
    let mut watcher = ctx.watch(used.task);
    let found = engine.store.row(&call.scope, engine.lookup(&ours)).await?;
    // The id of a purged task may have been reused by the client for another task.
    let found = found.filter(|row| row.no == used.task);
    if !used.same {
        // The task may have a client-chosen id.
        let id = found.map_or(ours, |row| PublicIds::of(&engine.ids, &row).task);
        let text =
            "this key was used for another message before; use a new one, or send the same message again";
        let error = protocol::Error::new(ErrorKind::MessageIdReused, text);
        return Err(Error::Refused(error.with("taskId", &id)));
    }
    let row = found.ok_or_else(|| protocol::Error::task_not_found(&ours))?;
    let visibility = row.visibility;
    // A caller that does not wait gets the task as it is now; the others follow it from their message on.
    let waits = ctx.wait_mode != WaitMode::Immediate || visibility != Visibility::Visible;
    let seq = if waits { used.seq } else { row.last_seq };
    call.charge_read(row.size)?;
    let mut log = ctx.log(&row, seq);
    let (task, _) = ctx.fold(&row, &mut log).await?;
    let rest = if waits { log.into_beyond() } else { Vec::new() };
    watcher.seek(rest.last().map_or(seq, |(last, _)| *last), row.last_seq);
    Ok(Submitted { task, seq, rest, visibility, watcher: Some(watcher), note: Some(ResponseNote::Replayed) })
}
