//! Folders of Markdown.

use crate::importing::support::{Place, fixture, says};
use std::io::Write;
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

const NEXT: &str = "/v1/tenants/default/users/alice/files/projects/next.md";

#[test]
fn markdown_becomes_files_under_its_paths() {
    for place in Place::both() {
        let alice = ["--user", "alice"];
        let told = place.import(&fixture("markdown"), &alice);
        says(
            &told,
            &["Imported a folder of Markdown for alice", "files: 2 new", "left out: 1 other files in it"],
        );
        says(&place.import(&fixture("markdown"), &alice), &["files: 2 there already"]);
        let server = place.serve();
        let client = server.as_user("alice");
        let index = client.get("/v1/tenants/default/users/alice/files/index.md").expect(200);
        let text = std::fs::read_to_string(fixture("markdown/index.md")).unwrap();
        assert_eq!(index.json["document"]["content"]["text"], text, "front matter stays");
        assert_eq!(index.json["document"]["content"]["content_type"], "text/markdown");
        assert_eq!(index.json["document"]["created_at"], "2023-04-05T00:00:00.000000Z");
        client.get(NEXT).expect(200);
    }
}

#[test]
fn a_zip_of_notes_is_read_as_its_folder_is() {
    let place = Place::sqlite();
    let path = place.folder().join("vault.zip");
    let mut writer = ZipWriter::new(std::fs::File::create(&path).unwrap());
    for name in ["a.md", ".trash/b.md", ".obsidian/c.md", "__MACOSX/._a.md"] {
        writer.start_file(name, SimpleFileOptions::default()).unwrap();
        writer.write_all(if name == "a.md" { b"# Hi" } else { b"\xff\xfe" }).unwrap();
    }
    writer.finish().unwrap();
    let told = place.import(&path, &["--user", "alice"]);
    says(&told, &["files: 1 new", "left out: 3 hidden files and folders"]);
}

#[test]
fn a_name_that_no_path_can_have_is_refused_with_its_reason() {
    let place = Place::sqlite();
    place.give("notes/Wait...md", "one");
    place.give("notes/b.md", "two");
    let told = place.ends_with(3, &place.folder().join("notes"), &["--user", "alice"]);
    says(
        &told,
        &["files: 1 new", "Wait...md: its name has '..' in it, which no path here may have: rename it"],
    );
}

#[test]
fn a_user_without_a_name_gets_nothing() {
    let place = Place::sqlite();
    let note = place.give("notes/a.md", "one");
    for nobody in ["", "  "] {
        let output = place.command(note.parent().unwrap(), &["--user", nobody]).output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && told.contains("--user must name somebody"), "{told}");
    }
}

#[test]
fn files_that_differ_are_kept_until_somebody_says_otherwise() {
    let place = Place::sqlite();
    let notes = place.folder().join("notes");
    place.give("notes/projects/next.md", "one");
    place.import(&notes, &["--user", "alice"]);
    place.give("notes/projects/next.md", "two");
    let told = place.import(&notes, &["--user", "alice"]);
    says(
        &told,
        &["left as they are: 1 file that differs here; --overwrite replaces them", "projects/next.md"],
    );
    let text = |place: &Place| {
        let server = place.serve();
        server.as_user("alice").get(NEXT).expect(200).json["document"]["content"]["text"].clone()
    };
    assert_eq!(text(&place), "one");
    let told = place.import(&notes, &["--user", "alice", "--overwrite", "--dry-run"]);
    says(&told, &["files: 1 replaced"]);
    assert_eq!(text(&place), "one");
    says(&place.import(&notes, &["--user", "alice", "--overwrite"]), &["files: 1 replaced"]);
    assert_eq!(text(&place), "two");
    says(&place.import(&notes, &["--user", "alice", "--overwrite"]), &["files: 1 there already"]);
}
