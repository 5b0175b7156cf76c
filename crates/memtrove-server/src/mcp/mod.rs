//! Memtrove for agents: an MCP server over the functions of the service.
//!
//! [`McpServer`] answers for one [`Bound`] caller, whom the host chose: over stdio the user who started the process, over HTTP
//! the user whom the credentials name. No argument of a tool says whose memory is meant, so a model cannot be talked into using
//! that of another user.
//!
//! To add a tool: its definition in `catalogue.rs`, its function in `tools`, next to its siblings, and its line in
//! [`tools::call`]. A failure of the domain is a result that the model reads ([`failure`]); protocol errors are for requests
//! that make no sense.
//!
//! | File | Holds |
//! |---|---|
//! | `bound.rs` | whose memory, as which caller of each surface |
//! | `catalogue.rs` | what models are told of the tools |
//! | `tools/` | arguments in, one function of the service, few words out |
//! | `resources.rs` | files as resources |
//! | `misread.rs` | what is wrong with requests that cannot be read |
//! | `failure.rs` | how it says no, to models and over HTTP |
//! | `http.rs` | `/mcp` |

mod bound;
mod catalogue;
pub mod failure;
mod http;
mod misread;
mod resources;
mod tools;

pub use bound::{Bound, Local};
use catalogue::SessionTerms;
pub use http::{PATH, router};

use memtrove_service::Services;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CompleteRequestMethod, CompleteRequestParams,
    CompleteResult, ContentBlock, CustomRequest, CustomResult, Implementation, InitializeRequestParams,
    InitializeResult, ListPromptsRequestMethod, ListPromptsResult, ListResourceTemplatesResult,
    ListResourcesResult, ListToolsResult, PaginatedRequestParams, ProtocolVersion, ReadResourceRequestParams,
    ReadResourceResponse, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use std::borrow::Cow;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};

/// Teaches a model when to use what. Every session pays for it, so it is short.
const INSTRUCTIONS: &str = "\
Memtrove is your long-term memory: it outlives this session and is shared by the user's other agents.
- Before you answer something that may depend on earlier sessions (preferences, decisions, names, plans): recall.
- When the user states something lasting, or says \"remember\": remember, one self-contained sentence each. For \
\"X has value Y\" facts: remember_fact. When it is no longer true: forget.
- Longer notes that grow, such as plans, profiles and decisions: memory_*_file (Markdown; list before you create; recall does not read them).
- Something happened that may matter later: memory_log_event; find it again with memory_recall.
- What was said in earlier conversations: search_conversations.
Do not store secrets, nor what can be read from the code at hand. Whose memory this is is fixed; never pass a user.";

/// The versions of the protocol that are spoken. 2025-03-26 is none of them: it alone demands that many requests may come as
/// one, which no client sends and the SDK does not read.
const VERSIONS: [ProtocolVersion; 4] = [
    ProtocolVersion::V_2024_11_05,
    ProtocolVersion::V_2025_06_18,
    ProtocolVersion::V_2025_11_25,
    ProtocolVersion::V_2026_07_28,
];

/// Answers the protocol for one caller.
#[derive(Clone)]
pub struct McpServer {
    services: Services,
    bound: Arc<Bound>,
}

impl McpServer {
    /// A server for this caller.
    pub fn new(services: Services, bound: Bound) -> Self {
        Self { services, bound: Arc::new(bound) }
    }

    /// Serves one session, line by line, until the other side has no more to say.
    pub async fn serve<R, W>(self, read: R, write: W)
    where
        R: AsyncRead + Send + Unpin + 'static,
        W: AsyncWrite + Send + Unpin + 'static,
    {
        match rmcp::serve_server(self, (read, write)).await {
            Ok(session) => {
                if let Err(error) = session.waiting().await {
                    tracing::error!(%error, "a session broke off");
                }
            }
            // A client that leaves before it has begun is no failure of ours.
            Err(error) => tracing::debug!(%error, "a session did not begin"),
        }
    }

    fn terms(&self) -> SessionTerms {
        SessionTerms {
            in_project: self.bound.project().is_some(),
            min_score: self.services.memories.rules().search_threshold,
        }
    }

    /// What a tool answers.
    async fn called(&self, request: CallToolRequestParams) -> Result<CallToolResult, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        Ok(match tools::call(self, &request.name, arguments).await {
            Some(Ok(text)) => CallToolResult::success(vec![ContentBlock::text(text)]),
            Some(Err(failure)) => {
                CallToolResult::error(vec![ContentBlock::text(failure.to_json().to_string())])
            }
            None => {
                let names: Vec<&str> = catalogue::names().collect();
                let name: String = request.name.chars().take(100).collect();
                let message = format!("there is no tool '{name}'; there are {}", names.join(", "));
                return Err(ErrorData::invalid_params(message, None));
            }
        })
    }
}

impl ServerHandler for McpServer {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().enable_resources().build();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("memtrove", env!("CARGO_PKG_VERSION")))
            // So that a person can ask whose it is: hosts show or tell this.
            .with_instructions(format!("{INSTRUCTIONS}\nThis is the memory of {}.", self.bound.name()))
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Cow::Borrowed(&VERSIONS)
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        context.peer.set_peer_info(request.clone());
        let mut result = self.negotiate_initialize(&request)?;
        if request.protocol_version == ProtocolVersion::V_2025_03_26 {
            // Clients of that age know the version before it, and none of the later ones.
            result.protocol_version = ProtocolVersion::V_2024_11_05;
        }
        Ok(result)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(catalogue::tools(self.terms())))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        catalogue::tools(self.terms()).into_iter().find(|tool| tool.name == name)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        self.called(request).await.map(CallToolResponse::from)
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        resources::list(self, request.and_then(|page| page.cursor)).await
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(vec![resources::template()]))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        resources::read(self, request.uri).await
    }

    // The SDK would answer these two with nothing, though they are not announced.

    async fn complete(
        &self,
        _: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        Err(ErrorData::method_not_found::<CompleteRequestMethod>())
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Err(ErrorData::method_not_found::<ListPromptsRequestMethod>())
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        misread::answer(self, request, context).await
    }
}
