//! A form as it comes in: part by part, piece by piece, and never more of it than a file may have.

use super::incoming::{Incoming, Stopped, Watch};
use super::uploads::UploadPace;
use axum::extract::multipart::{Field, MultipartError};
use axum::extract::{DefaultBodyLimit, FromRequest, Multipart, Request};
use bytes::Bytes;
use http::HeaderMap;
use http::header::{AsHeaderName, CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_TYPE};
use memtrove_core::{Error, Result};
use percent_encoding::percent_decode_str;

/// What may surround a file: boundaries, the heads of parts, and other fields, which are passed over.
const AROUND: u64 = 1024 * 1024;

/// Whether a request brings a form.
pub(super) fn is_form(headers: &HeaderMap) -> bool {
    text(headers, CONTENT_TYPE).is_some_and(|text| {
        let essence = text.split(';').next().unwrap_or_default();
        essence.trim().eq_ignore_ascii_case("multipart/form-data")
    })
}

/// A form.
pub(super) struct Form {
    parts: Multipart,
    watch: Watch,
    pace: UploadPace,
}

impl Form {
    /// The form that a request brings, with a file of at most so many bytes in it.
    pub(super) async fn of(mut request: Request, max_bytes: u64) -> Result<Self> {
        let limit = max_bytes.saturating_add(AROUND);
        let length = text(request.headers(), CONTENT_LENGTH).and_then(|text| text.parse().ok());
        let watch = Incoming::limit(&mut request, limit);
        if let Some(length) = length.filter(|length| *length > limit) {
            return Err(Error::file_too_large(max_bytes, length));
        }
        // Ours takes its place.
        DefaultBodyLimit::disable().apply(&mut request);
        match Multipart::from_request(request, &()).await {
            Ok(parts) => Ok(Self { parts, watch, pace: UploadPace::default() }),
            Err(_) => Err(Error::bad_request("the Content-Type of a form must name its boundary")),
        }
    }

    /// The next part, once the one before it was read to its end.
    pub(super) async fn next(&mut self) -> Result<Option<Part<'_>>> {
        let Self { parts, watch, pace } = self;
        let field = read(watch, pace, parts.next_field()).await?;
        Ok(field.map(|field| Part { head: PartHead::of(field.headers()), field, watch, pace }))
    }
}

/// Waits for something that is read from the body.
async fn read<T>(
    watch: &Watch,
    pace: &mut UploadPace,
    reading: impl Future<Output = Result<T, MultipartError>>,
) -> Result<T> {
    pace.wait(reading).await?.inspect(|_| watch.progress()).map_err(|_| match watch.stopped() {
        Some(Stopped::TooLong(max_bytes)) => Error::too_large(max_bytes, None),
        Some(Stopped::Hoarded) => Error::bad_request("the head of a part is too long"),
        None => Error::bad_request("the body is not a whole form: it ends early, or is written wrongly"),
    })
}

/// A part of a form.
pub(super) struct Part<'a> {
    /// What it says of itself.
    pub(super) head: PartHead,
    field: Field<'a>,
    watch: &'a Watch,
    pace: &'a mut UploadPace,
}

impl Part<'_> {
    /// The next piece of it.
    pub(super) async fn chunk(&mut self) -> Result<Option<Bytes>> {
        let piece = read(self.watch, self.pace, self.field.chunk()).await?;
        Ok(piece.inspect(|piece| self.pace.came(piece.len())))
    }

    /// Reads it to its end for nothing.
    pub(super) async fn pass_over(mut self) -> Result<()> {
        while self.chunk().await?.is_some() {}
        Ok(())
    }
}

/// What a part says of itself.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct PartHead {
    /// The name of the field.
    pub(super) name: String,
    /// The name of the file, if it has one.
    pub(super) filename: Option<String>,
    /// Its media type, if it has one.
    pub(super) content_type: Option<String>,
}

impl PartHead {
    fn of(headers: &HeaderMap) -> Self {
        let mut head = Self { content_type: text(headers, CONTENT_TYPE), ..Self::default() };
        let disposition = text(headers, CONTENT_DISPOSITION).unwrap_or_default();
        let mut plain = None;
        for (name, value) in parameters(&disposition) {
            match name.to_ascii_lowercase().as_str() {
                "name" => head.name = value,
                "filename" => plain = Some(value),
                "filename*" => head.filename = extended(&value),
                _ => {}
            }
        }
        head.filename = head.filename.or(plain).filter(|name| !name.is_empty());
        head
    }
}

/// The text of a header. What is not UTF-8 says nothing.
fn text(headers: &HeaderMap, name: impl AsHeaderName) -> Option<String> {
    let value = headers.get(name)?;
    std::str::from_utf8(value.as_bytes()).ok().map(|text| text.trim().to_owned())
}

