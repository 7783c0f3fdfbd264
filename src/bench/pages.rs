//! Documents -> drafted pages.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::script::Script;
use super::{BenchPage, BenchSettings};
use crate::decode::PageDrafts;
use crate::drafts::TextLayer;
use crate::pdf::{Document, OpenOptions};
use crate::reader::Reader;

/// The first pages of every file that can be drafted; what cannot is told and left out.
pub(super) fn drafted(
    files: &[PathBuf],
    open: &OpenOptions,
    reader: &mut Reader,
    settings: &BenchSettings,
    progress: &mut dyn FnMut(&str),
) -> Vec<BenchPage> {
    let mut pages = Vec::new();
    for file in files {
        let mut document = match Document::open(file, open) {
            Ok(document) => document,
            Err(error) => {
                progress(&format!("{}: left out: {error}", file.display()));
                continue;
            }
        };
        let last = document.info().page_count.min(u32::try_from(settings.pages).unwrap_or(u32::MAX));
        for number in 1..=last {
            match page(&mut document, file, number, reader, settings.max_tokens) {
                Ok(page) => pages.push(page),
                Err(reason) => progress(&format!("{}: page {number}: left out: {reason}", file.display())),
            }
        }
        progress(&format!("{}: drafted", file.display()));
    }
    pages
}

fn page(
    document: &mut Document,
    file: &Path,
    number: u32,
    reader: &mut Reader,
    max_tokens: Option<usize>,
) -> Result<BenchPage, String> {
    let evidence = document.page(number).map_err(|error| error.to_string())?;
    let prepared = reader.prepare(evidence).map_err(|error| error.to_string())?;
    let (prepared, text_layer) = prepared.ok_or("there is no ink on it")?;
    if prepared.drafts.trunk.is_empty() {
        return Err("nothing was drafted".into());
    }
    let drafts = cut(prepared.drafts, max_tokens);
    let pack = reader.model_mut().ok_or("there is no model")?.pack();
    let end = pack.grammar.branch_end_token().ok_or("the model has no end token")?;
    Ok(BenchPage {
        file: file.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        number,
        born_digital: text_layer == TextLayer::Used,
        script: Script::of(&drafts, &*pack.grammar, end),
        prefix: prepared.prefix,
        prefixes: BTreeMap::new(),
        input: Some(prepared.input),
        drafts,
    })
}

/// Content of at most `most` tokens a stream, end token included.
fn cut(mut drafts: PageDrafts, most: Option<usize>) -> PageDrafts {
    let Some(most) = most else { return drafts };
    for content in drafts.content.values_mut().filter(|content| content.len() > most) {
        if let Some(&end) = content.last() {
            content.truncate(most.saturating_sub(1));
            content.push(end);
        }
    }
    drafts
}
