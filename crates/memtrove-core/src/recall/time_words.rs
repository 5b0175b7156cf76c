//! When a query asks about: "yesterday", "last week", "in March 2024", "three weeks ago", "since Monday".
//!
//! A phrase that is understood becomes a window of time. Everything else changes nothing: "before the move" is no window, and
//! two phrases that do not overlap are none either. What words say is a table of each language; the grammar is shared as far as
//! their order is. Weeks begin on Monday, and days at midnight where clocks are as far ahead of UTC as the caller says.

mod english;

use super::stop_words::Grammar;
use crate::Timestamp;
use crate::text::{fold, spans};
use jiff::ToSpan as _;
use jiff::civil::{Date, Time};
use jiff::tz::Offset;
use std::ops::Range;

/// More words of a query are not read.
const MOST_WORDS: usize = 512;
/// Years that a number of four digits names.
const YEARS: std::ops::RangeInclusive<i64> = 1900..=2100;
/// The largest number before a unit.
const MOST_UNITS: i64 = 1_000;
/// What lies beside a window fades over this part of its length, but within these bounds, in microseconds.
const FADE: i64 = 4;
const LEAST_FADE: i64 = DAY / 2;
const MOST_FADE: i64 = 366 * DAY;
const DAY: i64 = 86_400_000_000;
/// A few are from so many to so many.
const FEW: (i64, i64) = (2, 5);
const ISO_LENGTH: usize = "2024-05-16".len();

/// A span of time that a query asks about; never empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeWindow {
    /// Its first instant.
    pub from: Timestamp,
    /// The first instant after it.
    pub to: Timestamp,
}

impl TimeWindow {
    /// Whether an instant lies in it.
    pub fn contains(&self, at: Timestamp) -> bool {
        self.from <= at && at < self.to
    }

    /// How well an instant fits: 1 inside, falling towards 0 the farther away it is.
    pub fn fit(&self, at: Timestamp) -> f64 {
        let (from, to, at) = (self.from.as_micros(), self.to.as_micros(), at.as_micros());
        let beside = from.saturating_sub(at).max(at.saturating_sub(to).saturating_add(1)).max(0);
        let fade = (to.saturating_sub(from) / FADE).clamp(LEAST_FADE, MOST_FADE);
        (-(beside as f64) / fade as f64).exp()
    }
}

/// A window, and where in the query it is named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimePhrase {
    /// The window.
    pub window: TimeWindow,
    /// Where its words stand, from the first to the last.
    pub range: Range<usize>,
    /// Where each of its parts stands; there is more than one where other words are between them.
    pub parts: Vec<Range<usize>>,
}

impl TimePhrase {
    /// What the query says besides.
    pub fn rest(&self, query: &str) -> String {
        let mut rest = query.to_owned();
        for part in self.parts.iter().rev() {
            rest.replace_range(part.clone(), " ");
        }
        rest
    }

    /// What of it names a time: "Friday", "March", not "last week". A text about that time may name it too.
    pub fn names(&self, query: &str) -> String {
        let mut names = Vec::new();
        for part in &self.parts {
            let tokens = tokens(&query[part.clone()]);
            // A number may be that of a room.
            let is_name = |token: &&TimeToken| {
                matches!(
                    token.word,
                    Some(
                        TimeWord::MonthName(_)
                            | TimeWord::Weekday(_)
                            | TimeWord::Season(_)
                            | TimeWord::IsoDate(_)
                    )
                )
            };
            names
                .extend(tokens.iter().filter(is_name).map(|token| &query[part.clone()][token.range.clone()]));
        }
        names.join(" ")
    }

    /// Whether the query asks for nothing but what was then: "what happened last week?"
    pub fn is_all_of(&self, query: &str) -> bool {
        let rest = self.rest(query);
        let grammar = Grammar::of(Some("english"));
        let mut is_all = true;
        spans(&rest, |_, word| {
            is_all &= fold(&rest[word]).is_none_or(|word| {
                grammar.is_stop_word(&word) || english::ASKS_FOR_ANYTHING.contains(&&*word)
            });
        });
        is_all
    }
}

