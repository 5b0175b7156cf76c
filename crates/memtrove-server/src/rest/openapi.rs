//! The OpenAPI document, from the routes and types themselves.

use super::admin::JUSTIFICATION_HEADER;
use super::error::ErrorBody;
use super::files::FilesErrorBody;
use super::mem0::Mem0ErrorBody;
use super::memories::MemoriesErrorBody;
use super::openspec::OpenSpecErrorBody;
use super::surface::Surface;
use memtrove_wire as wire;
use utoipa::openapi::content::ContentBuilder;
use utoipa::openapi::path::{
    HttpMethod, Operation, OperationBuilder, Parameter, ParameterBuilder, ParameterIn, PathItem,
};
use utoipa::openapi::response::ResponseBuilder;
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::security::{ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{OpenApi, Ref, RefOr, SecurityRequirement};
use utoipa::{OpenApi as _, PartialSchema, ToSchema};

#[derive(utoipa::OpenApi)]
#[openapi(
    info(
        title = "Memtrove",
        description = "One memory service for every AI agent: conversations with forks, sharing, agent memory and search; files with versions, edits and an audit trail; events; memories in layers, found by meaning; forgetting.",
        license(name = "Apache-2.0", identifier = "Apache-2.0")
    ),
    components(schemas(wire::ListMode, wire::AttachmentFilter, wire::ChannelFilter, wire::ChangesGap, wire::Forks, wire::TransferRole)),
    tags(
        (name = "conversations", description = "What was said: conversations and their forks"),
        (name = "entries", description = "Reading, appending and syncing entries"),
        (name = "attachments", description = "Files that belong to entries"),
        (name = "sharing", description = "Who may see and do what"),
        (name = "ownership transfers", description = "Handing a conversation over, in two steps"),
        (name = "search", description = "Finding entries, and the text they are found by"),
        (name = "changes", description = "What happened, in order, for webhooks, caches and streams"),
        (name = "files", description = "Documents with versions: read, write, edit, assemble"),
        (name = "events", description = "What happened, in short, and finding it again"),
        (name = "audit", description = "Who changed what, and every version proved"),
        (name = "memories", description = "What is recalled by meaning: in seven layers, of seven kinds, fading and promoted"),
        (name = "facts", description = "Memories that state something of something"),
        (name = "knowledge", description = "The same memories by the OpenSpec knowledge protocol"),
        (name = "mem0", description = "The same memories by the API of mem0: what a language model would do is refused"),
        (name = "lifecycle", description = "Retention, and forgetting a user"),
        (name = "admin", description = "Everything in a tenant, for admins and auditors"),
        (name = "operations", description = "Health")
    )
)]
struct ApiHead;

/// Errors that any operation may answer with, whatever else it says.
const COMMON_ERRORS: [(&str, &str); 10] = [
    ("400", "The request is not valid"),
    ("401", "No valid credentials"),
    ("403", "Not allowed"),
    ("404", "Not found"),
    ("409", "The state of the thing does not allow it"),
    ("413", "The body is too large"),
    ("415", "The body is not JSON"),
    ("500", "A defect of the server"),
    ("503", "Overloaded or unavailable, nothing was done; try again after `Retry-After`"),
    ("504", "Took too long; it may have been done"),
];

const TOO_MANY: (&str, &str) = ("429", "A quota is used up; try again after `Retry-After`");

/// Errors of operations that others carry out, or that are not everywhere.
const PROVIDER_ERRORS: [(&str, &str); 3] = [
    TOO_MANY,
    ("501", "Not offered here, or switched off"),
    ("502", "What stores memories or makes embeddings failed for good"),
];

/// A header that many operations read: its name, its meaning, and how many characters it may have.
type SharedHeader = (&'static str, &'static str, usize);

const USER: SharedHeader = (
    "X-User-ID",
    "The user to act for: from an agent that is trusted to say so, where no bearer token does",
    255,
);
const TENANT: SharedHeader = (
    "X-Tenant-Id",
    "The tenant to act in, where the credentials leave the choice; in a path that names the tenant, that one",
    255,
);
const JUSTIFICATION: SharedHeader =
    (JUSTIFICATION_HEADER, "Why, for the audit log; a deployment may require it", 1000);

/// What the shell answers by itself, to anybody: path, id, summary, media type, and what an unhappy answer means.
const OPERATIONS: [(&str, &str, &str, &str, Option<&str>); 4] = [
    ("/v1/health", "health", "Says that the service is there.", "application/json", None),
    ("/health/live", "live", "Says that the process is alive.", "application/json", None),
    (
        "/health/ready",
        "ready",
        "Says whether requests can be served.",
        "application/json",
        Some("Not ready, and why"),
    ),
    ("/metrics", "metrics", "Metrics in the text format of Prometheus.", "text/plain", None),
];

