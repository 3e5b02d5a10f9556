//! Counts the frames of an HTTP/2 connection that cost the server something and the client nothing: settings and pings, which
//! have to be acknowledged, priorities, and frames of unknown types. Streams that are reset at once and heads that never
//! end are limited by the library.
//!
//! Frames are also followed because one that has begun has to be finished in time, see `channel.rs`: a client that stops in the
//! middle of a frame cannot answer pings, and would be noticed late. The frames of one head count as one, and so do
//! the preface and the settings after it.
//!
//! Clients of gRPC measure round trips with pings, one after another, which are some thousands a second on loopback.

use std::time::Duration;

use tokio::time::Instant;

/// So many frames may arrive within [`WINDOW`].
const MAX_CONTROL_FRAMES: u32 = 20_000;
const WINDOW: Duration = Duration::from_secs(2);

/// What a client sends before its first frame.
pub(super) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
pub(super) const FRAME_HEADER: usize = 9;

const HEADERS: u8 = 1;
const CONTINUATION: u8 = 9;
const END_HEADERS: u8 = 4;

/// The frames that have arrived.
pub(super) struct FrameCount {
    /// How much follows until the next frame begins.
    rest: usize,
    in_preface: bool,
    /// As much of the header of the next frame as has arrived.
    header: [u8; FRAME_HEADER],
    filled: usize,
    /// Whether a head goes on in the next frame.
    in_head: bool,
    /// Whether something has begun that is not finished.
    unfinished: bool,
    /// How many times something was finished.
    finished: u64,
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
            in_preface: true,
            header: [0; FRAME_HEADER],
            filled: 0,
            in_head: false,
            unfinished: true,
            finished: 0,
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
                if self.rest == 0 && !self.in_preface {
                    self.end_frame();
                }
                self.in_preface &= self.rest > 0;
                continue;
            }
            self.unfinished = true;
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

    /// The number of the frame that has begun and is not finished.
    pub(super) fn unfinished(&self) -> Option<u64> {
        self.unfinished.then_some(self.finished)
    }

    fn end_frame(&mut self) {
        if !self.in_head {
            self.unfinished = false;
            self.finished += 1;
        }
    }

    fn begin_frame(&mut self) -> Result<(), Flood> {
        let [high, middle, low, kind, flags, ..] = self.header;
        self.rest = usize::from(high) << 16 | usize::from(middle) << 8 | usize::from(low);
        self.filled = 0;
        if matches!(kind, HEADERS | CONTINUATION) {
            self.in_head = flags & END_HEADERS == 0;
        }
        if self.rest == 0 {
            self.end_frame();
        }
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

    #[tokio::test]
    async fn a_frame_is_unfinished_until_its_last_byte_and_a_head_until_its_last_frame() {
        let mut count = FrameCount::new();
        count.read(PREFACE).unwrap();
        assert_eq!(count.unfinished(), Some(0));
        // Settings without content, and a part of a ping.
        count.read(&[frame(4, 0), frame(6, 8)[..12].to_vec()].concat()).unwrap();
        assert_eq!(count.unfinished(), Some(1));
        count.read(&frame(6, 8)[12..]).unwrap();
        assert_eq!(count.unfinished(), None);
        count.read(&frame(HEADERS, 20)).unwrap();
        assert_eq!(count.unfinished(), Some(2));
        let mut last = frame(CONTINUATION, 20);
        last[4] = END_HEADERS;
        count.read(&last).unwrap();
        assert_eq!((count.unfinished(), count.finished), (None, 3));
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
