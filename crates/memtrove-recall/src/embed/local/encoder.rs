//! Texts to the vectors of a sentence encoder: tokens, BERT, pooling.

use super::batches::batches;
use super::config::{self, BertConfig, Pooling};
use super::model::Bert;
use super::projection::Projection;
use super::weights::Weights;
use crate::embed::wordpiece::WordPiece;
use crate::embed::{Vector, vector};
use memtrove_simd::transformer::Cpu;
use std::fs::File;
use std::path::Path;

/// How many tokens pass through the layers together. More are no quicker, they only leave the caches.
const PASS: usize = 128;

/// A sentence encoder, ready to compute.
pub(super) struct Encoder {
    tokenizer: WordPiece,
    /// The tokens that enclose a text.
    enclosing: [u32; 2],
    /// How many tokens are read at a time, without those.
    window: usize,
    bert: Bert,
    pooling: Pooling,
    projection: Option<Projection>,
}

/// A part of a text, which is read at a time.
struct Window<'a> {
    text: usize,
    ids: &'a [u32],
}

impl Encoder {
    /// Reads the model in a directory.
    pub(super) fn read(directory: &Path, cpu: Cpu) -> Result<Self, String> {
        let config = BertConfig::read(directory)?;
        let window = config::window(directory, &config)? - 2;
        let tokenizer = config::tokenizer(directory)?;
        if tokenizer.len() > config.vocab_size {
            let (tokens, size) = (tokenizer.len(), config.vocab_size);
            return Err(format!(
                "the tokenizer has {tokens} tokens, and vocab_size of config.json is {size}"
            ));
        }
        let special = |token| tokenizer.id(token).ok_or_else(|| format!("the tokenizer has no {token}"));
        let enclosing = [special("[CLS]")?, special("[SEP]")?];
        let pooling = Pooling::read(directory)?;
        let problem = |problem| format!("model.safetensors: {problem}");
        let weights =
            File::open(directory.join("model.safetensors")).map_err(|error| problem(error.to_string()))?;
        let weights = Weights::new(weights).map_err(problem)?;
        let bert = Bert::read(&config, weights, cpu).map_err(problem)?;
        Ok(Self { tokenizer, enclosing, window, bert, pooling, projection: None })
    }

    /// From now on vectors are those of another space.
    pub(super) fn project(&mut self, projection: Projection) {
        self.projection = Some(projection);
    }

    /// How long vectors are.
    pub(super) fn dimensions(&self) -> usize {
        self.projection.as_ref().map_or(self.bert.width(), Projection::dimensions)
    }

    /// A vector for each text, of unit length; all zero for one without a piece the model knows.
    pub(super) fn embed(&self, texts: &[impl AsRef<str>]) -> Vec<Vector> {
        let ids: Vec<_> = texts.iter().map(|text| self.tokenize(text.as_ref())).collect();
        let windows: Vec<_> =
            ids.iter().enumerate().flat_map(|(text, ids)| self.windows(text, ids)).collect();
        let mut vectors = vec![vec![0.0; self.dimensions()]; texts.len()];
        for pass in batches(&windows, PASS, |window| window.ids.len() + self.enclosing.len()) {
            for (window, part) in pass.iter().zip(self.pass(pass)) {
                // A text's vector is the mean of its windows', each counting by its length.
                for (sum, number) in vectors[window.text].iter_mut().zip(part) {
                    *sum += number * window.ids.len() as f32;
                }
            }
        }
        vectors.iter_mut().for_each(|vector| vector::normalise(vector));
        vectors
    }

    fn tokenize(&self, text: &str) -> Vec<u32> {
        let mut ids = Vec::with_capacity(text.len() / 4 + 1);
        self.tokenizer.encode(text, &mut ids);
        // To the model all texts it cannot read would mean the same.
        if ids.iter().all(|id| *id == self.tokenizer.unknown()) {
            ids.clear();
        }
        ids
    }

