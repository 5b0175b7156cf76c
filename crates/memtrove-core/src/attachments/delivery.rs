//! How bytes that users uploaded are served to a browser.
//!
//! Anybody can upload anything under any name, and it comes from the same origin as the API: a page that ran there could do
//! whatever its reader may do. So whatever a browser would run, or might take for something else than we do, is handed over
//! as bytes to be saved.

use super::UNKNOWN_CONTENT_TYPE;
use std::fmt::Write as _;

/// What browsers run as a page, as a part of one, or with something they start for it, beyond what [`is_active`] tells by
/// the name.
const ACTIVE: &[&str] = &[
    "application/hta",
    "application/java-archive",
    "application/wasm",
    "application/x-shockwave-flash",
    "text/cache-manifest",
    "text/css",
    "text/x-component",
    "text/xsl",
];

/// The headers that bytes go out with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// `Content-Type`.
    pub content_type: String,
    /// `Content-Disposition`.
    pub disposition: String,
}

/// How a file of this type and name is given to a browser: shown where that is harmless whoever gives it, also an object store
/// that forbids no guessing; else to be saved, and as mere bytes if it could be run.
pub fn deliver(content_type: &str, filename: Option<&str>) -> Delivery {
    let passive = essence(content_type).filter(|essence| !is_active(essence));
    let (content_type, how) = match passive.as_deref() {
        Some(essence) if is_shown(essence) => (content_type, "inline"),
        Some(_) => (content_type, "attachment"),
        None => (UNKNOWN_CONTENT_TYPE, "attachment"),
    };
    Delivery { content_type: content_type.to_owned(), disposition: disposition(how, filename) }
}

/// `type/subtype` in lower case, of a media type that every reader reads alike; `None` for others. Browsers take the last of
/// several types between commas, so one with a comma is not the one it begins with.
pub(super) fn essence(content_type: &str) -> Option<String> {
    let mut parts = content_type.split(';').map(|part| part.trim_matches(' '));
    let (kind, subtype) = parts.next()?.split_once('/')?;
    let parameters = parts.all(|parameter| {
        let value = |value: &str| is_token(value) || is_quoted(value);
        parameter.split_once('=').is_some_and(|(name, given)| is_token(name) && value(given))
    });
    let is_type = is_token(kind) && is_token(subtype) && parameters;
    is_type.then(|| format!("{kind}/{subtype}").to_ascii_lowercase())
}

fn is_token(text: &str) -> bool {
    let part = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(part)
}

fn is_quoted(text: &str) -> bool {
    let inner = text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    let part = |byte: u8| matches!(byte, b' '..=b'~') && !b"\",\\".contains(&byte);
    inner.is_some_and(|inner| inner.bytes().all(part))
}

/// Whether a browser shows it by itself and takes it for nothing else. PDF is not: its viewers run scripts of their own, and do
/// not open in the sandbox that bytes are put into.
fn is_shown(essence: &str) -> bool {
    let kind = essence.split('/').next().unwrap_or_default();
    matches!(kind, "image" | "audio" | "video") || matches!(essence, "text/plain" | "application/json")
}

/// Whether a browser would run what is in it.
fn is_active(essence: &str) -> bool {
    let (kind, subtype) = essence.split_once('/').unwrap_or((essence, ""));
    let xml = subtype == "xml" || subtype.starts_with("xml-") || subtype.ends_with("+xml");
    // The family of scripts has a dozen names, and all of them say so.
    let script = subtype.contains("script");
    // Parts of these have types of their own.
    let enclosing = matches!(kind, "multipart" | "message");
    xml || script || enclosing || subtype.contains("html") || ACTIVE.contains(&essence)
}

/// The header of RFC 6266: the name once for everybody in letters that need no quoting and, if it has others, once as it is.
/// Neither can end the header or the name early.
fn disposition(how: &str, filename: Option<&str>) -> String {
    let name: String = filename.unwrap_or_default().chars().map(harmless).collect();
    if name.is_empty() {
        return how.to_owned();
    }
    let ascii: String = name.chars().map(|c| if is_plain(c) { c } else { '_' }).collect();
    let mut header = format!("{how}; filename=\"{ascii}\"");
    if ascii != name {
        header.push_str("; filename*=UTF-8''");
        for byte in name.bytes() {
            if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
                header.push(char::from(byte));
            } else {
                // Writing to a `String` cannot fail.
                let _ = write!(header, "%{byte:02X}");
            }
        }
    }
    header
}

