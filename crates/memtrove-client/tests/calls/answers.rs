//! What is made of answers.

use crate::support::*;
use memtrove_client::ListFiles;

#[tokio::test]
async fn a_success_that_says_nothing_cannot_be_read() {
    for body in ["", " \n", "{", "[]", "<html>"] {
        let stage = Stage::playing([text(200, body)]);
        let error = stage.client().get_file(&alice(), &path("a.md")).await.unwrap_err();
        let Error::Decode { operation, raw_body, .. } = &error else { panic!("{error:?}") };
        assert_eq!((*operation, raw_body.as_str()), ("get_file", body));
        assert_eq!(stage.count(), 1, "an answer of success is not asked for again");
    }
}

#[tokio::test]
async fn an_error_in_no_known_shape_says_what_came() {
    let stage = Stage::playing([text(404, "<h1>nothing here</h1>"), text(404, "")]);
    let error = stage.client().get_file(&alice(), &path("a.md")).await.unwrap_err();
    assert!(error.is_not_found());
    let api = error.api().unwrap();
    assert_eq!((api.code.as_str(), api.message.as_str()), ("HTTP_404", "<h1>nothing here</h1>"));
    let error = stage.client().get_file(&alice(), &path("a.md")).await.unwrap_err();
    assert_eq!(error.api().unwrap().message, "Not Found");
}

#[tokio::test]
async fn a_refusal_is_read_whole() {
    let stage = Stage::playing([with(refusal(422, "PATCH_TOO_LARGE"), "x-request-id", "other")]);
    let error = stage.client().get_file(&alice(), &path("a.md")).await.unwrap_err();
    let api = error.api().unwrap();
    assert_eq!((api.status.as_u16(), api.code.as_str()), (422, "PATCH_TOO_LARGE"));
    assert_eq!(api.request_id.as_deref(), Some("r"));
    assert!(api.raw_body.contains("PATCH_TOO_LARGE"));
}

#[tokio::test]
async fn nothing_new_is_no_error() {
    let stage = Stage::playing([Act::Answer(304, vec![], String::new()), file("\"2\"")]);
    let seen = "\"1\"".into();
    let client = stage.client();
    assert!(client.get_file_if_changed(&alice(), &path("a.md"), &seen).await.unwrap().is_none());
    let file = client.get_file_if_changed(&alice(), &path("a.md"), &seen).await.unwrap().unwrap();
    assert_eq!((file.etag.as_str(), file.text()), ("\"2\"", Some("\"2\"")));
    assert_eq!(stage.seen()[0].header("if-none-match"), "\"1\"");
}

#[tokio::test]
async fn nobody_is_followed_elsewhere() {
    let elsewhere = Stage::playing([answer(200, json!({"files": [], "next_after": null}))]);
    let stage = Stage::playing([with(text(307, ""), "location", elsewhere.url())]);
    // With no HTTP client of the test's own, whose redirects would say nothing about everybody's.
    let client = stage.plain_builder().api_key("secret").build().unwrap();
    let error = client.list_files(&alice(), ListFiles::default()).await.unwrap_err();
    assert_eq!(error.api().unwrap().code, "HTTP_307");
    assert_eq!(elsewhere.count(), 0);
}

#[tokio::test]
async fn lists_go_on_to_the_last_page() {
    use futures_util::TryStreamExt;
    let entry = |path: &str| json!({"path": path, "last_modified_utc": "2026-01-31T12:00:00.000000Z"});
    let stage = Stage::playing([
        answer(200, json!({"files": [entry("a.md"), entry("b.md")], "next_after": "b.md"})),
        answer(200, json!({"files": [], "next_after": "b2"})),
        answer(200, json!({"files": [entry("c.md")], "next_after": null})),
    ]);
    let request = ListFiles { limit: Some(2), ..ListFiles::under("") };
    let files: Vec<_> = stage.client().list_files_all(&alice(), request).try_collect().await.unwrap();
    let paths: Vec<&str> = files.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(paths, ["a.md", "b.md", "c.md"]);
    let asked: Vec<String> = stage.seen().into_iter().map(|seen| seen.line).collect();
    assert!(asked[0].contains("files:list?prefix=&limit=2 "), "{asked:?}");
    assert!(asked[1].contains("&after=b.md ") && asked[2].contains("&after=b2 "), "{asked:?}");
}

#[tokio::test]
async fn a_memory_that_is_still_at_its_version_is_not_sent_again() {
    let stage = Stage::playing(vec![Act::Answer(304, vec![], String::new()); 3]);
    let (client, id) = (stage.client(), uuid::Uuid::nil());
    assert!(client.get_memory_if_changed(id, 7, Default::default()).await.unwrap().is_none());
    assert!(client.get_fact_if_changed(id, 7, Default::default()).await.unwrap().is_none());
    assert!(client.get_knowledge_if_changed(id, 7).await.unwrap().is_none());
    for seen in stage.seen() {
        assert_eq!((seen.header("if-none-match"), seen.header("if-match")), ("\"v7\"", ""), "{seen:?}");
    }
}

#[tokio::test]
async fn entries_are_listed_to_the_last_from_the_oldest_on_only() {
    use futures_util::StreamExt;
    use memtrove_client::conversations::ListEntries;
    use memtrove_client::{ConversationId, EntryId};
    let stage = Stage::playing([]);
    let id = ConversationId(uuid::Uuid::nil());
    let before = Some(EntryId(uuid::Uuid::nil()));
    for request in [ListEntries::newest(5), ListEntries { before, ..ListEntries::default() }] {
        let listed: Vec<_> = stage.client().list_entries_all(id, request).collect().await;
        let [Err(Error::InvalidInput(why))] = listed.as_slice() else { panic!("{listed:?}") };
        assert!(why.contains("list_entries,") && why.contains("before_cursor"), "{why}");
    }
    assert_eq!(stage.count(), 0);
}

