//! A message that was recorded before: the same task, from the status that message caused.

use protocol::ErrorKind;

use super::{Sending, Submitted};
use crate::{
    error::{Error, Result},
    store::KeyUsed,
    task::{Names, fold},
};

/// Answers a repetition as the first call was; the same key with other words is a mistake.
pub(super) async fn replay(sending: Sending<'_>, used: KeyUsed) -> Result<Submitted> {
    let Sending { engine, call, .. } = sending;
    let ours = engine.ids.task(used.task, used.tag);
    let mut watcher = sending.watch(used.task);
    let found = engine.store.find(&call.scope, engine.lookup(&ours)).await?;
    // A forgotten task's name may be another's by now.
    let found = found.filter(|snapshot| snapshot.row.no == used.task);
    if !used.same {
        // Its client may have named it.
        let id = found.map_or(ours, |snapshot| Names::of(&engine.ids, &snapshot.row).task);
        let text =
            "this key was used for another message before; use a new one, or send the same message again";
        let error = protocol::Error::new(ErrorKind::MessageIdReused, text);
        return Err(Error::Refused(error.with("taskId", &id)));
    }
    let row = found.ok_or_else(|| protocol::Error::task_not_found(&ours))?.row;
    let mut task = fold::begin(&Names::of(&engine.ids, &row));
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
