//! Files as resources: a host shows them to people, who choose what a model is to see.

use super::{McpServer, failure};
use memtrove_core::files::{Code, FilePath};
use memtrove_core::{Error, Result};
use memtrove_service::files::{ListFiles, Reader};
use memtrove_wire::files::Envelope;
use memtrove_wire::tools::shown;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use rmcp::ErrorData;
use rmcp::model::{
    ListResourcesResult, ReadResourceResponse, ReadResourceResult, Resource, ResourceContents,
    ResourceTemplate,
};
use serde_json::json;

const SCHEME: &str = "memtrove://files/";
const PAGE: i64 = 100;

/// What stands in an address as it is: so a path can be read in it.
const PLAIN: AsciiSet = NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// How addresses are made of paths.
pub(super) fn template() -> ResourceTemplate {
    ResourceTemplate::new(format!("{SCHEME}{{+path}}"), "file")
        .with_title("Memory file")
        .with_description("A memory file by its path, for example projects/plan.md")
}

/// A page of the files; a cursor is the last path of the page before.
pub(super) async fn list(
    server: &McpServer,
    cursor: Option<String>,
) -> Result<ListResourcesResult, ErrorData> {
    let page = async {
        let caller = server.files_caller()?;
        let files = &server.services.files;
        let admitted = files.admit(caller).await?;
        files.list(&admitted, ListFiles { prefix: None, limit: Some(PAGE), after: cursor }).await
    };
    let page = page.await.map_err(|error| refused(error, None))?;
    let files = page.files.into_iter().map(|file| Resource::new(address(&file.path), file.path));
    Ok(ListResourcesResult {
        next_cursor: page.next_after,
        ..ListResourcesResult::with_all_items(files.collect())
    })
}

/// The text of a file.
pub(super) async fn read(server: &McpServer, uri: String) -> Result<ReadResourceResponse, ErrorData> {
    let text = async {
        let Some(path) = uri.strip_prefix(SCHEME) else {
            return Err(Error::new(Code::DocumentNotFound, "there is no such resource"));
        };
        let path = FilePath::from_encoded(path)?;
        let caller = server.files_caller()?;
        let files = &server.services.files;
        let file = files.get(&files.admit::<Reader>(caller).await?, path).await?;
        let envelope: Envelope = serde_json::from_str(&file.document)
            .map_err(|error| Error::internal(format!("a stored document cannot be read: {error}")))?;
        Ok(shown(&envelope.content))
    };
    let (content_type, text) = text.await.map_err(|error| refused(error, Some(&uri)))?;
    let contents = ResourceContents::text(text, uri).with_mime_type(content_type);
    Ok(ReadResourceResult::new(vec![contents]).into())
}

fn address(path: &str) -> String {
    format!("{SCHEME}{}", utf8_percent_encode(path, &PLAIN))
}

/// A resource has no results that could tell of a failure, so the protocol's errors do.
fn refused(error: Error, uri: Option<&str>) -> ErrorData {
    let failure = failure::to_failure(error);
    let data = Some(json!({"uri": uri, "code": failure.code}));
    match failure.code.as_str() {
        "DOCUMENT_NOT_FOUND" => ErrorData::resource_not_found(failure.message, data),
        "UNHANDLED_ERROR" | "DEPENDENCY_UNAVAILABLE" => ErrorData::internal_error(failure.message, data),
        _ => ErrorData::invalid_params(failure.message, data),
    }
}
