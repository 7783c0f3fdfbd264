//! Reading order of boxes: recursive cuts along white gutters.
//!
//! At every level the group is cut at white vertical gutters into columns. Where there are none, white horizontal gaps split it
//! into bands; neighbouring bands that share a gutter are joined again, so that columns are read down and not across:
//!
//! ```text
//!   +-----------+    band 1: no gutter
//!   +-----------+
//!   +----+ +----+    bands 2, 3: one gutter runs through both: columns
//!   +----+ +----+
//!   +----+ +----+
//!   +----+ +----+
//! ```

use crate::clock::worked;
use crate::geometry::{Rect, hull};

/// Where the first column of a page stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    LeftToRight,
    RightToLeft,
}

/// Past this many boxes (a page of debris) they are read line by line: the cuts take quadratic time.
const MAX_BOXES: usize = 4000;

/// Deeper recursion than this only happens with boxes that cannot be cut.
const MAX_DEPTH: usize = 30;

/// Indices of `boxes` in reading order. `gutter`: least width of a white gap between columns, in the unit of the boxes.
/// `floats[i]`: box `i` is a caption or a figure, which may stand across a gutter without ending the columns; missing
/// entries count as `false`.
pub fn xycut(boxes: &[Rect], gutter: f32, direction: Direction, floats: &[bool]) -> Vec<usize> {
    let boxes: Vec<Rect> = boxes.iter().map(shrunk).collect();
    let page = Page { boxes, gutter, direction, floats };
    let ids: Vec<usize> = (0..page.boxes.len()).collect();
    if ids.len() > MAX_BOXES { page.by_rows(ids) } else { page.cut(ids, 0) }
}

/// Boxes of neighbours touch or overlap by a few pixels: cuts see them a little smaller.
fn shrunk(b: &Rect) -> Rect {
    let dx = (0.02 * b.width()).clamp(0.0, 4.0);
    let dy = (0.15 * b.height()).clamp(0.0, 4.0);
    Rect::new(b.x0 + dx, b.y0 + dy, b.x1 - dx, b.y1 - dy)
}

/// Centres of the gaps of at least `least` between spans.
fn gaps(mut spans: Vec<(f32, f32)>, least: f32) -> Vec<f32> {
    worked(8 * spans.len());
    spans.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut out = Vec::new();
    let mut end: Option<f32> = None;
    for (low, high) in spans {
        if let Some(end) = end
            && low - end >= least
        {
            out.push((end + low) / 2.0);
        }
        end = Some(end.map_or(high, |e| e.max(high)));
    }
    out
}

struct Page<'a> {
    boxes: Vec<Rect>,
    gutter: f32,
    direction: Direction,
    floats: &'a [bool],
}

