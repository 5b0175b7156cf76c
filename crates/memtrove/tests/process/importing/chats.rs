//! Conversations of ChatGPT and Claude.

use crate::importing::support::{Place, fixture, list, said, says, titled};
use serde_json::{Value, json};
use std::io::Write;
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

const ALICE: [&str; 2] = ["--user", "alice"];

#[test]
fn a_chatgpt_export_keeps_branches_times_titles_and_roles() {
    for place in Place::both() {
        let told = place.import(&fixture("chatgpt.json"), &ALICE);
        says(
            &told,
            &[
                "Imported a ChatGPT export for alice",
                "conversations: 2 new",
                "entries: 9 new",
                "forks: 1 new",
            ],
        );
        says(&told, &["left out: 2 files and pictures"]);
        let server = place.serve();
        let alice = server.as_user("alice");
        let trip = titled(&alice, "Trip to Lisbon");
        assert_eq!(trip["createdAt"], "2024-03-02T10:00:00.000000Z");
        let shown = alice.get(&format!("/v1/conversations/{}", trip["id"].as_str().unwrap())).expect(200);
        assert_eq!(shown.json["metadata"]["source"]["type"], "chatgpt");
        let words = |role: &str, text: &str| (role.to_owned(), text.to_owned());
        let first = words("USER", "Where should we eat in Lisbon?");
        assert_eq!(
            said(&alice, &trip["id"]),
            [
                first.clone(),
                words("AI", "Try a tasca in Alfama."),
                words("USER", "How much is this bill for three?"),
                words("AI", ""),
                words("AI", ""),
                words("AI", "32 euros each."),
            ]
        );
        let id = trip["id"].as_str().unwrap();
        let entries = list(&alice, &format!("/v1/conversations/{id}/entries"));
        assert_eq!(entries[0]["createdAt"], "2024-03-02T10:00:00.250000Z");
        assert_eq!(
            entries[2]["content"][0]["events"][0],
            json!({"type": "picture", "name": "file-service://file-AbC123"})
        );
        assert_eq!(
            entries[3]["content"][0]["events"][0],
            json!({"type": "tool_call", "name": "python", "input": "print(96/3)"})
        );
        assert_eq!(
            entries[4]["content"][0]["events"][0],
            json!({"type": "tool_result", "name": "python", "output": "32.0"})
        );
        let forks = list(&alice, &format!("/v1/conversations/{id}/forks"));
        let fork = forks.iter().find(|one| one["conversationId"] != trip["id"]).unwrap();
        assert_eq!(fork["forkedAtEntryId"], entries[0]["id"]);
        assert_eq!(said(&alice, &fork["conversationId"]), [first, words("AI", "Try the market hall.")]);
        let found = alice.post("/v1/conversations/search", json!({"query": "gannet"})).expect(200);
        assert_eq!(found.json["data"].as_array().unwrap().len(), 1, "{}", found.describe());
    }
}

#[test]
fn twice_is_once_and_a_newer_export_continues() {
    for place in Place::both() {
        place.import(&fixture("chatgpt.json"), &ALICE);
        let again = place.import(&fixture("chatgpt.json"), &ALICE);
        says(&again, &["conversations: 2 there already", "entries: 9 there already"]);
        assert!(!again.contains("new"), "{again}");

        let mut export: Value =
            serde_json::from_slice(&std::fs::read(fixture("chatgpt.json")).unwrap()).unwrap();
        let said_later = |id: &str, parent: &str, text: &str, at: f64| {
            json!({"id": id, "parent": parent, "children": [], "message": {"id": id, "author": {"role": "user"},
                "create_time": at, "content": {"content_type": "text", "parts": [text]}}})
        };
        export[1]["mapping"]["w"] = said_later("w", "v", "And a fish?", 1_700_000_100.0);
        // The question was edited: another branch, which is looked at now.
        export[0]["mapping"]["q1b"] = said_later("q1b", "sys", "Where should we sleep?", 1_709_400_000.0);
        export[0]["current_node"] = json!("q1b");
        let newer = place.give("newer.json", export.to_string());
        let told = place.import(&newer, &ALICE);
        says(&told, &["conversations: 2 continued", "entries: 2 new, 9 there already", "forks: 1 new"]);
        let server = place.serve();
        let alice = server.as_user("alice");
        assert_eq!(said(&alice, &titled(&alice, "Seabirds")["id"]).len(), 3);
        let trip = titled(&alice, "Trip to Lisbon");
        assert_eq!(said(&alice, &trip["id"]).len(), 6, "what was there stays as it was");
        let forks = list(&alice, &format!("/v1/conversations/{}/forks", trip["id"].as_str().unwrap()));
        let asked: Vec<_> = forks.iter().map(|fork| said(&alice, &fork["conversationId"])).collect();
        assert!(asked.contains(&vec![("USER".to_owned(), "Where should we sleep?".to_owned())]), "{asked:?}");
    }
}

#[test]
fn everybody_has_their_own_and_what_was_deleted_stays_so() {
    let place = Place::sqlite();
    place.import(&fixture("chatgpt.json"), &ALICE);
    says(&place.import(&fixture("chatgpt.json"), &["--user", "bob"]), &["conversations: 2 new"]);
    says(
        &place.import(&fixture("chatgpt.json"), &["--user", "alice", "--tenant", "acme"]),
        &["conversations: 2 new"],
    );
    let mut server = place.serve();
    let bob = server.as_user("bob");
    let id = titled(&bob, "Seabirds")["id"].clone();
    bob.delete(&format!("/v1/conversations/{}", id.as_str().unwrap())).expect(204);
    assert!(server.stop().success());
    let told = place.ends_with(3, &fixture("chatgpt.json"), &["--user", "bob"]);
    says(
        &told,
        &["conversations: 1 there already", "chatgpt.json[1]: it was imported and then deleted here"],
    );
    let server = place.serve();
    assert_eq!(list(&server.as_user("bob"), "/v1/conversations?mode=roots").len(), 1);
    assert_eq!(list(&server.as_user("alice"), "/v1/conversations?mode=roots").len(), 2);
    let acme = server.as_user("alice").with_key("agent").in_tenant("acme");
    assert_eq!(list(&acme, "/v1/conversations?mode=roots").len(), 2);
}

