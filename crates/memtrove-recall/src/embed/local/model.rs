//! BERT: what every token of a text means in that text.

use super::config::BertConfig;
use super::linear::{Linear, Rows, quantise_symmetric};
use super::weights::Weights;
use memtrove_simd::transformer::{Cpu, add, attend, gelu, normalise};
use std::io::{Read, Seek};

/// A BERT, its large matrices in bytes.
pub(super) struct Bert {
    cpu: Cpu,
    width: usize,
    heads: usize,
    words: QuantisedRows,
    /// A row for each place in a text; what tells two texts apart, of which there is always one, is added in.
    positions: Vec<f32>,
    norm: Norm,
    layers: Vec<Layer>,
}

struct Layer {
    /// Queries, keys and values, beside each other.
    projections: Linear,
    mixed: Linear,
    mixed_norm: Norm,
    widened: Linear,
    narrowed: Linear,
    narrowed_norm: Norm,
}

impl Bert {
    /// Reads all weights.
    pub(super) fn read<R: Read + Seek>(
        config: &BertConfig,
        weights: Weights<R>,
        cpu: Cpu,
    ) -> Result<Self, String> {
        let mut reader = Reader::new(config, weights);
        Ok(Self {
            cpu,
            width: config.hidden_size,
            heads: config.num_attention_heads,
            words: reader.words()?,
            positions: reader.positions()?,
            norm: reader.norm("embeddings.LayerNorm")?,
            layers: (0..config.num_hidden_layers)
                .map(|index| reader.layer(index))
                .collect::<Result<_, _>>()?,
        })
    }

    /// How many numbers stand for a token.
    pub(super) fn width(&self) -> usize {
        self.width
    }

    /// A row for each token of all texts. `lengths` says how many tokens each text has; each id must be in the vocabulary,
    /// and no text longer than there are positions.
    pub(super) fn tokens(&self, ids: &[u32], lengths: &[usize]) -> Vec<f32> {
        let mut tokens = self.embeddings(ids, lengths);
        let mut pass = LayerBuffers::default();
        for layer in &self.layers {
            self.apply(layer, lengths, &mut tokens, &mut pass);
        }
        tokens
    }

    fn embeddings(&self, ids: &[u32], lengths: &[usize]) -> Vec<f32> {
        let mut tokens = vec![0.0; ids.len() * self.width];
        let places = lengths.iter().flat_map(|length| self.positions.chunks_exact(self.width).take(*length));
        for ((row, id), place) in tokens.chunks_exact_mut(self.width).zip(ids).zip(places) {
            row.copy_from_slice(place);
            self.words.add_to(row, *id);
        }
        self.norm.apply(self.cpu, &mut tokens);
        tokens
    }

    fn apply(&self, layer: &Layer, lengths: &[usize], tokens: &mut [f32], pass: &mut LayerBuffers) {
        let LayerBuffers { rows, inner, outer } = pass;

        rows.fill(self.cpu, tokens, self.width);
        layer.projections.apply(self.cpu, rows, inner);
        outer.resize(tokens.len(), 0.0);
        let (mut projected, mut mixed) = (inner.as_slice(), outer.as_mut_slice());
        for length in lengths {
            // Texts lie one after the other, without padding: only attention knows where one ends.
            let (text, later) = projected.split_at(length * self.width * 3);
            let (output, rest) = mixed.split_at_mut(length * self.width);
            attend(self.cpu, text, self.heads, self.width, output);
            (projected, mixed) = (later, rest);
        }
        rows.fill(self.cpu, outer, self.width);
        layer.mixed.apply(self.cpu, rows, outer);
        add(self.cpu, tokens, outer);
        layer.mixed_norm.apply(self.cpu, tokens);

        rows.fill(self.cpu, tokens, self.width);
        layer.widened.apply(self.cpu, rows, inner);
        gelu(self.cpu, inner);
        rows.fill(self.cpu, inner, layer.widened.outputs());
        layer.narrowed.apply(self.cpu, rows, outer);
        add(self.cpu, tokens, outer);
        layer.narrowed_norm.apply(self.cpu, tokens);
    }
}

/// What one pass through the layers writes to, again and again.
#[derive(Default)]
struct LayerBuffers {
    rows: Rows,
    inner: Vec<f32>,
    outer: Vec<f32>,
}

/// A row of bytes for each word piece, each in steps of its own.
struct QuantisedRows {
    width: usize,
    bytes: Vec<i8>,
    steps: Vec<f32>,
}

impl QuantisedRows {
    fn add_to(&self, row: &mut [f32], id: u32) {
        let id = id as usize;
        let step = self.steps[id];
        for (number, byte) in row.iter_mut().zip(&self.bytes[id * self.width..]) {
            *number += step * f32::from(*byte);
        }
    }
}

/// The scale and the shift of a normalisation.
struct Norm {
    scale: Vec<f32>,
    shift: Vec<f32>,
    epsilon: f32,
}

impl Norm {
    fn apply(&self, cpu: Cpu, rows: &mut [f32]) {
        normalise(cpu, rows, &self.scale, &self.shift, self.epsilon);
    }
}

/// Knows the names and the shapes of a BERT's tensors.
struct Reader<'a, R> {
    config: &'a BertConfig,
    weights: Weights<R>,
    /// What all names begin with: models saved with a head on top have one.
    prefix: &'static str,
}

