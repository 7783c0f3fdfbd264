//! Where on the page a token is, from the tokens before it: the grounded position rules.
//!
//! ```text
//! grounded-words  line [y] [pitch]     word [x]    all in px of the model's raster
//! grounded-steps  line [down] [pitch]  word [gap]  [down] from the last line's centre, [gap] from the right edge of the word
//!                                                  before, at a line's start from the region's left edge; [y] and [x] where
//!                                                  a step is out of range
//! ```

use crate::decode::protocol::PositionState;
use crate::graphs::TokenId;
use crate::graphs::manifest::{CoordinateRange, PositionRule};

/// What a coordinate token measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Axis {
    X,
    Y,
    Pitch,
    /// A step to the right.
    Gap,
    /// A step down.
    Down,
}

/// Ranges of the tokens that stand for steps.
#[derive(Clone, Copy, Debug)]
pub struct StepTokens {
    pub gap: CoordinateRange,
    pub down: CoordinateRange,
}

impl StepTokens {
    /// The token of a line whose centre is at `y`, after what `state` has seen.
    pub fn line(&self, y: f32, state: &PositionState, absolute: &CoordinateRange) -> TokenId {
        let step = y - state.y;
        if self.down.spans(step) { self.down.token(step) } else { absolute.token(y) }
    }

    /// The token of a word whose left edge is at `x`.
    pub fn word(&self, x: f32, state: &PositionState, absolute: &CoordinateRange) -> TokenId {
        let gap = x - right_edge(state);
        if self.gap.spans(gap) { self.gap.token(gap) } else { absolute.token(x) }
    }
}

/// Where the characters so far are taken to end.
fn right_edge(state: &PositionState) -> f32 {
    state.x + state.n * state.pitch
}

/// The centre of the character to come.
pub(super) fn next_center(state: &PositionState) -> f32 {
    if state.pitch > 0.0 { state.x + (state.n + 0.5) * state.pitch } else { state.x }
}

/// Moves `state` on by a token that stands for `number`, or by a character of the width `advance`.
pub(super) fn moved(
    state: PositionState,
    rule: PositionRule,
    number: Option<(Axis, f32)>,
    advance: f32,
) -> PositionState {
    match rule {
        PositionRule::Sequential | PositionRule::Mrope => state,
        PositionRule::GroundedWords => moved_by_word(state, number),
        PositionRule::GroundedSteps => match state.line_x {
            Some(line_x) => moved_by_step(state, line_x, number, advance),
            None => moved_in_trunk(state, number),
        },
    }
}

fn moved_by_word(state: PositionState, number: Option<(Axis, f32)>) -> PositionState {
    match number {
        Some((Axis::Y, y)) => PositionState { y, pitch: 0.0, ..state },
        Some((Axis::X, x)) => PositionState { x, n: 0.0, ..state },
        Some((Axis::Pitch, pitch)) => PositionState { pitch, n: 0.0, ..state },
        None if state.pitch > 0.0 => PositionState { n: state.n + 1.0, ..state },
        Some((Axis::Gap | Axis::Down, _)) | None => state,
    }
}

fn moved_by_step(
    state: PositionState,
    line_x: f32,
    number: Option<(Axis, f32)>,
    advance: f32,
) -> PositionState {
    let line = |y: f32| PositionState { y, x: line_x, pitch: 0.0, n: 0.0, ..state };
    match number {
        Some((Axis::Y, y)) => line(y),
        Some((Axis::Down, step)) => line(state.y + step),
        Some((Axis::X, x)) => PositionState { x, n: 0.0, ..state },
        Some((Axis::Gap, gap)) => PositionState { x: right_edge(&state) + gap, n: 0.0, ..state },
        Some((Axis::Pitch, pitch)) => PositionState { pitch, n: 0.0, ..state },
        None if state.pitch > 0.0 => PositionState { n: state.n + advance, ..state },
        None => state,
    }
}

/// The last coordinates seen.
fn moved_in_trunk(state: PositionState, number: Option<(Axis, f32)>) -> PositionState {
    match number {
        Some((Axis::Y, y)) => PositionState { y, ..state },
        Some((Axis::X, x)) => PositionState { x, ..state },
        Some((Axis::Pitch | Axis::Gap | Axis::Down, _)) | None => state,
    }
}

#[cfg(test)]
mod tests;
