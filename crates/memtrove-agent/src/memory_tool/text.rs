//! Texts with numbered lines, and changes of them by line and by match. Pure.

use super::Refusal;
use super::path::MemoryPath;

/// More lines than this cannot be numbered in six places.
const MAX_LINES: usize = 999_999;

/// This many lines around a change are shown.
const CONTEXT: usize = 2;

/// This many lines with a match are named.
const NAMED_LINES: usize = 20;

/// A file with its lines numbered, or some of them: from the first to the last, -1 being the end.
pub(super) fn numbered(
    place: &MemoryPath,
    content: &str,
    range: Option<(i64, i64)>,
) -> Result<String, Refusal> {
    let lines: Vec<&str> = content.split('\n').collect();
    if lines.len() > MAX_LINES {
        return Err(Refusal(format!("File {place} exceeds maximum line limit of 999,999 lines.")));
    }
    let count = lines.len() as i64;
    let (first, last) = match range {
        None => (1, count),
        Some((first, last)) => {
            let (first, last) = (first.max(1), if last == -1 { count } else { last.min(count) });
            if first > count || last < first {
                return Err(Refusal(format!(
                    "Error: Invalid `view_range` parameter: [{}, {}]. It should be within the range of lines of the file: [1, {count}]",
                    range.unwrap_or_default().0,
                    range.unwrap_or_default().1,
                )));
            }
            (first, last)
        }
    };
    let shown = number(&lines, first as usize, last as usize);
    Ok(format!("Here's the content of {place} with line numbers:\n{shown}"))
}

/// Lines around one, counted from 0, numbered.
pub(super) fn snippet(content: &str, line: usize) -> String {
    let lines: Vec<&str> = content.split('\n').collect();
    let first = line.saturating_sub(CONTEXT) + 1;
    number(&lines, first, (line + CONTEXT + 1).min(lines.len()))
}

/// Lines from the first to the last, counted from 1.
fn number(lines: &[&str], first: usize, last: usize) -> String {
    let numbered = lines
        .iter()
        .enumerate()
        .take(last)
        .skip(first - 1)
        .map(|(index, line)| format!("{:>6}\t{line}", index + 1));
    numbered.collect::<Vec<_>>().join("\n")
}

