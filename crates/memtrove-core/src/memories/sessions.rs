//! The end of a session, clearing a scope, and promoting one entry.

use super::add::check_share;
use super::{
    Code, Identifiers, Kind, Layer, Memory, MemoryCaller, Precondition, Rules, ScopeKey, SessionRules, State,
    Viewer, promote,
};
use crate::{Error, Result, Timestamp};

/// The end of a session, as somebody asks for it; what is not said is as configured.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct EndSession {
    /// The user and the session, and maybe more.
    pub identifiers: Identifiers,
    /// Whether what is not promoted goes.
    pub auto_delete: Option<bool>,
    /// How long it stays then.
    pub retention_seconds: Option<i64>,
    /// Whether what matters is copied to the user layer.
    pub promote_important: Option<bool>,
    /// From which score something matters.
    pub promotion_threshold: Option<f64>,
    /// When it ended, if not now.
    pub as_of: Option<Timestamp>,
}

/// The end of a session that may be ended.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionEnd {
    /// The session layer's scope.
    pub scope: ScopeKey,
    /// All identifiers of the request.
    pub identifiers: Identifiers,
    /// What happens.
    pub rules: SessionRules,
    /// When it ended, if not now.
    pub as_of: Option<Timestamp>,
}

impl EndSession {
    /// The end that may be made of it.
    pub fn check(self, rules: &Rules, caller: &MemoryCaller) -> Result<SessionEnd> {
        let threshold = check_share("promotionThreshold", self.promotion_threshold)?;
        rules.check_layer(Layer::Session)?;
        let scope = caller.writable_scope(&self.identifiers, Layer::Session)?;
        let configured = &rules.session;
        let rules = SessionRules {
            auto_delete: self.auto_delete.unwrap_or(configured.auto_delete),
            retention_seconds: self.retention_seconds.unwrap_or(configured.retention_seconds),
            promote_important: self.promote_important.unwrap_or(configured.promote_important),
            promotion_threshold: threshold.unwrap_or(configured.promotion_threshold),
        };
        Ok(SessionEnd { scope, identifiers: self.identifiers, rules, as_of: self.as_of })
    }
}

/// A scope to be cleared, as somebody asks for it.
#[derive(Debug, Clone, PartialEq)]
pub struct ClearMemories {
    /// Whose.
    pub layer: Layer,
    /// What the scope is named by, and maybe more.
    pub identifiers: Identifiers,
    /// Of these kinds; working ones unless said.
    pub kinds: Option<Vec<Kind>>,
}

/// All entries of some kinds in one scope, which may be removed.
#[derive(Debug, Clone, PartialEq)]
pub struct Clear {
    /// Whose.
    pub scope: ScopeKey,
    /// For whom.
    pub viewer: Viewer,
    /// Of these kinds.
    pub kinds: Vec<Kind>,
}

impl ClearMemories {
    /// The entries that may be removed.
    pub fn check(self, rules: &Rules, caller: &MemoryCaller) -> Result<Clear> {
        rules.check_layer(self.layer)?;
        let scope = caller.writable_scope(&self.identifiers, self.layer)?;
        let kinds = self.kinds.unwrap_or_else(|| vec![Kind::Working]);
        Ok(Clear { scope, viewer: caller.viewer(&self.identifiers), kinds })
    }
}

/// A promotion that somebody asks for.
#[derive(Debug, Clone, PartialEq)]
pub struct Promote {
    /// The layer it goes to.
    pub target_layer: Layer,
    /// The identifiers of the request; the entry's own complete them.
    pub identifiers: Identifiers,
    /// The version it is for.
    pub precondition: Precondition,
}

impl Promote {
    /// The scope that an entry goes to, if it may.
    pub fn target(&self, memory: &Memory, caller: &MemoryCaller) -> Result<ScopeKey> {
        let identifiers = self.identifiers.clone().or(&memory.scope.identifiers());
        let scope = caller.writable_scope(&identifiers, self.target_layer)?;
        if scope == memory.scope {
            return Err(Error::field("targetLayer", "must lead to another scope than the memory's"));
        }
        if let Some(block) = promote::block(memory) {
            let message = "a sensitive memory is not promoted";
            return Err(Error::new(Code::Forbidden, message).with("reason", block.as_str()));
        }
        if memory.state == State::Archived {
            let message = "an archived memory is not promoted; restore it first";
            let refusal = Error::new(Code::InvalidState, message);
            return Err(refusal.with("state", memory.state.as_str()));
        }
        self.precondition.check(memory)?;
        Ok(scope)
    }
}
