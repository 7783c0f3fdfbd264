use super::*;
use crate::decode::protocol::TokenClass;
use crate::page::Source;
use crate::settings::Acceptance;

/// A manifest of the nano form with a small vocabulary: characters a-z, digits, some punctuation.
const TINY: &str = r#"{
    "schema": "docparse.pack/1", "name": "tiny", "licence": "Apache-2.0", "source": "test",
    "files": { "tokenizer.json": "HASH", "vision.onnx": "HASH", "prefill.onnx": "HASH", "decode.onnx": "HASH" },
    "graphs": { "vision": "vision.onnx", "prefill": "prefill.onnx", "decode": "decode.onnx" },
    "tokenizer": "tokenizer.json",
    "dims": { "layers": 2, "heads": 2, "kv_heads": 1, "head_dim": 8, "hidden": 16, "vocabulary": 900, "position_parts": 3 },
    "preprocessing": { "family": "fixed-grid", "cell_width": 32, "cell_height": 16, "ink_threshold": 0.25, "x_height": 8.5,
        "x_height_share": 0.43, "default_dpi": 136.0, "max_side": 1914, "max_cells": 4096 },
    "tokens": { "unknown": 100, "space": 101, "end": 102, "child": 103, "fork": 104, "begin": 105, "cell": 106, "row": 107,
        "x": { "first": 130, "count": 320, "bin": 6.0 }, "y": { "first": 450, "count": 320, "bin": 6.0 },
        "pitch": { "first": 770, "count": 96, "bin": 0.25 } },
    "protocol": { "position_rule": "grounded-words", "prefill_attention": "bidirectional-visual",
        "trunk_prompt": ["begin"], "trunk_end": ["end"], "branch_end": ["end"], "fork_visible": false,
        "region": "kind-x0-y0-x1-y1", "content": { "default": "grounded-words" },
        "kinds": [
            { "id": 110, "kind": "text", "also": ["reference", "other"] }, { "id": 111, "kind": "title" },
            { "id": 112, "kind": "heading" }, { "id": 113, "kind": "list" }, { "id": 114, "kind": "table" },
            { "id": 115, "kind": "formula" }, { "id": 116, "kind": "figure", "also": ["chart"], "forks": false },
            { "id": 117, "kind": "caption" }, { "id": 118, "kind": "code" }, { "id": 119, "kind": "header" },
            { "id": 120, "kind": "footer" }, { "id": 121, "kind": "page_number" }, { "id": 122, "kind": "footnote" }
        ] },
    "decode": { "buckets": [1, 8, 32], "max_tokens": 400, "max_trunk_tokens": 300 },
    "acceptance": { "mode": "trust",
        "default": { "own_confidence": 0.9, "model_probability": 0.05, "override_probability": 0.9, "coordinate_bins": 3 },
        "classes": { "text": {
            "ocr": { "own_confidence": 0.5, "model_probability": 0.1, "override_probability": 0.99 },
            "any": { "own_confidence": 0.6, "model_probability": 0.2, "override_probability": 0.98 } } } }
}"#;

pub(crate) fn tiny() -> serde_json::Value {
    serde_json::from_str(&TINY.replace("HASH", &"0".repeat(64))).unwrap()
}

pub(crate) fn parse(value: &serde_json::Value) -> Result<Manifest, PackError> {
    Manifest::parse(value.to_string().as_bytes(), Path::new("packs/tiny/docparse.json"))
}

fn error_with(change: impl FnOnce(&mut serde_json::Value)) -> String {
    let mut value = tiny();
    change(&mut value);
    parse(&value).expect_err("the change breaks the manifest").to_string()
}

#[test]
fn a_good_manifest_loads() {
    let manifest = parse(&tiny()).unwrap();
    assert_eq!(manifest.range("x"), Some(CoordinateRange { first: 130, count: 320, bin: 6.0, offset: 0.0 }));
    assert_eq!(manifest.token("fork"), Some(&TokenName::Id(104)));
    assert_eq!(manifest.content_format(Kind::Table), ContentFormat::GroundedWords);
    assert_eq!(Dims::from(manifest.dims).bytes_per_position(), 2 * 8 * 2 * 4);
}