/// What a query says about time, asked now by somebody whose clock is so many seconds ahead of UTC.
pub fn find(query: &str, now: Timestamp, offset_seconds: i32) -> Option<TimePhrase> {
    let offset = Offset::from_seconds(offset_seconds).ok()?;
    let today = offset.to_datetime(jiff::Timestamp::from_microsecond(now.as_micros()).ok()?).date();
    let reader = Reader { tokens: tokens(query), today };
    let mut found: Option<Days> = None;
    let mut parts: Vec<Range<usize>> = Vec::new();
    let mut at = 0;
    while at < reader.tokens.len() {
        let Some((days, end)) = reader.any_phrase(at) else {
            at = reader.beside(at).unwrap_or(at + 1);
            continue;
        };
        parts.push(reader.tokens[at].range.start..reader.tokens[end - 1].range.end);
        found = Some(match found {
            None => days,
            // "last month, on Friday": both hold, or nothing is sure.
            Some(before) => before.overlap(days)?,
        });
        at = end;
    }
    let days = found?;
    let range = parts.first()?.start..parts.last()?.end;
    let instant = |date: Date| {
        let start = offset.to_timestamp(date.to_datetime(Time::midnight())).ok()?;
        Some(Timestamp::from_micros(start.as_microsecond()))
    };
    let window = TimeWindow { from: instant(days.from)?, to: instant(days.to)? };
    (window.from < window.to).then_some(TimePhrase { window, range, parts })
}

/// What a word says.
#[derive(Debug, Clone, Copy, PartialEq)]
enum TimeWord {
    /// A day, counted from today.
    DayFromNow(i64),
    /// The one before (-1), the one that is (0), the one after (1).
    Which(i64),
    /// As far back from now.
    Past,
    Ago,
    Since,
    Between,
    And,
    From,
    To,
    In,
    On,
    /// Stands between parts of a date.
    Join,
    /// Says nothing here.
    Article,
    Number(i64),
    /// More than two, no more than five.
    Few,
    /// So many of a unit.
    Unit(Unit, i64),
    /// From Monday, which is 0.
    Weekday(i64),
    /// From 1.
    MonthName(i8),
    /// By its first month.
    Season(i8),
    /// The number of a day or a year, or of units.
    Digits(i64),
    IsoDate(Date),
    /// What follows is the edge of another time, or comes again and again.
    Edge,
    /// What passes goes on for all of what follows.
    Over,
    Other,
    What,
    Be,
    /// With "to" after it, what somebody who is so does.
    Up,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Unit {
    Day,
    Week,
    Weekend,
    Month,
    Year,
    PartOfDay,
}

/// So many of a unit of the calendar, or between so many and so many.
#[derive(Debug, Clone, Copy)]
struct Count {
    least: i64,
    most: i64,
    unit: Unit,
}

/// Days from the first to the one after the last.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Days {
    from: Date,
    to: Date,
}

impl Days {
    fn one(day: Date) -> Option<Self> {
        Some(Self { from: day, to: plus_days(day, 1)? })
    }

    fn month(year: i64, month: i8) -> Option<Self> {
        Self::months(year, month, 1)
    }

    /// Some months from a month on.
    fn months(year: i64, month: i8, count: i64) -> Option<Self> {
        let from = Date::new(i16::try_from(year).ok()?, month, 1).ok()?;
        Some(Self { from, to: plus_months(from, count)? })
    }

    fn year(year: i64) -> Option<Self> {
        Self::months(year, 1, 12)
    }

    fn overlap(self, other: Self) -> Option<Self> {
        let both = Self { from: self.from.max(other.from), to: self.to.min(other.to) };
        (both.from < both.to).then_some(both)
    }

