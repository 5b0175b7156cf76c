//! How bytes that somebody else brought are given to a browser.
//!
//! A page that ran on the service's own origin could do what its reader may do, so whatever a browser would run is handed
//! over as a file to be saved.

use super::UNKNOWN_CONTENT_TYPE;
use std::fmt::Write as _;

/// The headers that bytes go out with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// `Content-Type`.
    pub content_type: String,
    /// `Content-Disposition`.
    pub disposition: String,
}

/// How a file of this type and name is given to a browser.
pub fn deliver(content_type: &str, filename: Option<&str>) -> Delivery {
    let active = is_active(content_type);
    let kind = if active { "attachment" } else { "inline" };
    let content_type = if active { UNKNOWN_CONTENT_TYPE } else { content_type };
    Delivery { content_type: content_type.to_owned(), disposition: disposition(kind, filename) }
}

/// Whether a browser would run what is in it.
fn is_active(content_type: &str) -> bool {
    let essence = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let Some((kind, sub)) = essence.split_once('/') else { return true };
    let script =
        ["javascript", "ecmascript", "jscript", "livescript"].iter().any(|family| sub.contains(family));
    let markup = sub.ends_with("+xml") || ["xml", "html", "xsl", "xslt", "x-component"].contains(&sub);
    // Parts of these are pages again.
    let container = kind == "multipart" || kind == "message";
    script || markup || container || sub.contains("html") || sub == "x-shockwave-flash" || sub == "wasm"
}

/// The header of RFC 6266: the name once for everybody in letters that need no quoting, once as it is.
fn disposition(kind: &str, filename: Option<&str>) -> String {
    let Some(filename) = filename else { return kind.to_owned() };
    let plain: String = filename
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || " !#$&()+,-.@[]^_`{}~".contains(c) { c } else { '_' })
        .collect();
    let mut header = format!("{kind}; filename=\"{plain}\"");
    if plain != filename {
        header.push_str("; filename*=UTF-8''");
        for byte in filename.bytes() {
            if byte.is_ascii_alphanumeric() || b"!#$&+-.^_`|~".contains(&byte) {
                header.push(char::from(byte));
            } else {
                // Writing to a `String` cannot fail.
                let _ = write!(header, "%{byte:02X}");
            }
        }
    }
    header
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_a_browser_would_run_is_only_to_be_saved() {
        for active in [
            "text/html",
            "TEXT/HTML; charset=utf-8",
            "application/xhtml+xml",
            "image/svg+xml",
            "text/xml",
            "application/xml",
            "application/rss+xml",
            "text/xsl",
            "text/javascript",
            "application/x-javascript",
            "application/ecmascript",
            "text/jscript",
            "multipart/x-mixed-replace",
            "message/rfc822",
            "nonsense",
            "",
        ] {
            let delivery = deliver(active, Some("a.txt"));
            assert_eq!(delivery.content_type, UNKNOWN_CONTENT_TYPE, "{active}");
            assert_eq!(delivery.disposition, "attachment; filename=\"a.txt\"", "{active}");
        }
    }

    #[test]
    fn other_files_are_shown() {
        for passive in ["image/png", "text/plain; charset=utf-8", "application/pdf", "application/json"] {
            let delivery = deliver(passive, None);
            assert_eq!((delivery.content_type.as_str(), delivery.disposition.as_str()), (passive, "inline"));
        }
    }

    #[test]
    fn names_beyond_ascii_are_given_twice() {
        assert_eq!(
            deliver("image/png", Some("naïve \"x\".png")).disposition,
            "inline; filename=\"na_ve _x_.png\"; filename*=UTF-8''na%C3%AFve%20%22x%22.png"
        );
    }

    proptest! {
        #[test]
        fn no_name_gets_out_of_its_header(name in "\\PC*|[\\x00-\\x7f]*") {
            let header = deliver("image/png", Some(&name)).disposition;
            prop_assert!(header.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic()));
            prop_assert_eq!(header.matches('"').count(), 2);
            prop_assert_eq!(header.matches(';').count(), 1 + usize::from(header.contains("filename*=")));
        }
    }
}
