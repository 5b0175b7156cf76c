//! Words that are forms of one word though no stemmer knows it: "found" says that something was found, and so does "find".
//!
//! A table of English verbs and nouns. What has other meanings besides is left out: "left", "rose", "ground".

use super::terms::hash;
use crate::text::Analyzer;
use std::collections::HashMap;
use std::sync::LazyLock;

const ENGLISH: &str = "arise arose arisen, awake awoke awoken, beat beaten, become became, begin began begun, bend bent, bite bit bitten,
    bleed bled, blow blew blown, break broke broken, breed bred, bring brought, build built, burn burnt, buy bought, catch caught,
    choose chose chosen, cling clung, come came, creep crept, deal dealt, dig dug, draw drew drawn, dream dreamt, drink drank drunk,
    drive drove driven, eat ate eaten, fall fell fallen, feed fed, feel felt, fight fought, find found, flee fled, fly flew flown,
    forbid forbade forbidden, forget forgot forgotten, forgive forgave forgiven, freeze froze frozen, get got gotten,
    give gave given, go went gone, grow grew grown, hang hung, hear heard, hide hid hidden, hold held, keep kept, kneel knelt,
    know knew known, lay laid, lead led, lean leant, leap leapt, learn learnt, lend lent, lose lost, make made, mean meant,
    meet met, pay paid, ride rode ridden, ring rang rung, run ran, say said, see saw seen, seek sought, sell sold, send sent,
    sew sewn, shake shook shaken, shine shone, shoot shot, show shown, shrink shrank shrunk, sing sang sung, sink sank sunk,
    sit sat, sleep slept, slide slid, smell smelt, speak spoke spoken, spell spelt, spend spent, spin spun, spit spat, spoil spoilt,
    stand stood, steal stole stolen, stick stuck, sting stung, strike struck, swear swore sworn, sweep swept, swim swam swum,
    swing swung, take took taken, teach taught, tear tore torn, tell told, think thought, throw threw thrown,
    understand understood, wake woke woken, wear wore worn, weave wove woven, weep wept, win won, write wrote written,
    child children, foot feet, goose geese, half halves, knife knives, man men, mouse mice, person people, shelf shelves,
    tooth teeth, wolf wolves, woman women";

/// Of each term those that are other forms of the word.
static FORMS: LazyLock<HashMap<u64, Vec<u64>>> = LazyLock::new(|| {
    let analyzer = Analyzer::new("english");
    let stem = |word: &str| analyzer.as_ref().and_then(|english| english.stem(word));
    let term = |word: &str| hash(stem(word).as_deref().unwrap_or(word));
    let words = ENGLISH.split(',').map(|forms| forms.split_whitespace().map(term).collect::<Vec<u64>>());
    let others = |forms: Vec<u64>| {
        let other_than = |one: u64| forms.iter().copied().filter(|other| *other != one).collect::<Vec<u64>>();
        forms.iter().map(|one| (*one, other_than(*one))).collect::<Vec<_>>()
    };
    words.flat_map(others).collect()
});

/// The terms of the other forms of a word, in a language.
pub(super) fn others(language: Option<&str>, term: u64) -> &'static [u64] {
    let known = (language == Some("english")).then(|| FORMS.get(&term)).flatten();
    known.map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_form_stands_for_all_others_of_its_word_and_of_no_other_one() {
        for (term, forms) in FORMS.iter() {
            assert!(!forms.is_empty() && !forms.contains(term));
            for other in forms {
                let back = others(Some("english"), *other);
                assert!(back.contains(term) && back.len() == forms.len());
            }
        }
        let written = ENGLISH.split([',', ' ', '\n']).filter(|word| !word.is_empty()).count();
        assert!(FORMS.len() > written * 9 / 10, "{} of {written}: words share a stem", FORMS.len());
    }

    #[test]
    fn other_languages_have_none() {
        assert!(!others(Some("english"), hash("find")).is_empty());
        assert!(others(Some("german"), hash("find")).is_empty() && others(None, hash("find")).is_empty());
    }
}