/// That a list goes on over its second page, which it asks for with the cursor of the first.
async fn goes_on<T: std::fmt::Debug>(
    stage: &Stage,
    cursor: &str,
    list: impl futures_util::Stream<Item = memtrove_client::Result<T>>,
) {
    use futures_util::TryStreamExt;
    let items: Vec<T> = list.try_collect().await.unwrap();
    let asked: Vec<String> = stage.seen().into_iter().rev().take(2).map(|seen| seen.line).collect();
    assert!(items.is_empty() && asked[0].contains(&format!("{cursor}=next")), "{items:?} {asked:?}");
    assert!(!asked[1].contains(cursor), "{asked:?}");
}

#[tokio::test]
async fn every_list_can_be_taken_to_its_end() {
    use memtrove_client::ConversationId;
    let page = |next: serde_json::Value| answer(200, json!({"data": [], "afterCursor": next}));
    let stage = Stage::playing((0..8).flat_map(|_| [page(json!("next")), page(json!(null))]));
    let (client, id) = (stage.client(), ConversationId(uuid::Uuid::nil()));
    goes_on(&stage, "after", client.list_forks_all(id, Default::default())).await;
    goes_on(&stage, "after", client.list_memberships_all(id, Default::default())).await;
    goes_on(&stage, "after", client.list_transfers_all(Default::default())).await;
    goes_on(&stage, "after", client.list_unindexed_all(Default::default())).await;
    let admin = client.admin();
    goes_on(&stage, "after", admin.list_conversations_all(Default::default())).await;
    goes_on(&stage, "after", admin.list_forks_all(id, Default::default())).await;
    goes_on(&stage, "after", admin.list_memberships_all(id, Default::default())).await;
    goes_on(&stage, "after", admin.list_attachments_all(Default::default())).await;
    assert_eq!(stage.count(), 16);

    let page =
        |next: serde_json::Value| answer(200, json!({"facts": [], "nextCursor": next, "totalCount": 0}));
    let stage = Stage::playing((0..2).flat_map(|_| [page(json!("next")), page(json!(null))]));
    goes_on(&stage, "cursor", stage.client().list_facts_all(Default::default())).await;
    use futures_util::TryStreamExt;
    let facts = stage.client().query_facts_all(Default::default()).try_collect::<Vec<_>>().await.unwrap();
    assert!(facts.is_empty() && stage.seen()[3].body.contains(r#""cursor":"next""#), "{:?}", stage.seen());

    let page = |next: serde_json::Value| answer(200, json!({"changes": [], "next_after": next, "oldest": 1}));
    let stage = Stage::playing([page(json!(7)), page(json!(null))]);
    stage.client().list_changes_all(Some(3)).try_collect::<Vec<_>>().await.unwrap();
    let asked: Vec<String> = stage.seen().into_iter().map(|seen| seen.line).collect();
    assert!(asked[0].contains("after=3") && asked[1].contains("after=7"), "{asked:?}");

    let cursor = uuid::Uuid::max().to_string();
    let page = |next: serde_json::Value| answer(200, json!({"data": [], "afterCursor": next}));
    let stage = Stage::playing([page(json!(cursor)), page(json!(null))]);
    stage.client().admin().list_entries_all(id, Default::default()).try_collect::<Vec<_>>().await.unwrap();
    assert!(stage.seen()[1].line.contains(&format!("after={cursor}")), "{:?}", stage.seen());
}

#[tokio::test]
async fn a_statistic_has_one_line_or_one_per_operation() {
    use memtrove_client::admin::StatsRange;
    let points = json!([{"timestamp": "2026-01-31T12:00:00Z", "value": 1.5}, {"timestamp": "2026-01-31T12:01:00Z", "value": null}]);
    let stage = Stage::playing([
        answer(200, json!({"metric": "request_rate", "unit": "requests/sec", "data": points})),
        answer(
            200,
            json!({"metric": "store_throughput", "unit": "operations/sec",
            "series": [{"label": "append", "data": points}, {"label": "list", "data": []}]}),
        ),
    ]);
    let admin = stage.client().admin().because("capacity planning");
    let single = admin.stats("request-rate", StatsRange::default()).await.unwrap();
    assert_eq!((single.lines.len(), single.lines[0].label.as_deref()), (1, None));
    assert_eq!((single.lines[0].data[0].value, single.lines[0].data[1].value), (Some(1.5), None));
    let range = StatsRange { step: Some("60s".into()), ..StatsRange::default() };
    let many = admin.stats("store-throughput", range).await.unwrap();
    assert_eq!((many.lines.len(), many.lines[0].label.as_deref()), (2, Some("append")));
    assert_eq!(stage.seen()[1].line, "GET /v1/admin/stats/store-throughput?step=60s HTTP/1.1");
    assert_eq!(stage.seen()[1].header("x-justification"), "capacity planning");
}

#[tokio::test]
async fn the_service_may_be_behind_a_path_of_its_own() {
    let stage = Stage::playing([answer(200, json!({"files": [], "next_after": null}))]);
    let client = stage.builder().base_url(format!("{}/memtrove/", stage.url())).build().unwrap();
    client.list_files(&alice(), ListFiles::default()).await.unwrap();
    assert_eq!(stage.seen()[0].line, "GET /memtrove/v1/tenants/acme/users/alice/files:list HTTP/1.1");
}
