//! Requests whose method is known and whose params are not what it takes. The SDK hands them over as if it did not know the
//! method, so what is wrong with them is said here.

use super::McpServer;
use rmcp::model::{
    CallToolRequestParams, CustomRequest, CustomResult, ErrorCode, InitializeRequestParams, ProtocolVersion,
    ReadResourceRequestParams,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// Answers such a request.
pub(super) async fn answer(
    server: &McpServer,
    request: CustomRequest,
    context: RequestContext<RoleServer>,
) -> Result<CustomResult, ErrorData> {
    let CustomRequest { method, params, .. } = request;
    match method.as_str() {
        "tools/call" => call(server, params, context).await,
        "resources/read" => Err(wrong::<ReadResourceRequestParams>(&method, params)),
        "initialize" => Err(wrong::<InitializeRequestParams>(&method, params)),
        _ => Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, method, None)),
    }
}

/// Calls a tool with arguments that are the text of an object, as some models send them.
async fn call(
    server: &McpServer,
    params: Option<Value>,
    context: RequestContext<RoleServer>,
) -> Result<CustomResult, ErrorData> {
    const METHOD: &str = "tools/call";
    let text = params.as_ref().and_then(|params| params.get("arguments")).and_then(Value::as_str);
    let arguments = match text.map(str::trim) {
        None => return Err(wrong::<CallToolRequestParams>(METHOD, params)),
        Some("") => Map::new(),
        Some(text) => serde_json::from_str(text).map_err(|error| {
            refused(METHOD, &format!("'arguments' is neither an object nor the text of one: {error}"))
        })?,
    };
    let mut params = params.unwrap_or_default();
    params["arguments"] = arguments.into();
    let call: CallToolRequestParams =
        serde_json::from_value(params).map_err(|error| refused(METHOD, &error.to_string()))?;
    let is_older = context
        .protocol_version()
        .is_none_or(|version| version.as_str() < ProtocolVersion::V_2026_07_28.as_str());
    let mut result = server.called(call).await?;
    if is_older {
        // Older versions of the protocol do not know of it.
        result.result_type = None;
    }
    let result = serde_json::to_value(result);
    result.map(CustomResult::new).map_err(|error| ErrorData::internal_error(error.to_string(), None))
}

/// What is wrong with params that a method cannot be called with.
fn wrong<T: DeserializeOwned>(method: &str, params: Option<Value>) -> ErrorData {
    match params {
        None => refused(method, "its params are missing"),
        Some(params) => match serde_json::from_value::<T>(params) {
            Err(error) => refused(method, &error.to_string()),
            Ok(_) => refused(method, "its params cannot be read"),
        },
    }
}

fn refused(method: &str, problem: &str) -> ErrorData {
    ErrorData::invalid_params(format!("{method}: {problem}"), None)
}
