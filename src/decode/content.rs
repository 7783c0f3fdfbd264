//! The draft of a content branch: what is proposed next, and where it goes on after the model disagreed.

use crate::graphs::TokenId;

use super::protocol::{DraftToken, Protocol, TokenClass};
use super::stream::Proposed;

/// Tokens of text that must agree before a place in the draft is taken to be where the stream is. Fewer are met by chance.
const MATCH_LEN: usize = 3;

/// How far after a refused token the stream is looked for, in tokens; and how long, before the draft is dropped.
const WINDOW: usize = 64;

/// How far after a refused token the model's own is looked for at once, as if the draft had too many tokens there.
const SKIP: usize = 8;

/// A drafted content stream.
#[derive(Debug)]
pub(super) struct ContentDraft {
    tokens: Vec<DraftToken>,
    place: Place,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Place {
    /// `next` is proposed; the first `strict` tokens must be the model's own, since the place is a guess until then.
    /// `since`: the token whose refusal led here.
    Following {
        next: usize,
        strict: usize,
        since: usize,
    },
    /// The stream is somewhere near `since`; undrafted for `waited` tokens.
    Lost {
        since: usize,
        waited: usize,
    },
    Dropped,
}

impl ContentDraft {
    pub(super) fn new(tokens: Vec<DraftToken>) -> ContentDraft {
        ContentDraft { tokens, place: Place::Following { next: 0, strict: 0, since: 0 } }
    }

    /// What is proposed next.
    pub(super) fn proposal(&self) -> Proposed<'_> {
        match self.place {
            Place::Following { next, strict, .. } => {
                let tokens = &self.tokens[next.min(self.tokens.len())..];
                Proposed { tokens, strict, ..Proposed::default() }
            }
            Place::Lost { .. } | Place::Dropped => Proposed::default(),
        }
    }

    /// Moves on after a call that kept `drafted` of the proposed tokens, and one of the model's own if `own`; `stream` holds
    /// all tokens kept so far.
    pub(super) fn advance(
        &mut self,
        drafted: usize,
        own: Option<Own>,
        stream: &[TokenId],
        protocol: &dyn Protocol,
    ) {
        self.place = match (self.place, own) {
            (Place::Following { next, strict, since }, None | Some(Own::AtEnd)) => {
                Place::Following { next: next + drafted, strict: strict.saturating_sub(drafted), since }
            }
            (Place::Following { next, strict, since }, Some(Own::Instead(_))) if drafted < strict => self
                .search(since, 0, stream, protocol)
                .unwrap_or(Place::Lost { since: since.min(next), waited: 0 }),
            (Place::Following { next, .. }, Some(Own::Instead(token))) => {
                self.resume(next + drafted, token, protocol)
            }
            (Place::Lost { since, waited }, Some(_)) => {
                self.search(since, waited, stream, protocol).unwrap_or(if waited < WINDOW {
                    Place::Lost { since, waited: waited + 1 }
                } else {
                    Place::Dropped
                })
            }
            (place @ (Place::Lost { .. } | Place::Dropped), _) => place,
        };
    }

    /// Right after a refusal: the draft had too many tokens here if the model's own comes soon, else it stands in for one.
    fn resume(&self, refused: usize, own: TokenId, protocol: &dyn Protocol) -> Place {
        let after = refused + 1;
        let soon = &self.tokens[after..(after + SKIP).min(self.tokens.len())];
        let skipped = if protocol.class(own) == TokenClass::Coordinate {
            None
        } else {
            soon.iter().position(|draft| draft.id == own)
        };
        Place::Following { next: skipped.map_or(after, |n| after + n + 1), strict: MATCH_LEN, since: refused }
    }

    /// Looks for the stream's last tokens of text near `since`.
    fn search(
        &self,
        since: usize,
        waited: usize,
        stream: &[TokenId],
        protocol: &dyn Protocol,
    ) -> Option<Place> {
        let text = |id: &TokenId| protocol.class(*id) != TokenClass::Coordinate;
        let last: Vec<TokenId> = stream.iter().rev().copied().filter(text).take(MATCH_LEN).collect();
        let first = since.saturating_sub(MATCH_LEN);
        let until = (since + WINDOW + waited).min(self.tokens.len());
        let near: Vec<usize> = (first.min(until)..until).filter(|&i| text(&self.tokens[i].id)).collect();
        let found = near.windows(MATCH_LEN).find(|places| {
            last.len() == MATCH_LEN && places.iter().rev().zip(&last).all(|(&i, id)| self.tokens[i].id == *id)
        })?;
        let next = found.last()? + 1;
        Some(Place::Following { next, strict: MATCH_LEN, since: next })
    }
}

/// A token of the model's own in a content stream.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Own {
    /// In place of a drafted token.
    Instead(TokenId),
    /// Where nothing was drafted.
    AtEnd,
}
