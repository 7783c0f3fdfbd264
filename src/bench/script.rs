//! The real graph made to write given text: a call is run as it is, then the script's tokens stand in for the model's. A model
//! that reads badly would loop or stop early when it runs freely; so every mode writes the same tokens, and speed is compared
//! on equal work.

use std::collections::BTreeMap;

use crate::clock::Clock;
use crate::decode::PageDrafts;
use crate::decode::protocol::Protocol;
use crate::graphs::{DecodeGraph, Dims, GraphError, HeadDrafts, StepInput, StepOutput, TokenId};

/// What the streams of a page are to write.
#[derive(Clone, Debug, PartialEq)]
pub struct Script {
    child: TokenId,
    /// With its prompt and its end.
    trunk: Vec<TokenId>,
    /// By the number of trunk positions that a branch sees, which no two branches share: child token, content, end.
    branches: BTreeMap<i64, Vec<TokenId>>,
}

impl Script {
    /// What `drafts` say, word for word. A fork without a draft writes nothing but `branch_end`.
    pub fn of(drafts: &PageDrafts, protocol: &dyn Protocol, branch_end: TokenId) -> Script {
        let mut trunk = protocol.trunk_prompt();
        let prompt = trunk.len();
        trunk.extend(drafts.trunk.iter().map(|token| token.id));
        let sees_fork = usize::from(protocol.fork_visible());
        let forks = drafts.trunk.iter().enumerate().filter(|(_, token)| protocol.is_fork(token.id));
        let branches = forks.map(|(fork, _)| {
            let mut stream = vec![protocol.child_token()];
            match drafts.content.get(&fork) {
                Some(content) => stream.extend(content.iter().map(|token| token.id)),
                None => stream.push(branch_end),
            }
            ((prompt + fork + sees_fork) as i64, stream)
        });
        Script { child: protocol.child_token(), branches: branches.collect(), trunk }
    }

    pub fn trunk(&self) -> &[TokenId] {
        &self.trunk
    }

    /// Tokens that the branches write.
    pub fn content_tokens(&self) -> usize {
        self.branches.values().map(|stream| stream.len() - 1).sum()
    }

    /// Trunk positions that each branch sees, and tokens that it is fed: its child token and its content without the last.
    pub fn branches(&self) -> impl Iterator<Item = (i64, usize)> + '_ {
        self.branches.iter().map(|(&visible, stream)| (visible, stream.len() - 1))
    }

    /// Content of the branches in the order of their forks, without child tokens.
    pub fn content(&self) -> Vec<TokenId> {
        self.branches.values().flat_map(|stream| &stream[1..]).copied().collect()
    }

    /// What follows the token at `position` of the stream of a row. `first`: the row's first token in this call.
    fn next(&self, first: TokenId, visible: i64, suffix_len: i64, position: usize) -> Option<TokenId> {
        if suffix_len > 0 || first == self.child {
            let stream = self.branches.get(&visible)?;
            stream.get(suffix_len as usize + position + 1).copied()
        } else {
            self.trunk.get(visible as usize + position + 1).copied()
        }
    }
}

/// A graph whose CPU time is taken, and whose outputs follow a script if there is one.
pub struct MeasuredGraph<'a> {
    inner: &'a mut dyn DecodeGraph,
    script: Option<&'a Script>,
    /// Threads of the graph's session: CPU time is only known of one.
    threads: usize,
    pub seconds: f64,
    pub choices: Choices,
}

/// The model's own next token by stream (trunk positions that it sees; -1: the trunk) and position in it.
pub type Choices = BTreeMap<(i64, usize), TokenId>;

impl<'a> MeasuredGraph<'a> {
    pub fn new(inner: &'a mut dyn DecodeGraph, script: Option<&'a Script>, threads: usize) -> Self {
        MeasuredGraph { inner, script, threads, seconds: 0.0, choices: Choices::new() }
    }
}

impl std::fmt::Debug for MeasuredGraph<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "MeasuredGraph({} s)", self.seconds)
    }
}

impl DecodeGraph for MeasuredGraph<'_> {
    fn dims(&self) -> Dims {
        self.inner.dims()
    }

    fn focal_layers(&self) -> &[usize] {
        self.inner.focal_layers()
    }

    fn has_saliency(&self) -> bool {
        self.inner.has_saliency()
    }

    fn head_drafts(&self) -> usize {
        self.inner.head_drafts()
    }

    fn draft(&mut self, hidden: &[f32], tokens: &[TokenId]) -> Result<HeadDrafts, GraphError> {
        let clock = Clock::start(self.threads);
        let drafts = self.inner.draft(hidden, tokens)?;
        self.seconds += clock.seconds();
        Ok(drafts)
    }

    fn step(&mut self, input: &StepInput<'_>) -> Result<StepOutput, GraphError> {
        let clock = Clock::start(self.threads);
        let mut output = self.inner.step(input)?;
        self.seconds += clock.seconds();
        let Some(script) = self.script else { return Ok(output) };
        let per_row = input.tokens_per_row;
        for row in 0..input.rows {
            let (visible, suffix) = (input.trunk_visible[row], input.suffix_len[row]);
            let first = input.tokens[row * per_row];
            for position in 0..per_row {
                let Some(next) = script.next(first, visible, suffix, position) else { break };
                let at = row * per_row + position;
                let in_branch = suffix > 0 || first == script.child;
                let place = if in_branch { (visible, suffix as usize) } else { (-1, visible as usize) };
                self.choices.insert((place.0, place.1 + position), output.next_id[at]);
                output.next_id[at] = next;
                output.next_logprob[at] = 0.0;
            }
        }
        Ok(output)
    }
}