/// Without control characters and those that turn the direction of writing: a name that ends in `gpj.exe` must not be shown as
/// one that ends in `exe.jpg`.
fn harmless(c: char) -> char {
    let turns = matches!(
        c,
        '\u{061C}' | '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}'
    );
    if c.is_control() || turns || matches!(c, '/' | '\\') { '_' } else { c }
}

fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || " !#$&()+,-.@[]^_`{}~".contains(c)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shown(content_type: &str) -> (String, String) {
        let Delivery { content_type, disposition } = deliver(content_type, None);
        (content_type, disposition)
    }

    #[test]
    fn harmless_types_are_shown_as_they_are() {
        for passive in [
            "image/png",
            "text/plain",
            "text/plain; charset=utf-8",
            "text/plain;charset=\"utf-8\"",
            "audio/ogg; codecs=opus",
            "video/mp4; codecs=\"avc1.4d002a\"",
            "application/json",
        ] {
            assert_eq!(shown(passive), (passive.to_owned(), "inline".to_owned()));
        }
    }

    #[test]
    fn what_no_browser_is_known_to_show_safely_is_to_be_saved_as_what_it_is() {
        for other in [
            "application/pdf",
            "application/octet-stream",
            "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
            "application/zip",
            "text/csv",
            "text/markdown; charset=utf-8",
            "text/vtt",
            "text/unheard-of",
            "font/woff2",
            "model/gltf-binary",
            "chemical/x-pdb",
        ] {
            assert_eq!(shown(other), (other.to_owned(), "attachment".to_owned()));
        }
    }

    #[test]
    fn what_a_browser_would_run_is_only_to_be_saved() {
        for active in [
            "text/html",
            "TEXT/HTML; charset=utf-8",
            "application/xhtml+xml",
            "text/x-server-parsed-html",
            "image/svg+xml",
            "text/xml",
            "application/xml",
            "application/xml-dtd",
            "application/rss+xml",
            "text/xsl",
            "text/css",
            "text/javascript",
            "text/javascript1.5",
            "application/x-javascript",
            "application/ecmascript",
            "text/jscript",
            "application/hta",
            "application/x-shockwave-flash",
            "multipart/x-mixed-replace",
            "message/rfc822",
        ] {
            let delivery = deliver(active, Some("a.txt"));
            assert_eq!(delivery.content_type, UNKNOWN_CONTENT_TYPE, "{active}");
            assert_eq!(delivery.disposition, "attachment; filename=\"a.txt\"", "{active}");
        }
    }

    #[test]
    fn what_readers_could_read_differently_is_only_to_be_saved() {
        for odd in [
            "",
            "text",
            "text/",
            "/html",
            "image/png, text/html",
            "image/png;a=b,text/html",
            "image/png;a=\"b,text/html\"",
            "image/png\r\nX-Evil: 1",
            "image/png\u{0}",
            "image/png;a=\"b\\\"",
            "image/p ng",
            "image/png;",
            "image/png;a",
            "image/größe",
            "*",
            "image/png; a=b c",
        ] {
            let saved = (UNKNOWN_CONTENT_TYPE.to_owned(), "attachment".to_owned());
            assert_eq!(shown(odd), saved, "{odd}");
        }
    }

    #[test]
    fn names_beyond_ascii_are_given_twice() {
        assert_eq!(
            deliver("image/png", Some("naïve \"x\".png")).disposition,
            "inline; filename=\"na_ve _x_.png\"; filename*=UTF-8''na%C3%AFve%20%22x%22.png"
        );
    }

    #[test]
    fn a_name_does_not_look_like_another() {
        assert_eq!(
            deliver("image/png", Some("\u{202e}gpj.exe")).disposition,
            "inline; filename=\"_gpj.exe\""
        );
    }

    proptest! {
        #[test]
        fn no_name_gets_out_of_its_header(name in "\\PC*|[\\x00-\\x7f]*") {
            let header = deliver("image/png", Some(&name)).disposition;
            prop_assert!(header.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic()));
            prop_assert!(matches!(header.matches('"').count(), 0 | 2));
            let (_, whole) = header.split_once("filename*=UTF-8''").unwrap_or_default();
            prop_assert!(whole.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~%".contains(&byte)));
        }
    }
}
