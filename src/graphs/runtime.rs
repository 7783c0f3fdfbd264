//! The ONNX Runtime library: where it is found, one environment per process, sessions of one thread.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use ort::environment::Environment;
use ort::session::Session;
use ort::session::builder::GraphOptimizationLevel;

use crate::settings::Device;

/// Why a native library or a graph could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum RuntimeError {
    #[error("`{name}` not found; looked in: {}", looked.iter().map(|p| format!("`{}`", p.display())).collect::<Vec<_>>().join(", "))]
    Missing { name: String, looked: Vec<PathBuf> },
    #[error("`{}`: {message}", path.display())]
    Load { path: PathBuf, message: String },
    #[error(
        "CUDA device {device} cannot be used: {message}; `scripts/setup --gpu` fetches what it needs besides the driver"
    )]
    Device { device: u32, message: String },
}

/// Folders in which native libraries are looked for, in order: `DOCPARSE_NATIVE_DIR`, next to the executable, and `native/`
/// in a folder above the executable (a checkout's git-ignored folder).
pub fn native_dirs() -> Vec<PathBuf> {
    let mut dirs = Vec::new();
    if let Some(dir) = std::env::var_os("DOCPARSE_NATIVE_DIR") {
        dirs.push(PathBuf::from(dir));
    }
    if let Ok(exe) = std::env::current_exe().and_then(|p| p.canonicalize()) {
        for (depth, dir) in exe.ancestors().skip(1).take(5).enumerate() {
            dirs.push(dir.join("native"));
            if depth == 0 {
                dirs.push(dir.to_path_buf());
            }
        }
        if let Some(dir) = exe.parent().and_then(Path::parent) {
            dirs.push(dir.join("lib").join("docparse"));
        }
    }
    dirs
}

/// The file in [`native_dirs`] whose name starts with `stem` (libraries carry a version suffix).
pub fn find_native(stem: &str) -> Result<PathBuf, RuntimeError> {
    let looked = native_dirs();
    for dir in &looked {
        let Ok(entries) = std::fs::read_dir(dir) else { continue };
        let mut names: Vec<PathBuf> = entries
            .flatten()
            .map(|e| e.path())
            .filter(|p| p.file_name().is_some_and(|n| n.to_string_lossy().starts_with(stem)))
            .collect();
        names.sort();
        if let Some(found) = names.pop() {
            return Ok(found.canonicalize().unwrap_or(found));
        }
    }
    Err(RuntimeError::Missing { name: format!("{stem}*"), looked })
}

/// The process's one environment; the first call loads the library.
pub fn environment() -> Result<&'static Environment, RuntimeError> {
    static ENVIRONMENT: OnceLock<Result<Environment, (PathBuf, String)>> = OnceLock::new();
    let path = find_native("libonnxruntime.so")?;
    let built = ENVIRONMENT.get_or_init(|| {
        let builder = ort::init_from(&path).map_err(|e| (path.clone(), e.to_string()))?;
        builder.with_telemetry(false).build().map_err(|e| (path, e.to_string()))
    });
    built
        .as_ref()
        .map_err(|(path, message)| RuntimeError::Load { path: path.clone(), message: message.clone() })
}

/// Where a session runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Provider {
    #[default]
    Cpu,
    /// The CUDA device with this number.
    Cuda(u32),
}

/// How a session is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionOptions {
    /// Intra-op threads. They do not spin: an idle session that spins burns the cores of the others.
    pub threads: usize,
    pub provider: Provider,
    /// Most bytes of a CUDA device's memory that one session's arena takes; `None`: all of it.
    pub device_memory: Option<usize>,
}

impl From<usize> for SessionOptions {
    /// That many threads on the CPU.
    fn from(threads: usize) -> Self {
        SessionOptions { threads, provider: Provider::Cpu, device_memory: None }
    }
}

/// A CPU session over the graph at `path` with `threads` intra-op threads.
pub fn cpu_session(path: &Path, threads: usize) -> Result<Session, RuntimeError> {
    session(path, threads.into())
}

/// A session over the graph at `path`.
pub fn session(path: &Path, options: SessionOptions) -> Result<Session, RuntimeError> {
    profiled_session(path, options, None)
}

/// A session that notes what each of its nodes takes and writes.
#[derive(Clone, Copy, Debug)]
pub struct Profiling<'a> {
    /// Where the notes go; the runtime adds to the name.
    pub file: &'a Path,
    /// Otherwise nodes run one by one as the exporter wrote them.
    pub optimised: bool,
}