impl Page<'_> {
    fn cut(&self, ids: Vec<usize>, depth: usize) -> Vec<usize> {
        if ids.len() < 2 {
            return ids;
        }
        if depth > MAX_DEPTH {
            return self.by_rows(ids);
        }
        let mut columns = self.columns(&ids);
        if columns.len() > 1 {
            if self.direction == Direction::RightToLeft {
                columns.reverse();
            }
            return columns.into_iter().flat_map(|c| self.cut(c, depth + 1)).collect();
        }
        if let Some(order) = self.cut_around_floats(&ids, depth) {
            return order;
        }
        let bands = self.bands(&ids);
        if bands.len() > 1 {
            let joined = self.joined_by_gutter(bands);
            if joined.len() == 1 {
                return self.by_rows(ids);
            }
            return joined.into_iter().flat_map(|b| self.cut(b, depth + 1)).collect();
        }
        self.untangled(ids)
    }

    fn is_float(&self, i: usize) -> bool {
        self.floats.get(i).copied().unwrap_or(false)
    }

    /// Top to bottom by centres, then along the line.
    fn by_rows(&self, mut ids: Vec<usize>) -> Vec<usize> {
        let sign = if self.direction == Direction::RightToLeft { -1.0 } else { 1.0 };
        ids.sort_by(|&a, &b| {
            let (p, q) = (self.boxes[a], self.boxes[b]);
            (p.y0 + p.y1).total_cmp(&(q.y0 + q.y1)).then((sign * p.x0).total_cmp(&(sign * q.x0)))
        });
        ids
    }

    fn columns(&self, ids: &[usize]) -> Vec<Vec<usize>> {
        let cuts = gaps(ids.iter().map(|&i| (self.boxes[i].x0, self.boxes[i].x1)).collect(), self.gutter);
        split_at(ids, &cuts, |i| self.boxes[i].center().0)
    }

    fn bands(&self, ids: &[usize]) -> Vec<Vec<usize>> {
        let cuts = gaps(ids.iter().map(|&i| (self.boxes[i].y0, self.boxes[i].y1)).collect(), 0.01);
        split_at(ids, &cuts, |i| self.boxes[i].center().1)
    }

    /// Neighbouring bands that have columns of their own and share a gutter become one group; a band of floats that leave part
    /// of the width free does not part them.
    fn joined_by_gutter(&self, bands: Vec<Vec<usize>>) -> Vec<Vec<usize>> {
        let mut out: Vec<Vec<usize>> = Vec::new();
        for band in self.with_column_tails(bands) {
            if let Some(last) = out.last()
                && self.share_gutter(last, &band)
                && let Some(last) = out.last_mut()
            {
                last.extend(band);
            } else if let [.., last, between] = out.as_slice()
                && self.floats_between(last, between, &band)
            {
                let between = out.pop().unwrap_or_default();
                if let Some(last) = out.last_mut() {
                    last.extend(between.into_iter().chain(band));
                }
            } else {
                out.push(band);
            }
        }
        out
    }

    /// Bands that all stand in one column of the columned band above them go on with that column, unless something across the
    /// gutter follows: text beside the white end of a shorter column. One of them must fill the column; headings alone, over
    /// what follows, do not.
    fn with_column_tails(&self, bands: Vec<Vec<usize>>) -> Vec<Vec<usize>> {
        let mut out: Vec<Vec<usize>> = Vec::new();
        let mut tail: Vec<Vec<usize>> = Vec::new();
        for band in bands {
            let longer: Vec<usize> = tail.iter().flatten().chain(&band).copied().collect();
            if out.last().is_some_and(|above| self.column_share(above, &longer).is_some()) {
                tail.push(band);
                continue;
            }
            let columns_go_on = out.last().is_some_and(|above| self.share_gutter(above, &band));
            self.end_tail(&mut out, &mut tail, columns_go_on);
            out.push(band);
        }
        self.end_tail(&mut out, &mut tail, true);
        out
    }

    fn end_tail(&self, out: &mut Vec<Vec<usize>>, tail: &mut Vec<Vec<usize>>, columns_go_on: bool) {
        let all: Vec<usize> = tail.iter().flatten().copied().collect();
        match out.last_mut() {
            Some(above)
                if columns_go_on && self.column_share(above, &all).is_some_and(|share| share >= 0.6) =>
            {
                above.extend(all);
                tail.clear();
            }
            _ => out.append(tail),
        }
    }

    /// If `below` stands in one of the columns of `above`: its share of that column's width.
    fn column_share(&self, above: &[usize], below: &[usize]) -> Option<f32> {
        let width = |ids: &[usize]| hull(ids.iter().map(|&i| self.boxes[i])).unwrap_or_default().width();
        let both: Vec<usize> = above.iter().chain(below).copied().collect();
        let columns = self.columns(&both);
        let count = self.columns(above).len();
        worked(below.len().saturating_mul(both.len()));
        let column = columns.iter().find(|column| below.iter().all(|i| column.contains(i)))?;
        let rest: Vec<usize> = column.iter().copied().filter(|i| !below.contains(i)).collect();
        let inside = !below.is_empty() && count > 1 && columns.len() == count;
        inside.then(|| width(below) / width(&rest).max(1e-6))
    }

    fn share_gutter(&self, above: &[usize], below: &[usize]) -> bool {
        let columns = |ids: &[usize]| self.columns(ids).len();
        let both: Vec<usize> = above.iter().chain(below).copied().collect();
        columns(above) > 1 && columns(below) > 1 && columns(&both) > 1
    }

    /// Is `between` made of floats over less than 80 % of the width, and can what stands around it be read by columns?
    fn floats_between(&self, above: &[usize], between: &[usize], below: &[usize]) -> bool {
        let rest: Vec<usize> = above.iter().chain(below).copied().filter(|&i| !self.is_float(i)).collect();
        let width = |ids: &[usize]| hull(ids.iter().map(|&i| self.boxes[i])).unwrap_or_default().width();
        between.iter().all(|&i| self.is_float(i))
            && width(between) < 0.8 * width(&rest)
            && self.share_gutter(above, below)
            && self.two_columns_at_least(&rest)
    }

    fn two_columns_at_least(&self, ids: &[usize]) -> bool {
        let columns = self.columns(ids);
        columns.len() > 1 && columns.iter().all(|c| c.len() > 1)
    }

    /// Where only floats close the gutter: the rest is read by columns, and each float comes before the first box below it
    /// in a column that it touches.
    fn cut_around_floats(&self, ids: &[usize], depth: usize) -> Option<Vec<usize>> {
        let (mut floats, rest): (Vec<usize>, Vec<usize>) = ids.iter().partition(|&&i| self.is_float(i));
        if floats.is_empty() || !self.two_columns_at_least(&rest) {
            return None;
        }
        let mut out = self.cut(rest, depth + 1);
        floats.sort_by(|&a, &b| self.boxes[a].y0.total_cmp(&self.boxes[b].y0));
        for float in floats {
            let at = self.place_of_float(float, &out);
            out.insert(at, float);
        }
        Some(out)
    }

    fn place_of_float(&self, float: usize, order: &[usize]) -> usize {
        worked(order.len());
        let b = self.boxes[float];
        let touches = |i: usize| self.boxes[i].overlap_x(&b) > 0.0;
        let any = order.iter().any(|&i| touches(i));
        let beside = |i: usize| touches(i) || !any;
        let below = |i: usize| self.boxes[i].center().1 > b.center().1;
        if let Some(at) = order.iter().position(|&i| beside(i) && below(i)) {
            return at;
        }
        order.iter().rposition(|&i| beside(i)).map_or(order.len(), |at| at + 1)
    }

    /// Overlapping boxes without any gap: always take the box that the fewest others must precede.
    fn untangled(&self, mut left: Vec<usize>) -> Vec<usize> {
        let before = |a: usize, b: usize| {
            let (p, q) = (self.boxes[a], self.boxes[b]);
            if p.overlap_x(&q) > 0.0 {
                p.center().1 < q.center().1
            } else {
                (p.x0 > q.x0) == (self.direction == Direction::RightToLeft)
            }
        };
        let waits_for = |a: usize| {
            worked(left.len());
            left.iter().filter(|&&b| b != a && before(b, a)).count()
        };
        let mut waits: Vec<usize> = left.iter().map(|&a| waits_for(a)).collect();
        let mut out = Vec::with_capacity(left.len());
        while let Some(k) = (0..left.len()).min_by(|&a, &b| {
            waits[a].cmp(&waits[b]).then(self.boxes[left[a]].y0.total_cmp(&self.boxes[left[b]].y0))
        }) {
            worked(left.len());
            let first = left.remove(k);
            waits.remove(k);
            for (wait, &other) in waits.iter_mut().zip(&left) {
                *wait -= usize::from(before(first, other)).min(*wait);
            }
            out.push(first);
        }
        out
    }
}

