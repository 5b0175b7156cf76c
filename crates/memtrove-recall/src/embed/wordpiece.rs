//! Texts to word pieces, as BERT's uncased models read them.
//!
//! A text is cleaned, lower-cased and freed of accents, cut at spaces and around punctuation and Chinese characters; each
//! word is then taken apart from its beginning into the longest pieces the vocabulary has. All of it happens in one pass
//! over the characters. What looks like a special token in a text (`[SEP]`) is text: callers do not write those.

use super::EmbedError;
use super::vocabulary::Vocabulary;
use serde::Deserialize;
use unicode_normalization::char::decompose_canonical;
use unicode_properties::{GeneralCategory, GeneralCategoryGroup, UnicodeGeneralCategory};

/// A tokenizer, with its vocabulary.
pub struct WordPiece {
    vocabulary: Vocabulary,
    unknown: u32,
    max_word_chars: usize,
}

impl WordPiece {
    /// Reads a `tokenizer.json`.
    pub fn from_json(json: &[u8]) -> Result<Self, EmbedError> {
        let problem = |what: &str| EmbedError::Configuration(format!("tokenizer.json: {what}"));
        let file: TokenizerFile =
            serde_json::from_slice(json).map_err(|error| problem(&error.to_string()))?;
        if !file.normalizer.as_ref().is_some_and(Normalizer::is_uncased) {
            return Err(problem("its normalizer is not that of an uncased BERT"));
        }
        if file.pre_tokenizer.kind != "BertPreTokenizer" {
            return Err(problem("its pre-tokenizer is not BERT's"));
        }
        let TokenizerModel { unk_token, continuing_subword_prefix, max_input_chars_per_word, vocab } =
            file.model;
        if continuing_subword_prefix != Vocabulary::CONTINUES {
            return Err(problem("its continuing pieces do not begin with ##"));
        }
        let unknown = vocab
            .id(&unk_token)
            .ok_or_else(|| problem("its token for the unknown is not in its vocabulary"))?;
        Ok(Self { vocabulary: vocab, unknown, max_word_chars: max_input_chars_per_word })
    }

    /// Appends the ids of the text's pieces, without special tokens. A word that cannot be taken apart is [`unknown`].
    ///
    /// [`unknown`]: Self::unknown
    pub fn encode(&self, text: &str, ids: &mut Vec<u32>) {
        let mut words = WordSplitter { tokenizer: self, ids, word: String::new() };
        text.chars().for_each(|character| words.read(character));
        words.end();
    }

    /// The id that stands for words that cannot be taken apart.
    pub fn unknown(&self) -> u32 {
        self.unknown
    }

    /// The id of a token as the vocabulary spells it, such as `[CLS]`.
    pub fn id(&self, token: &str) -> Option<u32> {
        self.vocabulary.id(token)
    }

    /// How many tokens there are; every id is below.
    pub fn len(&self) -> usize {
        self.vocabulary.len()
    }

    /// Whether the vocabulary has no token, not even one for the unknown. Never so.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn pieces(&self, word: &str, ids: &mut Vec<u32>) {
        let before = ids.len();
        let mut rest = word;
        while !rest.is_empty() {
            let Some((id, length)) = self.vocabulary.longest(rest, rest.len() < word.len()) else {
                ids.truncate(before);
                ids.push(self.unknown);
                return;
            };
            ids.push(id);
            rest = &rest[length..];
        }
    }

    /// Whether a word is too long to be one.
    fn is_blob(&self, word: &str) -> bool {
        // Bytes are at least as many as characters: hardly any word is counted.
        word.len() > self.max_word_chars && word.chars().count() > self.max_word_chars
    }
}

/// A text on its way from characters to words to pieces.
struct WordSplitter<'a> {
    tokenizer: &'a WordPiece,
    ids: &'a mut Vec<u32>,
    /// What has been read of the current word.
    word: String,
}

impl WordSplitter<'_> {
    fn read(&mut self, character: char) {
        match character {
            'a'..='z' | '0'..='9' => self.word.push(character),
            'A'..='Z' => self.word.push(character.to_ascii_lowercase()),
            ' ' | '\t' | '\n' | '\r' => self.end(),
            _ if character.is_ascii_punctuation() => self.stand_alone(character),
            _ if is_dirt(character) => {}
            _ if character.is_whitespace() => self.end(),
            _ if is_chinese(character) => {
                self.end();
                self.fold(character);
                self.end();
            }
            _ => self.fold(character),
        }
    }

    /// Takes a character without its accents and in lower case.
    fn fold(&mut self, character: char) {
        decompose_canonical(character, |part| {
            if part.general_category() != GeneralCategory::NonspacingMark {
                part.to_lowercase().for_each(|part| match part.general_category_group() {
                    GeneralCategoryGroup::Punctuation => self.stand_alone(part),
                    _ if part.is_ascii_punctuation() => self.stand_alone(part),
                    _ => self.word.push(part),
                });
            }
        });
    }

    fn stand_alone(&mut self, character: char) {
        self.end();
        self.word.push(character);
        self.end();
    }

    fn end(&mut self) {
        if self.tokenizer.is_blob(&self.word) {
            self.ids.push(self.tokenizer.unknown);
        } else {
            self.tokenizer.pieces(&self.word, self.ids);
        }
        self.word.clear();
    }
}

/// What is left out wherever it stands, even between two words.
fn is_dirt(character: char) -> bool {
    use GeneralCategory::{Control, Format, PrivateUse};
    character == '\u{fffd}' || matches!(character.general_category(), Control | Format | PrivateUse)
}