/// The document of the whole API.
pub fn document() -> OpenApi {
    let mut document = ApiHead::openapi();
    document.info.version = env!("CARGO_PKG_VERSION").to_owned();
    document.merge(super::routes().split_for_parts().1);
    // The router's spelling of a path that may contain slashes.
    document.paths.paths =
        document.paths.paths.into_iter().map(|(path, item)| (path.replace("{*", "{"), item)).collect();
    for (path, item) in &mut document.paths.paths {
        let surface = Surface::of(path);
        let headers = if path.starts_with("/v1/admin/") { [TENANT, JUSTIFICATION] } else { [TENANT, USER] };
        item.parameters = Some(headers.map(reference).into());
        let operations = [&mut item.get, &mut item.post, &mut item.put, &mut item.patch, &mut item.delete]
            .into_iter()
            .flatten();
        operations.for_each(|operation| add_common_errors(operation, surface));
    }
    for (path, id, summary, media, unhappy) in OPERATIONS {
        document
            .paths
            .paths
            .insert(path.to_owned(), PathItem::new(HttpMethod::Get, operation(id, summary, media, unhappy)));
    }
    let components = document.components.get_or_insert_default();
    let mut schemas = vec![
        (ErrorBody::name().into_owned(), ErrorBody::schema()),
        (FilesErrorBody::name().into_owned(), FilesErrorBody::schema()),
        (MemoriesErrorBody::name().into_owned(), MemoriesErrorBody::schema()),
        (OpenSpecErrorBody::name().into_owned(), OpenSpecErrorBody::schema()),
        (Mem0ErrorBody::name().into_owned(), Mem0ErrorBody::schema()),
    ];
    ErrorBody::schemas(&mut schemas);
    FilesErrorBody::schemas(&mut schemas);
    MemoriesErrorBody::schemas(&mut schemas);
    OpenSpecErrorBody::schemas(&mut schemas);
    Mem0ErrorBody::schemas(&mut schemas);
    components.schemas.extend(schemas);
    let headers = [TENANT, USER, JUSTIFICATION];
    components.parameters.extend(headers.map(|header| (header.0.to_owned(), RefOr::T(parameter(header)))));
    let bearer = HttpBuilder::new()
        .scheme(HttpAuthScheme::Bearer)
        .description(Some("The user: a JWT, or in local mode just the user's name"))
        .build();
    let key = ApiKeyValue::with_description("X-API-Key", "The agent");
    components.add_security_scheme("user", SecurityScheme::Http(bearer));
    components.add_security_scheme("agent", SecurityScheme::ApiKey(ApiKey::Header(key)));
    let none: [&str; 0] = [];
    document.security = Some(vec![
        SecurityRequirement::new("user", none),
        SecurityRequirement::new("user", none).add("agent", none),
        SecurityRequirement::new("agent", none),
    ]);
    document
}

/// Where a header is described, once for all operations.
fn reference((name, ..): SharedHeader) -> RefOr<Parameter> {
    RefOr::Ref(Ref::new(format!("#/components/parameters/{name}")))
}

fn parameter((name, description, max_length): SharedHeader) -> Parameter {
    let text = ObjectBuilder::new().schema_type(Type::String).max_length(Some(max_length));
    ParameterBuilder::new()
        .name(name)
        .parameter_in(ParameterIn::Header)
        .description(Some(description))
        .schema(Some(text))
        .build()
}

fn operation(id: &str, summary: &str, media: &str, unhappy: Option<&str>) -> Operation {
    let answer = |description: &str| {
        ResponseBuilder::new().description(description).content(media, ContentBuilder::new().build()).build()
    };
    let nobody: [SecurityRequirement; 1] = [SecurityRequirement::default()];
    let operation = OperationBuilder::new()
        .operation_id(Some(id))
        .summary(Some(summary))
        .tag("operations")
        .securities(Some(nobody))
        .response("200", answer("Yes"));
    match unhappy {
        Some(description) => operation.response("503", answer(description)).build(),
        None => operation.build(),
    }
}

fn add_common_errors(operation: &mut Operation, surface: Surface) {
    let (schema, more) = match surface {
        // Calls of gRPC are not in this document.
        Surface::Conversations | Surface::Grpc | Surface::Mcp => (ErrorBody::name(), &[][..]),
        Surface::Files => (FilesErrorBody::name(), &[TOO_MANY][..]),
        Surface::Memories => (MemoriesErrorBody::name(), &PROVIDER_ERRORS[..]),
        Surface::OpenSpec => (OpenSpecErrorBody::name(), &PROVIDER_ERRORS[..]),
        Surface::Mem0 => (Mem0ErrorBody::name(), &PROVIDER_ERRORS[..]),
    };
    let schema = Ref::from_schema_name(schema);
    for (status, description) in COMMON_ERRORS.iter().chain(more).copied() {
        let content = ContentBuilder::new().schema(Some(RefOr::Ref(schema.clone()))).build();
        let response =
            ResponseBuilder::new().description(description).content("application/json", content).build();
        operation.responses.responses.entry(status.to_owned()).or_insert(RefOr::T(response));
    }
}