    /// The parts of a text, as equal as can be: a mean with a few last words would give them too much weight.
    fn windows<'a>(&self, text: usize, ids: &'a [u32]) -> impl Iterator<Item = Window<'a>> {
        let windows = ids.len().div_ceil(self.window).max(1);
        ids.chunks(ids.len().div_ceil(windows).max(1)).map(move |ids| Window { text, ids })
    }

    fn pass(&self, windows: &[Window<'_>]) -> Vec<Vector> {
        let [before, after] = self.enclosing;
        let lengths: Vec<_> = windows.iter().map(|window| window.ids.len() + self.enclosing.len()).collect();
        let enclosed = |ids: &[u32]| [&[before], ids, &[after]].concat();
        let ids: Vec<_> = windows.iter().flat_map(|window| enclosed(window.ids)).collect();
        let tokens = self.bert.tokens(&ids, &lengths);
        let width = self.bert.width();
        let mut rest = tokens.as_slice();
        lengths
            .into_iter()
            .map(|length| {
                let (tokens, later) = rest.split_at(length * width);
                rest = later;
                self.finish(self.pooling.pool(tokens, width))
            })
            .collect()
    }

    fn finish(&self, pooled: Vector) -> Vector {
        let mut vector = match &self.projection {
            Some(projection) => projection.apply(&pooled),
            None => pooled,
        };
        vector::normalise(&mut vector);
        vector
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::super::tiny::{Tiny, WIDTH};
    use super::*;

    fn encoder(tiny: &Tiny) -> Encoder {
        Encoder::read(tiny.path(), Cpu::detect()).unwrap()
    }

    fn cosine(a: &[f32], b: &[f64]) -> f64 {
        let dot: f64 = a.iter().zip(b).map(|(a, b)| f64::from(*a) * b).sum();
        dot / b.iter().map(|b| b * b).sum::<f64>().sqrt()
    }

    #[test]
    fn a_text_is_the_mean_of_its_tokens_or_the_first_one() {
        let tiny = Tiny::new();
        let tokens = tiny.naive(&[2, 4, 5, 7, 8, 11, 3]);
        let mean: Vec<f64> = (0..WIDTH).map(|at| tokens.iter().map(|token| token[at]).sum()).collect();
        for (file, expected) in [
            (None, &mean),
            (Some(r#"{"pooling_mode_mean_tokens": true, "pooling_mode_cls_token": false}"#), &mean),
            (Some(r#"{"pooling_mode": "mean"}"#), &mean),
            (Some(r#"{"pooling_mode_mean_tokens": false, "pooling_mode_cls_token": true}"#), &tokens[0]),
            (Some(r#"{"pooling_mode": "cls"}"#), &tokens[0]),
        ] {
            file.iter().for_each(|file| tiny.write("1_Pooling/config.json", file));
            let vector = encoder(&tiny).embed(&["The foxs JUMP."]).remove(0);
            assert!(cosine(&vector, expected) > 0.998, "{file:?}: {vector:?} instead of {expected:?}");
        }
    }

    #[test]
    fn a_vocabulary_does_for_a_tokenizer() {
        let tiny = Tiny::new();
        let expected = encoder(&tiny).embed(&["The foxs jump."]);
        tiny.remove("tokenizer.json");
        tiny.write("vocab.txt", super::super::tiny::VOCABULARY.join("\n"));
        assert_eq!(encoder(&tiny).embed(&["The foxs jump."]), expected);
    }

    #[test]
    fn a_text_the_model_cannot_read_has_no_direction() {
        let encoder = encoder(&Tiny::new());
        assert_eq!(encoder.embed(&["", " \n", "今天 ☃ qwertz"]), vec![vec![0.0; WIDTH]; 3]);
        assert!(encoder.embed(&[""; 0]).is_empty());
    }

    #[test]
    fn a_long_text_is_read_to_its_end_in_equal_parts() {
        let encoder = encoder(&Tiny::new());
        assert_eq!(encoder.window, 22);
        let lengths = |tokens: usize| -> Vec<usize> {
            encoder.windows(0, &vec![4; tokens]).map(|window| window.ids.len()).collect()
        };
        assert_eq!(lengths(22), [22]);
        assert_eq!(lengths(23), [12, 11]);
        assert_eq!(lengths(67), [17, 17, 17, 16]);

        let text = "the lazy dog jumps over the fox. ".repeat(40);
        let vectors = encoder.embed(&[text.clone(), format!("{text} lazy lazy lazy lazy lazy lazy")]);
        assert_ne!(vectors[0], vectors[1]);
        for vector in vectors {
            let length: f32 = vector.iter().map(|number| number * number).sum();
            assert!((length - 1.0).abs() < 1e-5);
        }
    }

    #[test]
    fn a_text_has_the_same_vector_in_any_company() {
        let encoder = encoder(&Tiny::new());
        let long = "the lazy dog jumps over the fox. ".repeat(99);
        let texts = ["the fox", "☃", &long, "lazy dog.", "over", &long, "jump"];
        let alone: Vec<_> = texts.iter().map(|text| encoder.embed(&[text]).remove(0)).collect();
        assert_eq!(encoder.embed(&texts), alone);
    }
}
