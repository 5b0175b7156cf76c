//! What an operation of the memories contract is called in its errors: one name per method and route.

use http::Method;

/// The name of what no route took.
pub const UNKNOWN: &str = "unknown";

/// The name of an operation.
pub fn named(method: &Method, route: &str) -> &'static str {
    match (method.as_str(), route) {
        ("POST", "/v1/memories") => "memory.add",
        ("GET", "/v1/memories") | ("POST", "/v1/memories:list") => "memory.list",
        ("POST", "/v1/memories:search") => "memory.search",
        ("GET", "/v1/memories/{id}") => "memory.get",
        ("PATCH", "/v1/memories/{id}") => "memory.update",
        ("DELETE", "/v1/memories/{id}") => "memory.delete",
        ("POST", "/v1/memories:bulkAdd") => "memory.bulkAdd",
        ("POST", "/v1/memories:bulkDelete") => "memory.bulkDelete",
        ("POST", "/v1/memories:clear") => "memory.clear",
        ("POST", "/v1/memories:decay") => "memory.decay",
        ("POST", "/v1/memories:consolidate") => "memory.consolidate",
        ("POST", "/v1/memories/{id}/promote") => "memory.promote",
        ("POST", "/v1/memories/{id}/archive") => "memory.archive",
        ("POST", "/v1/memories/{id}/restore") => "memory.restore",
        ("GET", "/v1/memories:capabilities") => "memory.capabilities",
        ("GET", "/v1/memories:health") => "memory.health",
        ("POST", "/v1/sessions:end") => "session.end",
        ("POST", "/v1/users:forget") => "user.forget",
        ("POST", "/v1/facts") => "fact.add",
        ("GET", "/v1/facts") | ("POST", "/v1/facts:query") => "fact.query",
        ("GET", "/v1/facts/{id}") => "fact.get",
        ("PATCH", "/v1/facts/{id}") => "fact.update",
        ("DELETE", "/v1/facts/{id}") => "fact.delete",
        ("GET", "/openspec/v1/knowledge") => "openspec.discover",
        ("POST", "/openspec/v1/knowledge/query") => "openspec.query",
        ("POST", "/openspec/v1/knowledge/create") => "openspec.create",
        ("POST", "/openspec/v1/knowledge/batch") => "openspec.batch",
        ("GET", "/openspec/v1/knowledge/stream") => "openspec.stream",
        ("GET", "/openspec/v1/knowledge/{id}") => "openspec.get",
        ("PUT", "/openspec/v1/knowledge/{id}") => "openspec.replace",
        ("DELETE", "/openspec/v1/knowledge/{id}") => "openspec.delete",
        ("GET", "/openspec/v1/knowledge/{id}/metadata") => "openspec.metadata",
        ("GET", "/v1/ping/") => "mem0.ping",
        ("POST", "/v3/memories/add/" | "/memories") => "mem0.add",
        ("POST", "/v3/memories/search/" | "/search") => "mem0.search",
        ("POST", "/v3/memories/") | ("GET", "/memories") => "mem0.list",
        ("GET", "/v1/memories/{id}/" | "/memories/{id}") => "mem0.get",
        ("PUT", "/v1/memories/{id}/" | "/memories/{id}") => "mem0.update",
        ("DELETE", "/v1/memories/{id}/" | "/memories/{id}") => "mem0.delete",
        ("GET", "/v1/memories/{id}/history/" | "/memories/{id}/history") => "mem0.history",
        ("DELETE", "/v1/memories/" | "/memories") => "mem0.deleteAll",
        ("PUT", "/v1/batch/") => "mem0.batchUpdate",
        ("DELETE", "/v1/batch/") => "mem0.batchDelete",
        ("GET", "/v1/entities/") => "mem0.entities",
        ("DELETE", "/v2/entities/{entity_type}/{entity_id}/") => "mem0.deleteEntity",
        ("POST", "/reset") => "mem0.reset",
        _ => UNKNOWN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_of_the_surface_has_a_name() {
        let document = serde_json::to_value(crate::rest::document()).unwrap();
        let mut named_operations = 0;
        for (path, item) in document["paths"].as_object().unwrap() {
            if !["/v1/memories", "/v1/facts", "/v1/sessions", "/v1/users", "/openspec"]
                .iter()
                .any(|p| path.starts_with(p))
                && !crate::rest::mem0::is_path(path)
            {
                continue;
            }
            for method in item.as_object().unwrap().keys().filter(|name| *name != "parameters") {
                let method = Method::from_bytes(method.to_uppercase().as_bytes()).unwrap();
                assert_ne!(named(&method, path), UNKNOWN, "{method} {path}");
                named_operations += 1;
            }
        }
        assert_eq!(named_operations, 34 + 22);
    }
}