/// The line, counted from 0, where the only match begins.
pub(super) fn only_match(place: &MemoryPath, content: &str, old_str: &str) -> Result<usize, Refusal> {
    let (mut matches, mut counted, mut line) = (0, 0, 0);
    let mut lines: Vec<usize> = Vec::new();
    for (at, _) in content.match_indices(old_str) {
        matches += 1;
        line += content[counted..at].matches('\n').count();
        counted = at;
        if lines.last() != Some(&line) {
            lines.push(line);
        }
    }
    match (matches, lines.as_slice()) {
        (0, _) => Err(Refusal(format!(
            "No replacement was performed, old_str `{old_str}` did not appear verbatim in {place}."
        ))),
        (1, [line]) => Ok(*line),
        (_, lines) => {
            let named: Vec<String> =
                lines.iter().take(NAMED_LINES).map(|line| (line + 1).to_string()).collect();
            let more = match lines.len() - named.len() {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            Err(Refusal(format!(
                "No replacement was performed. Multiple occurrences of old_str `{old_str}` in lines: {}{more}. Please ensure it is unique",
                named.join(", ")
            )))
        }
    }
}

/// A text with another put in after this many lines.
pub(super) fn with_line(content: &str, line: i64, inserted: &str) -> Result<String, Refusal> {
    let mut lines: Vec<&str> = content.split('\n').collect();
    // What follows the last line break is no line if it is empty.
    if lines.last().is_some_and(|last| last.is_empty()) {
        lines.pop();
    }
    let count = lines.len();
    match usize::try_from(line) {
        Ok(at) if at <= count => lines.insert(at, inserted.trim_end_matches('\n')),
        _ => {
            return Err(Refusal(format!(
                "Error: Invalid `insert_line` parameter: {line}. It should be within the range of lines of the file: [0, {count}]"
            )));
        }
    }
    Ok(lines.join("\n") + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn place() -> MemoryPath {
        MemoryPath::read("/memories/notes.txt").unwrap()
    }

    #[test]
    fn lines_are_numbered_six_wide_with_a_tab() {
        let lines: Vec<String> = (1..=100).map(|n| format!("line {n}")).collect();
        let shown = numbered(&place(), &lines.join("\n"), None).unwrap();
        let shown: Vec<&str> = shown.split('\n').collect();
        assert_eq!(shown[0], "Here's the content of /memories/notes.txt with line numbers:");
        assert_eq!(
            (shown[1], shown[10], shown[100]),
            ("     1\tline 1", "    10\tline 10", "   100\tline 100")
        );
        assert_eq!(shown.len(), 101);
    }

    #[test]
    fn a_range_shows_its_lines_with_their_own_numbers() {
        let header = "Here's the content of /memories/notes.txt with line numbers:\n";
        let text = "a\nb\nc\nd";
        for (range, lines) in [
            ((2, 3), "     2\tb\n     3\tc"),
            ((3, -1), "     3\tc\n     4\td"),
            ((0, 1), "     1\ta"),
            ((4, 99), "     4\td"),
        ] {
            assert_eq!(numbered(&place(), text, Some(range)).unwrap(), format!("{header}{lines}"));
        }
        assert_eq!(numbered(&place(), "", None).unwrap(), format!("{header}     1\t"));
        for range in [(5, 6), (3, 2), (5, -1), (1, -2)] {
            let refusal = numbered(&place(), text, Some(range)).unwrap_err().0;
            let said = format!(
                "parameter: [{}, {}]. It should be within the range of lines of the file: [1, 4]",
                range.0, range.1
            );
            assert!(refusal.ends_with(&said), "{refusal}");
        }
    }

    #[test]
    fn too_many_lines_are_not_shown() {
        let most = "\n".repeat(999_998);
        assert!(numbered(&place(), &most, Some((1, 2))).is_ok());
        let refusal = numbered(&place(), &(most + "\n"), None).unwrap_err().0;
        assert_eq!(refusal, "File /memories/notes.txt exceeds maximum line limit of 999,999 lines.");
    }

    #[test]
    fn a_match_must_be_the_only_one() {
        assert_eq!(only_match(&place(), "a\nb\nc", "c"), Ok(2));
        assert_eq!(
            only_match(&place(), "Hello\nMiddle\nHello", "Hello").unwrap_err().0,
            "No replacement was performed. Multiple occurrences of old_str `Hello` in lines: 1, 3. Please ensure it is unique"
        );
        assert_eq!(
            only_match(&place(), "Hello", "Bye").unwrap_err().0,
            "No replacement was performed, old_str `Bye` did not appear verbatim in /memories/notes.txt."
        );
    }

    #[test]
    fn many_matches_are_told_in_short() {
        let refusal = only_match(&place(), "a a\na", "a").unwrap_err().0;
        assert!(refusal.contains("in lines: 1, 2. Please"), "a line is named once: {refusal}");
        let refusal = only_match(&place(), "a a", "a").unwrap_err().0;
        assert!(refusal.contains("in lines: 1. Please"), "{refusal}");
        // One pass: counting the lines of each match from the first on would take minutes.
        let refusal = only_match(&place(), &"a\n".repeat(120_000), "a").unwrap_err().0;
        assert!(refusal.ends_with("19, 20 and 119980 more. Please ensure it is unique"), "{refusal}");
        assert!(refusal.len() < 300, "{refusal}");
    }

    #[test]
    fn a_line_goes_in_after_so_many() {
        for (text, line, expected) in [
            ("a\nb", 0, "x\na\nb\n"),
            ("a\nb", 1, "a\nx\nb\n"),
            ("a\nb", 2, "a\nb\nx\n"),
            ("a\nb\n", 2, "a\nb\nx\n"),
            ("", 0, "x\n"),
            ("a\n\n", 2, "a\n\nx\n"),
        ] {
            assert_eq!(with_line(text, line, "x\n").unwrap(), expected, "{text:?} {line}");
        }
        for line in [-1, 3] {
            let refusal = with_line("a\nb\n", line, "x").unwrap_err().0;
            assert_eq!(
                refusal,
                format!(
                    "Error: Invalid `insert_line` parameter: {line}. It should be within the range of lines of the file: [0, 2]"
                )
            );
        }
    }

    #[test]
    fn a_snippet_shows_two_lines_on_either_side() {
        let text = "a\nb\nc\nd\ne\nf";
        assert_eq!(snippet(text, 3), "     2\tb\n     3\tc\n     4\td\n     5\te\n     6\tf");
        assert_eq!(snippet(text, 0), "     1\ta\n     2\tb\n     3\tc");
        assert_eq!(snippet("", 0), "     1\t");
    }

    proptest! {
        #[test]
        fn inserting_keeps_every_other_line(
            lines in prop::collection::vec("[a-z]{1,4}", 0..8), at in 0_usize..9
        ) {
            let at = at.min(lines.len());
            let text = lines.join("\n");
            let inserted = with_line(&text, at as i64, "X").unwrap();
            let mut after: Vec<&str> = inserted.strip_suffix('\n').unwrap().split('\n').collect();
            prop_assert_eq!(after.remove(at), "X");
            prop_assert_eq!(after, lines);
        }
    }
}
