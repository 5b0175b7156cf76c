//! ISO 8601 durations, as retention periods are written: `P90D`, `PT24H`, `P1Y`, `P2W`.

const SECOND: f64 = 1_000_000.0;
const DAY: f64 = 86_400.0 * SECOND;

/// A positive length of time in microseconds. A year counts 365 days and a month 30.
///
/// `None` when the text is no ISO 8601 duration, or is zero or negative.
pub fn parse(text: &str) -> Option<i64> {
    let text = text.trim();
    let rest = text.strip_prefix(['P', 'p'])?;
    let (date, time) = match rest.split_once(['T', 't']) {
        Some((_, "")) => return None,
        Some((date, time)) => (date, time),
        None => (rest, ""),
    };
    if date.is_empty() && time.is_empty() {
        return None;
    }
    let date = sum(date, &[('Y', 365.0 * DAY), ('M', 30.0 * DAY), ('W', 7.0 * DAY), ('D', DAY)])?;
    let time = sum(time, &[('H', 3600.0 * SECOND), ('M', 60.0 * SECOND), ('S', SECOND)])?;
    let micros = date + time;
    (micros >= 1.0 && micros < i64::MAX as f64).then_some(micros as i64)
}

/// Adds up `12Y3M…`: each unit at most once and in order, a fraction only in the last.
fn sum(mut text: &str, units: &[(char, f64)]) -> Option<f64> {
    let mut units = units.iter();
    let mut total = 0.0;
    while !text.is_empty() {
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.' && c != ',')?;
        let (number, after) = text.split_at(end);
        let designator = after.chars().next()?.to_ascii_uppercase();
        let (_, micros) = units.by_ref().find(|(name, _)| *name == designator)?;
        text = &after[1..];
        let fractional = number.contains(['.', ',']);
        if number.is_empty() || (fractional && !text.is_empty()) {
            return None;
        }
        total += number.replace(',', ".").parse::<f64>().ok()? * micros;
    }
    Some(total)
}

#[cfg(test)]
mod tests {
    use super::parse;

    const HOUR: i64 = 3_600_000_000;

    #[test]
    fn durations_of_every_unit() {
        for (text, hours) in [
            ("P90D", 90 * 24),
            ("PT24H", 24),
            ("P1Y", 365 * 24),
            ("P1M", 30 * 24),
            ("P2W", 14 * 24),
            ("P1DT12H", 36),
            ("PT90M", 0),
            ("p1d", 24),
        ] {
            let expected = if text == "PT90M" { HOUR * 3 / 2 } else { hours * HOUR };
            assert_eq!(parse(text), Some(expected), "{text}");
        }
        assert_eq!(parse("PT0.5S"), Some(500_000));
        assert_eq!(
            parse("P1Y2M3W4DT5H6M7S").map(|m| m / 1_000_000),
            Some((365 + 60 + 21 + 4) * 86_400 + 5 * 3600 + 367)
        );
    }

    #[test]
    fn what_is_no_positive_duration() {
        for text in [
            "",
            "P",
            "PT",
            "P1",
            "1D",
            "90 days",
            "PT0S",
            "P0D",
            "-P1D",
            "P-1D",
            "P1H",
            "PT1D",
            "P1D1Y",
            "P1.5D2W",
            "P.D",
            "P1DT",
            "P9999999999999999999Y",
            "P1é",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
