//! A BERT of random weights that is small enough to be computed naively.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use tempfile::TempDir;

pub(super) const WIDTH: usize = 32;
pub(super) const HEADS: usize = 2;
pub(super) const WIDE: usize = 64;
pub(super) const LAYERS: usize = 2;
pub(super) const POSITIONS: usize = 24;
pub(super) const VOCABULARY: [&str; 12] =
    ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "fox", "dog", "##s", "jump", "over", "lazy", "."];

/// The tensors of a model, by name: shape and numbers.
pub(super) type Tensors = BTreeMap<String, (Vec<usize>, Vec<f32>)>;

/// A directory as a model is shipped in.
pub(super) struct Tiny {
    directory: TempDir,
    pub(super) tensors: Tensors,
}

impl Tiny {
    pub(super) fn new() -> Self {
        let tiny = Self { directory: tempfile::tempdir().unwrap(), tensors: tensors() };
        tiny.write("config.json", config().to_string());
        tiny.write("tokenizer.json", tokenizer().to_string());
        tiny.write("model.safetensors", safetensors(&tiny.tensors));
        tiny
    }

    pub(super) fn path(&self) -> &Path {
        self.directory.path()
    }

    pub(super) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub(super) fn remove(&self, name: &str) {
        fs::remove_file(self.path().join(name)).unwrap();
    }

    fn numbers(&self, name: &str) -> &[f32] {
        &self.tensors[name].1
    }

    /// What the model makes of one text, in 64-bit floats and without any trick.
    pub(super) fn naive(&self, ids: &[u32]) -> Vec<Vec<f64>> {
        let row = |name: &str, index: usize| {
            self.numbers(name)[index * WIDTH..][..WIDTH].iter().map(|n| f64::from(*n))
        };
        let mut tokens: Vec<Vec<f64>> = ids
            .iter()
            .enumerate()
            .map(|(place, id)| {
                let words = row("embeddings.word_embeddings.weight", *id as usize);
                let places = row("embeddings.position_embeddings.weight", place);
                let types = row("embeddings.token_type_embeddings.weight", 0);
                let sum: Vec<f64> = words
                    .zip(places)
                    .zip(types)
                    .map(|((word, place), of_type)| word + place + of_type)
                    .collect();
                self.norm("embeddings.LayerNorm", &sum)
            })
            .collect();
        for layer in 0..LAYERS {
            let part = |name: &str| format!("encoder.layer.{layer}.{name}");
            let [queries, keys, values] = ["query", "key", "value"].map(|name| {
                tokens
                    .iter()
                    .map(|token| self.linear(&part(&format!("attention.self.{name}")), token))
                    .collect::<Vec<_>>()
            });
            for (index, token) in tokens.iter_mut().enumerate() {
                let mixed: Vec<f64> =
                    (0..HEADS).flat_map(|head| attend(head, &queries[index], &keys, &values)).collect();
                let mixed = add(token, &self.linear(&part("attention.output.dense"), &mixed));
                let mixed = self.norm(&part("attention.output.LayerNorm"), &mixed);
                let wide: Vec<f64> =
                    self.linear(&part("intermediate.dense"), &mixed).into_iter().map(gelu).collect();
                let narrow = add(&mixed, &self.linear(&part("output.dense"), &wide));
                *token = self.norm(&part("output.LayerNorm"), &narrow);
            }
        }
        tokens
    }

    fn linear(&self, name: &str, inputs: &[f64]) -> Vec<f64> {
        let weights = self.numbers(&format!("{name}.weight")).chunks_exact(inputs.len());
        let bias = self.numbers(&format!("{name}.bias"));
        weights
            .zip(bias)
            .map(|(weights, bias)| {
                f64::from(*bias)
                    + weights
                        .iter()
                        .zip(inputs)
                        .map(|(weight, input)| f64::from(*weight) * input)
                        .sum::<f64>()
            })
            .collect()
    }

    fn norm(&self, name: &str, numbers: &[f64]) -> Vec<f64> {
        let mean = numbers.iter().sum::<f64>() / numbers.len() as f64;
        let variance =
            numbers.iter().map(|number| (number - mean).powi(2)).sum::<f64>() / numbers.len() as f64;
        let scale = self.numbers(&format!("{name}.weight"));
        let shift = self.numbers(&format!("{name}.bias"));
        let learnt = scale.iter().zip(shift).map(|(scale, shift)| (f64::from(*scale), f64::from(*shift)));
        numbers
            .iter()
            .zip(learnt)
            .map(|(n, (scale, shift))| (n - mean) / (variance + 1e-12).sqrt() * scale + shift)
            .collect()
    }
}

