//! Replay of a duplicate message: the reply of the first call, from the status update that message caused.

use protocol::ErrorKind;

use super::{SendContext, Submitted};
use crate::{
    error::{Error, Result},
    store::KeyUsed,
    task::{PublicIds, fold},
};

/// Replays the reply of the first call; the same key with other content is an error.
pub(super) async fn replay(ctx: SendContext<'_>, used: KeyUsed) -> Result<Submitted> {
    let SendContext { engine, call, .. } = ctx;
    let ours = engine.ids.task(used.task, used.tag);
    let mut watcher = ctx.watch(used.task);
    let found = engine.store.find(&call.scope, engine.lookup(&ours)).await?;
    // The id of a purged task may have been reused by the client for another task.
    let found = found.filter(|snapshot| snapshot.row.no == used.task);
    if !used.same {
        // The task may have a client-chosen id.
        let id = found.map_or(ours, |snapshot| PublicIds::of(&engine.ids, &snapshot.row).task);
        let text =
            "this key was used for another message before; use a new one, or send the same message again";
        let error = protocol::Error::new(ErrorKind::MessageIdReused, text);
        return Err(Error::Refused(error.with("taskId", &id)));
    }
    let row = found.ok_or_else(|| protocol::Error::task_not_found(&ours))?.row;
    let mut task = fold::begin(&PublicIds::of(&engine.ids, &row));
    let mut entries = engine.store.entries(&call.scope, row.no, 0, usize::MAX).await?;
    let rest = entries.split_off(entries.partition_point(|(seq, _)| *seq <= used.seq));
    for (_, entry) in &entries {
        fold::apply(&mut task, entry)?;
    }
    let last = rest.last().map_or(used.seq, |(seq, _)| *seq);
    watcher.seek(last, last);
    let visibility = row.visibility;
    Ok(Submitted { task, seq: used.seq, rest, visibility, watcher: Some(watcher), replayed: true })
}
