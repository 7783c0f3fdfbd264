//! What must hold in a manifest beyond its JSON types.

use super::acceptance::{AcceptanceTable, DRAFTERS, ThresholdRow};
use super::{FixedGrid, Manifest, PositionRule, Preprocessing, RegionForm, SCHEMA, TokenEntry, TokenName};
use crate::page::Kind;

mod pictures;

/// Key of the format of kinds that are not named.
pub(super) const DEFAULT_CONTENT: &str = "default";

/// Widest character, in mean widths.
const MOST_ADVANCE: f32 = 16.0;

/// Field and what is wrong with it.
type Fault = (String, String);

fn fault<T>(field: impl Into<String>, message: impl Into<String>) -> Result<T, Fault> {
    Err((field.into(), message.into()))
}

/// Checks everything; the first fault found is reported.
pub(super) fn check(manifest: &Manifest) -> Result<(), Fault> {
    if manifest.schema != SCHEMA {
        return fault("schema", format!("`{}` is not supported; supported: {SCHEMA}", manifest.schema));
    }
    check_files(manifest)?;
    check_dims(manifest)?;
    match &manifest.preprocessing {
        Preprocessing::FixedGrid(grid) => check_grid(grid)?,
        picture => pictures::check(picture, manifest)?,
    }
    check_tokens(manifest)?;
    check_protocol(manifest)?;
    check_decode(manifest)?;
    check_extras(manifest)?;
    check_acceptance(&manifest.acceptance)
}

fn check_files(manifest: &Manifest) -> Result<(), Fault> {
    for (name, hash) in &manifest.files {
        if name.is_empty() || name.contains(['/', '\\']) || name == ".." {
            return fault(format!("files.{name}"), "must be a plain file name in the pack's folder");
        }
        if hash.len() != 64 || !hash.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')) {
            return fault(format!("files.{name}"), "must be a sha256 in 64 lower-case hexadecimal digits");
        }
    }
    let graphs = &manifest.graphs;
    let needed = [
        ("graphs.vision", Some(&graphs.vision)),
        ("graphs.prefill", Some(&graphs.prefill)),
        ("graphs.decode", Some(&graphs.decode)),
        ("graphs.prefill_upper", graphs.prefill_upper.as_ref()),
        ("graphs.mtp", graphs.mtp.as_ref()),
        ("tokenizer", Some(&manifest.tokenizer)),
    ];
    for (field, name) in needed {
        if let Some(name) = name.filter(|name| !manifest.files.contains_key(name.as_str())) {
            return fault(field, format!("`{name}` is not listed in `files`"));
        }
    }
    Ok(())
}

fn check_dims(manifest: &Manifest) -> Result<(), Fault> {
    let dims = manifest.dims;
    let sizes = [
        ("layers", dims.layers, 512),
        ("heads", dims.heads, 1024),
        ("kv_heads", dims.kv_heads, 1024),
        ("head_dim", dims.head_dim, 4096),
        ("hidden", dims.hidden, 1 << 20),
        ("vocabulary", dims.vocabulary, 1 << 24),
    ];
    for (name, size, most) in sizes {
        if size == 0 || size > most {
            return fault(format!("dims.{name}"), format!("{size} is not between 1 and {most}"));
        }
    }
    if !dims.heads.is_multiple_of(dims.kv_heads) {
        return fault(
            "dims.heads",
            format!("{} is not a multiple of kv_heads {}", dims.heads, dims.kv_heads),
        );
    }
    if !matches!(dims.position_parts, 1 | 3) {
        return fault("dims.position_parts", format!("{} is neither 1 nor 3", dims.position_parts));
    }
    Ok(())
}

fn check_extras(manifest: &Manifest) -> Result<(), Fault> {
    let focal = &manifest.extras.focal_layers;
    let ascending = focal.windows(2).all(|pair| pair[0] < pair[1]);
    if !ascending || focal.last().is_some_and(|&layer| layer >= manifest.dims.layers) {
        return fault("extras.focal_layers", format!("{focal:?} are not ascending layers of the decoder"));
    }
    match (manifest.extras.tsp_layer, &manifest.graphs.prefill_upper) {
        (Some(layer), _) if layer + 1 >= manifest.dims.layers => {
            fault("extras.tsp_layer", format!("{layer} has no layer above it"))
        }
        (Some(_), None) => fault("graphs.prefill_upper", "is missing, but `extras.tsp_layer` is there"),
        (None, Some(_)) => fault("extras.tsp_layer", "is missing, but `graphs.prefill_upper` is there"),
        _ => Ok(()),
    }
}