fn add(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a + b).collect()
}

fn attend(head: usize, query: &[f64], keys: &[Vec<f64>], values: &[Vec<f64>]) -> Vec<f64> {
    const EACH: usize = WIDTH / HEADS;
    let own = head * EACH..(head + 1) * EACH;
    let weights: Vec<f64> = keys
        .iter()
        .map(|key| query[own.clone()].iter().zip(&key[own.clone()]).map(|(a, b)| a * b).sum::<f64>())
        .map(|product| (product / (EACH as f64).sqrt()).exp())
        .collect();
    let sum: f64 = weights.iter().sum();
    own.map(|at| weights.iter().zip(values).map(|(weight, value)| weight / sum * value[at]).sum()).collect()
}

/// By the definition: the integral of the bell curve up to the number.
pub(super) fn gelu(number: f64) -> f64 {
    const STEPS: i32 = 2000;
    let step = number / f64::from(STEPS);
    let bell = |x: f64| (-x * x / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
    let area: f64 = (0..STEPS).map(|index| bell((f64::from(index) + 0.5) * step) * step).sum();
    number * (0.5 + area)
}

pub(super) fn config() -> Value {
    json!({
        "model_type": "bert", "hidden_act": "gelu", "hidden_size": WIDTH, "num_attention_heads": HEADS,
        "intermediate_size": WIDE, "num_hidden_layers": LAYERS, "max_position_embeddings": POSITIONS,
        "type_vocab_size": 2, "vocab_size": VOCABULARY.len(), "layer_norm_eps": 1e-12,
    })
}

fn tokenizer() -> Value {
    let ids: serde_json::Map<_, _> =
        VOCABULARY.iter().zip(0..).map(|(token, id)| ((*token).to_owned(), json!(id))).collect();
    json!({
        "normalizer": { "type": "BertNormalizer" },
        "pre_tokenizer": { "type": "BertPreTokenizer" },
        "model": {
            "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100, "vocab": ids,
        },
    })
}

fn tensors() -> Tensors {
    let mut tensors = Tensors::new();
    let mut state = 4_u32;
    let mut add = |name: &str, shape: &[usize], mean: f32, spread: f32| {
        let numbers = (0..shape.iter().product()).map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            mean + spread * (state as f32 / u32::MAX as f32 * 2.0 - 1.0)
        });
        tensors.insert(name.to_owned(), (shape.to_vec(), numbers.collect()));
    };
    add("embeddings.word_embeddings.weight", &[VOCABULARY.len(), WIDTH], 0.0, 1.0);
    add("embeddings.position_embeddings.weight", &[POSITIONS, WIDTH], 0.0, 0.5);
    add("embeddings.token_type_embeddings.weight", &[2, WIDTH], 0.0, 0.5);
    add("embeddings.LayerNorm.weight", &[WIDTH], 1.0, 0.3);
    add("embeddings.LayerNorm.bias", &[WIDTH], 0.0, 0.3);
    for layer in 0..LAYERS {
        for (part, outputs, inputs) in [
            ("attention.self.query", WIDTH, WIDTH),
            ("attention.self.key", WIDTH, WIDTH),
            ("attention.self.value", WIDTH, WIDTH),
            ("attention.output.dense", WIDTH, WIDTH),
            ("intermediate.dense", WIDE, WIDTH),
            ("output.dense", WIDTH, WIDE),
        ] {
            add(&format!("encoder.layer.{layer}.{part}.weight"), &[outputs, inputs], 0.0, 0.3);
            add(&format!("encoder.layer.{layer}.{part}.bias"), &[outputs], 0.0, 0.2);
        }
        for part in ["attention.output.LayerNorm", "output.LayerNorm"] {
            add(&format!("encoder.layer.{layer}.{part}.weight"), &[WIDTH], 1.0, 0.3);
            add(&format!("encoder.layer.{layer}.{part}.bias"), &[WIDTH], 0.0, 0.3);
        }
    }
    tensors
}

/// The tensors as a file.
pub(super) fn safetensors(tensors: &Tensors) -> Vec<u8> {
    let mut header = serde_json::Map::new();
    let mut data = Vec::new();
    for (name, (shape, numbers)) in tensors {
        let start = data.len();
        data.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
        header.insert(
            name.clone(),
            json!({ "dtype": "F32", "shape": shape, "data_offsets": [start, data.len()] }),
        );
    }
    file(&Value::Object(header).to_string(), &data)
}

/// A header and what it describes.
pub(super) fn file(header: &str, data: &[u8]) -> Vec<u8> {
    [&(header.len() as u64).to_le_bytes(), header.as_bytes(), data].concat()
}
