//! The multi-token head of a pack: a hidden state and the token after it -> K drafted tokens.
//!
//! ```text
//! in   hidden         [N, H]   f32    of the decode graph, at the position that wrote the token
//!      tokens         [N]      int64
//! out  drafts         [N, K]   int64  the tokens after it, each fed to the next application of the one block
//!      probabilities  [N, K]   f32
//! ```

use std::path::Path;

use ort::session::Session;

use super::contract::{F32, I64, expected, failed, graph_name, open, values, view};
use crate::graphs::manifest::PackError;
use crate::graphs::runtime::SessionOptions;
use crate::graphs::{Dims, GraphError, HeadDrafts, TokenId};

/// A session of the head.
pub struct MultiTokenHead {
    session: Session,
    name: String,
    hidden: usize,
    drafts: usize,
}

impl std::fmt::Debug for MultiTokenHead {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "MultiTokenHead({}, {} drafts)", self.name, self.drafts)
    }
}

impl MultiTokenHead {
    /// Loads the graph at `path` as `options` say and checks it against `dims`.
    pub fn load(path: &Path, dims: Dims, options: impl Into<SessionOptions>) -> Result<Self, PackError> {
        let inputs = [expected("hidden", F32, &[None, Some(dims.hidden)]), expected("tokens", I64, &[None])];
        let outputs = [expected("drafts", I64, &[None, None]), expected("probabilities", F32, &[None, None])];
        let session = open(path, options.into(), &inputs, &outputs)?;
        let shape =
            session.outputs().iter().find(|o| o.name() == "drafts").and_then(|o| o.dtype().tensor_shape());
        let drafts = shape.and_then(|shape| usize::try_from(*shape.get(1)?).ok()).unwrap_or(0);
        if drafts == 0 {
            let message = "output `drafts` does not say how many it has a row".into();
            return Err(PackError::File { path: path.to_path_buf(), message });
        }
        Ok(MultiTokenHead { session, name: graph_name(path), hidden: dims.hidden, drafts })
    }

    /// Drafts a row.
    pub fn drafts(&self) -> usize {
        self.drafts
    }

    /// What follows `tokens [rows]`, by their `hidden [rows, H]`.
    pub fn run(&mut self, hidden: &[f32], tokens: &[TokenId]) -> Result<HeadDrafts, GraphError> {
        let fail = |message: String| failed(&self.name, message);
        let feed = vec![
            view("hidden", hidden, vec![tokens.len(), self.hidden]).map_err(fail)?,
            view("tokens", tokens, vec![tokens.len()]).map_err(fail)?,
        ];
        let outputs = self.session.run(feed).map_err(|e| failed(&self.name, e))?;
        let ids: Vec<TokenId> = values(&outputs, "drafts").map_err(fail)?;
        let probabilities: Vec<f32> = values(&outputs, "probabilities").map_err(fail)?;
        if ids.len() != tokens.len() * self.drafts || probabilities.len() != ids.len() {
            return Err(fail(format!("outputs do not match {} rows", tokens.len())));
        }
        Ok(HeadDrafts { count: self.drafts, ids, probabilities })
    }
}
