//! The time by which tasks expire, which does not believe a system clock that jumps ahead at once.
//!
//! A clock that is set wrong by a day must not purge a day's tasks before somebody has noticed. So after a jump
//! retention goes on at the speed of the monotonic clock, and follows the jump only when the clock has stayed
//! ahead for [`BELIEVED_AFTER`]. A machine or a server that was down for a day looks the same, and then purging
//! is late by that time. Going back is always safe and happens at once.

use std::time::Duration;

use protocol::Timestamp;

use crate::store::RetentionMark;

/// How far the system clock may be ahead without being doubted. More than the interval of the marks, so that a
/// restart within a minute changes nothing.
const TOLERANCE: Duration = Duration::from_secs(120);
/// For how long the clock must stay ahead until it is believed. Only time in which the server runs counts.
pub(super) const BELIEVED_AFTER: Duration = Duration::from_secs(600);
/// How often the time is recorded.
const MARK_INTERVAL: Duration = Duration::from_secs(60);

/// The time by which tasks expire.
#[derive(Debug)]
pub(super) struct RetentionTime {
    at: Timestamp,
    /// For how long the system clock has been ahead.
    ahead_for: Duration,
    /// Reading of the monotonic clock at `at`.
    elapsed: Duration,
    /// Reading of the monotonic clock when this process last recorded the time.
    marked: Option<Duration>,
}

/// A change of the system clock that the operator should know of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClockJump {
    /// It is ahead by this much, and not believed yet.
    Ahead(Duration),
    /// At the start it is ahead by this much: the server was down, or the clock is wrong.
    AheadAtStart(Duration),
    /// It has stayed ahead and is believed from now on.
    Believed,
    /// It is no longer ahead.
    Corrected,
    /// It went back by this much.
    Back(Duration),
}

impl RetentionTime {
    /// Continues where an earlier process has stopped; a new store starts at the current time.
    pub(super) fn start(mark: Option<RetentionMark>, now: Timestamp, elapsed: Duration) -> Self {
        let RetentionMark { time, ahead_for } =
            mark.unwrap_or(RetentionMark { time: now, ahead_for: Duration::ZERO });
        Self { at: time, ahead_for, elapsed, marked: None }
    }

    pub(super) fn now(&self) -> Timestamp {
        self.at
    }

    /// Moves on to the given readings of the system clock and of the monotonic clock.
    pub(super) fn follow(&mut self, system: Timestamp, elapsed: Duration) -> Option<ClockJump> {
        let passed = elapsed.saturating_sub(self.elapsed);
        self.elapsed = elapsed;
        let expected = self.at.as_millis().saturating_add(millis(passed));
        let ahead = system.as_millis().saturating_sub(expected);
        if ahead <= millis(TOLERANCE) {
            let was_ahead = !self.ahead_for.is_zero();
            (self.at, self.ahead_for) = (system, Duration::ZERO);
            let back = duration(ahead.saturating_neg());
            return match back > TOLERANCE {
                true => Some(ClockJump::Back(back)),
                false => was_ahead.then_some(ClockJump::Corrected),
            };
        }
        let first_seen = self.ahead_for.is_zero();
        // Never zero, which means that the clock is not ahead.
        self.ahead_for += passed.max(Duration::from_millis(1));
        if self.ahead_for >= BELIEVED_AFTER {
            (self.at, self.ahead_for) = (system, Duration::ZERO);
            return Some(ClockJump::Believed);
        }
        self.at = Timestamp::from_millis(expected);
        let jump = if self.marked.is_none() { ClockJump::AheadAtStart } else { ClockJump::Ahead };
        first_seen.then(|| jump(duration(ahead)))
    }

    /// What to record now, if it is time to.
    pub(super) fn due_mark(&mut self) -> Option<RetentionMark> {
        let due = self.marked.is_none_or(|marked| self.elapsed.saturating_sub(marked) >= MARK_INTERVAL);
        due.then(|| {
            self.marked = Some(self.elapsed);
            self.mark()
        })
    }

