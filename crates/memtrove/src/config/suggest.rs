//! "Did you mean": the known key that is closest to a mistyped one.

use strsim::osa_distance;

/// The key among `known` that `wrong` most likely stands for, if any is close.
///
/// Keys are dotted paths. One with the same last part counts as close wherever it is: `listen` for `server.listen`.
pub(super) fn closest<'a>(wrong: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let last = |key: &'a str| key.rsplit('.').next().unwrap_or(key);
    let name = wrong.rsplit('.').next().unwrap_or(wrong);
    known
        .map(|key| {
            let in_place = osa_distance(wrong, key);
            let elsewhere = osa_distance(name, last(key)) * 2 + 1;
            (in_place.min(elsewhere), key)
        })
        .min_by_key(|(distance, _)| *distance)
        .filter(|(distance, _)| *distance <= 2.max(name.len() / 3))
        .map(|(_, key)| key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closest_key_is_found() {
        let known = ["server.listen", "server.data_dir", "store.url", "auth.mode", "auth.jwt.issuer"];
        let check = |wrong: &str, right: Option<&str>| {
            assert_eq!(closest(wrong, known.iter().copied()), right, "{wrong}");
        };
        check("server.listne", Some("server.listen"));
        check("server.datadir", Some("server.data_dir"));
        check("listen", Some("server.listen"));
        check("auth.issuer", Some("auth.jwt.issuer"));
        check("servre.listen", Some("server.listen"));
        check("database.url", Some("store.url"));
        check("colour", None);
    }
}