    /// Both, if one begins where the other ends.
    fn beside(self, other: Self) -> Option<Self> {
        let (first, last) = if self.from <= other.from { (self, other) } else { (other, self) };
        (first.to == last.from).then_some(Self { from: first.from, to: last.to })
    }

    /// From the first day of one to the last of the other.
    fn up_to(self, other: Self) -> Option<Self> {
        let both = Self { from: self.from, to: other.to };
        (both.from < both.to).then_some(both)
    }
}

fn plus_days(day: Date, days: i64) -> Option<Date> {
    day.checked_add(days.days()).ok()
}

fn plus_months(day: Date, months: i64) -> Option<Date> {
    day.checked_add(months.months()).ok()
}

fn monday_of(day: Date) -> Option<Date> {
    plus_days(day, -i64::from(day.weekday().to_monday_zero_offset()))
}

struct TimeToken {
    word: Option<TimeWord>,
    range: Range<usize>,
    /// Whether only spaces or a comma stand between it and the word before.
    follows: bool,
    is_large: bool,
}

fn tokens(query: &str) -> Vec<TimeToken> {
    let mut tokens: Vec<TimeToken> = Vec::new();
    let mut read = 0;
    while tokens.len() < MOST_WORDS {
        let Some(start) = query[read..].find(char::is_alphanumeric).map(|at| read + at) else { break };
        let date = iso_date(&query[start..]);
        let end = match date {
            Some(_) => start + ISO_LENGTH,
            None => query[start..].find(|c: char| !c.is_alphanumeric()).map_or(query.len(), |at| start + at),
        };
        let between = query[read..start].trim();
        let written = &query[start..end];
        tokens.push(TimeToken {
            word: date.or_else(|| meaning(&written.to_lowercase())),
            range: start..end,
            follows: !tokens.is_empty() && matches!(between, "" | ","),
            is_large: written.starts_with(char::is_uppercase),
        });
        read = end;
    }
    tokens
}

/// A date like 2024-05-16 at the beginning of a text.
fn iso_date(text: &str) -> Option<TimeWord> {
    let date = text.get(..ISO_LENGTH)?;
    let is_shaped = date.bytes().zip(*b"0000-00-00").all(|(byte, shape)| match shape {
        b'0' => byte.is_ascii_digit(),
        _ => byte == b'-',
    });
    let goes_on = text[ISO_LENGTH..].starts_with(|c: char| c.is_alphanumeric() || c == '-');
    (is_shaped && !goes_on).then(|| date.parse().ok().map(TimeWord::IsoDate))?
}

fn meaning(word: &str) -> Option<TimeWord> {
    if let Some((_, meaning)) = english::WORDS.iter().find(|(known, _)| *known == word) {
        return Some(*meaning);
    }
    let digits = word.trim_end_matches(|c: char| c.is_ascii_lowercase());
    let is_ordinal = ["", "st", "nd", "rd", "th"].contains(&&word[digits.len()..]);
    (is_ordinal && digits.len() <= 4).then(|| digits.parse().ok().map(TimeWord::Digits))?
}

struct Reader {
    tokens: Vec<TimeToken>,
    today: Date,
}

/// What was read: the days, and the place after the last word.
type Read = Option<(Days, usize)>;

impl Reader {
    /// The word at a place, if it goes on with the words before.
    fn next(&self, at: usize) -> Option<TimeWord> {
        self.tokens.get(at).filter(|token| token.follows)?.word
    }

    /// A phrase that begins here.
    fn any_phrase(&self, at: usize) -> Read {
        match self.tokens[at].word? {
            TimeWord::Since => {
                let (days, end) = self.named(at + 1, true)?;
                Some((days.up_to(Days::one(self.today)?)?, end))
            }
            TimeWord::Between => self.range(at, TimeWord::And),
            TimeWord::From => self.range(at, TimeWord::To),
            _ if self.is_edge(at) => None,
            _ => self.named(at, false),
        }
    }

