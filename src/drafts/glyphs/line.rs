//! The characters found in one line -> its text: doubles dropped, spaces put in.

use crate::vision::masses::Found;

/// Nearer to each other than this share of the distance that their widths give, two characters are one.
const DOUBLED: f32 = 0.45;
/// The same where one of the two has less mass than [`WEAK`]: often a part of a wide letter.
const DOUBLED_WEAK: f32 = 0.65;
const WEAK: f32 = 0.7;
/// So much blank paper between two characters is a space, in x-heights.
const SPACE: f32 = 0.42;

/// One character of a line, in order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Placed {
    pub class: u16,
    /// Centre, px.
    pub x: f32,
    /// Mass of its class, 0..1.
    pub mass: f32,
    /// Does a space stand before it?
    pub spaced: bool,
}

/// Puts the characters of a line in order. `blank` says of every column of pixels whether it is without ink; `advance` how wide a
/// class is, relative to the mean one.
pub(super) fn placed(
    found: &[Found],
    slot: f32,
    x_height: f32,
    blank: &[bool],
    advance: impl Fn(u16) -> f32,
) -> Vec<Placed> {
    let mut line: Vec<Placed> =
        found.iter().map(|f| Placed { class: f.class, x: f.x * slot, mass: f.mass, spaced: false }).collect();
    line.sort_by(|a, b| a.x.total_cmp(&b.x));
    drop_doubles(&mut line, advance);
    for i in 1..line.len() {
        line[i].spaced = widest_blank(blank, line[i - 1].x, line[i].x) as f32 > SPACE * x_height;
    }
    line
}

/// Where two characters are too near for their widths, the surer one stays.
fn drop_doubles(line: &mut Vec<Placed>, advance: impl Fn(u16) -> f32) {
    let width = |a: &Placed, b: &Placed| 0.5 * (advance(a.class) + advance(b.class)).max(0.1);
    let mut pitches: Vec<f32> = line.windows(2).map(|w| (w[1].x - w[0].x) / width(&w[0], &w[1])).collect();
    pitches.sort_by(f32::total_cmp);
    let Some(&pitch) = pitches.get(pitches.len() / 2) else { return };
    while line.len() > 2 {
        let slack = |w: &[Placed]| {
            let share = (w[1].x - w[0].x) / (width(&w[0], &w[1]) * pitch.max(1e-3));
            share - if w[0].mass.min(w[1].mass) < WEAK { DOUBLED_WEAK } else { DOUBLED }
        };
        let nearest = line.windows(2).map(slack).enumerate().min_by(|a, b| a.1.total_cmp(&b.1));
        match nearest {
            Some((i, slack)) if slack < 0.0 => {
                line.remove(if line[i].mass < line[i + 1].mass { i } else { i + 1 });
            }
            _ => return,
        }
    }
}

/// Length of the longest run of blank columns between two places.
fn widest_blank(blank: &[bool], from: f32, to: f32) -> usize {
    let range = (from.max(0.0) as usize).min(blank.len())..(to.max(0.0) as usize).min(blank.len());
    let columns = blank.get(range).unwrap_or_default();
    columns.split(|b| !b).map(<[bool]>::len).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(characters: &[(u16, f32, f32)]) -> Vec<Found> {
        characters.iter().map(|&(class, x, mass)| Found { x, y: 0.5, class, mass }).collect()
    }

    fn classes(line: &[Placed]) -> Vec<u16> {
        line.iter().map(|p| p.class).collect()
    }

    #[test]
    fn a_space_is_blank_paper_not_distance() {
        let mut blank = vec![false; 80];
        blank[14..16].fill(true);
        blank[24..32].fill(true);
        let line = placed(&found(&[(1, 9.0, 1.0), (2, 2.5, 1.0), (3, 5.0, 1.0)]), 4.0, 9.0, &blank, |_| 1.0);
        assert_eq!(classes(&line), [2, 3, 1]);
        assert_eq!(line.iter().map(|p| p.spaced).collect::<Vec<_>>(), [false, false, true]);
    }

    #[test]
    fn of_doubles_the_surer_one_stays() {
        let twice = found(&[(1, 2.0, 1.0), (2, 4.0, 0.4), (3, 4.4, 0.6), (4, 6.0, 1.0), (5, 8.0, 1.0)]);
        assert_eq!(classes(&placed(&twice, 4.0, 9.0, &[], |_| 1.0)), [1, 3, 4, 5]);
    }

    #[test]
    fn a_weak_part_of_a_wide_letter_goes() {
        let part = found(&[(1, 2.0, 1.0), (2, 4.0, 1.0), (3, 5.1, 0.4), (4, 6.0, 1.0), (5, 8.0, 1.0)]);
        assert_eq!(classes(&placed(&part, 4.0, 9.0, &[], |_| 1.0)), [1, 2, 4, 5]);
        let sure = found(&[(1, 2.0, 1.0), (2, 4.0, 1.0), (3, 5.1, 0.9), (4, 6.2, 1.0), (5, 8.0, 1.0)]);
        assert_eq!(placed(&sure, 4.0, 9.0, &[], |_| 1.0).len(), 5);
    }

    #[test]
    fn narrow_letters_may_stand_close() {
        let line = found(&[
            (1, 2.0, 1.0),
            (9, 3.2, 1.0),
            (9, 3.9, 1.0),
            (2, 5.0, 1.0),
            (3, 7.0, 1.0),
            (4, 9.0, 1.0),
        ]);
        let narrow = |class: u16| if class == 9 { 0.4 } else { 1.1 };
        assert_eq!(placed(&line, 4.0, 9.0, &[], narrow).len(), 6);
    }

    #[test]
    fn an_empty_line_is_empty() {
        assert!(placed(&[], 4.0, 9.0, &[], |_| 1.0).is_empty());
    }
}
