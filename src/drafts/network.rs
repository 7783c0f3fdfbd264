//! One small network: a session with one float32 NCHW input, its metadata, its errors.

use std::path::Path;

use ndarray::{ArrayView, Dimension};
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

/// Output number `index`, a tensor of `D`'s number of axes.
pub(crate) fn output<'a, D: Dimension>(
    outputs: &'a SessionOutputs<'_>,
    index: usize,
    graph: &'static str,
) -> Result<ArrayView<'a, f32, D>, GraphError> {
    let failed = |message: String| GraphError { graph: graph.into(), message };
    if index >= outputs.len() {
        return Err(failed(format!("output {index} of {} is missing", outputs.len())));
    }
    let view = outputs[index].try_extract_array::<f32>().map_err(|e| failed(e.to_string()))?;
    let shape = view.shape().to_vec();
    view.into_dimensionality().map_err(|_| failed(format!("output {index} has the shape {shape:?}")))
}

/// The numbers of an output in one piece, last axis fastest, as the runtime lays them out.
pub(crate) fn numbers<'a, D: Dimension>(view: &ArrayView<'a, f32, D>) -> &'a [f32] {
    view.to_slice().unwrap_or_default()
}
