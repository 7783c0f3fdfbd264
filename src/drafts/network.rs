//! One small network: a session with one float32 NCHW input, its metadata, its errors.

use std::path::Path;

use ort::session::{Session, SessionOutputs};
use ort::value::TensorRef;

use crate::graphs::GraphError;
use crate::graphs::runtime::{RuntimeError, cpu_session};

/// A session and the name by which errors and statistics call it.
#[derive(Debug)]
pub(crate) struct Network {
    session: Session,
    name: &'static str,
}

impl Network {
    pub(crate) fn open(path: &Path, name: &'static str, threads: usize) -> Result<Self, RuntimeError> {
        Ok(Network { session: cpu_session(path, threads)?, name })
    }

    /// The `character` entry of the model's own metadata, one token a line.
    pub(crate) fn characters(&self) -> Result<Vec<String>, GraphError> {
        let metadata = self.session.metadata().map_err(|e| self.error(e.to_string()))?;
        let text = metadata.custom("character").ok_or_else(|| self.error("no metadata key `character`"))?;
        Ok(text.split('\n').map(str::to_owned).collect())
    }

    /// Runs the graph on `[batch, 3, height, width]`.
    pub(crate) fn run(&mut self, shape: [usize; 4], input: &[f32]) -> Result<SessionOutputs<'_>, GraphError> {
        let name = self.name;
        let failed = |e: ort::Error| GraphError { graph: name.into(), message: e.to_string() };
        let input = TensorRef::from_array_view((shape, input)).map_err(failed)?;
        self.session.run(ort::inputs![input]).map_err(failed)
    }

    pub(crate) fn error(&self, message: impl Into<String>) -> GraphError {
        GraphError { graph: self.name.into(), message: message.into() }
    }
}

/// Output number `index` as its shape and values.
pub(crate) fn output<'a>(
    outputs: &'a SessionOutputs<'_>,
    index: usize,
    graph: &'static str,
) -> Result<(Vec<usize>, &'a [f32]), GraphError> {
    let failed = |message: String| GraphError { graph: graph.into(), message };
    if index >= outputs.len() {
        return Err(failed(format!("output {index} of {} is missing", outputs.len())));
    }
    let (shape, values) = outputs[index].try_extract_tensor::<f32>().map_err(|e| failed(e.to_string()))?;
    Ok((shape.iter().map(|&d| d.max(0) as usize).collect(), values))
}
