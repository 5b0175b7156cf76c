//! What a conversation was told of the memory.

use crate::support::*;
use memtrove_agent::{MemoryEdit, PatchFileOptions, Session, SessionOptions, WriteFileOptions};
use memtrove_client::RetryPolicy;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

async fn primed(memory: AgentMemory, scope: &Scope) -> Session {
    let options = SessionOptions {
        files: vec!["profile.md".into(), "plan.md".into()],
        catalogue_prefix: Some("projects/".into()),
        ..SessionOptions::default()
    };
    Session::prime(memory, scope.clone(), options).await.unwrap()
}

#[tokio::test]
async fn the_first_turn_carries_the_files_and_the_catalogue_and_the_next_does_not() {
    let ((memory, sent), alice) = (watched(), someone());
    memory.write_file(&alice, "profile.md", "Likes tea.", WriteFileOptions::default()).await.unwrap();
    memory.write_file(&alice, "projects/a.md", "secret plan", WriteFileOptions::default()).await.unwrap();
    sent.take();
    let mut session = primed(memory, &alice).await;
    assert_eq!(sent.take(), ["POST context:assemble", "GET files:list"], "loaded once");
    assert!(session.is_due());
    let text = session.next_turn().await.unwrap().unwrap();
    assert_eq!(
        text,
        "<file path=\"profile.md\">\nLikes tea.\n</file>\n\
         <file path=\"plan.md\" omitted=\"does not exist yet\"/>\n\
         <files prefix=\"projects/\">\nprojects/a.md\n</files>\n"
    );
    assert_eq!(session.next_turn().await.unwrap(), None);
    assert_eq!(session.snapshot(), text);
    session.carry_again();
    assert_eq!(session.next_turn().await.unwrap(), Some(text));
    assert_eq!(sent.take(), Vec::<String>::new());
}

#[tokio::test]
async fn a_change_is_carried_by_the_next_turn() {
    let (memory, alice) = (memory(), someone());
    let mut session = primed(memory.clone(), &alice).await;
    session.next_turn().await.unwrap();

    session.write_file("profile.md", "Likes tea.", WriteFileOptions::default()).await.unwrap();
    assert!(session.is_due() && session.snapshot().contains("Likes tea."));
    session.next_turn().await.unwrap();
    session
        .patch_file("profile.md", vec![MemoryEdit::new("tea", "oats")], PatchFileOptions::default())
        .await
        .unwrap();
    assert!(session.next_turn().await.unwrap().unwrap().contains("Likes oats."));

    session
        .call_tool("memory_write_file", &json!({"path": "projects/new.md", "content": "x"}))
        .await
        .unwrap();
    assert!(session.next_turn().await.unwrap().unwrap().contains("projects/new.md"));
    session.write_file("diary.md", "not part of it", WriteFileOptions::default()).await.unwrap();
    assert!(!session.is_due(), "what the model saw is still true");
    let missing =
        session.call_tool("memory_patch_file", &json!({"path": "x", "old_text": "a", "new_text": "b"})).await;
    assert!(missing.unwrap().is_error);
    session.call_tool("memory_load_file", &json!({"path": "profile.md"})).await.unwrap();
    assert!(!session.is_due());

    memory.write_file(&alice, "plan.md", "from elsewhere", WriteFileOptions::default()).await.unwrap();
    session.refresh().await.unwrap();
    assert!(session.next_turn().await.unwrap().unwrap().contains("from elsewhere"));
}

#[tokio::test]
async fn the_memory_tool_keeps_a_session_fresh() {
    let (memory, alice) = (memory(), someone());
    let options = SessionOptions { catalogue_prefix: Some("memories/".into()), ..SessionOptions::default() };
    let mut session = Session::prime(memory, alice, options).await.unwrap();
    session.next_turn().await.unwrap();
    let create = json!({"command": "create", "path": "/memories/a.md", "file_text": "x"});
    session.call_memory_tool(&create).await.unwrap();
    assert!(session.next_turn().await.unwrap().unwrap().contains("memories/a.md"));
    session.call_memory_tool(&json!({"command": "view", "path": "/memories/a.md"})).await.unwrap();
    assert!(!session.is_due());
}

