//! A query, prepared: its words, its meaning, and whom it is about.

use super::turn::{Budget, SearchTurn, Wanted};
use super::view::{SearchedScope, View};
use crate::{Context, SearchSettings};
use memtrove_core::identity::Tenant;
use memtrove_core::recall::actors::{self, Subject};
use memtrove_core::recall::fusion::Weights;
use memtrove_core::recall::passages::{self, MEMORY_PIECES as MOST_PIECES, PassageQuery};
use memtrove_core::recall::relevance::Asked;
use memtrove_core::recall::terms;
use memtrove_core::text::Words;
use memtrove_core::{Error, Result};
use memtrove_recall::embed::static_model::StaticModel;
use memtrove_recall::embed::{EmbedError, QueryVector};
use memtrove_recall::index::{SpaceNo, rescore};
use memtrove_store::Tx;
use memtrove_store::conversations::search::Scope;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

/// Ids and labels that name no person, or the speaker.
const NO_NAMES: [&str; 14] = [
    "admin",
    "agent",
    "ai",
    "assistant",
    "bot",
    "human",
    "i",
    "me",
    "mine",
    "my",
    "our",
    "system",
    "user",
    "we",
];

/// What is asked, of whom, by whom.
#[derive(Clone)]
pub(super) struct Question {
    pub tenant: Tenant,
    pub scope: Scope,
    query: String,
    /// For full text.
    pub words: Words,
    /// For ranking: all of them, of which the worthiest count.
    pub terms: Vec<u64>,
    /// In each space that it could be embedded for.
    pub vectors: Vec<(SpaceNo, Vec<f32>)>,
    /// Which share of it the model of each of these spaces knows.
    pub understood: Vec<(SpaceNo, f64)>,
    /// In the space of the bundled model, if there: any part of a text can be compared with it at once.
    shared: Option<Vec<f32>>,
    /// Those who take part in what is searched and are named in the query.
    names: BTreeSet<String>,
    pub weights: Weights,
    /// What is less similar, and has no word in common, is not wanted.
    pub floor: Option<f64>,
    /// Whether somebody still waits for it.
    pub wanted: Wanted,
    /// What is searched, once it was looked up.
    view: Option<View>,
    /// Whether those who take part were all looked at.
    pub has_all_names: bool,
}

impl Question {
    pub fn new(
        cx: &Context,
        tenant: Tenant,
        scope: Scope,
        query: String,
        weights: Weights,
        wanted: Wanted,
    ) -> Self {
        Self {
            tenant,
            scope,
            words: cx.analyzer.query(&query),
            terms: terms::query(&cx.analyzer, &query),
            vectors: Vec::new(),
            understood: Vec::new(),
            shared: None,
            names: BTreeSet::new(),
            weights,
            floor: None,
            wanted,
            view: None,
            has_all_names: true,
            query,
        }
    }

    /// Finds out who of those who take part in what is searched is named in the query.
    pub async fn find_names(&mut self, cx: &Arc<Context>) -> Result<()> {
        let (inner, question, turn) = (cx.clone(), self.clone(), self.turn(cx).await?);
        let speakers = cx.store.read(&self.tenant, "search_speakers", move |tx| {
            let _ends_with_the_work = &turn;
            let mut names = BTreeSet::new();
            let view = question.view(tx, &inner)?;
            let is_all = view.each(tx, &inner, |_, known, _| {
                for name in known.speakers() {
                    if !names.contains(name) && question.is_named(name) {
                        names.insert(name.to_owned());
                    }
                }
            })?;
            Ok::<_, Error>((view, names, is_all))
        });
        let (view, names, is_all) = speakers.await?;
        (self.view, self.names, self.has_all_names) = (Some(view), names, is_all);
        Ok(())
    }

    /// Waits until it may be worked on.
    pub async fn turn(&self, cx: &Context) -> Result<SearchTurn> {
        cx.search_turns.take(cx.trees.is_large(&self.tenant, &self.scope)).await
    }