/// Groups of `ids` between the sorted `cuts`, by where their `center` stands.
fn split_at(ids: &[usize], cuts: &[f32], center: impl Fn(usize) -> f32) -> Vec<Vec<usize>> {
    let mut groups = vec![Vec::new(); cuts.len() + 1];
    for &i in ids {
        let c = center(i);
        groups[cuts.partition_point(|&x| x < c)].push(i);
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_longer_left_column_is_read_before_the_right_one() {
        let boxes = [
            [0.0, 0.0, 210.0, 10.0],    // title
            [0.0, 20.0, 100.0, 60.0],   // left
            [110.0, 20.0, 210.0, 58.0], // right, shorter
            [0.0, 70.0, 98.0, 100.0],   // left goes on below the right column's end
        ];
        assert_eq!(order(&boxes, &[]), [0, 1, 3, 2]);
        let mut with_heading = boxes.to_vec();
        with_heading.extend([[0.0, 106.0, 30.0, 112.0], [0.0, 120.0, 97.0, 150.0]]);
        assert_eq!(order(&with_heading, &[]), [0, 1, 3, 4, 5, 2]);
        // Something across the gutter follows: the narrow band belongs to it.
        let mut followed = boxes.to_vec();
        followed.push([0.0, 110.0, 205.0, 120.0]);
        assert_eq!(order(&followed, &[]), [0, 1, 2, 3, 4]);
        // A short heading does not go on with a column.
        let mut headed = boxes.to_vec();
        headed[3] = [0.0, 70.0, 40.0, 80.0];
        headed.extend([[0.0, 90.0, 100.0, 120.0], [110.0, 90.0, 210.0, 120.0]]);
        assert_eq!(order(&headed, &[]), [0, 1, 2, 3, 4, 5]);
    }

    fn order(boxes: &[[f32; 4]], floats: &[usize]) -> Vec<usize> {
        let boxes: Vec<Rect> = boxes.iter().map(|&b| b.into()).collect();
        let floats: Vec<bool> = (0..boxes.len()).map(|i| floats.contains(&i)).collect();
        xycut(&boxes, 8.0, Direction::LeftToRight, &floats)
    }

    const TWO_COLUMNS: [[f32; 4]; 5] = [
        [320.0, 100.0, 600.0, 300.0],
        [0.0, 0.0, 600.0, 60.0],
        [0.0, 320.0, 280.0, 500.0],
        [0.0, 100.0, 280.0, 300.0],
        [320.0, 320.0, 600.0, 500.0],
    ];

    #[test]
    fn spanning_title_comes_before_two_columns() {
        assert_eq!(order(&TWO_COLUMNS, &[]), [1, 3, 2, 0, 4]);
    }

    #[test]
    fn right_to_left_pages_start_with_the_right_column() {
        let boxes = TWO_COLUMNS.map(Rect::from);
        assert_eq!(xycut(&boxes, 8.0, Direction::RightToLeft, &[]), [1, 0, 4, 3, 2]);
    }

    #[test]
    fn three_columns_are_read_down() {
        let b = |x: f32, y: f32| [x, y, x + 180.0, y + 90.0];
        let boxes =
            [b(0.0, 0.0), b(200.0, 0.0), b(400.0, 0.0), b(0.0, 100.0), b(200.0, 100.0), b(400.0, 100.0)];
        assert_eq!(order(&boxes, &[]), [0, 3, 1, 4, 2, 5]);
    }

    #[test]
    fn caption_across_the_gutter_does_not_end_the_columns() {
        let mut boxes = TWO_COLUMNS.to_vec();
        boxes.push([0.0, 301.0, 400.0, 319.0]);
        assert_eq!(order(&boxes, &[5]), [1, 3, 5, 2, 0, 4]);
    }

    #[test]
    fn columns_between_spanning_boxes_are_read_band_by_band() {
        let mut boxes = TWO_COLUMNS.to_vec();
        boxes.push([0.0, 520.0, 600.0, 600.0]);
        boxes.push([0.0, 620.0, 280.0, 700.0]);
        boxes.push([320.0, 620.0, 600.0, 700.0]);
        assert_eq!(order(&boxes, &[]), [1, 3, 2, 0, 4, 5, 6, 7]);
    }

    #[test]
    fn tangle_is_read_top_to_bottom() {
        let boxes = [[50.0, 80.0, 300.0, 220.0], [0.0, 0.0, 200.0, 100.0], [150.0, 30.0, 400.0, 150.0]];
        assert_eq!(order(&boxes, &[]), [1, 2, 0]);
    }

    proptest! {
        #[test]
        fn every_box_comes_once(raw in proptest::collection::vec((0f32..900.0, 0f32..900.0, 0f32..300.0, 0f32..300.0, any::<bool>()), 0..40)) {
            let boxes: Vec<Rect> = raw.iter().map(|&(x, y, w, h, _)| Rect::new(x, y, x + w, y + h)).collect();
            let floats: Vec<bool> = raw.iter().map(|r| r.4).collect();
            let mut got = xycut(&boxes, 5.0, Direction::LeftToRight, &floats);
            got.sort_unstable();
            prop_assert_eq!(got, (0..boxes.len()).collect::<Vec<_>>());
        }
    }
}