/// The same, profiled if `profiling` says so.
pub fn profiled_session(
    path: &Path,
    options: SessionOptions,
    profiling: Option<Profiling<'_>>,
) -> Result<Session, RuntimeError> {
    let environment = environment()?;
    if !path.is_file() {
        let looked = path.parent().map(Path::to_path_buf).into_iter().collect();
        return Err(RuntimeError::Missing { name: file_name(path), looked });
    }
    let build = || -> ort::Result<Session> {
        let builder = Session::builder(environment)?
            .with_intra_threads(options.threads)?
            .with_inter_threads(1)?
            .with_intra_op_spinning(false)?;
        let builder = match profiling {
            Some(Profiling { file, optimised: true }) => builder.with_profiling(file)?,
            Some(Profiling { file, optimised: false }) => {
                builder.with_profiling(file)?.with_optimization_level(GraphOptimizationLevel::Disable)?
            }
            None => builder,
        };
        let mut builder = match options.provider {
            Provider::Cpu => builder,
            Provider::Cuda(device) => {
                builder.with_execution_providers([cuda(device, options.device_memory)])?
            }
        };
        builder.commit_from_file(path)
    };
    build().map_err(|e| RuntimeError::Load { path: path.to_path_buf(), message: e.to_string() })
}

/// CUDA that fails loudly: without `error_on_failure` the runtime would build a CPU session and say nothing. The arena grows by
/// what is asked for, not by doubling, so that several sessions share a device; it does not give back, so it has a limit.
fn cuda(device: u32, memory: Option<usize>) -> ort::ep::ExecutionProviderDispatch {
    load_cuda_libraries();
    let provider = ort::ep::CUDA::default()
        .with_device_id(i32::try_from(device).unwrap_or(i32::MAX))
        .with_arena_extend_strategy(ort::ep::ArenaExtendStrategy::SameAsRequested);
    let provider = match memory {
        Some(bytes) => provider.with_memory_limit(bytes),
        None => provider,
    };
    provider.build().error_on_failure()
}

/// Loads the CUDA libraries that `scripts/setup --gpu` put into `cuda/` of a native folder, once. Where there are none, those of
/// the system are found by the loader; what is missing is said when the provider is registered.
fn load_cuda_libraries() {
    static LOADED: OnceLock<()> = OnceLock::new();
    LOADED.get_or_init(|| {
        let Some(dir) = native_dirs().into_iter().map(|dir| dir.join("cuda")).find(|dir| dir.is_dir()) else {
            return;
        };
        if let Err(error) = ort::ep::cuda::preload_dylibs(Some(&dir), Some(&dir)) {
            tracing::debug!("{}: {error}", dir.display());
        }
    });
}

/// Can sessions run on the CUDA device? Answers why not. All of it fails when the session's builder takes the provider, before
/// any graph is read.
pub fn probe_cuda(device: u32) -> Result<(), RuntimeError> {
    let environment = environment()?;
    let registered = Session::builder(environment).map_err(|e| e.to_string()).and_then(|builder| {
        builder.with_execution_providers([cuda(device, None)]).map(|_| ()).map_err(|e| e.to_string())
    });
    registered.map_err(|message| RuntimeError::Device { device, message: first_line(&message) })
}

/// The provider for a worker, and a note where `auto` fell back. `worker` chooses among several devices.
pub fn provider(device: &Device, worker: usize) -> Result<(Provider, Option<String>), RuntimeError> {
    match device {
        Device::Cpu => Ok((Provider::Cpu, None)),
        Device::Cuda(devices) => {
            let chosen = devices.get(worker % devices.len().max(1)).copied().unwrap_or(0);
            probe_cuda(chosen).map(|()| (Provider::Cuda(chosen), None))
        }
        Device::Auto => match probe_cuda(0) {
            Ok(()) => Ok((Provider::Cuda(0), None)),
            Err(RuntimeError::Device { message, .. }) => Ok((Provider::Cpu, Some(message))),
            Err(other) => Err(other),
        },
    }
}

fn first_line(message: &str) -> String {
    // ONNX Runtime writes the end of its lines as two characters, too.
    let line = message.lines().next().unwrap_or_default();
    line.trim_end_matches("\\n").trim_end_matches('.').to_owned()
}

fn file_name(path: &Path) -> String {
    path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default()
}
