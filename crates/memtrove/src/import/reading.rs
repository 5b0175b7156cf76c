//! From the bytes of a source to records, one after the other.

use super::format::{self, Format};
use super::items::{Item, Items, MAX_ITEM, Shape};
use super::record::{LeftOut, Record};
use super::source::{Part, Selection, Source, Unreadable};
use super::{chatgpt, claude, markdown, mcp, mem0};
use indicatif::ProgressBar;
use memtrove_core::{Clock, SystemClock};
use serde_json::Value;
use std::io::Read;

/// What was found in one place of a source.
pub(super) struct SourceRecords {
    /// The place, as people would look for it.
    pub place: String,
    /// What is there, or why nothing of it can be taken.
    pub records: Result<Vec<Record>, String>,
    /// How long it is.
    pub bytes: usize,
}

impl SourceRecords {
    /// Something of which nothing can be taken.
    fn refused(place: impl Into<String>, why: impl Into<String>) -> Self {
        Self { place: place.into(), records: Err(why.into()), bytes: 0 }
    }
}

/// Takes what is found.
type Sink<'a> = &'a mut dyn FnMut(SourceRecords) -> anyhow::Result<()>;

/// Reads everything that was selected, and gives it to `sink`; says what was not kept.
pub(super) fn each(
    source: &mut Source,
    selection: Selection,
    bar: &ProgressBar,
    sink: Sink<'_>,
) -> anyhow::Result<LeftOut> {
    let Selection { format, parts, unreadable, mut left_out } = selection;
    for Unreadable { name, why } in unreadable {
        sink(SourceRecords::refused(name, why))?;
    }
    for part in &parts {
        match format {
            Format::Markdown => markdown_of(source, part, bar, sink)?,
            _ => items_of(source, format, part, bar, &mut left_out, sink)?,
        }
    }
    Ok(left_out)
}

/// Reads the items of a file, up to where it cannot be read any further: what came before that is whole, and stays.
fn items_of(
    source: &mut Source,
    format: Format,
    part: &Part,
    bar: &ProgressBar,
    left_out: &mut LeftOut,
    sink: Sink<'_>,
) -> anyhow::Result<()> {
    let shape = format::shape(format, &source.beginning(part).0);
    let (mut is_any, mut not_taken) = (false, None);
    let read = source.read(part, &mut |reader| {
        let mut items = Items::new(bar.wrap_read(reader), shape);
        while let Some(item) = items.next_item()? {
            let Some(found) = found(format, part, shape, item, left_out) else { continue };
            is_any = true;
            if let Err(error) = sink(found) {
                not_taken = Some(error);
                break;
            }
        }
        Ok(())
    });
    match (not_taken, read) {
        (Some(error), _) => Err(error),
        (None, Err(error)) => sink(SourceRecords::refused(&part.name, format!("{error:#}"))),
        (None, Ok(())) if is_any => Ok(()),
        (None, Ok(())) => {
            let why = format!("there is nothing in it that {} {format} has", format.article());
            sink(SourceRecords::refused(&part.name, why))
        }
    }
}

fn markdown_of(source: &mut Source, part: &Part, bar: &ProgressBar, sink: Sink<'_>) -> anyhow::Result<()> {
    let mut bytes = Vec::new();
    let read = source.read(part, &mut |reader| {
        bar.wrap_read(reader).take(markdown::MAX_BYTES + 1).read_to_end(&mut bytes)?;
        Ok(())
    });
    let length = bytes.len();
    let records = match read {
        Ok(()) => markdown::read(&part.name, bytes).map(|record| vec![record]),
        Err(error) => Err(format!("{error:#}")),
    };
    sink(SourceRecords { place: part.name.clone(), records, bytes: length })
}

/// What an item is; nothing, if it is of a member that has nothing to do with what is brought in.
fn found(
    format: Format,
    part: &Part,
    shape: Shape,
    item: Item,
    left_out: &mut LeftOut,
) -> Option<SourceRecords> {
    let Item { member, index, bytes } = item;
    if !is_wanted(format, member.as_deref(), bytes.as_deref()) {
        return None;
    }
    let place = match (shape, &member) {
        (Shape::Lines, _) => format!("{} line {}", part.name, index + 1),
        (_, Some(member)) => format!("{} {member}[{index}]", part.name),
        (_, None) => format!("{}[{index}]", part.name),
    };
    let Some(bytes) = bytes else {
        return Some(SourceRecords::refused(
            place,
            format!("it is longer than {} MiB", MAX_ITEM / 1024 / 1024),
        ));
    };
    let mut noted = LeftOut::default();
    let records = read(format, &bytes, &mut noted);
    if records.is_ok() {
        left_out.add(noted);
    }
    Some(SourceRecords { place, records, bytes: bytes.len() })
}

/// Whether an item of this member of a file is of interest.
fn is_wanted(format: Format, member: Option<&str>, bytes: Option<&[u8]>) -> bool {
    let Some(member) = member else { return true };
    let is_known = match format {
        Format::Chatgpt | Format::Claude => matches!(member, "conversations" | "projects" | "memories"),
        Format::Mem0 => mem0::is_wanted(member),
        Format::Mcp => matches!(member, "entities" | "relations"),
        Format::Archive | Format::Markdown => false,
    };
    // Where there is nothing, some programs say so.
    is_known && bytes != Some(b"null")
}

/// Reads one item of a file in a format.
pub fn read(format: Format, bytes: &[u8], left_out: &mut LeftOut) -> Result<Vec<Record>, String> {
    let mut item: Value =
        serde_json::from_slice(bytes).map_err(|error| format!("it is not JSON: {error}"))?;
    if bytes.windows(NUL.len()).any(|part| part == NUL) {
        remove_nul(&mut item);
    }
    match format {
        Format::Chatgpt => chatgpt::read(&item, left_out),
        Format::Claude => claude::read(&item, left_out),
        Format::Mem0 => mem0::read(&item, SystemClock.now(), left_out),
        Format::Mcp => mcp::read(&item, left_out),
        Format::Archive | Format::Markdown => Ok(Vec::new()),
    }
}

/// How JSON has NUL: it stands for itself nowhere.
const NUL: &[u8] = br"\u0000";

/// Takes NUL out of all texts and names: nothing that is stored has it, and where one was, none was meant.
fn remove_nul(value: &mut Value) {
    match value {
        Value::String(text) => text.retain(|one| one != '\0'),
        Value::Array(items) => items.iter_mut().for_each(remove_nul),
        Value::Object(members) => {
            members.values_mut().for_each(remove_nul);
            if members.keys().any(|name| name.contains('\0')) {
                let named = std::mem::take(members).into_iter();
                members.extend(named.map(|(name, value)| (name.replace('\0', ""), value)));
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests;
