//! The local embedder with the real weights of all-MiniLM-L6-v2, against vectors computed in 32-bit floats.
#![cfg(feature = "local")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use memtrove_recall::embed::local::LocalEmbedder;
use memtrove_recall::embed::static_model::StaticModel;
use memtrove_recall::embed::{Embedder, LOCAL_MODEL, Space};
use serde::Deserialize;
use std::env;
use std::fs;
use std::path::PathBuf;
use std::sync::LazyLock;

#[derive(Deserialize)]
struct Reference {
    text: String,
    /// What sentence-transformers makes of it, projected into the shared space; in ten-thousandths.
    vector: Vec<f32>,
}

static REFERENCES: LazyLock<Vec<Reference>> =
    LazyLock::new(|| serde_json::from_str(include_str!("fixtures/minilm.json")).unwrap());

static MINILM: LazyLock<LocalEmbedder> = LazyLock::new(|| LocalEmbedder::open(&directory()).unwrap());

/// Where the weights are: what `MEMTROVE_TEST_MINILM` says, or where `scripts/test-deps.sh` puts them.
fn directory() -> PathBuf {
    let set = |name| env::var_os(name).map(PathBuf::from);
    let cache = || set("XDG_CACHE_HOME").unwrap_or_else(|| env::home_dir().unwrap().join(".cache"));
    let directory = set("MEMTROVE_TEST_MINILM").unwrap_or_else(|| cache().join("memtrove/minilm"));
    assert!(directory.is_dir(), "there is no {}; run scripts/test-deps.sh first", directory.display());
    directory
}

fn vectors() -> Vec<Vec<f32>> {
    let texts: Vec<_> = REFERENCES.iter().map(|reference| reference.text.as_str()).collect();
    MINILM.compute(&texts)
}

fn cosine(a: &[f32], b: &[f32]) -> f32 {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
}

#[test]
fn all_minilm_l6_v2_is_recognised() {
    assert_eq!(MINILM.model_id(), LOCAL_MODEL);
    assert_eq!(*MINILM.space(), Space::shared());
}

#[test]
fn a_model_of_the_same_size_is_another_model() {
    let (minilm, other) = (directory(), tempfile::tempdir().unwrap());
    for name in ["config.json", "model.safetensors", "tokenizer.json"] {
        fs::copy(minilm.join(name), other.path().join(name)).unwrap();
    }
    let config = other.path().join("config.json");
    let shallow =
        fs::read_to_string(&config).unwrap().replace("\"num_hidden_layers\": 6", "\"num_hidden_layers\": 5");
    fs::write(&config, shallow).unwrap();

    let embedder = LocalEmbedder::open(other.path()).unwrap();
    assert!(!embedder.space().is_shared());
    assert_eq!(embedder.space().dimensions, 384);
}

#[test]
fn vectors_point_where_those_of_32_bit_floats_do() {
    let cosines: Vec<_> =
        vectors().iter().zip(&*REFERENCES).map(|(ours, reference)| cosine(ours, &reference.vector)).collect();
    let mean = cosines.iter().sum::<f32>() / cosines.len() as f32;
    assert!(mean > 0.998, "{mean}: {cosines:.4?}");
    assert!(cosines.iter().all(|cosine| *cosine > 0.997), "{cosines:.4?}");
}

#[test]
fn texts_are_as_similar_as_in_32_bit_floats() {
    let vectors = vectors();
    for (a, first) in REFERENCES.iter().enumerate() {
        for (b, second) in REFERENCES.iter().enumerate() {
            let (ours, expected) = (cosine(&vectors[a], &vectors[b]), cosine(&first.vector, &second.vector));
            assert!(
                (ours - expected).abs() < 0.03,
                "{:?} / {:?}: {ours} instead of {expected}",
                first.text,
                second.text
            );
        }
    }
}

#[test]
fn the_static_model_puts_a_text_near_to_where_the_transformer_does() {
    for (reference, vector) in REFERENCES.iter().zip(vectors()) {
        let similarity = cosine(&vector, &StaticModel::vector(&reference.text));
        assert!(similarity > 0.5, "{:?}: {similarity}", reference.text);
    }
}

#[tokio::test]
async fn a_long_text_is_embedded_to_its_end() {
    let start = "Deploys happen on Tuesdays, after the stand-up. ".repeat(60);
    let end = "My dog is called Rex, and he loves to swim in the lake. ".repeat(60);
    let vectors = MINILM.embed(&[&format!("{start}{end}"), &start, &end]).await.unwrap();
    for part in [&vectors[1], &vectors[2]] {
        assert!(cosine(&vectors[0], part) > 0.6, "{}", cosine(&vectors[0], part));
    }
}
