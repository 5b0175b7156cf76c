//! A transformer read from a directory: sentence encoders of BERT's shape, such as all-MiniLM-L6-v2.
//!
//! Matrices are kept and multiplied as bytes, everything between is done in floats ([`memtrove_simd::transformer`]). That needs
//! no native library and a quarter of the memory. On one core a query of 16 tokens takes about
//! 1.4 ms with AVX-512 and 3.6 ms with AVX2 (`examples/local_speed.rs`); ONNX Runtime, with weights in bytes that it computes
//! with in floats, took 5.5 ms on the same machine. Vectors point where those of 32-bit floats do, with a cosine of 0.999
//! (`tests/local.rs`), and are the same to the last bit on every CPU.

mod batches;
mod config;
mod encoder;
mod linear;
mod model;
mod projection;
#[cfg(test)]
mod tiny;
mod weights;

use super::{Calibration, EmbedError, Embedder, LOCAL_MODEL, Space, Vector};
use batches::batches;
use encoder::Encoder;
use futures_util::future::{BoxFuture, try_join_all};
use memtrove_simd::transformer::Cpu;
use projection::Projection;
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;
use std::thread::available_parallelism;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

/// How many bytes of text are embedded in one go: some fifty milliseconds.
const JOB: usize = 2048;

/// A sentence encoder, loaded once.
///
/// Its vectors are in the space of the static model if it is all-MiniLM-L6-v2, otherwise in a space of their own.
pub struct LocalEmbedder {
    encoder: Arc<Encoder>,
    model_id: String,
    space: Space,
    calibration: Calibration,
    /// Who embeds a query waits for queries only,
    queries: Arc<Semaphore>,
    /// and who embeds much leaves a core to others, if there is one.
    batches: Arc<Semaphore>,
}

impl LocalEmbedder {
    /// Reads the model in a directory, laid out as sentence-transformers does: `config.json`, `model.safetensors`,
    /// `tokenizer.json` or `vocab.txt`; `1_Pooling/config.json` and `sentence_bert_config.json` if they are there.
    pub fn open(directory: &Path) -> Result<Self, EmbedError> {
        let problem =
            |problem| EmbedError::Configuration(format!("the model in {}: {problem}", directory.display()));
        let mut encoder = Encoder::read(directory, Cpu::detect()).map_err(problem)?;
        let (model_id, space, calibration) = if projection::is_minilm(&encoder) {
            encoder.project(Projection::bundled().map_err(problem)?);
            (LOCAL_MODEL.to_owned(), Space::shared(), Calibration::shared())
        } else {
            let digest = digest(directory).map_err(|error| problem(error.to_string()))?;
            let id = format!("local:{digest}:{}", encoder.dimensions());
            let space = Space { name: id.as_str().into(), dimensions: encoder.dimensions() };
            (id, space, Calibration::identity())
        };
        let cores = available_parallelism().map_or(1, usize::from);
        Ok(Self {
            encoder: Arc::new(encoder),
            model_id,
            space,
            calibration,
            queries: Arc::new(Semaphore::new(cores)),
            batches: Arc::new(Semaphore::new(cores.saturating_sub(1).max(1))),
        })
    }

    /// The texts' vectors, on this very thread.
    pub fn compute(&self, texts: &[&str]) -> Vec<Vector> {
        self.encoder.embed(texts)
    }

    async fn job(&self, lane: &Arc<Semaphore>, texts: &[&str]) -> Result<Vec<Vector>, EmbedError> {
        let place = lane
            .clone()
            .acquire_owned()
            .await
            .map_err(|_| EmbedError::transient("nothing is computed any more"))?;
        let encoder = self.encoder.clone();
        let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
        let job = spawn_blocking(move || {
            // Kept until the work is done, even if the caller has gone away.
            let _place = place;
            encoder.embed(&texts)
        });
        job.await.map_err(|_| EmbedError::transient("the computation did not come to its end"))
    }
}

impl Embedder for LocalEmbedder {
    fn model_id(&self) -> &str {
        &self.model_id
    }

    fn space(&self) -> &Space {
        &self.space
    }

    fn max_input_chars(&self) -> usize {
        usize::MAX
    }

    fn calibration(&self) -> &Calibration {
        &self.calibration
    }

    fn embed<'a>(&'a self, texts: &'a [&'a str]) -> BoxFuture<'a, Result<Vec<Vector>, EmbedError>> {
        let lane = match texts {
            [query] if query.len() <= JOB => &self.queries,
            _ => &self.batches,
        };
        Box::pin(async move {
            let jobs = batches(texts, JOB, |text| text.len());
            let vectors = try_join_all(jobs.map(|texts| self.job(lane, texts))).await?;
            Ok(vectors.concat())
        })
    }
}

/// What a model's vectors depend on.
const FILES: [&str; 6] = [
    "config.json",
    "model.safetensors",
    "sentence_bert_config.json",
    "tokenizer.json",
    "vocab.txt",
    "1_Pooling/config.json",
];