    /// The place after a time that only bounds another one, which begins with this word: "before 5 May 2024". It says nothing, and
    /// its parts do not either.
    fn beside(&self, at: usize) -> Option<usize> {
        let end_of_named = |at: usize| self.named(at, true).map(|(_, end)| end);
        // "between May 2025 and March 2024"
        let end_of_range = |joint: TimeWord| {
            let end = end_of_named(at + 1)?;
            (self.next(end)? == joint).then(|| end_of_named(end + 1))?
        };
        match self.tokens[at].word? {
            TimeWord::To if self.asks_what_somebody_does(at) => None,
            TimeWord::Edge | TimeWord::To | TimeWord::Since => {
                let is_article = |at: &usize| self.next(*at) == Some(TimeWord::Article);
                let noun = (at + 1..self.tokens.len()).find(|at| !is_article(at))?;
                // "until the end of March 2024"
                let is_of = self.tokens[noun].word.is_none() && self.next(noun + 1) == Some(TimeWord::Join);
                end_of_named(if is_of { noun + 2 } else { noun })
            }
            TimeWord::Between => end_of_range(TimeWord::And).or_else(|| end_of_named(at + 1)),
            TimeWord::From => end_of_range(TimeWord::To),
            _ => None,
        }
    }

    /// Whether the words before make a time here the edge of another one.
    fn is_edge(&self, at: usize) -> bool {
        let Some(before) = at.checked_sub(1).filter(|_| self.tokens[at].follows) else { return false };
        match self.tokens[before].word {
            Some(TimeWord::To) => !self.asks_what_somebody_does(before),
            Some(TimeWord::Edge | TimeWord::Between) => true,
            Some(TimeWord::Article | TimeWord::In | TimeWord::On) => self.is_edge(before),
            _ => false,
        }
    }

    /// Whether the "to" here is that of "what has Anna been up to".
    fn asks_what_somebody_does(&self, to: usize) -> bool {
        let mut before = self.tokens[..to].iter().rev().map(|token| token.word);
        let mut has = |word: TimeWord| before.any(|before| before == Some(word));
        let is_up = to > 0 && self.tokens[to].follows && self.tokens[to - 1].word == Some(TimeWord::Up);
        is_up && has(TimeWord::Be) && has(TimeWord::What)
    }

    /// "between March and May"
    fn range(&self, at: usize, joint: TimeWord) -> Read {
        let (first, end_of_first) = self.named(at + 1, true)?;
        if self.next(end_of_first)? != joint {
            return None;
        }
        let (last, end) = self.named(end_of_first + 1, true)?;
        if let Some(days) = first.up_to(last) {
            return Some((days, end));
        }
        // "between November and February": the November before that February. Of a time with a year there is no other.
        if end_of_first != at + 2 {
            return None;
        }
        let earlier = Self { tokens: Vec::new(), today: last.from };
        let first = self.tokens.get(at + 1)?.word.and_then(|word| earlier.bare(word))?;
        Some((first.up_to(last)?, end))
    }

