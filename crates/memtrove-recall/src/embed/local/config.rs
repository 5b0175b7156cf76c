//! What the files beside the weights say about a model.

use crate::embed::Vector;
use crate::embed::wordpiece::WordPiece;
use memtrove_simd::transformer::LANES;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

/// `config.json`: the sizes of a BERT.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct BertConfig {
    model_type: String,
    hidden_act: String,
    #[serde(default = "absolute")]
    position_embedding_type: String,
    pub(super) vocab_size: usize,
    pub(super) hidden_size: usize,
    pub(super) num_hidden_layers: usize,
    pub(super) num_attention_heads: usize,
    pub(super) intermediate_size: usize,
    pub(super) max_position_embeddings: usize,
    pub(super) type_vocab_size: usize,
    pub(super) layer_norm_eps: f32,
}

fn absolute() -> String {
    "absolute".to_owned()
}

impl BertConfig {
    /// Reads and checks `config.json`.
    pub(super) fn read(directory: &Path) -> Result<Self, String> {
        let config: Self = required(directory, "config.json")?;
        config.check().map_err(|problem| format!("config.json: {problem}"))?;
        Ok(config)
    }

    fn check(&self) -> Result<(), String> {
        for (key, value, expected) in [
            ("model_type", &self.model_type, "bert"),
            ("hidden_act", &self.hidden_act, "gelu"),
            ("position_embedding_type", &self.position_embedding_type, "absolute"),
        ] {
            if value != expected {
                return Err(format!("{key} is {value:?}; only {expected:?} can be computed"));
            }
        }
        let heads = self.num_attention_heads;
        let whole = |size: usize| size > 0 && size <= MAX_WIDTH && size.is_multiple_of(LANES);
        if heads == 0 || !self.hidden_size.is_multiple_of(heads) || !whole(self.hidden_size / heads) {
            return Err(format!("hidden_size must be num_attention_heads times a multiple of {LANES}"));
        }
        if !whole(self.hidden_size) || !whole(self.intermediate_size) {
            return Err(format!(
                "hidden_size and intermediate_size must be multiples of {LANES}, at most {MAX_WIDTH}"
            ));
        }
        if self.max_position_embeddings < MIN_WINDOW || self.type_vocab_size == 0 || self.vocab_size == 0 {
            return Err("max_position_embeddings, type_vocab_size or vocab_size is too small".to_owned());
        }
        Ok(())
    }
}

/// Rows that are wider could exceed what sums of products are kept in.
const MAX_WIDTH: usize = 32_768;
/// A piece between the two tokens that enclose a text.
const MIN_WINDOW: usize = 3;
/// What sentence encoders of this size are trained to read at a time.
const WINDOW: usize = 256;

/// How many tokens are read at a time, with the two that enclose them.
pub(super) fn window(directory: &Path, config: &BertConfig) -> Result<usize, String> {
    #[derive(Deserialize)]
    struct WindowFile {
        max_seq_length: Option<usize>,
    }
    let file: Option<WindowFile> = optional(directory, "sentence_bert_config.json")?;
    let length = file.and_then(|file| file.max_seq_length).unwrap_or(WINDOW);
    Ok(length.clamp(MIN_WINDOW, config.max_position_embeddings))
}

/// How one vector is made of those of all tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pooling {
    Mean,
    /// That of the token before the text.
    First,
}

impl Pooling {
    /// Reads `1_Pooling/config.json`; without it, the mean.
    pub(super) fn read(directory: &Path) -> Result<Self, String> {
        /// As sentence-transformers wrote it first: a switch for each way. Newer versions name the way.
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct PoolingFile {
            pooling_mode: Option<String>,
            pooling_mode_cls_token: bool,
            pooling_mode_mean_tokens: bool,
            pooling_mode_max_tokens: bool,
            pooling_mode_mean_sqrt_len_tokens: bool,
            pooling_mode_weightedmean_tokens: bool,
            pooling_mode_lasttoken: bool,
        }
        let Some(file) = optional::<PoolingFile>(directory, "1_Pooling/config.json")? else {
            return Ok(Self::Mean);
        };
        let others = file.pooling_mode_max_tokens
            || file.pooling_mode_mean_sqrt_len_tokens
            || file.pooling_mode_weightedmean_tokens
            || file.pooling_mode_lasttoken;
        match (
            file.pooling_mode.as_deref(),
            file.pooling_mode_mean_tokens,
            file.pooling_mode_cls_token,
            others,
        ) {
            (Some("mean"), ..) | (None, true, false, false) => Ok(Self::Mean),
            (Some("cls"), ..) | (None, false, true, false) => Ok(Self::First),
            _ => Err("1_Pooling/config.json: only the mean of all tokens or the first token can be taken"
                .to_owned()),
        }
    }

    /// One vector of those of a text's tokens.
    pub(super) fn pool(self, tokens: &[f32], width: usize) -> Vector {
        match self {
            Self::First => tokens[..width].to_vec(),
            // The sum: lengths are made one later.
            Self::Mean => tokens.chunks_exact(width).fold(vec![0.0; width], |mut sum, token| {
                sum.iter_mut().zip(token).for_each(|(sum, number)| *sum += number);
                sum
            }),
        }
    }
}

/// Reads `tokenizer.json`, or `vocab.txt` as of an uncased BERT.
pub(super) fn tokenizer(directory: &Path) -> Result<WordPiece, String> {
    let json = match read(directory, "tokenizer.json")? {
        Some(json) => json,
        None => from_vocabulary(directory)?,
    };
    WordPiece::from_json(&json).map_err(|error| error.to_string())
}

/// What a `tokenizer.json` would say, of older files.
fn from_vocabulary(directory: &Path) -> Result<Vec<u8>, String> {
    #[derive(Deserialize)]
    struct VocabularyFile {
        #[serde(default = "yes")]
        do_lower_case: bool,
    }
    fn yes() -> bool {
        true
    }
    let vocabulary = read(directory, "vocab.txt")?.ok_or("there is neither tokenizer.json nor vocab.txt")?;
    let vocabulary = String::from_utf8(vocabulary).map_err(|_| "vocab.txt is not UTF-8")?;
    let lowercase =
        optional::<VocabularyFile>(directory, "tokenizer_config.json")?.is_none_or(|file| file.do_lower_case);
    let ids: serde_json::Map<_, _> =
        vocabulary.lines().zip(0..).map(|(token, id)| (token.to_owned(), id.into())).collect();
    Ok(serde_json::json!({
        "normalizer": { "type": "BertNormalizer", "lowercase": lowercase },
        "pre_tokenizer": { "type": "BertPreTokenizer" },
        "model": {
            "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100, "vocab": ids,
        },
    })
    .to_string()
    .into_bytes())
}

fn required<T: DeserializeOwned>(directory: &Path, name: &str) -> Result<T, String> {
    optional(directory, name)?.ok_or_else(|| format!("there is no {name}"))
}

fn optional<T: DeserializeOwned>(directory: &Path, name: &str) -> Result<Option<T>, String> {
    let Some(json) = read(directory, name)? else { return Ok(None) };
    serde_json::from_slice(&json).map(Some).map_err(|error| format!("{name}: {error}"))
}

fn read(directory: &Path, name: &str) -> Result<Option<Vec<u8>>, String> {
    match fs::read(directory.join(name)) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(format!("{name} cannot be read: {error}")),
    }
}
