//! Grids of cells: from drawn lines (`ruled`), from white columns (`aligned`) or from a table network, and words put into them
//! (`fill`). [`read_table`] chooses among the three.

mod aligned;
mod fill;
mod found;
mod header;
pub mod picture_rules;
mod ruled;

pub(crate) use aligned::aligned;
pub(crate) use found::{drawn_tables, lined_tables};

use crate::drafts::PageNets;
use crate::geometry::Rect;
use crate::lines::{hull_of, median, rtl_share};
use crate::page::{Cell, Rules, Word};

/// The table network sees a table with its longest side at this many pixels.
const NETWORK_SIDE: f32 = 488.0;

/// Letters smaller than this, in pixels of the network's input, are too small for it.
const LEAST_LETTER: f32 = 5.0;

fn empty_cell(row: usize, col: usize, bbox: Rect) -> Cell {
    Cell { row, col, rows: 1, cols: 1, bbox, words: Vec::new(), header: false }
}

/// The grid of the table inside `bbox` with `words` in its cells: every word stands in exactly one. Drawn lines if they part
/// all text, else the network's reading, else white columns. `None` where there are no words or none of the three finds cells.
pub fn read_table(bbox: Rect, words: &[Word], rules: &Rules, nets: &mut dyn PageNets) -> Option<Vec<Cell>> {
    if words.is_empty() {
        return None;
    }
    let bbox = bbox.union(&hull_of(words).grown(4.0, 4.0));
    let rules = if crosses(rules, bbox) { rules.clone() } else { nets.picture_rules(bbox.grown(6.0, 6.0)) };
    let cells = drawn(&rules, bbox, words).or_else(|| seen(bbox, words, &rules, nets))?;
    let mut cells = fill::tidy(cells);
    let text: String = words.iter().map(|w| w.text.as_str()).collect();
    if rtl_share(&text) > 0.5 {
        fill::mirror(&mut cells);
        cells.sort_by_key(|c| (c.row, c.col));
    }
    header::mark(&mut cells);
    Some(cells)
}

fn crosses(rules: &Rules, bbox: Rect) -> bool {
    let (wide, tall) = (bbox.x0..=bbox.x1, bbox.y0..=bbox.y1);
    rules.horizontal.iter().any(|l| tall.contains(&l.2) && l.1 > bbox.x0 && l.0 < bbox.x1)
        || rules.vertical.iter().any(|l| wide.contains(&l.2) && l.1 > bbox.y0 && l.0 < bbox.y1)
}

/// The drawn grid, if its cells hold one piece of text a line and its rows one line of text.
fn drawn(rules: &Rules, bbox: Rect, words: &[Word]) -> Option<Vec<Cell>> {
    let mut cells = ruled::ruled(rules, bbox)?;
    fill::fill(&mut cells, words);
    let cells = fill::unspan(cells);
    let clean =
        fill::crowded_rows(&cells) <= 0.08 && fill::crowded(&cells) <= 0.2 && fill::stacked(&cells) <= 0.2;
    clean.then_some(cells)
}

/// The network's cells, or white columns where it cannot be right.
fn seen(bbox: Rect, words: &[Word], rules: &Rules, nets: &mut dyn PageNets) -> Option<Vec<Cell>> {
    let Some(reading) = nets.table(bbox).filter(|r| !r.cells.is_empty()) else {
        return aligned(words, rules);
    };
    let mut cells = reading.cells;
    let outside = fill::fill_pieces(&mut cells, words);
    let letter =
        median(words.iter().map(|w| w.size)) * NETWORK_SIDE / bbox.width().max(bbox.height()).max(1.0);
    if (outside > 0.35 || fill::crowded(&cells) > 0.25 || letter < LEAST_LETTER)
        && let Some(other) = aligned(words, rules)
    {
        return Some(other);
    }
    Some(cells)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drafts::TableReading;
    use crate::lines::tests::word;
    use crate::page::{Kind, Region};

    struct Nets(Option<Vec<Cell>>);

    impl PageNets for Nets {
        fn layout(&mut self, _skip: &[Kind]) -> Vec<Region> {
            Vec::new()
        }
        fn table(&mut self, _bbox: Rect) -> Option<TableReading> {
            self.0.clone().map(|cells| TableReading { cells, confidence: 1.0 })
        }
        fn picture_rules(&mut self, _bbox: Rect) -> Rules {
            Rules::default()
        }
    }

    /// Two columns and `rows` rows of words, 200 px wide, rows 30 px apart.
    fn words(rows: usize) -> Vec<Word> {
        (0..rows)
            .flat_map(|r| {
                let y = 30.0 * r as f32;
                [
                    word(&format!("a{r}"), 5.0, y + 5.0, 40.0, y + 25.0),
                    word(&format!("b{r}"), 120.0, y + 5.0, 160.0, y + 25.0),
                ]
            })
            .collect()
    }

    fn shape(cells: &[Cell]) -> (usize, usize) {
        (
            cells.iter().map(|c| c.row + c.rows).max().unwrap_or(0),
            cells.iter().map(|c| c.col + c.cols).max().unwrap_or(0),
        )
    }

    const BOX: Rect = Rect { x0: 0.0, y0: 0.0, x1: 200.0, y1: 90.0 };

    #[test]
    fn clean_drawing_comes_before_the_network() {
        let rules = Rules {
            horizontal: [0.0, 30.0, 60.0, 90.0].map(|y| (0.0, 200.0, y)).to_vec(),
            vertical: [0.0, 100.0, 200.0].map(|x| (0.0, 90.0, x)).to_vec(),
        };
        let one = vec![empty_cell(0, 0, BOX)];
        let cells = read_table(BOX, &words(3), &rules, &mut Nets(Some(one))).unwrap();
        assert_eq!(shape(&cells), (3, 2));
        assert_eq!(cells.iter().filter(|c| c.header).count(), 2);
    }

    #[test]
    fn network_cells_take_the_words_and_crowded_ones_give_way_to_white_columns() {
        let good: Vec<Cell> = (0..6)
            .map(|k| {
                let (x, y) = ((k % 2) as f32 * 100.0, (k / 2) as f32 * 30.0);
                empty_cell(k / 2, k % 2, Rect::new(x, y, x + 100.0, y + 30.0))
            })
            .collect();
        let cells = read_table(BOX, &words(3), &Rules::default(), &mut Nets(Some(good))).unwrap();
        assert_eq!((shape(&cells), cells[5].words[0].text.as_str()), ((3, 2), "b2"));
        let one = vec![empty_cell(0, 0, BOX)];
        let cells = read_table(BOX, &words(3), &Rules::default(), &mut Nets(Some(one))).unwrap();
        assert_eq!(shape(&cells), (3, 2));
    }

    #[test]
    fn without_network_and_lines_white_columns_part_the_words() {
        let cells = read_table(BOX, &words(3), &Rules::default(), &mut Nets(None)).unwrap();
        assert_eq!(shape(&cells), (3, 2));
        assert_eq!(read_table(BOX, &[], &Rules::default(), &mut Nets(None)), None);
    }

    #[test]
    fn right_to_left_table_starts_with_its_right_column() {
        let mut words = words(2);
        for (k, w) in words.iter_mut().enumerate() {
            w.text = ["يسار", "يمين"][k % 2].into();
        }
        let cells = read_table(BOX, &words, &Rules::default(), &mut Nets(None)).unwrap();
        assert_eq!((cells[0].col, cells[0].words[0].text.as_str()), (0, "يمين"));
    }
}
