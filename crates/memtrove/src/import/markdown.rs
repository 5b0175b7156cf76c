//! Markdown: every file as it is, under the path it has in its folder.

use super::record::{Document, Record, instant};

/// The longest file that is read. No file that is stored has as many characters.
pub const MAX_BYTES: u64 = 1024 * 1024;

/// Whether a file is Markdown, by its name: content does not tell.
pub fn is_named_so(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path).to_ascii_lowercase();
    [".md", ".markdown"].iter().any(|ending| name.len() > ending.len() && name.ends_with(ending))
}

/// Reads a file; its front matter stays in it.
pub fn read(path: &str, bytes: Vec<u8>) -> Result<Record, String> {
    if bytes.len() as u64 > MAX_BYTES {
        return Err(format!("it is longer than {MAX_BYTES} bytes, and no file may be"));
    }
    // Another name would be one that no link leads to.
    let has_dots = |name: &str| name.contains("..") && name != "..";
    if path.split(['/', '\\']).any(has_dots) {
        return Err("its name has '..' in it, which no path here may have: rename it".to_owned());
    }
    let text = String::from_utf8(bytes).map_err(|_| "it is not UTF-8")?;
    if text.contains('\0') {
        return Err("it has NUL characters".to_owned());
    }
    let created_at = front_matter(&text).find_map(|(name, value)| match name {
        "date" | "created" | "created_at" => instant(value.trim_matches(['"', '\''])),
        _ => None,
    });
    Ok(Record::File(Document { path: path.to_owned(), text, created_at }))
}

/// The plain members of the block at the beginning of a file, if it has one.
fn front_matter(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let block = text.strip_prefix("---\n").or_else(|| text.strip_prefix("---\r\n"));
    let lines =
        block.unwrap_or_default().lines().take_while(|line| !matches!(line.trim_end(), "---" | "..."));
    lines.filter_map(|line| line.split_once(':')).map(|(name, value)| (name.trim(), value.trim()))
}

#[cfg(test)]
mod tests;
