//! From the portable SQL of the repositories to SQLite's.

/// `$n` becomes `?n`, and `= ANY($n)` becomes `IN rarray(?n)`. Text in quotes is left alone.
pub(super) fn translate(sql: &str) -> String {
    let mut native = String::with_capacity(sql.len() + 16);
    let mut rest = sql;
    while let Some(at) = rest.find(['\'', '$']) {
        let (before, found) = rest.split_at(at);
        if let Some(literal) = found.strip_prefix('\'') {
            // A doubled quote inside a literal looks like two literals in a row, which copies the same text.
            let end = literal.find('\'').map_or(found.len(), |close| close + 2);
            native.push_str(before);
            native.push_str(&found[..end]);
            rest = &found[end..];
            continue;
        }
        let digits = found[1..].bytes().take_while(u8::is_ascii_digit).count();
        let (number, after) = found[1..].split_at(digits);
        let array = before
            .trim_end()
            .strip_suffix('(')
            .and_then(ends_with_any)
            .zip(after.trim_start().strip_prefix(')'));
        if let Some((before, after)) = array {
            native.push_str(before);
            native.push_str("IN rarray(?");
            native.push_str(number);
            native.push(')');
            rest = after;
        } else {
            native.push_str(before);
            native.push('?');
            native.push_str(number);
            rest = after;
        }
    }
    native.push_str(rest);
    native
}

/// What stands before `= ANY`, if the text ends so.
fn ends_with_any(text: &str) -> Option<&str> {
    let text = text.trim_end();
    let split = text.len().checked_sub(3)?;
    let (before, any) = (text.get(..split)?, text.get(split..)?);
    any.eq_ignore_ascii_case("any").then(|| before.trim_end().strip_suffix('='))?
}

#[cfg(test)]
mod tests {
    use super::translate;

    #[test]
    fn placeholders_keep_their_numbers() {
        assert_eq!(translate("SELECT $2, $1 WHERE a = $10"), "SELECT ?2, ?1 WHERE a = ?10");
    }

    #[test]
    fn any_becomes_an_array() {
        assert_eq!(
            translate("SELECT 1 FROM t WHERE id = ANY($1) AND g =any( $12 ) AND x = $3"),
            "SELECT 1 FROM t WHERE id IN rarray(?1) AND g IN rarray(?12) AND x = ?3"
        );
    }

    #[test]
    fn literals_are_left_alone() {
        let sql = "SELECT '$1 = ANY($2)', 'it''s $3', 'π' WHERE a = $1";
        assert_eq!(translate(sql), "SELECT '$1 = ANY($2)', 'it''s $3', 'π' WHERE a = ?1");
    }
}
