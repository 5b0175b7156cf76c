//! Which bytes of a file an answer has to carry: the conditions and the range of a request, held against its ETag.

use http::HeaderMap;
use http::header::{AsHeaderName, IF_NONE_MATCH, IF_RANGE, RANGE};
use std::ops::Range;

/// What of a file was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RequestedRange {
    /// All of it.
    Whole,
    /// These bytes.
    Part(Range<u64>),
    /// Bytes that it does not have.
    Nothing,
}

/// Whether the caller says that it has these bytes already.
pub(super) fn is_known(headers: &HeaderMap, etag: &str) -> bool {
    let tags = headers.get_all(IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    tags.flat_map(|list| list.split(',')).map(str::trim).any(|tag| {
        // Whether a tag is weak does not matter here: what is the same byte by byte is the same in meaning.
        tag == "*" || tag.strip_prefix("W/").unwrap_or(tag) == etag
    })
}

/// What the caller asked for. Whatever is not exactly one range is as if it had not been said, which is always a right
/// answer; a range of another version (`If-Range`) is none of this one.
pub(super) fn requested(headers: &HeaderMap, etag: &str, size: u64) -> RequestedRange {
    let same_version = match headers.get(IF_RANGE) {
        None => true,
        Some(_) => only(headers, IF_RANGE) == Some(etag),
    };
    if !same_version {
        return RequestedRange::Whole;
    }
    only(headers, RANGE).and_then(|text| one_range(text, size)).unwrap_or(RequestedRange::Whole)
}

/// The text of a header that was sent once.
fn only(headers: &HeaderMap, name: impl AsHeaderName) -> Option<&str> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (Some(value), None) => value.to_str().ok().map(str::trim),
        _ => None,
    }
}

/// By hand: `http-range-header` refuses what RFC 9110 allows: a suffix longer than the file, another case of the unit, numbers
/// that do not fit. It also does not tell a range beyond the file from one that is badly written, and only that is 416.
fn one_range(text: &str, size: u64) -> Option<RequestedRange> {
    let (unit, range) = text.split_once('=')?;
    if !unit.trim().eq_ignore_ascii_case("bytes") {
        return None;
    }
    match range.trim().split_once('-')? {
        ("", last) => {
            let length = number(last)?.min(size);
            Some(part(size - length..size))
        }
        (first, "") => Some(part(number(first)?..size)),
        (first, last) => {
            let (first, last) = (number(first)?, number(last)?);
            (first <= last).then(|| part(first..last.saturating_add(1).min(size)))
        }
    }
}

fn part(range: Range<u64>) -> RequestedRange {
    if range.is_empty() { RequestedRange::Nothing } else { RequestedRange::Part(range) }
}

/// A number as ranges write it: digits alone. What no file can have is as much as can be said.
fn number(text: &str) -> Option<u64> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    const ETAG: &str = "\"abc\"";

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_static(value))).collect()
    }

    fn asked(range: &'static str, size: u64) -> RequestedRange {
        requested(&headers(&[("range", range)]), ETAG, size)
    }

    #[test]
    fn one_range_is_cut_to_the_file() {
        assert_eq!(asked("bytes=0-0", 10), RequestedRange::Part(0..1));
        assert_eq!(asked("bytes=2-4", 10), RequestedRange::Part(2..5));
        assert_eq!(asked("bytes=2-", 10), RequestedRange::Part(2..10));
        assert_eq!(asked("bytes=2-99", 10), RequestedRange::Part(2..10));
        assert_eq!(asked("bytes=-3", 10), RequestedRange::Part(7..10));
        assert_eq!(asked("bytes=-99", 10), RequestedRange::Part(0..10));
        assert_eq!(asked("BYTES=9-18446744073709551615", 10), RequestedRange::Part(9..10));
        assert_eq!(asked("bytes=0-99999999999999999999999", 10), RequestedRange::Part(0..10));
    }

    #[test]
    fn a_range_beyond_the_file_is_none_of_it() {
        for range in ["bytes=10-", "bytes=10-12", "bytes=-0", "bytes=99999999999999999999999-"] {
            assert_eq!(asked(range, 10), RequestedRange::Nothing, "{range}");
        }
        for range in ["bytes=0-", "bytes=0-0", "bytes=-1"] {
            assert_eq!(asked(range, 0), RequestedRange::Nothing, "{range} of nothing");
        }
    }

    #[test]
    fn what_is_not_exactly_one_range_asks_for_the_whole() {
        for range in [
            "bytes=0-1,3-4",
            "bytes=4-2",
            "bytes=",
            "bytes=-",
            "bytes",
            "lines=0-1",
            "bytes=a-b",
            "bytes=+1-2",
            "bytes=1-2-3",
            "bytes= - ",
            "",
            "bytes=0x1-2",
            "bytes=1 -2",
        ] {
            assert_eq!(asked(range, 10), RequestedRange::Whole, "{range}");
        }
        let twice = headers(&[("range", "bytes=0-1"), ("range", "bytes=3-4")]);
        assert_eq!(requested(&twice, ETAG, 10), RequestedRange::Whole);
    }

    #[test]
    fn a_range_of_another_version_asks_for_the_whole() {
        let with = |tag| requested(&headers(&[("range", "bytes=0-1"), ("if-range", tag)]), ETAG, 10);
        assert_eq!(with("\"abc\""), RequestedRange::Part(0..2));
        for tag in ["\"other\"", "W/\"abc\"", "Wed, 21 Oct 2026 07:28:00 GMT", "*", "abc"] {
            assert_eq!(with(tag), RequestedRange::Whole, "{tag}");
        }
    }

    #[test]
    fn known_bytes_are_recognised_in_lists_and_weak_tags() {
        for tags in ["\"abc\"", "W/\"abc\"", "*", "\"x\", \"abc\"", "\"x\",W/\"abc\" ,\"y\""] {
            assert!(is_known(&headers(&[("if-none-match", tags)]), ETAG), "{tags}");
        }
        for tags in ["\"x\"", "abc", "", "W/abc", "\"abcd\"", "\"ABC\""] {
            assert!(!is_known(&headers(&[("if-none-match", tags)]), ETAG), "{tags}");
        }
        assert!(is_known(&headers(&[("if-none-match", "\"x\""), ("if-none-match", "\"abc\"")]), ETAG));
        assert!(!is_known(&HeaderMap::new(), ETAG));
    }
}
