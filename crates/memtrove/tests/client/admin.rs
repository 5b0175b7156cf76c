//! What administrators see and do.

use crate::files::finished;
use crate::support::*;
use memtrove_client::admin::*;
use memtrove_client::attachments::{DownloadOptions, Upload};
use memtrove_client::conversations::{CreateConversationRequest, CreateEntryRequest, PageRequest};

pub async fn chapter(world: &World) {
    let admin = world.admin().admin().because("a test");
    let refused = world.agent("alice").admin().stats_summary().await.unwrap_err();
    assert_eq!(refused.api().unwrap().code, "forbidden");
    conversations(world, &admin).await;
    attachments(world, &admin).await;
    operating(world, &admin).await;
}

async fn conversations(world: &World, admin: &Admin) {
    let frank = world.agent("frank");
    let chat = frank.create_conversation(CreateConversationRequest::titled("Frank's")).await.unwrap().id;
    frank.append_entry(chat, CreateEntryRequest::message("USER", "about submarines")).await.unwrap();
    let request =
        || ListAdminConversations { user_id: Some("frank".into()), ..ListAdminConversations::default() };
    assert_eq!(admin.list_conversations(request()).await.unwrap().data.len(), 1);
    let entries = admin.list_entries(chat, ListAdminEntries::default()).await.unwrap();
    assert_eq!(entries.data[0].client_id.as_ref().unwrap().as_str(), "agent-a");
    assert_eq!(admin.list_forks(chat, PageRequest::default()).await.unwrap().data.len(), 1);
    assert_eq!(admin.list_memberships(chat, PageRequest::default()).await.unwrap().data.len(), 1);
    let search = AdminSearchRequest { query: Some("submarines".into()), ..AdminSearchRequest::default() };
    assert_eq!(admin.search_conversations(search).await.unwrap().data[0].conversation_id, chat);

    admin.delete_conversation(chat).await.unwrap();
    assert!(admin.get_conversation(chat).await.unwrap().deleted_at.is_some());
    assert!(admin.list_conversations(request()).await.unwrap().data.is_empty());
    assert!(admin.restore_conversation(chat).await.unwrap().deleted_at.is_none());
    admin.delete_conversation(chat).await.unwrap();
}

async fn attachments(world: &World, admin: &Admin) {
    let file = world.agent("frank").upload_attachment(Upload::bytes("x.txt", "bytes")).await.unwrap();
    let request = ListAdminAttachments { user_id: Some("frank".into()), ..ListAdminAttachments::default() };
    assert_eq!(admin.list_attachments(request).await.unwrap().data[0].id, file.id);
    assert_eq!(admin.get_attachment(file.id).await.unwrap().ref_count, 1);
    let download = admin.get_attachment_content(file.id, DownloadOptions::default()).await.unwrap();
    assert_eq!(download.bytes().await.unwrap(), "bytes");
    assert!(admin.get_attachment_download_url(file.id).await.unwrap().expires_in > 0);
    admin.delete_attachment(file.id).await.unwrap();
    let gone = world.agent("frank").get_attachment(file.id, DownloadOptions::default()).await.unwrap_err();
    assert!(gone.is_not_found(), "{gone}");
}

async fn operating(world: &World, admin: &Admin) {
    assert_eq!(admin.stats_summary().await.unwrap().conversation_groups.deleted, 2);
    let refused = admin.stats("request-rate", StatsRange::default()).await.unwrap_err();
    assert_eq!(refused.api().unwrap().status.as_u16(), 501, "there is no Prometheus: {refused}");
    let job = admin.reindex_tenant(ReindexRequest::default()).await.unwrap();
    finished(world, job.job_id).await;

    let evict = |period: &str| EvictRequest {
        retention_period: Some(period.into()),
        resource_types: Some(vec!["conversations".into()]),
        justification: None,
    };
    admin.evict(evict("P1D")).await.unwrap();
    assert_eq!(admin.stats_summary().await.unwrap().conversation_groups.deleted, 2, "they are too fresh");
    tokio::time::sleep(Duration::from_millis(1100)).await;
    let told: Vec<u8> = admin.evict_with_progress(evict("PT1S")).try_collect().await.unwrap();
    assert_eq!(told.last(), Some(&100));
    assert_eq!(admin.stats_summary().await.unwrap().conversation_groups.deleted, 0);
}