fn check_grid(grid: &FixedGrid) -> Result<(), Fault> {
    let sizes = [
        ("cell_width", grid.cell_width),
        ("cell_height", grid.cell_height),
        ("max_side", grid.max_side),
        ("max_cells", grid.max_cells),
    ];
    for (name, size) in sizes {
        if size == 0 || size > 1 << 16 {
            return fault(format!("preprocessing.{name}"), format!("{size} is not between 1 and 65536"));
        }
    }
    let numbers = [
        ("x_height", grid.x_height, 1.0, 200.0),
        ("x_height_share", grid.x_height_share, 0.05, 1.0),
        ("default_dpi", grid.default_dpi, 10.0, 1200.0),
        ("ink_threshold", grid.ink_threshold, 0.0, 1.0),
        ("characters.none_weight", grid.characters.map_or(1.0, |c| c.none_weight), 0.01, 100.0),
    ];
    for (name, number, least, most) in numbers {
        if !(least..=most).contains(&number) {
            return fault(
                format!("preprocessing.{name}"),
                format!("{number} is not between {least} and {most}"),
            );
        }
    }
    Ok(())
}

fn check_tokens(manifest: &Manifest) -> Result<(), Fault> {
    let vocabulary = manifest.dims.vocabulary as i64;
    let mut ranges: Vec<(&str, i64, i64)> = Vec::new();
    for (name, entry) in &manifest.tokens {
        let (first, last) = match entry {
            TokenEntry::One(TokenName::Text(_)) => continue,
            TokenEntry::One(TokenName::Id(id)) => (*id, *id),
            TokenEntry::Range(range) => {
                if range.count == 0 || !(range.bin > 0.0 && range.bin.is_finite()) {
                    return fault(format!("tokens.{name}"), "count and bin must be above 0");
                }
                if !(-1e6..=1e6).contains(&range.offset) {
                    return fault(format!("tokens.{name}"), "offset must be a number of pixels");
                }
                (range.first, range.first.saturating_add(i64::from(range.count) - 1))
            }
        };
        if first < 0 || last >= vocabulary {
            return fault(
                format!("tokens.{name}"),
                format!("{first}..={last} is outside the vocabulary of {vocabulary}"),
            );
        }
        if let TokenEntry::Range(_) = entry {
            if let Some((other, ..)) = ranges.iter().find(|(_, from, to)| first <= *to && *from <= last) {
                return fault(format!("tokens.{name}"), format!("overlaps tokens.{other}"));
            }
            ranges.push((name, first, last));
        }
    }
    Ok(())
}

fn check_protocol(manifest: &Manifest) -> Result<(), Fault> {
    let protocol = &manifest.protocol;
    let rule = protocol.position_rule;
    if rule != PositionRule::Sequential && manifest.dims.position_parts != 3 {
        return fault("protocol.position_rule", format!("{} needs dims.position_parts 3", rule_name(rule)));
    }
    check_advance(&protocol.advance, manifest.dims.vocabulary)?;
    for (key, format) in &protocol.content {
        if key != DEFAULT_CONTENT && kind_of_name(key).is_none() {
            return fault(format!("protocol.content.{key}"), "is not a kind of region");
        }
        if let Some(needed) = format.position_rule().filter(|needed| *needed != rule) {
            return fault(
                format!("protocol.content.{key}"),
                format!("needs the position rule {}", rule_name(needed)),
            );
        }
    }
    if protocol.region.forks() && !protocol.content.contains_key(DEFAULT_CONTENT) {
        return fault("protocol.content", "has no `default`");
    }
    let ranges: &[&str] = match rule {
        PositionRule::Sequential | PositionRule::Mrope => &[],
        PositionRule::GroundedWords => &["x", "y", "pitch"],
        PositionRule::GroundedSteps => &["x", "y", "pitch", "gap", "down"],
    };
    for name in ranges {
        if manifest.range(name).is_none() {
            return fault(
                format!("tokens.{name}"),
                format!("must be a range {{first, count, bin}} with the rule {}", rule_name(rule)),
            );
        }
    }
    let needed: &[&str] = if rule.is_grounded() {
        &["unknown", "space", "end", "child", "fork", "cell", "row"]
    } else if protocol.region.forks() {
        &["child", "fork"]
    } else {
        &[]
    };
    for name in needed {
        if manifest.token(name).is_none() {
            return fault(format!("tokens.{name}"), "must be a token id or a token of the tokenizer");
        }
    }
    match protocol.region {
        RegionForm::KindBox => check_kinds(manifest)?,
        RegionForm::BlockLabelBox => pictures::check_labels(protocol)?,
        RegionForm::Markdown | RegionForm::FrontMatterMarkdown | RegionForm::Doctags => {}
    }
    check_ends(manifest)
}

