//! Limits that the child puts on itself before it looks at a file: memory, CPU time, no files written, no core dumps. A file that
//! wants more costs its child, by a failed allocation or a signal, and never the machine. Other programs get theirs from outside.

use std::io;
use std::process::Child;

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

/// Limits another program that has just been started: `memory` of address space, MiB, and no core dumps.
#[cfg(target_os = "linux")]
pub(crate) fn other(child: &Child, memory: u32) -> io::Result<()> {
    let process = Some(rustix::process::Pid::from_child(child));
    for (resource, limit) in [(Resource::As, u64::from(memory) << 20), (Resource::Core, 0)] {
        rustix::process::prlimit(process, resource, Rlimit { current: Some(limit), maximum: Some(limit) })?;
    }
    Ok(())
}

/// Only Linux limits a process from outside.
#[cfg(not(target_os = "linux"))]
pub(crate) fn other(_: &Child, _: u32) -> io::Result<()> {
    Ok(())
}

/// Sets the soft limit, which may be raised again, to `limit` or to the hard limit if that is lower.
fn lower(resource: Resource, limit: u64) -> io::Result<()> {
    let maximum = getrlimit(resource).maximum;
    let current = Some(maximum.map_or(limit, |most| most.min(limit)));
    Ok(setrlimit(resource, Rlimit { current, maximum })?)
}
