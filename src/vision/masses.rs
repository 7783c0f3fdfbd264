//! Characters off the vision graph's masses.
//!
//! A character's unit of mass lies on the four slots around its centre, in shares by how near they are (bilinear). So: take the 2 x 2
//! window with most mass of one class, read its centre of mass, take a unit of mass off, go on. Where the net wavers between
//! classes, the unit is taken off all of them. What is found where a character is already is no other one. `scripts/train/read_glyphs.py` does
//! the same.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, HashMap};

/// Size of a slot, px.
pub(crate) const SLOT_WIDTH: usize = 4;
pub(crate) const SLOT_HEIGHT: usize = 8;
/// Masses below this are left out of a slot.
const NOTHING: f32 = 0.004;

/// What a character is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taking {
    /// Mass of its class and of all classes that it needs in its window.
    pub least_of_class: f32,
    pub least: f32,
    /// Characters whose centres are nearer than that along both axes, slots, are one, which the graph gave too much mass.
    pub same_place: f32,
}

/// Little mass is enough, because the graph spreads narrow characters thin.
pub(crate) const PAGE: Taking = Taking { least_of_class: 0.1, least: 0.2, same_place: 0.75 };
/// The drafter of lines tells doubles by their widths.
pub(crate) const LINE: Taking = Taking { least_of_class: 0.25, least: 0.5, same_place: 0.0 };

/// Masses of one picture's slots; of each slot only the classes that it may hold.
#[derive(Clone, Debug)]
pub(crate) struct Masses {
    rows: usize,
    columns: usize,
    /// `(class, mass)` by slot, row by row.
    slots: Vec<Vec<(u16, f32)>>,
}

/// A character that was found; places in slots, from the left upper corner.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Found {
    pub x: f32,
    pub y: f32,
    pub class: u16,
    /// Mass of its class, at most 1.
    pub mass: f32,
}

/// A window that may hold a character, ordered by mass. Row and column count from -1: a window may reach over the edge.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Candidate {
    mass: f32,
    class: u16,
    row: isize,
    column: isize,
}

impl Eq for Candidate {}

impl Ord for Candidate {
    fn cmp(&self, other: &Self) -> Ordering {
        let place = |c: &Candidate| (c.row, c.column, c.class);
        self.mass.total_cmp(&other.mass).then_with(|| place(other).cmp(&place(self)))
    }
}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Where characters were found, by slot.
#[derive(Debug, Default)]
struct Places(HashMap<(i32, i32), Vec<(f32, f32)>>);

impl Places {
    /// Adds a place unless one is nearer than `apart` along both axes; says whether it was free.
    fn add(&mut self, x: f32, y: f32, apart: f32) -> bool {
        let (column, row) = (x as i32, y as i32);
        let slots = (-1..=1).flat_map(|down| (-1..=1).map(move |right| (column + right, row + down)));
        let mut near = slots.filter_map(|slot| self.0.get(&slot)).flatten();
        let free = !near.any(|&(a, b)| (x - a).abs() < apart && (y - b).abs() < apart);
        if free {
            self.0.entry((column, row)).or_default().push((x, y));
        }
        free
    }
}

impl Masses {
    /// `mass(class, row, column)` for classes `1..classes`.
    pub(crate) fn new(
        rows: usize,
        columns: usize,
        classes: usize,
        mass: impl Fn(usize, usize, usize) -> f32,
    ) -> Self {
        let mut slots = vec![Vec::new(); rows * columns];
        for class in 1..classes.min(usize::from(u16::MAX)) {
            for row in 0..rows {
                for column in 0..columns {
                    let value = mass(class, row, column);
                    if value > NOTHING {
                        slots[row * columns + column].push((class as u16, value));
                    }
                }
            }
        }
        Masses { rows, columns, slots }
    }

    /// The most mass that a window holds, of all classes.
    pub(crate) fn heaviest(&self) -> f32 {
        let windows = (-1..self.rows as isize)
            .flat_map(|row| (-1..self.columns as isize).map(move |column| (row, column)));
        windows.map(|(row, column)| self.whole(row, column)).fold(0.0, f32::max)
    }

    /// Mass of all classes in a window.
    fn whole(&self, row: isize, column: isize) -> f32 {
        self.window(row, column).into_iter().flatten().map(|slot| self.sum_at(slot)).sum()
    }

    /// Takes the characters out, surest first.
    pub(crate) fn take_characters(&mut self, rule: Taking) -> Vec<Found> {
        let mut candidates = self.candidates(rule.least_of_class);
        let (mut found, mut places) = (Vec::new(), Places::default());
        while let Some(candidate) = candidates.pop() {
            let Candidate { class, row, column, .. } = candidate;
            let own = self.window(row, column).map(|slot| self.mass_at(slot, class));
            let mass: f32 = own.iter().sum();
            let whole = self.whole(row, column);
            if mass <= rule.least_of_class || whole <= rule.least {
                continue;
            }
            if mass < candidate.mass - 1e-4 {
                candidates.push(Candidate { mass, ..candidate });
                continue;
            }
            let lean = |plus: f32, minus: f32| 0.5 * (plus - minus) / mass;
            let x = column as f32 + 1.0 + lean(own[1] + own[3], own[0] + own[2]);
            let y = row as f32 + 1.0 + lean(own[2] + own[3], own[0] + own[1]);
            if places.add(x, y, rule.same_place) {
                found.push(Found { x, y, class, mass: mass.min(1.0) });
            }
            self.take_unit(row, column, class, own, mass);
            let left: f32 = self.window(row, column).map(|slot| self.mass_at(slot, class)).iter().sum();
            if left > rule.least_of_class {
                candidates.push(Candidate { mass: left, ..candidate });
            }
        }
        found
    }

