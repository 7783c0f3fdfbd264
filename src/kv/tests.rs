//! The cache against a model in which every branch holds full copies of its rows; small on purpose.

use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;

use super::*;
use crate::graphs::Prefix;

const DIMS: Dims = Dims { layers: 2, kv_heads: 2, head_dim: 2, position_parts: 1, hidden: 0 };

/// A position's row; two values only, so that a mixed-up row is often another one.
type Row = bool;

const PREFIX: [Row; 3] = [true, false, true];

/// Positions beside the prefix: 16, of which the trunk may take 6.
const LIMITS: KvLimits =
    KvLimits { budget_bytes: (3 + 16) * 2 * 2 * 2 * 2 * 4, max_trunk: 6, max_suffix: 8, first_capacity: 2 };

#[derive(Clone, Debug)]
enum Operation {
    AppendTrunk(Vec<Row>),
    TruncateTrunk(usize),
    Fork(usize),
    /// Branch, rows, junk rows of the same call before and after (draft rows that were refused).
    Append(usize, Vec<Row>, usize),
    Truncate(usize, usize),
    Release(usize),
    /// Branch, or the trunk's stream; prefix positions by bit, 0 for everything.
    Fixate(Option<usize>, u8),
    /// Branch; rows by bit, by layer and head: as many of each head as its first one has, 0 for everything.
    Retain(usize, [u8; 4]),
}

fn operation() -> impl Strategy<Value = Operation> {
    let rows = |most: usize| prop::collection::vec(any::<Row>(), 0..=most);
    prop_oneof![
        2 => rows(3).prop_map(Operation::AppendTrunk),
        1 => (0usize..8).prop_map(Operation::TruncateTrunk),
        3 => (0usize..8).prop_map(Operation::Fork),
        8 => (0usize..8, rows(4), 0usize..3).prop_map(|(b, rows, junk)| Operation::Append(b, rows, junk)),
        2 => (0usize..8, 0usize..8).prop_map(|(b, len)| Operation::Truncate(b, len)),
        2 => (0usize..8).prop_map(Operation::Release),
        4 => (prop::option::weighted(0.7, 0usize..8), 0u8..8).prop_map(|(b, set)| Operation::Fixate(b, set)),
        3 => (0usize..8, [0u8..8, 0u8..8, 0u8..8, 0u8..8]).prop_map(|(b, sets)| Operation::Retain(b, sets)),
    ]
}

/// A number that says what a row holds and where it belongs.
fn number(row: Row, layer: usize, head: usize, part: usize, values: bool) -> f32 {
    1.0 + f32::from(row) + 2.0 * (part + 2 * (head + 2 * (layer + 2 * usize::from(values)))) as f32
}

/// A call's new rows, `[rows, KVH, M, D]` per layer: row 1 holds `rows` followed by `junk` refused ones, row 0 holds others.
fn new_buffers(rows: &[Row], junk: usize, values: bool) -> Vec<Vec<f32>> {
    let own: Vec<Row> = rows.iter().copied().chain(vec![true; junk]).collect();
    let other: Vec<Row> = own.iter().map(|row| !row).collect();
    let layer = |layer: usize| {
        let heads = [&other, &own].into_iter().flat_map(|rows| (0..2).map(move |head| (rows, head)));
        let positions = heads.flat_map(|(rows, head)| rows.iter().map(move |&row| (row, head)));
        positions
            .flat_map(|(row, head)| (0..2).map(move |part| number(row, layer, head, part, values)))
            .collect()
    };
    (0..DIMS.layers).map(layer).collect()
}

