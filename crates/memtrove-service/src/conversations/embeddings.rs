//! From a text to what it is found by: pieces, each with its words and where it lies among meanings.

use crate::Context;
use memtrove_core::recall::actors::is_user;
use memtrove_core::recall::document::{self, Parts};
use memtrove_core::recall::terms::terms;
use memtrove_core::text::Analyzer;
use memtrove_recall::embed::Embedded;
use memtrove_store::conversations::embeddings::{EmbeddedText, Text};
use memtrove_store::conversations::pieces::Piece;

/// A text taken apart, before it is embedded.
pub(super) struct Described<'t> {
    text: &'t Text,
    parts: Parts<'t>,
    /// What is to be embedded.
    pub pieces: Vec<&'t str>,
}

impl<'t> Described<'t> {
    pub fn of(text: &'t Text) -> Self {
        let parts = document::parts(&text.text);
        Self { text, parts, pieces: parts.pieces() }
    }

    /// With the vectors of its pieces, where there are some: then one of each.
    pub fn with(self, analyzer: &Analyzer, vectors: Option<&[Embedded]>) -> EmbeddedText {
        let piece = |(at, piece): (usize, &&str)| {
            let terms = terms(analyzer, &self.parts.searched(piece));
            let vector =
                vectors.and_then(|vectors| vectors.get(at)).map(|embedded| direction(&embedded.vector));
            Piece { vector: vector.unwrap_or_default(), terms: terms.counts, length: terms.length }
        };
        EmbeddedText {
            text_no: self.text.no,
            entry: self.text.entry,
            conversation: self.text.conversation,
            ord: self.text.ord,
            // "user: …" names nobody else than who wrote it.
            speaker: self.parts.speaker.filter(|name| !is_user(name)).map(str::to_owned),
            asks: self.parts.asks(),
            model: vectors.and_then(<[_]>::first).map(|embedded| (*embedded.model).to_owned()),
            pieces: self.pieces.iter().enumerate().map(piece).collect(),
        }
    }
}

/// What a text is found by, as far as it can be said without waiting for anybody.
pub(super) fn at_once(cx: &Context, text: &Text) -> EmbeddedText {
    let described = Described::of(text);
    let vectors: Option<Vec<Embedded>> = if cx.settings.search.semantic {
        described.pieces.iter().map(|piece| cx.embeddings.now(piece)).collect()
    } else {
        None
    };
    described.with(&cx.analyzer, vectors.as_deref())
}

/// A vector in eight bits a dimension; its length is lost, and not needed. Empty where it points nowhere.
fn direction(vector: &[f32]) -> Vec<i8> {
    let greatest = vector.iter().fold(0f32, |greatest, value| greatest.max(value.abs()));
    if greatest == 0.0 {
        return Vec::new();
    }
    vector.iter().map(|value| (value / greatest * 127.0).round() as i8).collect()
}