    /// A time that is named from here on; in a phrase that asks for a time a name alone is one.
    fn named(&self, at: usize, alone: bool) -> Read {
        let word = if alone { self.next(at)? } else { self.tokens.get(at)?.word? };
        match word {
            TimeWord::Article => match (self.next(at + 1)?, self.next(at + 2)) {
                (TimeWord::Other, Some(TimeWord::Unit(Unit::Day, 1))) => {
                    let (least, most) = FEW;
                    Some((self.unit(Unit::Day, -most)?.up_to(self.unit(Unit::Day, -least)?)?, at + 3))
                }
                _ => self.named(at + 1, alone),
            },
            TimeWord::DayFromNow(days) => Some((Days::one(plus_days(self.today, days)?)?, at + 1)),
            TimeWord::IsoDate(date) => Some((Days::one(date)?, at + 1)),
            TimeWord::In => self.next(at + 1).and_then(|_| self.inside(at + 1)),
            TimeWord::On => self.next(at + 1).and_then(|_| self.named(at + 1, true)).filter(|(days, _)| {
                // "on March" is no date, "on Monday" is.
                plus_days(days.from, 1) == Some(days.to)
            }),
            TimeWord::Which(which) => self.which(at + 1, which),
            TimeWord::Past => self.rolling(at + 1),
            TimeWord::Unit(unit, 1) => match (self.next(at + 1)?, self.next(at + 2)?) {
                (TimeWord::Edge, TimeWord::DayFromNow(days)) if unit == Unit::Day => {
                    Some((Days::one(plus_days(self.today, 2 * days)?)?, at + 3))
                }
                // "the week before last"; that before last Christmas is another one.
                (TimeWord::Edge, TimeWord::Which(which @ (-1 | 1)))
                    if unit != Unit::PartOfDay
                        && !self.tokens.get(at + 3).is_some_and(|more| more.follows) =>
                {
                    Some((self.unit(unit, 2 * which)?, at + 3))
                }
                _ => None,
            },
            TimeWord::Over => match (self.next(at + 1)?, self.next(at + 2)?) {
                (TimeWord::Article, TimeWord::Unit(Unit::Weekend, 1)) => Some((self.weekend()?, at + 3)),
                _ => None,
            },
            _ => self.ago(at).or_else(|| self.date(at, alone)).or_else(|| {
                let bare = self.bare(word).filter(|_| alone)?;
                Some((bare, at + 1))
            }),
        }
    }

    /// What follows "in": a month, a season, a year, or what is a time by itself.
    fn inside(&self, at: usize) -> Read {
        match self.next(at)? {
            TimeWord::Article => self.inside(at + 1),
            TimeWord::Unit(Unit::Year, 1) => match self.next(at + 1)? {
                TimeWord::Digits(year) => Some((self.bare(TimeWord::Digits(year))?, at + 2)),
                _ => None,
            },
            word @ TimeWord::Digits(_) => {
                let days = self.bare(word)?;
                // "in 2023 and 2024"
                match (self.next(at + 1), self.next(at + 2).and_then(|word| self.year(word))) {
                    (Some(TimeWord::And), Some(other)) => Some((days.beside(other)?, at + 3)),
                    _ => Some((days, at + 1)),
                }
            }
            word @ (TimeWord::MonthName(_) | TimeWord::Season(_)) => {
                self.date(at, false).or_else(|| Some((self.bare(word)?, at + 1)))
            }
            TimeWord::Which(_) | TimeWord::Past => self.named(at, false),
            _ => None,
        }
    }

    fn year(&self, word: TimeWord) -> Option<Days> {
        self.bare(word).filter(|_| matches!(word, TimeWord::Digits(_)))
    }

    /// What a name says by itself: the latest one that has begun.
    fn bare(&self, word: TimeWord) -> Option<Days> {
        let year = i64::from(self.today.year());
        let begun = |days: &Option<Days>| days.is_some_and(|days| days.from <= self.today);
        match word {
            TimeWord::IsoDate(date) => Days::one(date),
            TimeWord::Weekday(weekday) => {
                let since =
                    (i64::from(self.today.weekday().to_monday_zero_offset()) - 1 - weekday).rem_euclid(7);
                Days::one(plus_days(self.today, -1 - since)?)
            }
            TimeWord::MonthName(month) => {
                [year, year - 1].into_iter().map(|year| Days::month(year, month)).find(begun)?
            }
            TimeWord::Season(month) => {
                [year, year - 1].into_iter().map(|year| Days::months(year, month, 3)).find(begun)?
            }
            TimeWord::Digits(year) if YEARS.contains(&year) => Days::year(year),
            _ => None,
        }
    }

