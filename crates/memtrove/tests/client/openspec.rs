//! The knowledge protocol.

use crate::support::*;
use memtrove_client::openspec::*;

/// An entry of this user that says this.
pub fn entry(user: &str, text: &str) -> WriteKnowledgeRequest {
    let identifiers = KnowledgeIdentifiers { user_id: Some(user.into()), ..KnowledgeIdentifiers::default() };
    let layer = KnowledgeLayer { layer_type: Some("user".into()), identifiers, ..KnowledgeLayer::default() };
    WriteKnowledgeRequest {
        entry: Some(NewKnowledgeEntry { content: Some(text.into()), ..NewKnowledgeEntry::default() }),
        options: Some(KnowledgeWriteOptions { layer: Some(layer), ..KnowledgeWriteOptions::default() }),
        governance: None,
    }
}

pub async fn chapter(world: &World) {
    let agent = world.agent("erin");
    let provider = agent.discover_knowledge().await.unwrap();
    assert!(provider.features.semantic_search);

    let made = agent.create_knowledge(entry("erin", "Erin keeps bees")).await.unwrap();
    let id = made.entry.id;
    assert_eq!(agent.get_knowledge(id).await.unwrap().content.as_deref(), Some("Erin keeps bees"));
    let replaced =
        agent.replace_knowledge(id, entry("erin", "Erin keeps two hives of bees"), Some(1)).await.unwrap();
    assert_eq!((replaced.status.as_str(), replaced.entry.version), ("updated", 2));
    assert!(agent.get_knowledge_if_changed(id, 2).await.unwrap().is_none());
    assert_eq!(agent.get_knowledge_if_changed(id, 1).await.unwrap().unwrap().version, 2);
    let stale = agent.replace_knowledge(id, entry("erin", "x"), Some(1)).await.unwrap_err();
    assert_eq!(stale.api().unwrap().status.as_u16(), 412);
    assert!(!stale.api().unwrap().code.starts_with("HTTP_"), "{stale}");
    let known = agent.knowledge_metadata(id, true).await.unwrap();
    assert_eq!(known.version_history.len(), 2);

    let identifiers =
        KnowledgeIdentifiers { user_id: Some("erin".into()), ..KnowledgeIdentifiers::default() };
    let query = KnowledgeQueryRequest {
        query: Some("bees".into()),
        mode: Some("hybrid".into()),
        layer: Some(KnowledgeQueryLayer {
            identifiers: identifiers.clone(),
            ..KnowledgeQueryLayer::default()
        }),
        ..KnowledgeQueryRequest::default()
    };
    assert_eq!(agent.query_knowledge(query).await.unwrap().results[0].entry.id, id);

    let stream = StreamKnowledge {
        subject: KnowledgeSubject::Query("bees".into()),
        identifiers,
        ..StreamKnowledge::default()
    };
    let told: Vec<KnowledgeEvent> = agent.stream_knowledge(stream).try_collect().await.unwrap();
    assert_eq!((told[0].name.as_str(), &told.last().unwrap().data["is_final"]), ("result", &json!(true)));

    let item = serde_json::to_value(entry("erin", "Erin sells honey")).unwrap();
    let batch = KnowledgeBatchRequest {
        operation: Some("create".into()),
        entries: Some(vec![item.as_object().unwrap().clone()]),
        options: None,
    };
    assert_eq!(agent.batch_knowledge(batch).await.unwrap().results.succeeded, 1);
    assert!(agent.delete_knowledge(id, true, None).await.unwrap().deleted);
    let gone = agent.get_knowledge(id).await.unwrap_err();
    assert!(gone.is_not_found() && gone.api().unwrap().request_id.is_some(), "{gone}");
}