#[test]
fn a_claude_export_brings_conversations_memories_and_projects() {
    for place in Place::both() {
        for expected in ["conversations: 1 new", "conversations: 1 there already"] {
            let told = place.import(&fixture("claude"), &ALICE);
            says(&told, &["Imported a Claude export for alice", expected, "left out: 1 other files in it"]);
        }
        let server = place.serve();
        let alice = server.as_user("alice");
        let boat = titled(&alice, "Boat plans");
        assert_eq!(boat["createdAt"], "2025-01-02T10:00:00.000000Z");
        let entries = list(&alice, &format!("/v1/conversations/{}/entries", boat["id"].as_str().unwrap()));
        assert_eq!(
            entries[0]["content"][0]["events"],
            json!([
            {"type": "file", "name": "plan.txt", "contentType": "txt", "text": "Length: 3 m"},
            {"type": "file", "name": "sketch.png"}])
        );
        assert_eq!(entries[1]["content"][0]["text"], "Okoume plywood.");
        let of_alice = json!({"layer": "user", "identifiers": {"userId": "alice"}});
        let memories = alice.post("/v1/memories:list", of_alice).expect(200);
        assert_eq!(memories.json["memories"].as_array().unwrap().len(), 3, "{}", memories.describe());
        let path =
            "/v1/tenants/default/users/alice/files/claude/projects/Dinghy-f9ba6418/documents/timber.md";
        let file = alice.get(path).expect(200);
        assert_eq!(file.json["document"]["content"]["text"], "# Timber\nOkoume.\n");
        assert_eq!(file.json["document"]["created_at"], "2024-12-02T00:00:00.000000Z");
    }
}

#[test]
fn projects_and_documents_of_the_same_name_are_all_brought_in() {
    for place in Place::both() {
        let document = |id: &str| json!({"uuid": id, "filename": "readme.md", "content": format!("of {id}")});
        let project = |id: &str| {
            let documents = [1, 2].map(|number| document(&format!("{id} {number}")));
            json!({"uuid": id, "name": "Notes", "prompt_template": format!("for {id}"), "docs": documents})
        };
        let export = |projects: &[Value]| json!(projects).to_string();
        let [one, two] = ["one", "two"].map(project);
        let path = place.give("projects.json", export(&[one.clone(), two.clone()]));
        let from_claude = [&ALICE[..], &["--from", "claude"]].concat();
        let dry = [&from_claude[..], &["--dry-run"]].concat();
        says(&place.import(&path, &dry), &["files: 6 new"]);
        says(&place.import(&path, &from_claude), &["files: 6 new"]);
        // Neither the order nor another project of that name moves anything.
        let path = place.give("projects.json", export(&[project("three"), two, one]));
        let overwrite = [&from_claude[..], &["--overwrite"]].concat();
        says(&place.import(&path, &dry), &["files: 3 new, 6 there already"]);
        says(&place.import(&path, &overwrite), &["files: 3 new, 6 there already"]);
    }
}

#[test]
fn a_zip_is_read_as_its_folder_is() {
    let place = Place::sqlite();
    let path = place.folder().join("export.zip");
    let mut writer = ZipWriter::new(std::fs::File::create(&path).unwrap());
    let files = [
        ("conversations.json", std::fs::read(fixture("chatgpt.json")).unwrap()),
        ("chat.html", b"<html>".to_vec()),
    ];
    for (name, bytes) in files {
        writer.start_file(name, SimpleFileOptions::default()).unwrap();
        writer.write_all(&bytes).unwrap();
    }
    writer.finish().unwrap();
    says(&place.import(&path, &ALICE), &["conversations: 2 new", "left out: 1 other files in it"]);
    says(&place.import(&fixture("chatgpt.json"), &ALICE), &["conversations: 2 there already"]);
}

#[test]
fn a_dry_run_says_what_would_be_and_leaves_everything_as_it_is() {
    for place in Place::both() {
        let untouched = |place: &Place| {
            let data = place.folder().join("data");
            let mut files: Vec<_> = std::fs::read_dir(&data)
                .unwrap()
                .map(|file| file.unwrap())
                .map(|file| (file.file_name(), std::fs::read(file.path()).unwrap()))
                .collect();
            files.sort();
            files
        };
        std::fs::create_dir_all(place.folder().join("data")).unwrap();
        let before = untouched(&place);
        let dry = [&ALICE[..], &["--dry-run"]].concat();
        let told = place.import(&fixture("chatgpt.json"), &dry);
        says(&told, &["Nothing was written", "conversations: 2 new", "entries: 9 new", "forks: 1 new"]);
        says(
            &told,
            &["for example conversation \"Trip to Lisbon\" with 7 entries and 1 fork", "left out: 2 files"],
        );
        assert!(untouched(&place) == before, "a dry run wrote something");

        let one: Value = serde_json::from_slice(&std::fs::read(fixture("chatgpt.json")).unwrap()).unwrap();
        place.import(&place.give("one.json", json!([one[0]]).to_string()), &ALICE);
        let before = untouched(&place);
        let told = place.import(&fixture("chatgpt.json"), &dry);
        says(&told, &["conversations: 1 new, 1 there already", "entries: 2 new, 7 there already"]);
        assert!(untouched(&place) == before, "a dry run wrote something");
    }
}