    /// What the next process continues from.
    pub(super) fn mark(&self) -> RetentionMark {
        RetentionMark { time: self.at, ahead_for: self.ahead_for }
    }
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

fn duration(millis: i64) -> Duration {
    Duration::from_millis(u64::try_from(millis).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: i64 = 60_000;
    const HOUR: i64 = 60 * MINUTE;
    const START: i64 = 1_000 * HOUR;

    /// A retention time and the two clocks it follows.
    struct Clocks {
        time: RetentionTime,
        system: i64,
        elapsed: i64,
    }

    impl Clocks {
        fn start(mark: Option<RetentionMark>, system: i64) -> Self {
            let time = RetentionTime::start(mark, Timestamp::from_millis(system), Duration::ZERO);
            let mut clocks = Self { time, system, elapsed: 0 };
            clocks.run(0);
            assert!(clocks.time.due_mark().is_some());
            clocks
        }

        /// Lets time pass in steps of a second; returns the jumps found.
        fn run(&mut self, millis: i64) -> Vec<ClockJump> {
            let mut jumps = Vec::new();
            for step in 0..=millis / 1_000 {
                let by = if step == 0 { millis % 1_000 } else { 1_000 };
                (self.system, self.elapsed) = (self.system + by, self.elapsed + by);
                let system = Timestamp::from_millis(self.system);
                jumps.extend(self.time.follow(system, duration(self.elapsed)));
            }
            jumps
        }

        /// How far the retention time is behind the system clock.
        fn behind(&self) -> i64 {
            self.system - self.time.now().as_millis()
        }
    }

    #[test]
    fn usual_time_and_small_jumps_are_followed() {
        let mut clocks = Clocks::start(None, START);
        assert_eq!(clocks.run(HOUR), []);
        for jump in [MINUTE, -MINUTE, 2 * MINUTE, -2 * MINUTE] {
            clocks.system += jump;
            assert_eq!((clocks.run(0), clocks.behind()), (vec![], 0), "{jump}");
        }
    }

    #[test]
    fn wrong_clock_that_is_corrected_within_minutes_changes_nothing() {
        let mut clocks = Clocks::start(None, START);
        clocks.run(MINUTE);
        clocks.system += 25 * HOUR;
        assert_eq!(clocks.run(9 * MINUTE), [ClockJump::Ahead(duration(25 * HOUR))]);
        assert_eq!(clocks.behind(), 25 * HOUR);
        clocks.system -= 25 * HOUR;
        assert_eq!((clocks.run(MINUTE), clocks.behind()), (vec![ClockJump::Corrected], 0));
        // The next jump is doubted for as long as the first.
        clocks.system += 25 * HOUR;
        assert_eq!(clocks.run(9 * MINUTE).len(), 1);
        assert_eq!(clocks.behind(), 25 * HOUR);
    }

    #[test]
    fn clock_that_stays_ahead_is_believed() {
        let mut clocks = Clocks::start(None, START);
        clocks.system += 25 * HOUR;
        clocks.run(9 * MINUTE);
        assert_eq!(clocks.run(2 * MINUTE), [ClockJump::Believed]);
        assert_eq!((clocks.run(HOUR), clocks.behind()), (vec![], 0));
    }

    #[test]
    fn step_back_is_followed_at_once_and_its_correction_is_doubted() {
        let mut clocks = Clocks::start(None, START);
        clocks.system -= 25 * HOUR;
        assert_eq!((clocks.run(0), clocks.behind()), (vec![ClockJump::Back(duration(25 * HOUR))], 0));
        clocks.system += 25 * HOUR;
        assert_eq!((clocks.run(0).len(), clocks.behind()), (1, 25 * HOUR));
        assert_eq!((clocks.run(11 * MINUTE), clocks.behind()), (vec![ClockJump::Believed], 0));
    }

    #[test]
    fn restart_under_a_wrong_clock_changes_nothing() {
        let mut clocks = Clocks::start(None, START);
        clocks.system += 25 * HOUR;
        clocks.run(4 * MINUTE);
        let mut again = Clocks::start(Some(clocks.time.mark()), clocks.system);
        assert_eq!((again.run(4 * MINUTE), again.behind()), (vec![], 25 * HOUR));
        again.system -= 25 * HOUR;
        assert_eq!((again.run(0), again.behind()), (vec![ClockJump::Corrected], 0));
    }

    #[test]
    fn server_that_runs_for_a_few_minutes_a_day_follows_too() {
        let mut mark = None;
        for day in 0..30 {
            let mut clocks = Clocks::start(mark, START + day * 24 * HOUR);
            clocks.run(4 * MINUTE);
            assert!(clocks.behind() <= 3 * 24 * HOUR, "day {day}: {} ms behind", clocks.behind());
            mark = Some(clocks.time.mark());
        }
    }

    #[test]
    fn downtime_is_no_jump_of_a_running_server() {
        let mark = RetentionMark { time: Timestamp::from_millis(START), ahead_for: Duration::ZERO };
        let now = Timestamp::from_millis(START + HOUR);
        let mut time = RetentionTime::start(Some(mark), now, Duration::ZERO);
        let jump = time.follow(now, Duration::ZERO);
        assert_eq!(jump, Some(ClockJump::AheadAtStart(duration(HOUR))));
        assert_eq!(time.now(), mark.time);
    }

    #[test]
    fn time_is_recorded_at_the_start_and_once_a_minute() {
        let mut clocks = Clocks::start(None, START);
        let mut marks = 0;
        for _ in 0..180 {
            clocks.run(1_000);
            marks += usize::from(clocks.time.due_mark().is_some());
        }
        assert_eq!(marks, 3);
    }
}