#[test]
fn errors_name_the_file_and_the_field() {
    let cases: Vec<(String, &str)> = vec![
        (error_with(|m| m["schema"] = "docparse.pack/9".into()), "schema: `docparse.pack/9`"),
        (error_with(|m| m["dims"]["heads"] = 0.into()), "dims.heads"),
        (error_with(|m| m["dims"]["position_parts"] = 1.into()), "protocol.position_rule"),
        (error_with(|m| m["files"]["decode.onnx"] = "12".into()), "files.decode.onnx"),
        (error_with(|m| m["graphs"]["decode"] = "other.onnx".into()), "graphs.decode: `other.onnx`"),
        (error_with(|m| m["tokens"]["y"]["first"] = 200.into()), "overlaps tokens.x"),
        (error_with(|m| m["tokens"]["pitch"]["count"] = 5000.into()), "tokens.pitch"),
        (error_with(|m| m["tokens"]["child"] = serde_json::Value::Null), "line"),
        (error_with(|m| m["protocol"]["content"]["tabel"] = "html".into()), "protocol.content.tabel"),
        (error_with(|m| m["protocol"]["kinds"][1]["kind"] = "text".into()), "protocol.kinds[1]"),
        (error_with(|m| m["decode"]["buckets"] = vec![8, 1].into()), "decode.buckets"),
        (error_with(|m| m["extras"]["tsp_layer"] = 0.into()), "graphs.prefill_upper: is missing"),
        (error_with(|m| m["extras"]["tsp_layer"] = 1.into()), "extras.tsp_layer: 1 has no layer above it"),
        (error_with(|m| m["graphs"]["prefill_upper"] = "decode.onnx".into()), "extras.tsp_layer: is missing"),
        (
            error_with(|m| m["acceptance"]["classes"]["text"]["ocrr"] = m["acceptance"]["default"].clone()),
            "ocrr",
        ),
        (error_with(|m| m["preprocessing"]["family"] = "mosaic".into()), "preprocessing.family: `mosaic`"),
        (error_with(|m| m["preprocessing"]["cel_width"] = 3.into()), "unknown field `cel_width`"),
        (
            error_with(|m| m["protocol"]["position_rule"] = "grounded-steps".into()),
            "protocol.content.default: needs the position rule grounded-words",
        ),
        (
            error_with(|m| {
                m["protocol"]["position_rule"] = "grounded-steps".into();
                m["protocol"]["content"]["default"] = "grounded-steps".into();
            }),
            "tokens.gap: must be a range",
        ),
        (error_with(|m| m["protocol"]["advance"] = vec![1.0, -0.5].into()), "protocol.advance: -0.5"),
        (error_with(|m| m["tokens"]["x"]["offset"] = 1e9.into()), "tokens.x: offset"),
        (error_with(|m| m["extra"] = 1.into()), "unknown field `extra`"),
        (error_with(|m| drop(m.as_object_mut().unwrap().remove("dims"))), "missing field `dims`"),
    ];
    for (message, part) in cases {
        assert!(message.contains("packs/tiny/docparse.json"), "{message}");
        assert!(message.contains(part), "{message} lacks {part}");
    }
}

#[test]
fn the_most_specific_threshold_wins() {
    let acceptance = parse(&tiny()).unwrap().acceptance;
    assert_eq!(acceptance.mode(), Acceptance::Trust);
    assert_eq!(acceptance.threshold(TokenClass::Text, Source::Ocr).own_confidence, 0.5);
    assert_eq!(acceptance.threshold(TokenClass::Text, Source::TextLayer).own_confidence, 0.6);
    let layout = acceptance.threshold(TokenClass::Coordinate, Source::Layout);
    assert_eq!((layout.own_confidence, layout.coordinate_bins), (0.9, 3));
}

#[test]
fn numbers_round_to_the_nearest_bin_and_odd_ones_are_clamped() {
    let range = CoordinateRange { first: 130, count: 320, bin: 6.0, offset: 0.0 };
    assert_eq!(range.token(0.0), 130);
    assert_eq!(range.token(14.9), 132);
    assert_eq!(range.token(15.0), 132); // 2.5 goes to the even bin, as Python's round does
    assert_eq!(range.token(-5.0), 130);
    assert_eq!(range.token(1e9), 449);
    assert_eq!(range.token(f32::NAN), 130);
    assert_eq!(range.value(449), Some(1914.0));
    assert_eq!(range.value(450), None);
    let steps = CoordinateRange { first: 10, count: 4, bin: 2.0, offset: -4.0 };
    assert_eq!((steps.token(-4.0), steps.token(0.9), steps.value(13)), (10, 12, Some(2.0)));
    let reach = [-5.1, -4.9, 2.9, 3.1, f32::NAN].map(|value| steps.spans(value));
    assert_eq!(reach, [false, true, true, false, false]);
}