#[tokio::test]
async fn a_change_counts_even_if_it_cannot_be_loaded_anew_at_once() {
    let alice = someone();
    let broken = Arc::new(AtomicBool::new(false));
    let (breaks, is_broken) = (broken.clone(), broken.clone());
    let client = client()
        .retry(RetryPolicy { max_retries: 0, ..RetryPolicy::default() })
        // Right after the file was written, nothing can be sent any more.
        .on_response(move |response| breaks.store(response.url().path().ends_with("plan.md"), SeqCst))
        .header_provider(move || {
            let broken = is_broken.load(SeqCst);
            async move { if broken { Err("no header now".into()) } else { Ok(vec![]) } }
        });
    let mut session = primed(AgentMemory::new(client.build().unwrap()), &alice).await;
    session.next_turn().await.unwrap();

    session.write_file("plan.md", "made it", WriteFileOptions::create_only()).await.unwrap();
    assert!(!session.snapshot().contains("made it"));
    assert!(session.is_due(), "whoever asks first must not be told that everything is as it was");
    assert!(session.next_turn().await.is_err(), "the snapshot is not what the memory says");
    broken.store(false, SeqCst);
    assert!(session.next_turn().await.unwrap().unwrap().contains("made it"));
}

#[tokio::test]
async fn a_change_that_was_not_answered_may_have_happened() {
    let alice = someone();
    let broken = Arc::new(AtomicBool::new(false));
    let is_broken = broken.clone();
    let client =
        client().retry(RetryPolicy { max_retries: 0, ..RetryPolicy::default() }).header_provider(move || {
            let broken = is_broken.load(SeqCst);
            async move { if broken { Err("no header now".into()) } else { Ok(vec![]) } }
        });
    let mut session = primed(AgentMemory::new(client.build().unwrap()), &alice).await;
    session.next_turn().await.unwrap();

    broken.store(true, SeqCst);
    session.write_file("plan.md", "perhaps", WriteFileOptions::default()).await.unwrap_err();
    // It did happen, as far as the session can tell.
    memory().write_file(&alice, "plan.md", "perhaps", WriteFileOptions::default()).await.unwrap();
    broken.store(false, SeqCst);
    assert!(session.next_turn().await.unwrap().unwrap().contains("perhaps"));
}

/// A session behind a gateway that decides about each change of a file.
async fn behind(fate: Fate, alice: &Scope) -> Session {
    let changes = |request: &str| ["PUT ", "PATCH "].iter().any(|method| request.starts_with(method));
    let client = behind_a_gateway(move |request| if changes(request) { fate } else { Fate::Answered });
    let mut session = primed(AgentMemory::new(client.build().unwrap()), alice).await;
    session.next_turn().await.unwrap();
    session
}

#[tokio::test]
async fn a_change_that_a_gateway_lost_may_have_happened() {
    let alice = someone();
    let mut session = behind(Fate::BadGateway, &alice).await;
    let lost = session.write_file("plan.md", "perhaps", WriteFileOptions::create_only()).await;
    assert_eq!(refused(lost), "HTTP_502");
    assert!(session.is_due());
    assert!(session.next_turn().await.unwrap().unwrap().contains("perhaps"));
    assert!(!session.is_due());
}

#[tokio::test]
async fn a_change_that_nobody_waited_for_may_have_happened() {
    let alice = someone();
    let mut session = behind(Fate::Silent, &alice).await;
    // Whoever is cancelled is dropped in the middle, as soon as the change is made.
    let change = session.write_file("plan.md", "perhaps", WriteFileOptions::create_only());
    let made = async {
        let memory = memory();
        while memory.load_file(&alice, "plan.md").await.is_err() {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    tokio::select! {
        outcome = change => panic!("it was answered: {outcome:?}"),
        () = made => {}
    }
    assert!(session.is_due());
    assert!(session.next_turn().await.unwrap().unwrap().contains("perhaps"));
}

#[tokio::test]
async fn a_change_that_was_refused_leaves_everything_as_it_was() {
    let ((memory, sent), alice) = (watched(), someone());
    let mut session = primed(memory, &alice).await;
    session.next_turn().await.unwrap();
    sent.take();
    let edits = vec![MemoryEdit::new("a", "b")];
    let missing = session.patch_file("plan.md", edits, PatchFileOptions::default()).await;
    assert_eq!(refused(missing), "DOCUMENT_NOT_FOUND");
    invalid(session.write_file("../plan.md", "x", WriteFileOptions::default()).await);
    assert!(!session.is_due());
    assert_eq!(session.next_turn().await.unwrap(), None);
    assert_eq!(sent.take(), ["GET plan.md"], "and nothing is loaded anew");
}
