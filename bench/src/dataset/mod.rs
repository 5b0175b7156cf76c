//! What the server is filled with: the same texts, ids and requests in every run.

pub mod conversations;
pub mod events;
pub mod files;
pub mod memories;
pub mod translation;

use uuid::Uuid;

/// A small random source (SplitMix64): repeatable, and cheap enough for the generator's inner loop.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// A source that always yields the same sequence for the same seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^ (bits >> 31)
    }

    /// A number from 0 to `bound` − 1.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }
}

/// Writes texts whose words are as unevenly frequent as those of a language, so that full-text search has common and
/// rare terms to work with.
#[derive(Debug)]
pub struct Writer {
    random: Random,
}

/// Words of the vocabulary. Word `r` occurs about 1/r times as often as the first.
const VOCABULARY: usize = 5_000;

impl Writer {
    /// A writer that always writes the same for the same seed.
    pub fn new(seed: u64) -> Self {
        Self { random: Random::new(seed) }
    }

    /// A text of about this many bytes.
    pub fn text(&mut self, bytes: usize) -> String {
        let mut text = String::with_capacity(bytes + 16);
        while text.len() < bytes {
            if !text.is_empty() {
                text.push(' ');
            }
            text.push_str(&self.word());
        }
        text.truncate(bytes);
        text
    }

    fn word(&mut self) -> String {
        // Exponent uniform in the logarithm of the rank: Zipf's law with exponent 1.
        let uniform = self.random.below(1 << 20) as f64 / f64::from(1 << 20);
        word((VOCABULARY as f64).powf(uniform) as usize)
    }
}

/// The word of a rank: syllables that spell its number, so that every word is pronounceable and unique.
fn word(rank: usize) -> String {
    const SYLLABLES: [&str; 20] = [
        "ba", "ce", "di", "fo", "gu", "ha", "je", "ki", "lo", "mu", "na", "pe", "ri", "so", "tu", "va", "we",
        "xi", "yo", "zu",
    ];
    let mut number = rank + SYLLABLES.len();
    let mut word = String::new();
    while number > 0 {
        word.push_str(SYLLABLES[number % SYLLABLES.len()]);
        number /= SYLLABLES.len();
    }
    word
}

/// Two words of a text, neither among the most common nor among the rare ones: together they find about as much as fits
/// on a page, and this text for certain.
pub fn two_words(text: &str, random: &mut Random) -> String {
    let stop_words: Vec<String> = (1..20).map(word).collect();
    // Two syllables: the ranks below 380.
    let ordinary: Vec<&str> = text
        .split(' ')
        .filter(|word| word.len() == 4 && !stop_words.iter().any(|stop| stop == word))
        .collect();
    let Some(first) = ordinary.get(random.below(ordinary.len().max(1))) else { return word(1) };
    let second = ordinary.iter().find(|word| *word != first).unwrap_or(first);
    format!("{first} {second}")
}

/// Conversation ids in the order of their creation, like those a client that uses UUIDv7 would choose.
#[derive(Debug, Clone, Default)]
pub struct Ids {
    issued: u64,
}

impl Ids {
    /// Ids of its own for each of many, by their number: they may each use some millions.
    pub fn of(number: u64) -> Self {
        Self { issued: (number + 1) << 24 }
    }

    /// The next id.
    pub fn next(&mut self) -> Uuid {
        self.issued += 1;
        let [a, b] =
            [Random::new(self.issued).next(), Random::new(!self.issued).next()].map(u64::to_be_bytes);
        let random = [a[0], a[1], a[2], a[3], a[4], b[0], b[1], b[2], b[3], b[4]];
        uuid::Builder::from_unix_timestamp_millis(1_767_225_600_000 + self.issued, &random).into_uuid()
    }
}

/// The bytes of one request. Every caller is an agent that acts for `user`.
fn request(method: &str, path: &str, user: &str, body: Option<&str>) -> Vec<u8> {
    request_with("", method, path, user, body)
}

/// The same with more lines in its head, each with its line break.
fn request_with(lines: &str, method: &str, path: &str, user: &str, body: Option<&str>) -> Vec<u8> {
    let mut head = format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {user}\r\nX-API-Key: bench-agent\r\n{lines}"
    );
    if let Some(body) = body {
        head += &format!("Content-Type: application/json\r\nContent-Length: {}\r\n", body.len());
    }
    head += "\r\n";
    head += body.unwrap_or_default();
    head.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_version_seven_and_ascend() {
        let mut ids = Ids::default();
        let (first, second) = (ids.next(), ids.next());
        assert_eq!(first.get_version_num(), 7);
        assert!(first < second);
    }

    #[test]
    fn a_text_has_the_length_asked_for_and_words_to_search_by() {
        let text = Writer::new(1).text(300);
        assert_eq!(text.len(), 300);
        assert_eq!(two_words(&text, &mut Random::new(1)).split(' ').count(), 2);
    }
}
