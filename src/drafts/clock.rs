//! Seconds that a stage took. CPU seconds of the calling thread where the system tells them (Linux) and the networks run on it
//! alone; else wall-clock seconds.

use std::time::{Duration, Instant};

/// What a stage cost.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StageStats {
    /// CPU seconds of the worker's thread; wall-clock seconds with more than one thread a session or where the system does not
    /// tell.
    pub seconds: f64,
    /// Pages (layout, detection), lines (recognition), tables.
    pub calls: u64,
}

/// A running measurement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Clock {
    wall: Instant,
    cpu: Option<u64>,
}

impl Clock {
    /// `threads`: intra-op threads of the sessions.
    pub(crate) fn start(threads: usize) -> Self {
        Clock { wall: Instant::now(), cpu: if threads <= 1 { thread_nanoseconds() } else { None } }
    }

    pub(crate) fn seconds(&self) -> f64 {
        match (self.cpu, self.cpu.and_then(|_| thread_nanoseconds())) {
            (Some(start), Some(now)) => now.saturating_sub(start) as f64 / 1e9,
            _ => self.wall.elapsed().as_secs_f64(),
        }
    }
}

/// What the reading of a page may take: CPU time of the worker's thread, so that no page fails because a machine is crowded; on
/// the clock where a [`Clock`] counts so.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TimeLimit {
    clock: Clock,
    limit: Duration,
}

impl TimeLimit {
    /// Counts from now on. `threads` as for [`Clock::start`].
    pub fn start(limit: Duration, threads: usize) -> Self {
        TimeLimit { clock: Clock::start(threads), limit }
    }

    pub fn is_over(&self) -> bool {
        self.clock.seconds() >= self.limit.as_secs_f64()
    }

    /// For what another process does: on the clock, counted from now on.
    pub(crate) fn anew(&self) -> Instant {
        Instant::now() + self.limit
    }
}

/// Time that this thread has run, from the kernel's scheduler.
fn thread_nanoseconds() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_over_when_its_time_was_worked() {
        assert!(TimeLimit::start(Duration::ZERO, 1).is_over());
        let limit = TimeLimit::start(Duration::from_millis(20), 1);
        assert!(!limit.is_over());
        let mut sum = 0u64;
        while !limit.is_over() {
            sum = std::hint::black_box(sum.wrapping_mul(31).wrapping_add(7));
        }
        assert!(limit.clock.wall.elapsed() >= Duration::from_millis(20));
    }

    #[test]
    fn waiting_costs_no_more_than_the_wall_shows_and_working_costs_something() {
        let clock = Clock::start(1);
        let mut sum = 0u64;
        let start = Instant::now();
        while start.elapsed().as_millis() < 60 {
            sum = sum.wrapping_mul(31).wrapping_add(std::hint::black_box(7));
        }
        std::hint::black_box(sum);
        let seconds = clock.seconds();
        assert!(seconds > 0.0 && seconds <= start.elapsed().as_secs_f64() + 0.02, "{seconds}");
    }
}
