//! Limits that the child puts on itself before it looks at a file: memory, CPU time, no files written, no core dumps. A file that
//! wants more costs its child, by a failed allocation or a signal, and never the machine.

use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::time::{ClockId, clock_gettime};

/// Limits for the life of the process. `memory`: address space, MiB.
pub(super) fn process(memory: u32) -> io::Result<()> {
    lower(Resource::As, u64::from(memory) << 20)?;
    lower(Resource::Fsize, 0)?;
    lower(Resource::Core, 0)
}

/// The process is ended (SIGXCPU) once it has used `seconds` of CPU time more than now.
pub(super) fn from_now_on(seconds: u64) -> io::Result<()> {
    let used = u64::try_from(clock_gettime(ClockId::ProcessCPUTime).tv_sec).unwrap_or(0);
    lower(Resource::Cpu, (used + 1).saturating_add(seconds))
}

/// Sets the soft limit, which may be raised again, to `limit` or to the hard limit if that is lower.
fn lower(resource: Resource, limit: u64) -> io::Result<()> {
    let maximum = getrlimit(resource).maximum;
    let current = Some(maximum.map_or(limit, |most| most.min(limit)));
    Ok(setrlimit(resource, Rlimit { current, maximum })?)
}
