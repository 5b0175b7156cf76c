//! Whose memory an agent works with: bound by the host, never said by the agent.

use super::McpServer;
use super::failure::to_failure;
use memtrove_core::files::{ScopedCaller, path};
use memtrove_core::identity::{
    Caller, Credentials, IdentityPolicy, Principal, RoleGrant, Trust, VerifiedClient, VerifiedUser, resolve,
};
use memtrove_core::memories::{Identifier, Identifiers, Layer, MemoryCaller};
use memtrove_core::{ConversationId, Error, Result};
use memtrove_service::quota::CallKind;
use memtrove_wire::tools::ToolFailure;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::HashSet;
use uuid::Uuid;

const MAX_PROJECT_CHARS: usize = 255;
/// Who acts on files where no agent is named.
const ACTOR: &str = "memtrove-mcp";

/// Who works with the memory of a machine's own user: as the process that starts it says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Local {
    /// The user.
    pub user: String,
    /// The tenant.
    pub tenant: String,
    /// The project that is worked on.
    pub project: Option<String>,
    /// The agent.
    pub agent: Option<String>,
    /// The conversation that the session's messages belong to.
    pub session: Uuid,
}

/// Whose memory it is, and who works with it.
#[derive(Debug, Clone)]
pub struct Bound {
    principal: Principal,
    user: String,
    project: Option<String>,
    session: Option<ConversationId>,
    request_id: String,
}

impl Bound {
    /// The memory of the user whom a principal is or speaks for.
    pub fn new(principal: Principal, project: Option<String>, request_id: String) -> Result<Self> {
        let user = principal.user.as_ref().or(principal.asserted_user.as_ref()).ok_or(Error::UNAUTHORIZED)?;
        let user = user.as_str().to_owned();
        let too_long = |project: &String| project.chars().count() > MAX_PROJECT_CHARS;
        if project.as_ref().is_some_and(|project| too_long(project) || project.contains(char::is_control)) {
            return Err(Error::invalid(
                "project",
                format!("must have at most {MAX_PROJECT_CHARS} characters, none of them a control character"),
            ));
        }
        let project = project.filter(|project| !project.trim().is_empty());
        Ok(Self { principal, user, project, session: None, request_id })
    }

    /// The memory of a user who may open the store anyway: it holds no role and is no trusted client.
    pub fn local(local: Local) -> Result<Self> {
        let nobody = RoleGrant::default;
        let policy = IdentityPolicy {
            default_tenant: local.tenant.clone(),
            trust: Trust::Clients(HashSet::new()),
            admin: nobody(),
            auditor: nobody(),
            indexer: nobody(),
            reader: None,
            writer: None,
        };
        let credentials = Credentials {
            user: Some(VerifiedUser { id: local.user, tenant: Some(local.tenant), role_values: Vec::new() }),
            client: local.agent.map(|id| VerifiedClient { id, tenant: None }),
            ..Credentials::default()
        };
        let principal = resolve(credentials, &policy)?;
        let bound = Self::new(principal, local.project, String::new())?;
        Ok(Self { session: Some(ConversationId(local.session)), ..bound })
    }

    /// The project, if one is bound.
    pub(super) fn project(&self) -> Option<&str> {
        self.project.as_deref()
    }

    /// Whose memory it is, for people and models.
    pub(super) fn name(&self) -> String {
        match &self.project {
            Some(project) => format!("{}, in the project {project}", self.user),
            None => self.user.clone(),
        }
    }

    /// The conversation of this session, if it has one.
    pub(super) fn session(&self) -> Option<ConversationId> {
        self.session
    }

    /// The tenant and the user, as an event names them.
    pub(super) fn scope(&self) -> (&str, &str) {
        (self.principal.tenant().as_str(), &self.user)
    }

    /// What the layers are named by.
    pub(super) fn identifiers(&self) -> Result<Identifiers> {
        let mut identifiers = Identifiers::default();
        identifiers.set(Identifier::User, "identifiers.userId", &self.user)?;
        identifiers.set(Identifier::Project, "identifiers.projectId", self.project().unwrap_or_default())?;
        Ok(identifiers)
    }

    /// Where is looked.
    pub(super) fn layers(&self) -> Vec<Layer> {
        if self.project.is_some() { vec![Layer::User, Layer::Project] } else { vec![Layer::User] }
    }
}

impl McpServer {
    /// The caller, in the files of its user.
    pub(super) fn files_caller(&self) -> Result<ScopedCaller> {
        let bound = &self.bound;
        // A user whose files have no path over REST has none here.
        let user = path::scope_id(&utf8_percent_encode(&bound.user, NON_ALPHANUMERIC).to_string())?;
        let actor = bound.principal.client.is_none().then_some(ACTOR);
        ScopedCaller::enter(&bound.principal, user, actor, bound.request_id.clone())
    }

    /// The caller, in the memories of its tenant.
    pub(super) fn memories_caller(&self) -> MemoryCaller {
        self.services.memories.caller(&self.bound.principal, self.bound.request_id.clone())
    }

    /// Charges a call of a tool that takes several steps; those are free for the caller that this gives back.
    pub(super) async fn charge_once<'a>(
        &self,
        caller: &'a MemoryCaller,
        kind: CallKind,
    ) -> Result<Cow<'a, MemoryCaller>, ToolFailure> {
        let identifiers = self.bound.identifiers().map_err(to_failure)?;
        self.services.memories.charge_once(caller, &identifiers, kind).await.map_err(to_failure)
    }

    /// The caller, in the conversations of its user.
    pub(super) fn conversations_caller(&self) -> Result<Caller> {
        self.bound.principal.clone().into_caller()
    }
}