    /// "last week", "this month", "next Friday"
    fn which(&self, at: usize, which: i64) -> Read {
        let today = self.today;
        let year = i64::from(today.year());
        let word = self.next(at)?;
        let days = match word {
            TimeWord::Number(_) | TimeWord::Digits(_) | TimeWord::Few if which == -1 => {
                return self.rolling(at);
            }
            // "the last week of the holidays"
            TimeWord::Unit(..) if self.next(at + 1) == Some(TimeWord::Join) => return None,
            TimeWord::Unit(Unit::Day, _) => return None,
            TimeWord::Unit(Unit::PartOfDay, 1) => match which {
                0 => Days::one(today)?,
                -1 => Days { from: plus_days(today, -1)?, to: plus_days(today, 1)? },
                _ => return None,
            },
            TimeWord::Unit(unit, 1) => self.unit(unit, which)?,
            TimeWord::Unit(..) => return None,
            TimeWord::Weekday(weekday) => {
                let monday = monday_of(today)?;
                let day = plus_days(monday, weekday)?;
                Days::one(match which {
                    0 => day,
                    -1 if day < today => day,
                    -1 => plus_days(day, -7)?,
                    _ if day > today => day,
                    _ => plus_days(day, 7)?,
                })?
            }
            TimeWord::MonthName(month) => self.one_of(which, year, |year| Days::month(year, month))?,
            TimeWord::Season(month) => self.one_of(which, year, |year| Days::months(year, month, 3))?,
            _ => return None,
        };
        Some((days, at + 1))
    }

    /// What comes once a year: the latest that is over, the one of now or of this year, or the first to come.
    fn one_of(&self, which: i64, year: i64, of: impl Fn(i64) -> Option<Days>) -> Option<Days> {
        let mut years = [year - 2, year - 1, year, year + 1].into_iter().filter_map(of);
        match which {
            0 => {
                let all: Vec<Days> = years.collect();
                let now = all.iter().find(|days| days.from <= self.today && self.today < days.to);
                now.or(all.iter().find(|days| i64::from(days.from.year()) == year)).copied()
            }
            -1 => years.rfind(|days| days.to <= self.today),
            _ => years.find(|days| days.from > self.today),
        }
    }

    /// A unit of the calendar, counted from the one of today.
    fn unit(&self, unit: Unit, from_now: i64) -> Option<Days> {
        match unit {
            Unit::Day | Unit::PartOfDay => Days::one(plus_days(self.today, from_now)?),
            Unit::Week => {
                let from = plus_days(monday_of(self.today)?, 7 * from_now)?;
                Some(Days { from, to: plus_days(from, 7)? })
            }
            Unit::Weekend => {
                let from = plus_days(monday_of(self.today)?, 7 * from_now + 5)?;
                Some(Days { from, to: plus_days(from, 2)? })
            }
            Unit::Month => {
                let day = plus_months(self.today, from_now)?;
                Days::month(day.year().into(), day.month())
            }
            Unit::Year => Days::year(i64::from(self.today.year()) + from_now),
        }
    }

    /// The latest weekend that has begun.
    fn weekend(&self) -> Option<Days> {
        let this = self.unit(Unit::Weekend, 0)?;
        if this.from <= self.today { Some(this) } else { self.unit(Unit::Weekend, -1) }
    }

    /// How many of a unit, with the place after it: "three weeks", "a couple of days", "a few months".
    fn count(&self, at: usize) -> Option<(Count, usize)> {
        let mut at = at;
        if let (Some(TimeWord::Number(1)), Some(TimeWord::Number(_) | TimeWord::Few)) =
            (self.tokens.get(at)?.word, self.next(at + 1))
        {
            at += 1;
        }
        let (least, most) = match self.tokens.get(at)?.word? {
            TimeWord::Number(count) | TimeWord::Digits(count) => (count, count),
            TimeWord::Few => FEW,
            _ => return None,
        };
        at += 1 + usize::from(self.next(at + 1) == Some(TimeWord::Join));
        let TimeWord::Unit(unit, units) = self.next(at)? else { return None };
        let count = Count { least: least * units, most: most * units, unit };
        (count.most <= MOST_UNITS && unit != Unit::PartOfDay).then_some((count, at + 1))
    }

