//! Notices when the files of a listener change, by looking at them several times a second.
//!
//! What counts is what a path leads to: tools that renew certificates replace files, or change where a link leads. The pair is
//! two files, so a change counts when all of them have stayed the same for one interval.

use std::{convert::Infallible, sync::Arc, time::Duration};

use engine::Clock;
use futures_util::future;
use tokio::{task::spawn_blocking, time::sleep};

use super::ServerTls;

/// How often the files are looked at: a change is noticed after one to two intervals.
const INTERVAL: Duration = Duration::from_millis(200);
/// How often a certificate that expires soon is reported.
const REPORT_INTERVAL: Duration = Duration::from_secs(24 * 3_600);

/// Reads the files of each of these again whenever they have changed. Never ends.
pub(crate) async fn follow(all: Vec<Arc<ServerTls>>) -> Infallible {
    future::join_all(all.into_iter().map(follow_one)).await;
    std::future::pending().await
}

async fn follow_one(tls: Arc<ServerTls>) -> Infallible {
    let clock = Clock::system();
    let mut seen = None;
    let mut since_report = Duration::ZERO;
    loop {
        sleep(INTERVAL).await;
        let (looked_at, time) = (Arc::clone(&tls), clock.now());
        let look = move || {
            let now = looked_at.files().stamps();
            if seen.as_ref() == Some(&now) && !looked_at.has_tried(&now) {
                looked_at.reload(time);
            }
            now
        };
        // Not on a thread that serves requests.
        seen = spawn_blocking(look).await.ok();
        since_report += INTERVAL;
        if since_report >= REPORT_INTERVAL {
            since_report = Duration::ZERO;
            tls.warn_of_expiry(clock.now());
        }
    }
}