    /// Slots of the window whose left upper slot is at `row`, `column`; `None` outside.
    fn window(&self, row: isize, column: isize) -> [Option<usize>; 4] {
        [(0, 0), (0, 1), (1, 0), (1, 1)].map(|(down, right)| {
            let (row, column) = (usize::try_from(row + down).ok()?, usize::try_from(column + right).ok()?);
            (row < self.rows && column < self.columns).then_some(row * self.columns + column)
        })
    }

    fn mass_at(&self, slot: Option<usize>, class: u16) -> f32 {
        slot.and_then(|slot| self.slots[slot].iter().find(|(c, _)| *c == class))
            .map_or(0.0, |(_, mass)| *mass)
    }

    fn sum_at(&self, slot: usize) -> f32 {
        self.slots[slot].iter().map(|(_, mass)| mass).sum()
    }

    fn candidates(&self, least: f32) -> BinaryHeap<Candidate> {
        let mut heap = BinaryHeap::new();
        let mut sums: Vec<(u16, f32)> = Vec::new();
        for row in -1..self.rows as isize {
            for column in -1..self.columns as isize {
                sums.clear();
                for slot in self.window(row, column).into_iter().flatten() {
                    for &(class, mass) in &self.slots[slot] {
                        match sums.iter_mut().find(|(c, _)| *c == class) {
                            Some((_, sum)) => *sum += mass,
                            None => sums.push((class, mass)),
                        }
                    }
                }
                let enough = sums.iter().filter(|(_, mass)| *mass > least);
                heap.extend(enough.map(|&(class, mass)| Candidate { mass, class, row, column }));
            }
        }
        heap
    }

    /// Takes a unit of mass off a window, spread as the class's `own` mass is: off the class, and what it lacks off the others.
    fn take_unit(&mut self, row: isize, column: isize, class: u16, own: [f32; 4], mass: f32) {
        for (slot, own) in self.window(row, column).into_iter().zip(own) {
            let Some(slot) = slot else { continue };
            let wanted = own / mass;
            let given = own.min(wanted);
            let others = self.sum_at(slot) - own;
            let kept = if others > 0.0 { 1.0 - ((wanted - given) / others).min(1.0) } else { 0.0 };
            for (c, mass) in &mut self.slots[slot] {
                *mass = if *c == class { own - given } else { *mass * kept };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Masses of characters `(class, x, y, mass)`, centres in slots.
    fn masses(rows: usize, columns: usize, characters: &[(usize, f32, f32, f32)]) -> Masses {
        Masses::new(rows, columns, 9, |class, row, column| {
            let near = |at: f32, slot: usize| (1.0 - (at - (slot as f32 + 0.5)).abs()).max(0.0);
            characters.iter().filter(|c| c.0 == class).map(|c| c.3 * near(c.1, column) * near(c.2, row)).sum()
        })
    }

    #[test]
    fn characters_come_back_where_they_were_put() {
        let mut page = masses(4, 12, &[(3, 2.3, 1.7, 1.0), (5, 6.5, 1.5, 0.9), (3, 9.0, 2.2, 1.0)]);
        let mut found = page.take_characters(LINE);
        found.sort_by(|a, b| a.x.total_cmp(&b.x));
        assert_eq!(found.iter().map(|f| f.class).collect::<Vec<_>>(), [3, 5, 3]);
        for (f, (x, y)) in found.iter().zip([(2.3, 1.7), (6.5, 1.5), (9.0, 2.2)]) {
            assert!((f.x - x).abs() < 0.02 && (f.y - y).abs() < 0.02, "{f:?}");
        }
        assert!(page.heaviest() < 0.05);
    }

    #[test]
    fn neighbours_of_one_class_are_two() {
        let found = masses(3, 8, &[(4, 3.0, 1.5, 1.0), (4, 4.0, 1.5, 1.0)]).take_characters(LINE);
        assert_eq!(found.len(), 2);
    }

    #[test]
    fn a_character_of_which_the_net_is_unsure_is_one() {
        let mut page = masses(3, 8, &[(4, 3.2, 1.5, 0.55), (6, 3.2, 1.5, 0.4)]);
        let found = page.take_characters(LINE);
        assert_eq!(found.iter().map(|f| f.class).collect::<Vec<_>>(), [4]);
        assert!(page.heaviest() < 0.05, "the rest of the unit is gone: {}", page.heaviest());
    }

    #[test]
    fn too_much_mass_in_one_place_is_one_character() {
        let found =
            masses(3, 8, &[(4, 3.2, 1.5, 1.0), (4, 3.6, 1.5, 0.4), (6, 3.1, 1.7, 0.5)]).take_characters(PAGE);
        assert_eq!(found.iter().map(|f| f.class).collect::<Vec<_>>(), [4]);
    }

    #[test]
    fn little_mass_is_no_character() {
        let mut page = masses(3, 8, &[(4, 3.2, 1.5, 0.3)]);
        assert!(page.take_characters(LINE).is_empty());
        assert!((page.heaviest() - 0.3).abs() < 0.01);
    }

    #[test]
    fn a_character_at_the_edge_is_found() {
        let found = masses(2, 4, &[(2, 0.3, 0.4, 1.0)]).take_characters(LINE);
        assert_eq!(found.len(), 1);
        assert!((0.0..0.6).contains(&found[0].x), "{found:?}");
    }
}
