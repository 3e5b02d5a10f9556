//! Notices when the configuration file or the skills folder changes, by looking at them several times a second.
//!
//! What counts is what a path leads to: editors replace a file, and a mounted ConfigMap changes where a link leads. A
//! notification of the kernel would have to follow all of that. A file that looks different each time is being written;
//! it counts when it has stayed the same for one interval.

use std::{path::PathBuf, time::Duration};

use tokio::{
    task::block_in_place,
    time::{Instant, sleep_until},
};

use super::Cause;
use crate::config::{FileStamp, Listing};

/// How often the files are looked at: a change is noticed after one to two intervals.
const INTERVAL: Duration = Duration::from_millis(200);

/// The files as they were loaded and as they were seen last.
pub(crate) struct Watch {
    file: PathBuf,
    /// When it was loaded; `None` if there was none.
    loaded: Option<FileStamp>,
    seen: Option<FileStamp>,
    folder: Option<FolderWatch>,
    /// When the files are looked at next.
    next_poll: Instant,
}

struct FolderWatch {
    loaded: Listing,
    seen: Listing,
}

impl Watch {
    /// To be called before the file is loaded: later changes are noticed.
    pub(crate) fn new(file: PathBuf) -> Self {
        let stamp = FileStamp::of(&file);
        Self { file, loaded: stamp, seen: stamp, folder: None, next_poll: Instant::now() + INTERVAL }
    }

    /// The folder of the configuration in use, with the files that were read.
    pub(crate) fn set_folder(&mut self, listing: Option<Listing>) {
        self.folder = listing.map(|listing| FolderWatch { seen: listing.clone(), loaded: listing });
    }

    /// The file is going to be loaded as it is now.
    pub(super) fn look(&mut self) {
        self.loaded = FileStamp::of(&self.file);
    }

    /// The files of the folder could not be used; they are loaded again when they change.
    pub(super) fn reject(&mut self, listing: Listing) {
        if let Some(folder) = &mut self.folder {
            folder.loaded = listing;
        }
    }

    /// Resolves when something has changed that is to be loaded. Cancel safe.
    pub(super) async fn changed(&mut self) -> Cause {
        loop {
            sleep_until(self.next_poll).await;
            self.next_poll = Instant::now() + INTERVAL;
            if let Some(cause) = block_in_place(|| self.poll()) {
                return cause;
            }
        }
    }

    fn poll(&mut self) -> Option<Cause> {
        let stamp = FileStamp::of(&self.file);
        let settled = std::mem::replace(&mut self.seen, stamp) == stamp;
        if settled && stamp != self.loaded {
            self.loaded = stamp;
            return Some(Cause::Saved);
        }
        let folder = self.folder.as_mut()?;
        let now = Listing::of(folder.seen.folder());
        let before = std::mem::replace(&mut folder.seen, now.clone());
        let settled = now.settled(&before);
        // A file in use that is being written or replaced keeps its skills until it is complete.
        let is_complete = [&before, &folder.seen].iter().all(|seen| settled.has_all_of(&folder.loaded, seen));
        (is_complete && settled != folder.loaded).then_some(Cause::Folder(settled))
    }
}
