//! Counts the frames of an HTTP/2 connection that cost the server something and the client nothing: settings and pings, which
//! have to be acknowledged, priorities, and frames of unknown types. Streams that are reset at once and heads that never
//! end are limited by the library.
//!
//! Clients of gRPC measure round trips with pings, one after another, which are some thousands a second on loopback.

use std::time::Duration;

use tokio::time::Instant;

/// So many frames may arrive within [`WINDOW`].
const MAX_CONTROL_FRAMES: u32 = 20_000;
const WINDOW: Duration = Duration::from_secs(2);

/// What a client sends before its first frame.
pub(super) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const FRAME_HEADER: usize = 9;

/// The frames that have arrived.
pub(super) struct FrameCount {
    /// How much follows until the next frame begins.
    rest: usize,
    /// As much of the header of the next frame as has arrived.
    header: [u8; FRAME_HEADER],
    filled: usize,
    control_frames: u32,
    since: Instant,
}

/// There are too many frames that have no use.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Flood;

impl FrameCount {
    /// For a connection from its first byte on.
    pub(super) fn new() -> Self {
        Self {
            rest: PREFACE.len(),
            header: [0; FRAME_HEADER],
            filled: 0,
            control_frames: 0,
            since: Instant::now(),
        }
    }

    /// Takes the next bytes into account.
    pub(super) fn read(&mut self, mut bytes: &[u8]) -> Result<(), Flood> {
        while !bytes.is_empty() {
            if self.rest > 0 {
                let length = self.rest.min(bytes.len());
                self.rest -= length;
                bytes = &bytes[length..];
                continue;
            }
            let length = (FRAME_HEADER - self.filled).min(bytes.len());
            self.header[self.filled..self.filled + length].copy_from_slice(&bytes[..length]);
            self.filled += length;
            bytes = &bytes[length..];
            if self.filled == FRAME_HEADER {
                self.begin_frame()?;
            }
        }
        Ok(())
    }

    fn begin_frame(&mut self) -> Result<(), Flood> {
        let [high, middle, low, kind, ..] = self.header;
        self.rest = usize::from(high) << 16 | usize::from(middle) << 8 | usize::from(low);
        self.filled = 0;
        if !is_control(kind) {
            return Ok(());
        }
        self.control_frames += 1;
        if self.control_frames < MAX_CONTROL_FRAMES {
            return Ok(());
        }
        let now = Instant::now();
        if now - self.since < WINDOW {
            return Err(Flood);
        }
        (self.control_frames, self.since) = (0, now);
        Ok(())
    }
}

/// DATA, HEADERS, RST_STREAM, WINDOW_UPDATE and CONTINUATION belong to requests; the library limits those that are misused.
fn is_control(kind: u8) -> bool {
    !matches!(kind, 0 | 1 | 3 | 8 | 9)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, length: u8) -> Vec<u8> {
        let header = [0, 0, length, kind, 0, 0, 0, 0, 0];
        [&header[..], &vec![6; usize::from(length)]].concat()
    }

    #[tokio::test(start_paused = true)]
    async fn only_a_flood_of_control_frames_is_refused() {
        let ping = frame(6, 8);
        let mut count = FrameCount::new();
        count.read(PREFACE).unwrap();
        // Requests and their content are no flood, however the bytes are cut.
        let many = [frame(1, 20), frame(0, 200), frame(8, 4)].concat().repeat(30_000);
        for piece in many.chunks(1_001) {
            count.read(piece).unwrap();
        }
        for _ in 0..4 {
            count.read(&ping.repeat(9_999)).unwrap();
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        assert_eq!(count.read(&ping.repeat(30_000)), Err(Flood));
    }
}