impl<'a, R: Read + Seek> Reader<'a, R> {
    fn new(config: &'a BertConfig, weights: Weights<R>) -> Self {
        let prefix = if weights.has("bert.embeddings.word_embeddings.weight") { "bert." } else { "" };
        Self { config, weights, prefix }
    }

    fn words(&mut self) -> Result<QuantisedRows, String> {
        let (size, width) = (self.config.vocab_size, self.config.hidden_size);
        let mut words = QuantisedRows { width, bytes: Vec::new(), steps: Vec::new() };
        let name = self.name("embeddings.word_embeddings.weight");
        self.weights.read_rows(&name, &[size, width], |row| {
            let (step, bytes) = quantise_symmetric(row);
            words.steps.push(step);
            words.bytes.extend(bytes);
        })?;
        words.bytes.shrink_to_fit();
        Ok(words)
    }

    fn positions(&mut self) -> Result<Vec<f32>, String> {
        let &BertConfig { hidden_size: width, max_position_embeddings, type_vocab_size, .. } = self.config;
        let types = self.tensor("embeddings.token_type_embeddings.weight", &[type_vocab_size, width])?;
        let mut positions =
            self.tensor("embeddings.position_embeddings.weight", &[max_position_embeddings, width])?;
        for row in positions.chunks_exact_mut(width) {
            row.iter_mut().zip(&types).for_each(|(number, first_type)| *number += first_type);
        }
        Ok(positions)
    }

    fn layer(&mut self, index: usize) -> Result<Layer, String> {
        let &BertConfig { hidden_size: width, intermediate_size: wide, .. } = self.config;
        let part = |name: &str| format!("encoder.layer.{index}.{name}");
        let queries_keys_values =
            ["query", "key", "value"].map(|name| part(&format!("attention.self.{name}")));
        Ok(Layer {
            projections: self.linear(&queries_keys_values, width, width)?,
            mixed: self.linear(&[part("attention.output.dense")], width, width)?,
            mixed_norm: self.norm(&part("attention.output.LayerNorm"))?,
            widened: self.linear(&[part("intermediate.dense")], wide, width)?,
            narrowed: self.linear(&[part("output.dense")], width, wide)?,
            narrowed_norm: self.norm(&part("output.LayerNorm"))?,
        })
    }

    /// Several matrices of the same shape, the outputs of one after those of the other.
    fn linear(&mut self, names: &[String], outputs: usize, inputs: usize) -> Result<Linear, String> {
        let (mut weights, mut bias) = (Vec::new(), Vec::new());
        for name in names {
            weights.append(&mut self.tensor(&format!("{name}.weight"), &[outputs, inputs])?);
            bias.append(&mut self.tensor(&format!("{name}.bias"), &[outputs])?);
        }
        Ok(Linear::new(&weights, bias))
    }

    fn norm(&mut self, name: &str) -> Result<Norm, String> {
        let width = self.config.hidden_size;
        Ok(Norm {
            scale: self.tensor(&format!("{name}.weight"), &[width])?,
            shift: self.tensor(&format!("{name}.bias"), &[width])?,
            epsilon: self.config.layer_norm_eps,
        })
    }

    fn tensor(&mut self, name: &str, shape: &[usize]) -> Result<Vec<f32>, String> {
        self.weights.read(&self.name(name), shape)
    }

    fn name(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::super::tiny::{Tiny, WIDTH};
    use super::*;
    use std::fs::File;

    fn read(tiny: &Tiny, cpu: Cpu) -> Bert {
        let config = BertConfig::read(tiny.path()).unwrap();
        let weights = Weights::new(File::open(tiny.path().join("model.safetensors")).unwrap()).unwrap();
        Bert::read(&config, weights, cpu).unwrap()
    }

    const IDS: [u32; 21] = [2, 4, 5, 7, 8, 7, 9, 4, 10, 6, 11, 4, 6, 7, 8, 9, 4, 10, 5, 11, 3];

    #[test]
    fn a_small_bert_means_what_it_means_in_64_bit_floats() {
        let tiny = Tiny::new();
        let tokens = read(&tiny, Cpu::detect()).tokens(&IDS, &[IDS.len()]);
        for (token, expected) in tokens.chunks_exact(WIDTH).zip(tiny.naive(&IDS)) {
            let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
            let token: Vec<f64> = token.iter().map(|number| f64::from(*number)).collect();
            let cosine = dot(&token, &expected) / (dot(&token, &token) * dot(&expected, &expected)).sqrt();
            assert!(cosine > 0.998, "{cosine}: {token:.3?} instead of {expected:.3?}");
        }
    }

    #[test]
    fn every_instruction_set_gives_the_same_bits() {
        let tiny = Tiny::new();
        let tokens = |cpu| read(&tiny, cpu).tokens(&IDS, &[IDS.len()]);
        let expected = tokens(Cpu::detect());
        for cpu in Cpu::ways() {
            assert_eq!(tokens(cpu), expected, "{cpu:?}");
        }
    }

    #[test]
    fn texts_that_pass_together_do_not_see_each_other() {
        let bert = read(&Tiny::new(), Cpu::detect());
        let (first, second) = IDS.split_at(4);
        let apart = [bert.tokens(first, &[4]), bert.tokens(second, &[second.len()])].concat();
        assert_eq!(bert.tokens(&IDS, &[4, second.len()]), apart);
    }
}
