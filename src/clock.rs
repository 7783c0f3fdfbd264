//! Seconds that a stage took. CPU seconds of the calling thread where the system tells them (Linux) and the networks run on it
//! alone; else wall-clock seconds.
//!
//! Work whose cost grows with what stands on a page tells how far it is ([`worked`]); within a [`TimeLimit`] it ends where the limit
//! does.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::{Duration, Instant};

/// Steps between two looks at the limit: some hundred microseconds, where a look takes a few.
const STEPS_A_LOOK: usize = 20_000;

thread_local! {
    static LIMIT: Cell<Option<TimeLimit>> = const { Cell::new(None) };
    static STEPS: Cell<usize> = const { Cell::new(0) };
}

/// What work that is given up unwinds with.
struct Late;

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

    /// Does `work` on this thread; `None` if it was given up because the limit was over. What it was changing is then to be
    /// dropped, or to be whole at every call of [`worked`] and [`look`].
    pub(crate) fn hold<T>(self, work: impl FnOnce() -> T) -> Option<T> {
        let outer = LIMIT.replace(Some(self));
        let done = catch_unwind(AssertUnwindSafe(work));
        LIMIT.set(outer);
        match done {
            Ok(result) => Some(result),
            Err(reason) if reason.is::<Late>() => None,
            Err(panic) => resume_unwind(panic),
        }
    }
}

/// Counts steps of work: what takes some nanoseconds. Now and then it takes a [`look`].
pub(crate) fn worked(steps: usize) {
    let all = STEPS.get().saturating_add(steps);
    if all < STEPS_A_LOOK {
        return STEPS.set(all);
    }
    STEPS.set(0);
    look();
}

/// Gives the work of [`TimeLimit::hold`] up if its limit is over.
pub(crate) fn look() {
    if LIMIT.get().is_some_and(|limit| limit.is_over()) {
        // Nothing went wrong: no message, no backtrace.
        resume_unwind(Box::new(Late));
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
    fn work_is_given_up_where_its_limit_is_over_and_only_there() {
        let late = TimeLimit::start(Duration::ZERO, 1);
        let endless = || {
            loop {
                worked(1);
            }
        };
        assert_eq!(late.hold::<()>(endless), None);
        assert_eq!(
            late.hold::<()>(|| loop {
                worked(usize::MAX);
            }),
            None
        );
        assert_eq!(late.hold(|| 7), Some(7), "nothing was looked at");
        worked(STEPS_A_LOOK);
        let long = TimeLimit::start(Duration::from_secs(3600), 1);
        assert_eq!(long.hold(|| worked(STEPS_A_LOOK)), Some(()));
        assert_eq!(long.hold(|| late.hold(look).is_none()), Some(true), "the inner limit counts inside");
        assert_eq!(late.hold(|| long.hold(look)), Some(Some(())));
    }

    #[test]
    fn other_panics_pass_through_a_limit() {
        let long = TimeLimit::start(Duration::from_secs(3600), 1);
        let panic = catch_unwind(|| long.hold(|| resume_unwind(Box::new("broken")))).map(|_: Option<()>| ());
        assert!(panic.is_err_and(|reason| reason.is::<&str>()));
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