/// The blocks whose characters are words of their own, as BERT counts them.
fn is_chinese(character: char) -> bool {
    matches!(u32::from(character),
        0x3400..=0x4DBF | 0x4E00..=0x9FFF | 0xF900..=0xFAFF | 0x20000..=0x2A6DF | 0x2A700..=0x2B73F
        | 0x2B740..=0x2B81F | 0x2B920..=0x2CEAF | 0x2F800..=0x2FA1F)
}

#[derive(Deserialize)]
struct TokenizerFile {
    normalizer: Option<Normalizer>,
    pre_tokenizer: PreTokenizer,
    model: TokenizerModel,
}

#[derive(Deserialize)]
#[serde(default)]
struct Normalizer {
    #[serde(rename = "type")]
    kind: String,
    clean_text: bool,
    handle_chinese_chars: bool,
    strip_accents: Option<bool>,
    lowercase: bool,
}

impl Default for Normalizer {
    fn default() -> Self {
        Self {
            kind: String::new(),
            clean_text: true,
            handle_chinese_chars: true,
            strip_accents: None,
            lowercase: true,
        }
    }
}

impl Normalizer {
    fn is_uncased(&self) -> bool {
        // Accents go with the case unless something else is said.
        let all =
            [self.clean_text, self.handle_chinese_chars, self.lowercase, self.strip_accents.unwrap_or(true)];
        self.kind == "BertNormalizer" && all == [true; 4]
    }
}

#[derive(Deserialize)]
struct PreTokenizer {
    #[serde(rename = "type")]
    kind: String,
}

#[derive(Deserialize)]
struct TokenizerModel {
    unk_token: String,
    continuing_subword_prefix: String,
    max_input_chars_per_word: usize,
    vocab: Vocabulary,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;
    use std::sync::LazyLock;

    static BUNDLED: LazyLock<WordPiece> = LazyLock::new(|| {
        WordPiece::from_json(include_bytes!("../../assets/static-256/tokenizer.json")).unwrap()
    });

    /// What is expected is what the tokenizer of the original model answers.
    fn check(text: &str, expected: &str) {
        let expected: Vec<_> = expected.split_whitespace().map(|token| BUNDLED.id(token).unwrap()).collect();
        let mut ids = Vec::new();
        BUNDLED.encode(text, &mut ids);
        assert_eq!(ids, expected, "{text:?}");
    }

    #[test]
    fn words_are_taken_apart_from_their_beginning() {
        check("Unaffable", "una ##ffa ##ble");
        check("HTTP2_server.rs:42", "http ##2 _ server . rs : 42");
        check("don't-stop: a_b", "don ' t - stop : a _ b");
        check("", "");
        check(" \t\r\n ", "");
    }

    #[test]
    fn case_and_accents_are_dropped() {
        check("naïve CAFÉ électricité", "naive cafe electric ##ite");
        check("ﬁancé İstanbul ΣΑΣ straße œuvre", "ﬁ ##ance istanbul σ ##α ##σ st ##raße œ ##u ##vre");
        check("cafe\u{301}", "cafe");
    }

    #[test]
    fn punctuation_stands_alone_and_symbols_do_not() {
        check("“quoted”—dash… €5 ½ x²", "“ quoted ” — dash … € ##5 ½ x ##²");
        check("a\u{37e}b", "a ; b");
    }

    #[test]
    fn what_nobody_sees_is_left_out() {
        check("a\u{200b}b c\0d\u{b}e\u{ad}f\tg\u{2028}h", "ab cd ##ef g h");
        check("\u{e000}z \u{fffd} y", "z y");
    }

    #[test]
    fn other_scripts_are_read_as_the_original_reads_them() {
        check("日本語 text東京x", "日 本 語 text 東 京 x");
        check("परीक्षा हिन्दी", "प ##र ##ी ##क ##ष ##ा ह ##ि ##न ##द ##ी");
        check("한국어", "ᄒ ##ᅡ ##ᆫ ##ᄀ ##ᅮ ##ᆨ ##ᄋ ##ᅥ");
        check("🙂 emoji 豈", "[UNK] em ##oj ##i [UNK]");
    }

    #[test]
    fn a_word_that_is_too_long_is_unknown() {
        check(&"x".repeat(100), &format!("xx {}", "##xx ".repeat(49)));
        check(&"x".repeat(101), "[UNK]");
        check(&"ß".repeat(101), "[UNK]");
    }

    #[test]
    fn special_tokens_in_a_text_are_text() {
        check("[PAD] [UNK]", "[ pad ] [ un ##k ]");
    }

    #[test]
    fn other_tokenizers_are_refused() {
        let refused = |from: &str, to: &str| {
            let json = include_str!("../../assets/static-256/tokenizer.json").replacen(from, to, 1);
            match WordPiece::from_json(json.as_bytes()) {
                Err(EmbedError::Configuration(problem)) => problem,
                Err(other) => panic!("{other}"),
                Ok(_) => panic!("accepted"),
            }
        };
        assert!(refused(r#""lowercase":true"#, r#""lowercase":false"#).contains("normalizer"));
        assert!(refused("BertPreTokenizer", "Whitespace").contains("pre-tokenizer"));
        assert!(refused(r#""unk_token":"[UNK]""#, r#""unk_token":"<unk>""#).contains("unknown"));
        assert!(refused(r#""[PAD]":0"#, r#""[PAD]":99999999"#).contains("too large"));
        assert!(refused("{", "").contains("tokenizer.json"));
    }
}