/// Calls `append` with the buffers of `rows`.
fn with_rows<T>(rows: &[Row], junk: usize, append: impl FnOnce(&NewRows<'_>) -> T) -> T {
    let (keys, values) = (new_buffers(rows, junk, false), new_buffers(rows, junk, true));
    let tokens_per_row = rows.len() + junk;
    append(&NewRows { keys: &keys, values: &values, row: 1, tokens_per_row, count: rows.len() })
}

fn page_prefix() -> Prefix {
    page_prefix_of(PREFIX.len())
}

/// The first `len` positions of [`PREFIX`].
fn page_prefix_of(len: usize) -> Prefix {
    let rows = &PREFIX[..len];
    let mut prefix = Prefix { len, ..Prefix::default() };
    for layer in 0..DIMS.layers {
        let (mut keys, mut values) = (Vec::new(), Vec::new());
        for head in 0..DIMS.kv_heads {
            keys.extend(
                rows.iter().flat_map(|&row| (0..2).map(move |part| number(row, layer, head, part, false))),
            );
            let columns =
                (0..2).flat_map(|part| rows.iter().map(move |&row| number(row, layer, head, part, true)));
            values.extend(columns);
        }
        prefix.keys.push(keys);
        prefix.values.push(values);
    }
    prefix
}

/// What a branch of the model sees, copied.
struct ModelBranch {
    branch: Branch,
    trunk: Vec<Row>,
    suffix: Vec<Row>,
    looks_at: Option<Vec<u32>>,
    /// By layer and head.
    keeps: Option<Retention>,
}

struct Model {
    kv: KvCache,
    trunk: Vec<Row>,
    trunk_looks_at: Option<Vec<u32>>,
    branches: Vec<ModelBranch>,
}

impl Model {
    fn apply(&mut self, operation: &Operation) {
        let live = self.branches.len();
        match operation {
            Operation::AppendTrunk(rows) => {
                let rows = &rows[..rows.len().min(LIMITS.max_trunk - self.trunk.len())];
                with_rows(rows, 0, |new| self.kv.append_trunk(new));
                self.trunk.extend(rows);
            }
            Operation::TruncateTrunk(len) => {
                let seen = self.branches.iter().map(|b| b.trunk.len()).max().unwrap_or(0);
                let keep = (*len).max(seen).min(self.trunk.len());
                self.kv.truncate_trunk(keep);
                self.trunk.truncate(keep);
            }
            Operation::Fork(visible) => {
                let trunk = self.trunk[..(*visible).min(self.trunk.len())].to_vec();
                let bytes = self.kv.bytes();
                let branch = self.kv.fork(trunk.len());
                assert_eq!(self.kv.bytes(), bytes, "a fork takes no memory");
                self.branches.push(ModelBranch {
                    branch,
                    trunk,
                    suffix: Vec::new(),
                    looks_at: None,
                    keeps: None,
                });
            }
            Operation::Append(index, rows, junk) if live > 0 => self.append(index % live, rows, *junk),
            Operation::Truncate(index, len) if live > 0 => {
                let model = &mut self.branches[index % live];
                model.suffix.truncate(*len);
                if model.suffix.is_empty() {
                    model.looks_at = None;
                }
                self.kv.truncate(&model.branch, model.suffix.len());
            }
            Operation::Release(index) if live > 0 => {
                let model = self.branches.remove(index % live);
                self.kv.release(model.branch);
            }
            Operation::Fixate(branch, bits) => self.fixate(*branch, *bits),
            Operation::Retain(index, bits) if live > 0 => self.retain(index % live, *bits),
            Operation::Append(..)
            | Operation::Truncate(..)
            | Operation::Release(..)
            | Operation::Retain(..) => {}
        }
    }

    fn fixate(&mut self, branch: Option<usize>, bits: u8) {
        let set: Vec<u32> = (0..PREFIX.len() as u32).filter(|p| bits >> p & 1 == 1).collect();
        let set = (bits > 0).then_some(set);
        let sets = set.clone().map(|set| vec![set]);
        let live = self.branches.len();
        match branch {
            None => {
                self.trunk_looks_at = set;
                self.kv.fixate(&RowSource::Trunk, sets);
            }
            Some(index) if live > 0 => {
                let model = &mut self.branches[index % live];
                model.looks_at = set;
                self.kv.fixate(&RowSource::Branch(&model.branch), sets);
            }
            Some(_) => {}
        }
    }

    fn retain(&mut self, index: usize, bits: [u8; 4]) {
        let rows = |bits: u8| (0..PREFIX.len() as u32).filter(|p| bits >> p & 1 == 1).collect::<Vec<u32>>();
        // Heads of a layer keep the same number: a rotation of the first one's.
        let turned = |bits: u8| (bits << 1 | bits >> 2) & 7;
        let kept =
            vec![vec![rows(bits[0]), rows(turned(bits[0]))], vec![rows(bits[1]), rows(turned(bits[1]))]];
        let model = &mut self.branches[index];
        model.keeps = (bits[2] > 0).then_some(kept);
        self.kv.retain(&model.branch, model.keeps.clone());
    }

    /// A retained view shows each layer and head at least what the branches at `rows` keep, and nothing that is not in the
    /// prefix; or everything, if one keeps everything or the trunk is with them.
    fn check_retained(&mut self, rows: &[usize], with_trunk: bool) {
        let branches: Vec<&ModelBranch> = rows.iter().filter_map(|&i| self.branches.get(i)).collect();
        let mut sources: Vec<RowSource<'_>> = branches.iter().map(|b| RowSource::Branch(&b.branch)).collect();
        sources.push(RowSource::Filler);
        if with_trunk {
            sources.push(RowSource::Trunk);
        }
        let all_keep = !with_trunk && !branches.is_empty() && branches.iter().all(|b| b.keeps.is_some());
        let kept_by = |layer: usize, head: usize| {
            let mut kept: Vec<u32> = branches
                .iter()
                .filter_map(|b| b.keeps.as_ref())
                .flat_map(|k| k[layer][head].clone())
                .collect();
            kept.sort_unstable();
            kept.dedup();
            kept
        };
        let widths: Vec<usize> = (0..2).map(|l| kept_by(l, 0).len().max(kept_by(l, 1).len())).collect();
        let narrow = all_keep && widths.iter().sum::<usize>() > 0;
        let view = self.kv.view_for(&sources, Reading::Retention(1.0));
        for (layer, &width) in widths.iter().enumerate() {
            let len = if narrow { width } else { PREFIX.len() };
            assert_eq!(view.prefix_len[layer], len);
            for head in 0..DIMS.kv_heads {
                // All rows of a head, in the prefix's order, each a real one: find the places that they stand for.
                let keys = &view.prefix_keys[layer][head * len * 2..(head + 1) * len * 2];
                let values = &view.prefix_values[layer][head * len * 2..(head + 1) * len * 2];
                let shown: Vec<Row> =
                    keys.chunks_exact(2).map(|k| k[0] == number(true, layer, head, 0, false)).collect();
                for (at, &row) in shown.iter().enumerate() {
                    for part in 0..2 {
                        assert_eq!(keys[at * 2 + part], number(row, layer, head, part, false));
                        assert_eq!(values[part * len + at], number(row, layer, head, part, true));
                    }
                }
                let count = |rows: &[Row], wanted: Row| rows.iter().filter(|&&row| row == wanted).count();
                let kept: Vec<Row> = kept_by(layer, head).iter().map(|&p| PREFIX[p as usize]).collect();
                for wanted in [true, false] {
                    assert!(
                        !narrow || count(&shown, wanted) >= count(&kept, wanted),
                        "a kept row is missing"
                    );
                    assert!(count(&shown, wanted) <= count(&PREFIX, wanted), "a row twice");
                }
            }
        }
    }

    /// A focused view shows the first layer what the rows look at together, the second everything.
    fn check_focus(&mut self, rows: &[usize], max_share: f32) {
        let branches: Vec<&ModelBranch> = rows.iter().filter_map(|&i| self.branches.get(i)).collect();
        let mut sources: Vec<RowSource<'_>> = branches.iter().map(|b| RowSource::Branch(&b.branch)).collect();
        sources.extend([RowSource::Trunk, RowSource::Filler]);
        let looks: Option<Vec<&Vec<u32>>> =
            branches.iter().map(|b| &b.looks_at).chain([&self.trunk_looks_at]).map(Option::as_ref).collect();
        let all: Vec<u32> = (0..PREFIX.len() as u32).collect();
        let shared = looks.map(|sets| {
            all.iter().copied().filter(|p| sets.iter().any(|set| set.contains(p))).collect::<Vec<u32>>()
        });
        let most = max_share * PREFIX.len() as f32;
        let shared = shared.filter(|set| set.len() as f32 <= most).unwrap_or_else(|| all.clone());
        let view = self.kv.view_for(&sources, Reading::Fixation(max_share));
        for (layer, expected) in [&shared, &all].into_iter().enumerate() {
            assert_eq!(view.prefix_len[layer], expected.len());
            let rows = |head: usize, values: bool| {
                expected.iter().map(move |&p| (0..2).map(move |part| (p, part))).flat_map(move |parts| {
                    parts.map(move |(p, part)| number(PREFIX[p as usize], layer, head, part, values))
                })
            };
            let keys: Vec<f32> = (0..2).flat_map(|head| rows(head, false)).collect();
            assert_eq!(view.prefix_keys[layer], keys);
            let transposed = |head: usize| {
                let of_head: Vec<f32> = rows(head, true).collect();
                (0..2)
                    .flat_map(|part| of_head.iter().copied().skip(part).step_by(2).collect::<Vec<f32>>())
                    .collect::<Vec<f32>>()
            };
            assert_eq!(view.prefix_values[layer], (0..2).flat_map(transposed).collect::<Vec<f32>>());
        }
    }

    fn append(&mut self, index: usize, rows: &[Row], junk: usize) {
        let model = &mut self.branches[index];
        let rows = &rows[..rows.len().min(LIMITS.max_suffix - model.suffix.len())];
        let before = (self.kv.bytes(), self.kv.held_slots());
        let done = with_rows(rows, junk, |new| self.kv.append(&model.branch, new));
        if done.is_some() {
            model.suffix.extend(rows);
            return;
        }
        assert_eq!(before, (self.kv.bytes(), self.kv.held_slots()), "a failed append changes nothing");
        let others = self.branches.iter().enumerate().filter(|(i, b)| *i != index && !b.suffix.is_empty());
        assert!(others.count() > 0, "one suffix alone always fits");
    }

    fn check(&mut self, order: &[usize]) {
        let rows_held: usize = self.branches.iter().filter(|b| !b.suffix.is_empty()).count();
        assert_eq!(self.kv.held_slots(), rows_held, "a slot for each branch with rows, no other");
        let mut slots: Vec<usize> = self.branches.iter().filter_map(|b| self.kv.slot(&b.branch)).collect();
        slots.sort_unstable();
        slots.dedup();
        assert_eq!(slots.len(), rows_held, "two branches share a slot");
        assert_eq!(self.kv.trunk_len(), self.trunk.len());
        for rows in [self.in_slot_order(), order.to_vec()] {
            self.check_view(&rows);
            self.check_focus(&rows, 1.0);
            self.check_focus(&rows, 0.5);
            self.check_retained(&rows, false);
            self.check_retained(&rows, true);
        }
        let fixed = (PREFIX.len() + LIMITS.max_trunk) * DIMS.bytes_per_position();
        assert!(self.kv.trunk.capacity() <= LIMITS.max_trunk);
        assert!(fixed + self.kv.suffixes.bytes() <= LIMITS.budget_bytes, "over the budget");
        if rows_held == 0 {
            let fixed = self.kv.trunk.bytes() + PREFIX.len() * DIMS.bytes_per_position();
            // The first layer's values once more, and what was gathered.
            let gathered = self.kv.bytes() - fixed - self.kv.prefix_copy_bytes();
            assert!(gathered <= PREFIX.len() * DIMS.bytes_per_position(), "all suffix memory is given back");
        }
    }

    fn in_slot_order(&self) -> Vec<usize> {
        let mut rows: Vec<usize> = (0..self.branches.len()).collect();
        rows.sort_by_key(|&i| self.kv.slot(&self.branches[i].branch).unwrap_or(usize::MAX));
        rows
    }

    /// The view of the trunk's stream, a filler, and the branches at `rows` is what the model holds.
    fn check_view(&mut self, rows: &[usize]) {
        let branches: Vec<&ModelBranch> = rows.iter().filter_map(|&i| self.branches.get(i)).collect();
        let mut sources: Vec<RowSource<'_>> = branches.iter().map(|b| RowSource::Branch(&b.branch)).collect();
        sources.extend([RowSource::Trunk, RowSource::Filler]);
        let none = Vec::new();
        let mut expected: Vec<(&Vec<Row>, &Vec<Row>)> =
            branches.iter().map(|b| (&b.trunk, &b.suffix)).collect();
        expected.extend([(&self.trunk, &none), (&none, &none)]);
        let view = self.kv.view(&sources);
        for layer in 0..DIMS.layers {
            for (buffer, values) in [(&view.suffix_keys, false), (&view.suffix_values, true)] {
                assert!(buffer[layer].iter().all(|v| v.is_finite()));
                assert_eq!(buffer[layer].len(), sources.len() * view.suffix_capacity * 2 * 2);
                for (row, (_, suffix)) in expected.iter().enumerate() {
                    assert_eq!(view.suffix_len[row] as usize, suffix.len());
                    assert_segment(buffer[layer], view.suffix_capacity, row, suffix, layer, values);
                }
            }
            for (buffer, values) in [(&view.trunk_keys, false), (&view.trunk_values, true)] {
                assert!(buffer[layer].iter().all(|v| v.is_finite()));
                for (row, (trunk, _)) in expected.iter().enumerate() {
                    assert_eq!(view.trunk_visible[row] as usize, trunk.len());
                    assert_segment(buffer[layer], view.trunk_capacity, 0, trunk, layer, values);
                }
            }
        }
    }
}

fn assert_segment(buffer: &[f32], capacity: usize, block: usize, rows: &[Row], layer: usize, values: bool) {
    for head in 0..DIMS.kv_heads {
        for (position, &row) in rows.iter().enumerate() {
            for part in 0..2 {
                let at = ((block * 2 + head) * capacity + position) * 2 + part;
                assert_eq!(
                    buffer[at],
                    number(row, layer, head, part, values),
                    "position {position} of {rows:?}"
                );
            }
        }
    }
}

fn model() -> Model {
    let kv = KvCache::new(DIMS, page_prefix(), LIMITS).expect("the budget admits the page");
    Model { kv, trunk: Vec::new(), trunk_looks_at: None, branches: Vec::new() }
}

/// Failing cases are kept beside this file.
fn config() -> ProptestConfig {
    let seeds = FileFailurePersistence::WithSource("seeds");
    ProptestConfig { cases: 600, failure_persistence: Some(Box::new(seeds)), ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn any_sequence_of_operations_shows_each_branch_its_own_rows(
        operations in prop::collection::vec(operation(), 1..60),
        order in prop::collection::vec(0usize..8, 0..8),
    ) {
        let mut order = order;
        order.sort_unstable();
        order.dedup();
        order.reverse();
        let mut model = model();
        // The first layer follows the second.
        model.kv.set_governing(vec![Some(0), None]);
        for operation in &operations {
            model.apply(operation);
            model.check(&order);
        }
        while let Some(last) = model.branches.pop() {
            model.kv.release(last.branch);
        }
        model.check(&[]);
        prop_assert_eq!(model.kv.held_slots(), 0);
    }
}

/// What a row is shown: its prefix, its visible trunk, its suffix; keys and values of all layers and heads.
fn shown(view: &KvView<'_>, page: usize, row: usize) -> Vec<Vec<f32>> {
    let (heads, width) = (DIMS.kv_heads, DIMS.head_dim);
    let rows = view.trunk_visible.len() / view.pages;
    let at = page * rows + row;
    let mut out = Vec::new();
    for layer in 0..DIMS.layers {
        let (len, capacity) = (view.prefix_len[layer * view.pages + page], view.prefix_capacity[layer]);
        for head in 0..heads {
            let start = (page * heads + head) * capacity * width;
            out.push(view.prefix_keys[layer][start..start + len * width].to_vec());
            let columns =
                view.prefix_values[layer][start..start + capacity * width].chunks_exact(capacity.max(1));
            out.push(columns.flat_map(|column| &column[..len]).copied().collect());
            let mut run = |buffer: &[f32], block: usize, capacity: usize, len: usize| {
                let start = (block * heads + head) * capacity * width;
                out.push(buffer[start..start + len * width].to_vec());
            };
            let (visible, suffix) = (view.trunk_visible[at] as usize, view.suffix_len[at] as usize);
            for trunk in [view.trunk_keys[layer], view.trunk_values[layer]] {
                run(trunk, page, view.trunk_capacity, visible);
            }
            for suffixes in [view.suffix_keys[layer], view.suffix_values[layer]] {
                run(suffixes, at, view.suffix_capacity, suffix);
            }
        }
    }
    out
}

/// Each row of each page is shown in the pool what it is shown alone, and whatever is masked is finite.
fn check_pool(pool: &mut PagePool, models: &mut [Model], takes_part: impl Fn(usize) -> bool) {
    let mut alone = Vec::new();
    for (page, model) in models.iter_mut().enumerate() {
        let Model { kv, branches, .. } = model;
        let rows: Vec<RowSource<'_>> =
            branches.iter().map(|b| RowSource::Branch(&b.branch)).chain([RowSource::Trunk]).collect();
        let view = kv.view(&rows);
        let count = if takes_part(page) { rows.len() } else { 0 };
        alone.push((0..count).map(|row| shown(&view, 0, row)).collect::<Vec<_>>());
    }
    let mut members: Vec<Member<'_, '_>> = Vec::new();
    for (page, model) in models.iter_mut().enumerate() {
        let Model { kv, branches, .. } = model;
        let rows = branches.iter().map(|b| RowSource::Branch(&b.branch)).chain([RowSource::Trunk]);
        members.push((kv, if takes_part(page) { rows.collect() } else { Vec::new() }));
    }
    let view = pool.view(&mut members);
    for layer in 0..DIMS.layers {
        for buffer in [view.prefix_keys[layer], view.trunk_values[layer], view.suffix_keys[layer]] {
            assert!(buffer.iter().all(|v| v.is_finite()));
        }
    }
    for (page, rows) in alone.iter().enumerate() {
        for (row, expected) in rows.iter().enumerate() {
            assert_eq!(&shown(&view, page, row), expected, "row {row} of page {page}");
        }
        let rows_of_page = view.trunk_visible.len() / view.pages;
        let fillers = page * rows_of_page + rows.len()..(page + 1) * rows_of_page;
        assert!(fillers.clone().all(|at| view.trunk_visible[at] == 0 && view.suffix_len[at] == 0));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..config() })]

    #[test]
    fn a_pool_shows_each_row_what_its_page_alone_would(
        operations in prop::collection::vec((0usize..3, operation()), 1..50),
        lens in prop::collection::vec(0usize..=PREFIX.len(), 3),
        step in 1usize..5,
        leaves in 0usize..3,
        absent in 0usize..4,
    ) {
        let mut pool = PagePool::new(DIMS, step);
        let mut models: Vec<Model> = Vec::new();
        for (place, &len) in lens.iter().enumerate() {
            let kv = KvCache::new(DIMS, page_prefix_of(len), LIMITS).expect("the budget admits the page");
            models.push(Model { kv, trunk: Vec::new(), trunk_looks_at: None, branches: Vec::new() });
            pool.enter(place, &mut models[place].kv);
        }
        for (number, (page, operation)) in operations.iter().enumerate() {
            let reads_prefix = matches!(operation, Operation::Fixate(..) | Operation::Retain(..));
            if !reads_prefix {
                let page = page % models.len();
                models[page].apply(operation);
            }
            if number % 3 == 0 {
                check_pool(&mut pool, &mut models, |page| page != absent);
            }
        }
        check_pool(&mut pool, &mut models, |_| true);
        // A page leaves, and the last one takes its place.
        models.swap_remove(leaves);
        if let Some(moved) = models.get_mut(leaves) {
            pool.enter(leaves, &mut moved.kv);
        }
        pool.leave_last();
        check_pool(&mut pool, &mut models, |_| true);
        let held: usize = models.iter().map(|model| model.kv.bytes()).sum();
        prop_assert!(pool.bytes() > 0 || held == 0);
        for _ in 0..2 {
            pool.leave_last();
        }
        prop_assert_eq!(pool.bytes(), 0);
    }
}

