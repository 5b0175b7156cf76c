//! `[search]`.

use super::{given, stops};
use memtrove::config::Config;
use memtrove::serve;
use memtrove_core::recall::fusion::Weights;
use memtrove_service::{AutoMode, SearchSettings, Settings};
use std::time::Duration;

#[test]
fn search_is_by_words_and_meaning_together_unless_set_otherwise() {
    let settings = serve::settings(&Config::default());
    assert_eq!(settings.search, SearchSettings::default());
    assert_eq!(settings.index_memory, Settings::default().index_memory);
    let file = "[search]\nsemantic_enabled = false\nmin_score = 0.25\nauto_mode = \"fallback\"\nactor = false\n\
                index_memory = \"64MiB\"\nbudget = \"250ms\"\n[search.weights]\nlexical = 0.1\ncontext = 0.2\nby_another = 1\nasks = 0\n";
    let loaded = given(file).load();
    assert_eq!(loaded.config.problems(), []);
    let settings = serve::settings(&loaded.config);
    let expected = SearchSettings {
        semantic: false,
        min_score: Some(0.25),
        auto_mode: AutoMode::Fallback,
        actor: false,
        weights: Weights { lexical: 0.1, context: 0.2, by_another: 1.0, asks: 0.0 },
        budget: Duration::from_millis(250),
    };
    assert_eq!((settings.search, settings.index_memory), (expected, 64 << 20));
    let variable = given("").variable("MEMTROVE_SEARCH__WEIGHTS__LEXICAL", "0.3").load().config;
    assert_eq!(variable.search.weights.lexical, 0.3);
}

#[test]
fn what_cannot_be_searched_with_stops_the_start() {
    stops("[search]\nmin_score = 1.5\n", &["search.min_score: is 1.5; use 0 to 1"]);
    stops("[search]\nmin_score = nan\n", &["search.min_score: is NaN; use 0 to 1"]);
    stops(
        "[search]\nindex_memory = 0\n",
        &["search.index_memory: is 0, so nothing could be done; set at least 1, or remove the key"],
    );
    for weight in ["lexical", "context", "by_another", "asks"] {
        let problem = format!("search.weights.{weight}: is -0.1; use 0 to 1");
        stops(&format!("[search.weights]\n{weight} = -0.1\n"), &[&problem]);
    }
    let complaint = given("[search]\nauto_mode = \"best\"\n").complaint();
    assert!(
        complaint.ends_with("search.auto_mode is 'best', but can only be one of: hybrid, fallback"),
        "{complaint}"
    );
}
