//! Texts that are longer than a model reads.

use super::Vector;
use super::vector::normalise;

/// The parts of a text, none longer than this many characters, cut between words where there are any. Blank parts are left
/// out; together the others are the whole text.
pub(super) fn split(text: &str, max_chars: usize) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        // Bytes are at least as many as characters: most texts are not counted.
        let end = if rest.len() <= max_chars { rest.len() } else { end_of_window(rest, max_chars) };
        parts.push(rest[..end].trim_end());
        rest = rest[end..].trim_start();
    }
    parts
}

/// Where the first window ends: at the last gap of its second half, or in the midst of a word that is that long.
fn end_of_window(text: &str, max_chars: usize) -> usize {
    let mut gap = None;
    for (count, (at, character)) in text.char_indices().enumerate() {
        if count > max_chars / 2 && character.is_whitespace() {
            gap = Some(at);
        }
        if count == max_chars.max(1) {
            return gap.unwrap_or(at);
        }
    }
    text.len()
}

/// The vector of a whole text: the mean of its parts', each counting by its length, so that a short tail does not outweigh
/// what comes before it.
pub(super) fn join(parts: &[&str], vectors: &[Vector], dimensions: usize) -> Vector {
    if let [vector] = vectors {
        return vector.clone();
    }
    let mut sum = vec![0.0; dimensions];
    for (part, vector) in parts.iter().zip(vectors) {
        let weight = part.chars().count() as f32;
        for (sum, value) in sum.iter_mut().zip(vector) {
            *sum += weight * value;
        }
    }
    normalise(&mut sum);
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn texts_are_cut_between_words() {
        assert_eq!(split("short", 10), ["short"]);
        assert_eq!(split("one two three four", 9), ["one two", "three", "four"]);
        assert_eq!(split("abcdefghijkl", 5), ["abcde", "fghij", "kl"]);
        assert_eq!(split("日本語のテキスト", 3), ["日本語", "のテキ", "スト"]);
        assert_eq!(split(" \n ", 3), [""; 0]);
    }

    #[test]
    fn longer_parts_count_for_more() {
        let whole = join(&["aaa", "b"], &[vec![1.0, 0.0], vec![0.0, 1.0]], 2);
        assert!((whole[0] / whole[1] - 3.0).abs() < 1e-6, "{whole:?}");
        assert_eq!(join(&[], &[], 2), [0.0, 0.0]);
    }

    proptest! {
        #[test]
        fn nothing_but_space_is_lost_and_no_part_is_too_long(text in "[a-c é語\n]{0,60}", max in 1usize..12) {
            let parts = split(&text, max);
            prop_assert!(parts.iter().all(|part| (1..=max).contains(&part.chars().count())), "{:?}", parts);
            let visible = |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<String>();
            prop_assert_eq!(visible(&parts.concat()), visible(&text));
        }
    }
}