/// What tells a model from all others.
fn digest(directory: &Path) -> io::Result<String> {
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    for name in FILES {
        let mut file = match File::open(directory.join(name)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            file => file?,
        };
        hash.update(name);
        while let length @ 1.. = file.read(&mut buffer)? {
            hash.update(&buffer[..length]);
        }
    }
    Ok(hash.finalize()[..8].iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::tiny::{self, Tiny};
    use super::*;
    use serde_json::json;

    #[test]
    fn what_cannot_be_computed_is_refused_with_a_reason() {
        fn check(reason: &str, damage: impl FnOnce(&mut Tiny)) {
            let mut tiny = Tiny::new();
            damage(&mut tiny);
            let Err(EmbedError::Configuration(message)) = LocalEmbedder::open(tiny.path()) else {
                panic!("opened, though: {reason}");
            };
            assert!(message.contains(reason), "{message:?} does not say {reason:?}");
            assert!(message.contains(&tiny.path().display().to_string()), "{message:?} does not say where");
        }
        fn configured(reason: &str, key: &str, value: serde_json::Value) {
            check(reason, |tiny| {
                let mut config = tiny::config();
                config[key] = value;
                tiny.write("config.json", config.to_string());
            });
        }
        fn shaped(reason: &str, change: impl FnOnce(&mut tiny::Tensors)) {
            check(reason, |tiny| {
                change(&mut tiny.tensors);
                tiny.write("model.safetensors", tiny::safetensors(&tiny.tensors));
            });
        }

        check("there is no config.json", |tiny| tiny.remove("config.json"));
        check("config.json: ", |tiny| tiny.write("config.json", "{}"));
        configured(r#"model_type is "t5""#, "model_type", json!("t5"));
        configured(r#"hidden_act is "relu""#, "hidden_act", json!("relu"));
        configured("position_embedding_type", "position_embedding_type", json!("relative_key"));
        configured("num_attention_heads times", "num_attention_heads", json!(0));
        configured("num_attention_heads times", "num_attention_heads", json!(4));
        configured("intermediate_size must be", "intermediate_size", json!(60));
        configured("too small", "max_position_embeddings", json!(2));
        configured("shape [24, 32] where config.json means [512, 32]", "max_position_embeddings", json!(512));
        configured("there is no tensor encoder.layer.2", "num_hidden_layers", json!(3));
        configured("the tokenizer has 12 tokens", "vocab_size", json!(11));
        check("there is neither tokenizer.json nor vocab.txt", |tiny| tiny.remove("tokenizer.json"));
        check("tokenizer.json", |tiny| tiny.write("tokenizer.json", "{}"));
        check("the tokenizer has no [CLS]", |tiny| {
            tiny.remove("tokenizer.json");
            tiny.write("vocab.txt", "[UNK]\n[SEP]\nfox");
        });
        check("uncased", |tiny| {
            tiny.remove("tokenizer.json");
            tiny.write("vocab.txt", tiny::VOCABULARY.join("\n"));
            tiny.write("tokenizer_config.json", r#"{"do_lower_case": false}"#);
        });
        check("1_Pooling/config.json", |tiny| {
            tiny.write("1_Pooling/config.json", r#"{"pooling_mode_max_tokens": true}"#)
        });
        check("model.safetensors", |tiny| tiny.remove("model.safetensors"));
        check("model.safetensors: it is not a safetensors file", |tiny| {
            tiny.write("model.safetensors", [b'x'; 99])
        });
        shaped("there is no tensor encoder.layer.1.output.LayerNorm.bias", |tensors| {
            tensors.remove("encoder.layer.1.output.LayerNorm.bias");
        });
        shaped("holds something that is no number", |tensors| {
            tensors.get_mut("encoder.layer.0.output.dense.bias").unwrap().1[3] = f32::INFINITY;
        });
    }

    #[tokio::test]
    async fn another_model_has_a_space_of_its_own() {
        let tiny = Tiny::new();
        let embedder = LocalEmbedder::open(tiny.path()).unwrap();
        let id = embedder.model_id().to_owned();
        assert_eq!(Space::of(&id).as_ref(), Some(embedder.space()));
        assert_eq!((embedder.space().dimensions, embedder.space().is_shared()), (tiny::WIDTH, false));
        assert_eq!(embedder.embed(&["the fox"]).await.unwrap()[0].len(), tiny::WIDTH);

        assert_eq!(LocalEmbedder::open(tiny.path()).unwrap().model_id(), id);
        tiny.write("1_Pooling/config.json", r#"{"pooling_mode": "cls"}"#);
        assert_ne!(LocalEmbedder::open(tiny.path()).unwrap().model_id(), id);
    }

    #[test]
    fn models_saved_with_a_head_are_read_as_well() {
        let mut tiny = Tiny::new();
        let vectors = |tiny: &Tiny| LocalEmbedder::open(tiny.path()).unwrap().compute(&["the lazy dog"]);
        let expected = vectors(&tiny);
        tiny.tensors =
            tiny.tensors.into_iter().map(|(name, tensor)| (format!("bert.{name}"), tensor)).collect();
        tiny.write("model.safetensors", tiny::safetensors(&tiny.tensors));
        assert_eq!(vectors(&tiny), expected);
    }

    #[tokio::test]
    async fn many_texts_come_back_in_their_order() {
        let embedder = LocalEmbedder::open(Tiny::new().path()).unwrap();
        let long = "the lazy dog jumps over the fox. ".repeat(90);
        let texts: Vec<_> = ["", "fox", &long, "the dog", "jump"].into_iter().cycle().take(50).collect();
        assert_eq!(embedder.embed(&texts).await.unwrap(), embedder.compute(&texts));
        assert!(embedder.embed(&[]).await.unwrap().is_empty());
    }

    #[tokio::test]
    async fn a_query_does_not_wait_for_batches() {
        let embedder = LocalEmbedder::open(Tiny::new().path()).unwrap();
        let _busy = embedder
            .batches
            .clone()
            .acquire_many_owned(embedder.batches.available_permits() as u32)
            .await
            .unwrap();
        assert_eq!(embedder.embed(&["the fox"]).await.unwrap(), embedder.compute(&["the fox"]));
    }
}
