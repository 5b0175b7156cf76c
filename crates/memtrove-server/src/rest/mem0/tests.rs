use super::*;

#[test]
fn only_a_slash_at_the_end_tells_its_memories_from_ours() {
    for path in [
        "/v1/memories/",
        "/v1/memories/0190b6c4/",
        "/v1/memories/0190b6c4/history/",
        "/v3/memories/add/",
        "/v3/memories/",
        "/v2/memories/",
        "/v2/memories/search/",
        "/v1/memories/search/",
        "/v1/ping/",
        "/v1/batch/",
        "/v2/entities/user/u/",
        "/api/v1/webhooks/7/",
        "/memories",
        "/memories/0190b6c4/history",
        "/search",
        "/reset",
    ] {
        assert!(is_path(path), "{path}");
    }
    for path in [
        "/v1/memories",
        "/v1/memories:search",
        "/v1/memories/0190b6c4",
        "/v1/memories/0190b6c4/promote",
        "/v1/memories/0190b6c4/promote/",
        "/v1/conversations/search",
        "/memory.v1.EntriesService/AppendEntry",
        "/searching",
        "/v1/pings/",
        "/v1/ping",
    ] {
        assert!(!is_path(path), "{path}");
    }
}
