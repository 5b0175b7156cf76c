//! "Did you mean": the known key that is closest to a mistyped one.

/// The key among `known` that `wrong` most likely stands for, if any is close.
///
/// Keys are dotted paths. One with the same last part counts as close wherever it is: `listen` for `server.listen`.
pub(super) fn closest<'a>(wrong: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let last = |key: &'a str| key.rsplit('.').next().unwrap_or(key);
    let name = wrong.rsplit('.').next().unwrap_or(wrong);
    known
        .map(|key| {
            let in_place = distance(wrong, key);
            let elsewhere = distance(name, last(key)) * 2 + 1;
            (in_place.min(elsewhere), key)
        })
        .min_by_key(|(distance, _)| *distance)
        .filter(|(distance, _)| *distance <= 2.max(name.len() / 3))
        .map(|(_, key)| key)
}

/// How many letters must be changed, added, dropped or swapped with their neighbour to get from `a` to `b`.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows = vec![vec![0; b.len() + 1]; a.len() + 1];
    rows[0] = (0..=b.len()).collect();
    for (i, row) in rows.iter_mut().enumerate() {
        row[0] = i;
    }
    for i in 1..=a.len() {
        for j in 1..=b.len() {
            let change = usize::from(a[i - 1] != b[j - 1]);
            let mut best = (rows[i - 1][j] + 1).min(rows[i][j - 1] + 1).min(rows[i - 1][j - 1] + change);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            rows[i][j] = best;
        }
    }
    rows[a.len()][b.len()]
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
