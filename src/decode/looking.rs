//! Which part of the prefix each call reads, and what its outputs say about where the streams look next.

use crate::graphs::{DecodeGraph, Dims};
use crate::kv::{KvCache, Reading, RowSource};

use super::call::CallOutput;
use super::fixation::PageFixation;
use super::retention::{RetentionSettings, Watch};
use super::stream::Feed;
use super::{LoopSettings, page::Content};

/// What a call is to do beside its tokens.
#[derive(Clone, Debug, Default)]
pub(super) struct Focus {
    pub(super) reading: Reading,
    /// Ask for the focal layers' scores.
    pub(super) scores: bool,
    /// Rows whose saliency is asked for.
    pub(super) watched: Vec<i64>,
}

impl Focus {
    /// Everything is read, and nothing more is asked.
    pub(super) fn is_plain(&self) -> bool {
        self.reading == Reading::Everything && !self.scores && self.watched.is_empty()
    }
}

/// The page's policy of looking.
#[derive(Debug)]
pub(super) struct Looking {
    fixation: Option<PageFixation>,
    retention: Option<RetentionSettings>,
    dims: Dims,
}

impl Looking {
    pub(super) fn new(settings: &LoopSettings, graph: &dyn DecodeGraph) -> Looking {
        let retention = settings.retention.clone().filter(|r| r.rate < 1.0 && graph.has_saliency());
        Looking {
            fixation: settings.fixation.as_ref().and_then(|f| PageFixation::new(f, graph.focal_layers())),
            retention,
            dims: graph.dims(),
        }
    }

    /// A watch for a new branch, if branches are watched.
    pub(super) fn watch(&self) -> Option<Watch> {
        self.retention.as_ref().map(|_| Watch::default())
    }

    /// What a call of `feeds` is to do; `contents`: by row, the content stream's, `None` for the trunk.
    ///
    /// Only calls of one token a row say where streams look and are narrowed by fixation: drafts look at many places. While a
    /// branch is watched, everything is read. A call that fixation does not narrow may be narrowed by retention.
    pub(super) fn plan(&self, feeds: &[Feed], contents: &[Option<&Content>]) -> Focus {
        let single = feeds.iter().all(|feed| feed.tokens.len() == 1);
        let scores = single && self.fixation.is_some();
        let is_watched = |content: &Option<&Content>| content.is_some_and(|content| content.watch.is_some());
        let watched: Vec<i64> =
            (0..).zip(contents).filter(|(_, c)| is_watched(c)).map(|(row, _)| row).collect();
        if single && !watched.is_empty() {
            return Focus { reading: Reading::Everything, scores, watched };
        }
        let reading = match (&self.fixation, &self.retention) {
            (Some(fixation), _) if scores && fixation.is_known() => Reading::Fixation(fixation.max_share()),
            (_, Some(retention)) if !scores => Reading::Retention(retention.max_share),
            _ => Reading::Everything,
        };
        Focus { reading, scores, watched: Vec::new() }
    }

    /// Takes where the rows of a call looked. A fixation lasts for one step, a retention for the rest of the branch.
    pub(super) fn take(
        &mut self,
        kv: &mut KvCache,
        focus: &Focus,
        sources: &[RowSource<'_>],
        output: &CallOutput,
    ) {
        let Some(fixation) = &mut self.fixation else { return };
        let (scores, image_attention) = output.focal();
        let rows = output.rows();
        if focus.scores
            && !image_attention.is_empty()
            && let Some(governing) = fixation.profile(image_attention, self.dims.layers, rows, sources.len())
        {
            kv.set_governing(governing);
        }
        for (row, source) in sources.iter().enumerate() {
            let sets = if scores.is_empty() { None } else { fixation.sets(scores, row, rows, kv.prefix()) };
            kv.fixate(source, sets);
        }
    }

    /// Takes the saliency of a watched branch, number `at` of the watched rows; what it keeps once that is known.
    pub(super) fn take_saliency(
        &self,
        kv: &mut KvCache,
        content: &mut Content,
        output: &CallOutput,
        (at, watched): (usize, usize),
    ) {
        let (Some(settings), Some(watch)) = (&self.retention, &mut content.watch) else { return };
        watch.take(output.saliency(), at, watched, self.dims.kv_heads);
        let Some(kept) = watch.decide(settings, kv.prefix(), content.bbox, self.dims) else { return };
        content.watch = None;
        if let Some(branch) = &content.branch {
            kv.retain(branch, Some(kept));
        }
    }
}