    /// "three days", after "last" or "past": up to today.
    fn rolling(&self, at: usize) -> Read {
        let (Count { most: count, unit, .. }, end) = match self.next(at)? {
            TimeWord::Unit(unit, units) if unit != Unit::PartOfDay => {
                (Count { least: units, most: units, unit }, at + 1)
            }
            _ => self.count(at)?,
        };
        let from = match unit {
            Unit::Day | Unit::PartOfDay => plus_days(self.today, -count),
            Unit::Week | Unit::Weekend => plus_days(self.today, -7 * count),
            Unit::Month => plus_months(self.today, -count),
            Unit::Year => plus_months(self.today, -12 * count),
        };
        Some((Days { from: from?, to: plus_days(self.today, 1)? }, end))
    }

    /// "three days ago"
    fn ago(&self, at: usize) -> Read {
        let (Count { least, most, unit }, end) = self.count(at)?;
        if self.next(end)? != TimeWord::Ago {
            return None;
        }
        // Who counts more than a week of days, or more than a few other units, does not count exactly.
        let about = match unit {
            _ if least < most => 0,
            Unit::Day => most / 7,
            _ => most / 5,
        };
        let days = self.unit(unit, -most - about)?.up_to(self.unit(unit, about - least)?)?;
        Some((days, end + 1))
    }

    /// "5 May 2024", "May 5th", "March 2024", "winter of 2023", "Monday last week"
    fn date(&self, at: usize, alone: bool) -> Read {
        let token = self.tokens.get(at)?;
        let past_join = |at: usize| at + usize::from(self.next(at) == Some(TimeWord::Join));
        let year = |at: usize| match self.next(at) {
            Some(TimeWord::Digits(year)) if YEARS.contains(&year) => Some((year, at + 1)),
            Some(TimeWord::Which(which)) if self.next(at + 1) == Some(TimeWord::Unit(Unit::Year, 1)) => {
                Some((i64::from(self.today.year()) + which, at + 2))
            }
            _ => None,
        };
        match token.word? {
            TimeWord::Digits(day @ 1..=31) => {
                let month_at = past_join(at + 1);
                let TimeWord::MonthName(month) = self.next(month_at)? else { return None };
                self.day(month, day, year(past_join(month_at + 1)), month_at + 1)
            }
            TimeWord::MonthName(month) => {
                if let Some((year, end)) = year(past_join(at + 1)) {
                    return Some((Days::month(year, month)?, end));
                }
                let TimeWord::Digits(day @ 1..=31) = self.next(at + 1)? else { return None };
                (alone || token.is_large).then(|| self.day(month, day, year(at + 2), at + 2))?
            }
            TimeWord::Season(month) => {
                let (year, end) = year(past_join(at + 1))?;
                Some((Days::months(year, month, 3)?, end))
            }
            TimeWord::Weekday(weekday) => {
                let at = past_join(at + 1);
                let (TimeWord::Which(which), TimeWord::Unit(Unit::Week, 1)) =
                    (self.next(at)?, self.next(at + 1)?)
                else {
                    return None;
                };
                let week = self.unit(Unit::Week, which)?;
                Some((Days::one(plus_days(week.from, weekday)?)?, at + 2))
            }
            _ => None,
        }
    }

    /// A day of a month: of a year, or the latest one.
    fn day(&self, month: i8, day: i64, year: Option<(i64, usize)>, end: usize) -> Read {
        let of =
            |year: i64| Days::one(Date::new(i16::try_from(year).ok()?, month, i8::try_from(day).ok()?).ok()?);
        match year {
            Some((year, end)) => Some((of(year)?, end)),
            None => {
                let this_year = i64::from(self.today.year());
                // The 29th of February comes every four years, and once in a while after eight.
                let mut years = (this_year - 8..=this_year).rev();
                let days = years.find_map(|year| of(year).filter(|days| days.from <= self.today))?;
                Some((days, end))
            }
        }
    }
}

#[cfg(test)]
mod tests;
