//! What may be a key: something that means the same in a directory, in S3 and in Azure, and leads out of none.

use crate::BlobError;

const LONGEST: usize = 512;
const MOST_NAMES: usize = 8;

pub(crate) fn check(key: &str) -> Result<(), BlobError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let is_name = |name: &str| !name.is_empty() && !name.starts_with('.') && name.chars().all(plain);
    if key.len() <= LONGEST && key.split('/').count() <= MOST_NAMES && key.split('/').all(is_name) {
        return Ok(());
    }
    Err(BlobError::Invalid(format!("{key:?} cannot be the key of a blob")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_names_with_slashes_between_them() {
        for key in ["a", "0193/0f/6a1c-77", "a.b_c-D/9"] {
            assert_eq!(check(key), Ok(()), "{key}");
        }
    }

    #[test]
    fn no_key_leads_out_of_its_store_or_to_its_hidden_files() {
        let long = "a".repeat(LONGEST + 1);
        let deep = ["a"; MOST_NAMES + 1].join("/");
        for key in [
            "",
            "/",
            "/a",
            "a/",
            "a//b",
            ".",
            "..",
            "../a",
            "a/../b",
            ".uploads/x",
            "a\\b",
            "a b",
            "ä",
            "a\0",
            "a%2fb",
            "a?b",
            &long,
            &deep,
        ] {
            assert!(matches!(check(key), Err(BlobError::Invalid(_))), "{key}");
        }
    }
}