fn check_advance(advance: &[f32], vocabulary: usize) -> Result<(), Fault> {
    if advance.len() > vocabulary {
        return fault("protocol.advance", format!("has more than {vocabulary} entries"));
    }
    match advance.iter().find(|width| !(0.0..=MOST_ADVANCE).contains(*width)) {
        Some(width) => {
            fault("protocol.advance", format!("{width} is not between 0 and {MOST_ADVANCE} mean widths"))
        }
        None => Ok(()),
    }
}

fn check_kinds(manifest: &Manifest) -> Result<(), Fault> {
    let kinds = &manifest.protocol.kinds;
    if kinds.is_empty() {
        return fault("protocol.kinds", "is empty");
    }
    let mut seen: Vec<Kind> = Vec::new();
    for (index, entry) in kinds.iter().enumerate() {
        for kind in std::iter::once(&entry.kind).chain(&entry.also) {
            if seen.contains(kind) {
                return fault(format!("protocol.kinds[{index}]"), format!("`{kind:?}` has a token already"));
            }
            seen.push(*kind);
        }
        if let TokenName::Id(id) = entry.id
            && !(0..manifest.dims.vocabulary as i64).contains(&id)
        {
            return fault(format!("protocol.kinds[{index}].id"), format!("{id} is outside the vocabulary"));
        }
    }
    Ok(())
}

fn check_ends(manifest: &Manifest) -> Result<(), Fault> {
    for (field, tokens) in
        [("trunk_end", &manifest.protocol.trunk_end), ("branch_end", &manifest.protocol.branch_end)]
    {
        if tokens.is_empty() {
            return fault(format!("protocol.{field}"), "is empty");
        }
    }
    Ok(())
}

fn check_decode(manifest: &Manifest) -> Result<(), Fault> {
    let decode = &manifest.decode;
    if decode.buckets.first().is_none_or(|&first| first == 0) || !decode.buckets.is_sorted_by(|a, b| a < b) {
        return fault("decode.buckets", "must be ascending numbers above 0");
    }
    if decode.max_tokens == 0 || decode.max_trunk_tokens == 0 {
        return fault("decode", "max_tokens and max_trunk_tokens must be above 0");
    }
    Ok(())
}

fn check_acceptance(acceptance: &AcceptanceTable) -> Result<(), Fault> {
    check_threshold("acceptance.default", &acceptance.default)?;
    for (class, rows) in &acceptance.classes {
        for (drafter, row) in rows {
            let field = format!("acceptance.classes.{class:?}.{drafter}");
            if !DRAFTERS.contains(&drafter.as_str()) {
                return fault(field, format!("is not a drafter; known: {}", DRAFTERS.join(", ")));
            }
            check_threshold(&field, row)?;
        }
    }
    Ok(())
}

fn check_threshold(field: &str, row: &ThresholdRow) -> Result<(), Fault> {
    let numbers = [
        ("own_confidence", row.own_confidence),
        ("model_probability", row.model_probability),
        ("override_probability", row.override_probability),
    ];
    for (name, number) in numbers {
        // Above 1: never reached, so a manifest can switch a condition off.
        if !(0.0..=2.0).contains(&number) {
            return fault(format!("{field}.{name}"), format!("{number} is not between 0 and 2"));
        }
    }
    Ok(())
}

fn rule_name(rule: PositionRule) -> &'static str {
    match rule {
        PositionRule::Sequential => "sequential",
        PositionRule::GroundedWords => "grounded-words",
        PositionRule::GroundedSteps => "grounded-steps",
        PositionRule::Mrope => "mrope",
    }
}

/// The kind's name in JSON.
pub(super) fn kind_name(kind: Kind) -> Option<String> {
    serde_json::to_value(kind).ok()?.as_str().map(str::to_owned)
}

fn kind_of_name(name: &str) -> Option<Kind> {
    serde_json::from_value(serde_json::Value::String(name.to_owned())).ok()
}