#[test]
fn of_a_trunk_only_what_is_new_is_copied() {
    let mut model = model();
    let mut pool = PagePool::new(DIMS, 4);
    pool.enter(0, &mut model.kv);
    model.apply(&Operation::AppendTrunk(vec![true, false]));
    pool.view(&mut [(&mut model.kv, vec![RowSource::Trunk])]);
    assert_eq!(model.kv.trunk_same_to, 2);
    model.apply(&Operation::TruncateTrunk(1));
    assert_eq!(model.kv.trunk_same_to, 1);
    model.apply(&Operation::AppendTrunk(vec![true]));
    check_pool(&mut pool, std::slice::from_mut(&mut model), |_| true);
}

#[test]
fn rows_side_by_side_are_read_in_place() {
    let mut model = model();
    for _ in 0..3 {
        model.apply(&Operation::Fork(0));
    }
    for branch in 0..3 {
        model.apply(&Operation::Append(branch, vec![true, false], 0));
    }
    let sources: Vec<RowSource<'_>> = model.branches.iter().map(|b| RowSource::Branch(&b.branch)).collect();
    let before = model.kv.bytes();
    let shown = model.kv.view(&sources).suffix_keys[0].as_ptr();
    assert_eq!(shown, model.kv.view(&sources[..1]).suffix_keys[0].as_ptr(), "both start at slot 0");
    assert_eq!(model.kv.bytes(), before, "nothing was staged");
    let reversed: Vec<RowSource<'_>> = sources.iter().rev().copied().collect();
    assert_ne!(shown, model.kv.view(&reversed).suffix_keys[0].as_ptr());
    assert!(model.kv.bytes() > before, "rows out of order are staged");
}

