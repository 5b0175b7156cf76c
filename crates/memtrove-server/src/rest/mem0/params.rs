//! The query parameters of the mem0 API: described, and read as the members of a body.
#![allow(dead_code, reason = "describes parameters in the OpenAPI document; nothing makes these types")]

use memtrove_core::memories::mem0::Entity;
use memtrove_core::memories::params::Params;
use memtrove_core::{Error, Result};
use serde_json::{Map, Value};
use utoipa::IntoParams;

/// Whose memories.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct EntityParameters {
    /// Of this user.
    #[param(nullable = false)]
    user_id: Option<String>,
    /// Of this agent.
    #[param(nullable = false)]
    agent_id: Option<String>,
    /// Of this app.
    #[param(nullable = false)]
    app_id: Option<String>,
    /// Of this run.
    #[param(nullable = false)]
    run_id: Option<String>,
}

/// Which page.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct PageParameters {
    /// Which page, from 1 on.
    #[param(minimum = 1, maximum = 1000000, nullable = false)]
    page: Option<i64>,
    /// How many are on one; 100 unless said otherwise.
    #[param(minimum = 1, maximum = 100, nullable = false)]
    page_size: Option<i64>,
}

/// Which page of users, agents, apps and runs.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct EntityPageParameters {
    /// Which page, from 1 on.
    #[param(minimum = 1, maximum = 1000000, nullable = false)]
    page: Option<i64>,
    /// How many are on one; 10000 unless said otherwise.
    #[param(minimum = 1, maximum = 10000, nullable = false)]
    page_size: Option<i64>,
}

/// Parameters as members of a body: ids as they are, `numbers` as what they spell. Others are refused: what is not looked at
/// could mean more than was meant.
pub(super) fn members(params: &[(String, String)], numbers: &[&str]) -> Result<Map<String, Value>> {
    let ids = Entity::ALL.map(Entity::member);
    let known = |name: &str| ids.contains(&name) || numbers.contains(&name);
    if let Some((unknown, _)) = params.iter().find(|(name, _)| !known(name)) {
        let problem =
            "is not known here; name user_id, agent_id, app_id or run_id as parameters of their own";
        return Err(Error::field(unknown.replace('\0', "\u{fffd}"), problem));
    }
    Params::new(params)?.members(&ids, numbers)
}
