//! Connected groups of set pixels (8 neighbours), as runs of pixels.

/// Pixels `x0..=x1` of row `y`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PixelRun {
    pub y: usize,
    pub x0: usize,
    pub x1: usize,
}

/// The groups of non-zero pixels of a `width`-wide mask, in the order of their first runs, each with its runs from top to
/// bottom.
pub fn components(mask: &[u8], width: usize) -> Vec<Vec<PixelRun>> {
    let runs = runs_of(mask, width);
    let mut parent: Vec<usize> = (0..runs.len()).collect();
    let mut above = 0..0; // runs of the row above the current one
    let mut start = 0;
    for (i, run) in runs.iter().enumerate() {
        if run.y != runs[start].y {
            above = if run.y == runs[start].y + 1 { start..i } else { i..i };
            start = i;
        }
        while above.start < above.end && runs[above.start].x1 + 1 < run.x0 {
            above.start += 1;
        }
        for k in above.clone() {
            if runs[k].x0 > run.x1 + 1 {
                break;
            }
            let (a, b) = (root(&mut parent, k), root(&mut parent, i));
            parent[a.max(b)] = a.min(b);
        }
    }
    let mut place = vec![usize::MAX; runs.len()];
    let mut out: Vec<Vec<PixelRun>> = Vec::new();
    for (i, run) in runs.iter().enumerate() {
        let r = root(&mut parent, i);
        if place[r] == usize::MAX {
            place[r] = out.len();
            out.push(Vec::new());
        }
        out[place[r]].push(*run);
    }
    out
}

/// All runs of non-zero pixels, row by row.
pub fn runs_of(mask: &[u8], width: usize) -> Vec<PixelRun> {
    let mut runs = Vec::new();
    for (y, row) in mask.chunks_exact(width.max(1)).enumerate() {
        let mut x = 0;
        while x < row.len() {
            if row[x] == 0 {
                x += 1;
                continue;
            }
            let x0 = x;
            while x < row.len() && row[x] != 0 {
                x += 1;
            }
            runs.push(PixelRun { y, x0, x1: x - 1 });
        }
    }
    runs
}

fn root(parent: &mut [usize], mut i: usize) -> usize {
    while parent[i] != i {
        parent[i] = parent[parent[i]];
        i = parent[i];
    }
    i
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mask(rows: &[&str]) -> Vec<u8> {
        rows.iter().flat_map(|r| r.bytes().map(|b| u8::from(b == b'#'))).collect()
    }

    #[test]
    fn diagonal_neighbours_belong_together_and_gaps_part() {
        let found = components(&mask(&["#..#.", ".#...", "....#", "...##"]), 5);
        assert_eq!(found.len(), 3);
        assert_eq!(found[0], [PixelRun { y: 0, x0: 0, x1: 0 }, PixelRun { y: 1, x0: 1, x1: 1 }]);
        assert_eq!(found[2].len(), 2);
    }

    #[test]
    fn a_u_shape_is_one_group() {
        assert_eq!(components(&mask(&["#.#.#", "#.#.#", "#####"]), 5).len(), 1);
        assert_eq!(components(&mask(&["#####", ".....", "#####"]), 5).len(), 2);
    }
}
