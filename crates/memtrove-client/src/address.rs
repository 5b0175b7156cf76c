//! Addresses: templates filled with names that may hold any character.

use crate::{Error, Result};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::Url;

/// What stands in an address as it is: letters, digits and the four marks that RFC 3986 does not reserve.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The address of an operation: the base, and the template with its braces filled in this order.
pub(crate) fn fill(base: &Url, template: &str, names: &[&str]) -> Result<Url> {
    let mut names = names.iter();
    let mut path = base.path().trim_end_matches('/').to_owned();
    for segment in template.split('/').skip(1) {
        path.push('/');
        match segment {
            // The path of a file is many segments; it should stay readable in a log.
            "{path}" => {
                let file = next(&mut names, template)?;
                let segments: Result<Vec<_>> = file.split('/').map(encode).collect();
                path.push_str(&segments?.join("/"));
            }
            _ if segment.starts_with('{') => path.push_str(&encode(next(&mut names, template)?)?),
            _ => path.push_str(segment),
        }
    }
    let mut url = base.clone();
    url.set_path(&path);
    url.set_query(None);
    Ok(url)
}

fn next<'a>(names: &mut impl Iterator<Item = &'a &'a str>, template: &str) -> Result<&'a str> {
    names.next().copied().ok_or_else(|| Error::invalid(format!("{template} has more names than were given")))
}

fn encode(segment: &str) -> Result<String> {
    // An address with these is another address, however they are encoded.
    if matches!(segment, "" | "." | "..") {
        return Err(Error::invalid(format!("'{segment}' cannot be part of an address: name something else")));
    }
    Ok(utf8_percent_encode(segment, ENCODED).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(base: &str, template: &str, names: &[&str]) -> String {
        fill(&base.parse().unwrap(), template, names).unwrap().to_string()
    }

    #[test]
    fn every_segment_is_encoded_by_itself() {
        let url =
            filled("http://host", "/v1/tenants/{t}/users/{u}/files/{path}", &["a/b", "ü ?", "x y/50%/#.md"]);
        assert_eq!(url, "http://host/v1/tenants/a%2Fb/users/%C3%BC%20%3F/files/x%20y/50%25/%23.md");
    }

    #[test]
    fn a_base_may_have_a_path_of_its_own() {
        assert_eq!(
            filled("http://host/memtrove/?x=1", "/v1/memories:list", &[]),
            "http://host/memtrove/v1/memories:list"
        );
        assert_eq!(filled("http://host/memtrove", "/", &[]), "http://host/memtrove/");
    }

    #[test]
    fn what_would_lead_elsewhere_is_refused() {
        for name in ["", ".", ".."] {
            let url = fill(&"http://host".parse().unwrap(), "/v1/memories/{id}", &[name]);
            assert!(matches!(url, Err(Error::InvalidInput(_))), "{url:?}");
        }
    }
}
