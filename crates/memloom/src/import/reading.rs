//! From the bytes of a source to records, one after the other.

use super::format::{self, Format};
use super::items::{Item, Items, MAX_ITEM, Shape};
use super::record::{LeftOut, Record};
use super::source::{Part, Selection, Source};
use super::{chatgpt, claude, markdown, mcp, mem0};
use indicatif::ProgressBar;
use memloom_core::{Clock, SystemClock};
use serde_json::Value;
use std::io::Read;

/// What was found in one place of a source.
pub(super) struct Found {
    /// The place, as people would look for it.
    pub place: String,
    /// What is there, or why nothing of it can be taken.
    pub records: Result<Vec<Record>, String>,
    /// How long it is.
    pub bytes: usize,
}

/// Reads everything that was selected, and gives it to `sink`; says what was not kept.
pub(super) fn each(
    source: &mut Source,
    selection: Selection,
    bar: &ProgressBar,
    sink: &mut dyn FnMut(Found) -> anyhow::Result<()>,
) -> anyhow::Result<LeftOut> {
    let Selection { format, parts, mut left_out } = selection;
    for part in &parts {
        if format == Format::Markdown {
            markdown_of(source, part, bar, sink)?;
            continue;
        }
        let shape = format::shape(format, &source.beginning(part)?);
        let mut given_up = None;
        let read = source.read(part, &mut |reader| {
            let mut items = Items::new(bar.wrap_read(reader), shape);
            loop {
                match items.next_item() {
                    Ok(Some(item)) => sink(found(format, part, shape, item, &mut left_out))?,
                    Ok(None) => return Ok(()),
                    Err(error) => {
                        // What came before it is whole, and stays.
                        given_up = Some(error.to_string());
                        return Ok(());
                    }
                }
            }
        });
        if let Some(why) = given_up {
            sink(Found { place: part.name.clone(), records: Err(why), bytes: 0 })?;
        }
        read?;
    }
    Ok(left_out)
}

fn markdown_of(
    source: &mut Source,
    part: &Part,
    bar: &ProgressBar,
    sink: &mut dyn FnMut(Found) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
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
    sink(Found { place: part.name.clone(), records, bytes: length })
}

fn found(format: Format, part: &Part, shape: Shape, item: Item, left_out: &mut LeftOut) -> Found {
    let Item { member, index, bytes } = item;
    let place = match (shape, &member) {
        (Shape::Lines, _) => format!("{} line {}", part.name, index + 1),
        (_, Some(member)) => format!("{} {member}[{index}]", part.name),
        (_, None) => format!("{}[{index}]", part.name),
    };
    let Some(bytes) = bytes else {
        let why = format!("it is longer than {} MiB", MAX_ITEM / 1024 / 1024);
        return Found { place, records: Err(why), bytes: 0 };
    };
    let mut noted = LeftOut::default();
    let records = read(format, member.as_deref(), &bytes, &mut noted);
    if records.is_ok() {
        left_out.add(noted);
    }
    Found { place, records, bytes: bytes.len() }
}

/// Reads one item of a file in a format.
pub fn read(
    format: Format,
    member: Option<&str>,
    bytes: &[u8],
    left_out: &mut LeftOut,
) -> Result<Vec<Record>, String> {
    let wanted = match format {
        Format::Chatgpt | Format::Claude => {
            matches!(member, None | Some("conversations" | "projects" | "memories"))
        }
        Format::Mem0 => mem0::is_wanted(member),
        Format::Mcp => matches!(member, None | Some("entities" | "relations")),
        Format::Archive | Format::Markdown => false,
    };
    if !wanted {
        return Ok(Vec::new());
    }
    let item: Value = serde_json::from_slice(bytes).map_err(|error| format!("it is not JSON: {error}"))?;
    match format {
        Format::Chatgpt => chatgpt::read(&item, left_out),
        Format::Claude => claude::read(&item, left_out),
        Format::Mem0 if member == Some("data") && !item.is_object() => Ok(Vec::new()),
        Format::Mem0 => mem0::read(&item, SystemClock.now(), left_out),
        Format::Mcp => mcp::read(&item),
        Format::Archive | Format::Markdown => Ok(Vec::new()),
    }
}

#[cfg(test)]
mod tests;
