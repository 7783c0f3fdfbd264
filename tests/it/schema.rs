//! Everything written matches the published schemas.

use std::fs;

use serde_json::Value;

use crate::program::{converted, repository, tree};

fn validator(path: &str) -> jsonschema::Validator {
    let text = fs::read_to_string(repository(path)).expect("the schema is there");
    let schema: Value = serde_json::from_str(&text).expect("the schema is JSON");
    jsonschema::draft202012::new(&schema).expect("the schema is one")
}

#[test]
fn page_and_document_files_match_their_schemas() {
    let page = validator("src/document/page.schema.json");
    let document = validator("src/document/document.schema.json");
    let mut checked = (0, 0);
    for (name, bytes) in tree(converted()).iter().filter(|(name, _)| name.ends_with(".json")) {
        let value: Value = serde_json::from_slice(bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
        let is_page = name.contains("/page-");
        let schema = if is_page { &page } else { &document };
        let faults: Vec<String> = schema.iter_errors(&value).map(|fault| fault.to_string()).collect();
        assert_eq!(faults, [String::new(); 0], "{name}");
        assert!(!schema.is_valid(&Value::Null));
        *if is_page { &mut checked.0 } else { &mut checked.1 } += 1;
    }
    assert_eq!(checked, (11, 8));
}