#[test]
fn the_trunk_is_shown_where_it_lies() {
    let mut model = model();
    model.apply(&Operation::AppendTrunk(vec![true, false]));
    model.apply(&Operation::Fork(1));
    let branch = [RowSource::Branch(&model.branches[0].branch)];
    let shown = model.kv.view(&branch).trunk_keys[0].as_ptr();
    assert_eq!(shown, model.kv.view(&[RowSource::Trunk]).trunk_keys[0].as_ptr());
}

#[test]
fn a_page_whose_worst_case_does_not_fit_is_refused() {
    let needed = LIMITS.worst_case_bytes(DIMS, PREFIX.len());
    let limits = |budget_bytes| KvLimits { budget_bytes, ..LIMITS };
    assert!(KvCache::new(DIMS, page_prefix(), limits(needed)).is_some());
    assert!(KvCache::new(DIMS, page_prefix(), limits(needed - 1)).is_none());
}

#[test]
#[should_panic(expected = "keep 1")]
fn the_trunk_is_not_cut_below_what_a_branch_sees() {
    let mut model = model();
    model.apply(&Operation::AppendTrunk(vec![true, true]));
    model.apply(&Operation::Fork(2));
    model.kv.truncate_trunk(1);
}

#[test]
fn peak_bytes_follow_the_formula() {
    let mut model = model();
    model.apply(&Operation::AppendTrunk(vec![true; 3]));
    model.apply(&Operation::Fork(3));
    model.apply(&Operation::Append(0, vec![true; 2], 0));
    // Prefix 3, trunk capacity 4, four slots of capacity 2.
    let peak = (3 + 4 + 4 * 2) * DIMS.bytes_per_position();
    assert_eq!(model.kv.peak_bytes(), peak);
    model.apply(&Operation::Release(0));
    assert_eq!(model.kv.peak_bytes(), peak, "the peak stays");
    assert_eq!(model.kv.bytes(), (3 + 4) * DIMS.bytes_per_position());
}

#[test]
fn appending_nothing_to_an_empty_segment_takes_no_memory() {
    let mut model = model();
    model.apply(&Operation::AppendTrunk(vec![]));
    model.apply(&Operation::Fork(0));
    model.apply(&Operation::Append(0, vec![], 0));
    assert_eq!(model.kv.bytes(), PREFIX.len() * DIMS.bytes_per_position());
}
