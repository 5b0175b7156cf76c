//! The query parameters of the mem0 API, described.
#![allow(dead_code, reason = "describes parameters in the OpenAPI document; nothing makes these types")]

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