    /// What is searched: as it was when the search began, unless that is a while ago.
    pub fn view(&self, tx: &mut dyn Tx, cx: &Context) -> Result<View> {
        let searched = || SearchedScope { tenant: self.tenant.clone(), scope: self.scope.clone() };
        match &self.view {
            Some(view) if view.is_fresh() => Ok(view.clone()),
            Some(view) => View::of(tx, cx, searched(), view.budget()),
            None => View::of(tx, cx, searched(), Budget::begin(&self.wanted, cx.settings.search.budget)),
        }
    }

    /// Embeds the query, as those it names would put it.
    pub async fn embed(&mut self, cx: &Context) -> Result<(), EmbedError> {
        let query = actors::in_first_person(&self.query, self.names.iter().map(String::as_str));
        let vectors = cx.embeddings.query(self.tenant.as_str(), &query).await?;
        self.shared = vectors.iter().find(|made| made.space.is_shared()).map(|made| made.vector.clone());
        let space_no = |made: &QueryVector| cx.trees.space_no(&made.space);
        self.understood = vectors.iter().map(|made| (space_no(made), made.understood)).collect();
        self.vectors = vectors.into_iter().map(|made| (space_no(&made), made.vector)).collect();
        Ok(())
    }

    /// What of a long text a hit shows: the passage that answers, by terms that have been weighed. None of a short one.
    pub fn passage(&self, cx: &Context, weighed: &[(u64, f64)], text: &str) -> Option<Range<usize>> {
        if !passages::is_long(text) {
            return None;
        }
        let terms = match weighed {
            [] => self.terms.iter().map(|term| (*term, 1.0)).collect(),
            weighed => weighed.to_vec(),
        };
        let known = terms.iter().map(|(_, worth)| worth).sum();
        let understood = if self.shared.is_some() { StaticModel::understood(&self.query) } else { 0.0 };
        let query = PassageQuery::new(terms, Asked { known, unknown: 0.0, understood });
        let cosine = |_: usize, piece: &str| match &self.shared {
            Some(vector) => f64::from(rescore(vector, &StaticModel::vector(piece))),
            None => 0.0,
        };
        let pieces = passages::cut(text, MOST_PIECES);
        let best = query.best_piece(&cx.analyzer, text, &pieces, cosine)?;
        Some(query.passage(&cx.analyzer, text, &best))
    }

    /// The name of whom the query is about, if it is about somebody; an agent has none.
    pub fn subject(&self) -> Option<&str> {
        match actors::subject(&self.query, self.names.iter().map(String::as_str))? {
            Subject::Named(name) => Some(name),
            Subject::Asker => match &self.scope {
                Scope::Member(user) | Scope::Owner(user) => Some(user.as_str()),
                Scope::Tenant { .. } => None,
            },
            Subject::Agent => Some(""),
        }
    }

    fn is_named(&self, name: &str) -> bool {
        !NO_NAMES.iter().any(|no_name| name.eq_ignore_ascii_case(no_name))
            && matches!(actors::subject(&self.query, [name]), Some(Subject::Named(_)))
    }
}

/// What counts how much, as far as a request says so.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct WeightsRequest {
    /// See [`Weights::lexical`].
    pub lexical: Option<f64>,
    /// See [`Weights::context`].
    pub context: Option<f64>,
    /// See [`Weights::by_another`].
    pub by_another: Option<f64>,
    /// See [`Weights::asks`].
    pub asks: Option<f64>,
}

impl WeightsRequest {
    /// What the deployment has, but for what the request says.
    pub(super) fn over(&self, settings: &SearchSettings, actor: Option<bool>) -> Result<Weights> {
        let usual = &settings.weights;
        let weight = |name: &str, asked: Option<f64>, usual: f64| match asked {
            Some(asked) if !(0.0..=1.0).contains(&asked) => {
                Err(Error::invalid(format!("weights.{name}"), "must be between 0 and 1"))
            }
            asked => Ok(asked.unwrap_or(usual)),
        };
        let by_another = weight("byAnother", self.by_another, usual.by_another)?;
        Ok(Weights {
            lexical: weight("lexical", self.lexical, usual.lexical)?,
            context: weight("context", self.context, usual.context)?,
            by_another: if actor.unwrap_or(settings.actor) { by_another } else { 1.0 },
            asks: weight("asks", self.asks, usual.asks)?,
        })
    }
}