/// The parameters of a `Content-Disposition`, in order.
fn parameters(disposition: &str) -> Vec<(&str, String)> {
    let mut found = Vec::new();
    let mut rest = disposition.split_once(';').map_or("", |(_, rest)| rest);
    while let Some((name, after)) = rest.split_once('=') {
        let (value, end) = value(after.trim_start());
        found.push((name.trim_matches([' ', '\t', ';']), value));
        rest = end;
    }
    found
}

/// A value and what comes after it. Senders agree that a quote in a name is written `\"`, and on no other escape: most of
/// them mean a lone backslash as it stands.
fn value(text: &str) -> (String, &str) {
    let Some(quoted) = text.strip_prefix('"') else {
        let (value, rest) = text.split_at(text.find(';').unwrap_or(text.len()));
        return (value.trim_end().to_owned(), rest);
    };
    let mut value = String::new();
    let mut characters = quoted.char_indices().peekable();
    while let Some((at, character)) = characters.next() {
        match (character, characters.peek()) {
            ('"', _) => return (value, &quoted[at + 1..]),
            ('\\', Some((_, escaped @ ('"' | '\\')))) => {
                value.push(*escaped);
                characters.next();
            }
            (other, _) => value.push(other),
        }
    }
    (value, "")
}

/// A name as RFC 8187 writes it: `UTF-8''gr%C3%B6%C3%9Fe.png`.
fn extended(value: &str) -> Option<String> {
    let mut parts = value.splitn(3, '\'');
    let (charset, _language, encoded) = (parts.next()?, parts.next()?, parts.next()?);
    if !charset.eq_ignore_ascii_case("utf-8") {
        return None;
    }
    percent_decode_str(encoded).decode_utf8().ok().map(|name| name.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn head(disposition: &str) -> (String, Option<String>) {
        let value = HeaderValue::from_bytes(disposition.as_bytes()).unwrap();
        let PartHead { name, filename, .. } =
            PartHead::of(&HeaderMap::from_iter([(CONTENT_DISPOSITION, value)]));
        (name, filename)
    }

    #[test]
    fn a_part_says_its_name_and_that_of_its_file() {
        for (disposition, filename) in [
            (r#"form-data; name="file""#, None),
            (r#"form-data; name="file"; filename="""#, None),
            (r#"form-data; name=file; filename=a.txt"#, Some("a.txt")),
            (r#"form-data; filename="a.txt"; name="file""#, Some("a.txt")),
            (r#"FORM-DATA;NAME="file";FileName="a; name=b.txt""#, Some("a; name=b.txt")),
            (r#"form-data; name="file"; filename="a\"b\\c.txt""#, Some(r#"a"b\c.txt"#)),
            (r#"form-data; name="file"; filename="C:\fakepath\x.txt""#, Some(r"C:\fakepath\x.txt")),
            (r#"form-data; name="file"; filename="größe.txt""#, Some("größe.txt")),
            (r#"form-data; name="file"; filename*=UTF-8''gr%C3%B6%C3%9Fe.txt"#, Some("größe.txt")),
            (
                r#"form-data; name="file"; filename*=utf-8'de'%e2%82%ac.txt; filename="EUR.txt""#,
                Some("€.txt"),
            ),
            (r#"form-data; name="file"; filename="EUR.txt"; filename*=UTF-8''%e2%82%ac.txt"#, Some("€.txt")),
            (r#"form-data; name="file"; filename="x"; filename*=latin1''%e4.txt"#, Some("x")),
            (r#"form-data; name="file"; filename="x"; filename*=UTF-8''%ff"#, Some("x")),
            (r#"form-data; name="file"; filename*=nonsense"#, None),
        ] {
            assert_eq!(head(disposition), ("file".to_owned(), filename.map(str::to_owned)), "{disposition}");
        }
    }

    #[test]
    fn the_name_of_a_file_is_not_the_name_of_the_part() {
        assert_eq!(head(r#"form-data; filename="name=file""#), (String::new(), Some("name=file".to_owned())));
        assert_eq!(head("form-data"), (String::new(), None));
        assert_eq!(head(""), (String::new(), None));
        assert_eq!(head(r#"form-data; name="fi"#), ("fi".to_owned(), None));
    }

    #[test]
    fn a_form_is_told_by_its_media_type() {
        let with = |value| HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(value))]);
        assert!(is_form(&with("Multipart/Form-Data; boundary=x")));
        assert!(!is_form(&with("multipart/mixed; boundary=x")));
        assert!(!is_form(&with("application/json")));
        assert!(!is_form(&HeaderMap::new()));
    }
}
