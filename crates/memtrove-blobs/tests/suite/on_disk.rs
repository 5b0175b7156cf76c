//! What a directory promises besides: who can read it, and what crashes leave.

use super::{Store, body};
use bytes::Bytes;
use memtrove_blobs::{BlobError, Blobs};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use tempfile::TempDir;

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[tokio::test]
async fn nobody_else_on_the_machine_can_read_a_blob() {
    let folder = TempDir::new().unwrap();
    let root = folder.path().join("made/on/demand");
    let blobs = Blobs::directory(&root).unwrap();
    let mut upload = blobs.put("a/b", None).await.unwrap();
    upload.write(Bytes::from(body(1_000_000))).await.unwrap();
    let uploads = root.join(".uploads");
    assert_eq!(mode(&uploads.join(&names(&uploads)[0])), 0o600);
    upload.finish().await.unwrap();
    assert_eq!(mode(&root.join("a/b")), 0o600);
    for private in [&root, &root.join("a"), &uploads] {
        assert_eq!(mode(private), 0o700, "{}", private.display());
    }
}

#[tokio::test]
async fn what_a_crash_left_of_an_upload_is_removed_at_the_next_start() {
    let folder = TempDir::new().unwrap();
    let blobs = Blobs::directory(folder.path()).unwrap();
    let mut upload = blobs.put("whole", None).await.unwrap();
    upload.write(Bytes::from_static(b"whole")).await.unwrap();
    upload.finish().await.unwrap();
    let uploads = folder.path().join(".uploads");
    fs::write(uploads.join("00000000000000000000000000000001"), b"half").unwrap();

    Blobs::directory(folder.path()).unwrap();
    assert_eq!(names(&uploads), [""; 0]);
    assert_eq!(fs::read(folder.path().join("whole")).unwrap(), b"whole");
}

#[tokio::test]
async fn what_cannot_be_removed_does_not_keep_a_server_from_starting() {
    let folder = TempDir::new().unwrap();
    let uploads = folder.path().join(".uploads");
    fs::create_dir_all(uploads.join("a folder/of somebody's")).unwrap();
    std::os::unix::fs::symlink("nowhere", uploads.join("link")).unwrap();
    fs::write(uploads.join("00000000000000000000000000000001"), b"half").unwrap();

    let store = Store { blobs: Blobs::directory(folder.path()).unwrap(), _folder: None };
    assert_eq!(names(&uploads), ["a folder", "link"]);
    store.put("stored", None, b"stored").await;
    assert_eq!(store.keys("").await, ["stored"]);
}

#[tokio::test]
async fn a_start_leaves_the_uploads_of_another_process_alone() {
    let folder = TempDir::new().unwrap();
    let blobs = Blobs::directory(folder.path()).unwrap();
    let mut upload = blobs.put("slow", None).await.unwrap();
    upload.write(Bytes::from(body(600_000))).await.unwrap();

    let other = Blobs::directory(folder.path()).unwrap();
    upload.write(Bytes::from_static(b"end")).await.unwrap();
    upload.finish().await.unwrap();
    let store = Store { blobs: other, _folder: None };
    assert!(store.get("slow", None).await.unwrap() == [&body(600_000)[..], b"end"].concat());
    assert_eq!(names(&folder.path().join(".uploads")), [""; 0]);
}

#[tokio::test]
async fn an_upload_that_is_dropped_removes_its_file() {
    let folder = TempDir::new().unwrap();
    let blobs = Blobs::directory(folder.path()).unwrap();
    let mut upload = blobs.put("given-up", None).await.unwrap();
    upload.write(Bytes::from(body(600_000))).await.unwrap();
    assert_eq!(names(&folder.path().join(".uploads")).len(), 1);
    drop(upload);
    assert_eq!(names(&folder.path().join(".uploads")), [""; 0]);
    assert_eq!(names(folder.path()), [".uploads"]);
}

#[tokio::test]
async fn a_blob_that_is_being_read_can_be_deleted_and_replaced() {
    let store = Store::directory();
    store.put("read", None, &body(500_000)).await;
    let stream = store.blobs.get("read", None, None).await.unwrap();
    store.put("read", None, b"another").await;
    store.blobs.delete("read").await.unwrap();
    assert!(super::collect(stream).await.unwrap() == body(500_000));
}

#[tokio::test]
async fn files_that_are_not_ours_are_not_listed() {
    let folder = TempDir::new().unwrap();
    let blobs = Blobs::directory(folder.path()).unwrap();
    let store = Store { blobs, _folder: None };
    store.put("ours", None, b"ours").await;
    fs::write(folder.path().join(".hidden"), b"").unwrap();
    fs::write(folder.path().join("lost + found"), b"").unwrap();
    assert_eq!(store.keys("").await, ["ours"]);
}

#[tokio::test]
async fn a_key_cannot_be_the_folder_of_another() {
    let store = Store::directory();
    store.put("a", None, b"blob").await;
    let upload = store.blobs.put("a/b", None).await.unwrap();
    assert!(matches!(upload.finish().await, Err(BlobError::Invalid(_))));
    assert_eq!(store.keys("").await, ["a"]);
}

#[tokio::test]
async fn a_directory_that_is_gone_is_unavailable_and_not_a_missing_blob() {
    let folder = TempDir::new().unwrap();
    let blobs = Blobs::directory(folder.path().join("blobs")).unwrap();
    fs::remove_dir_all(folder.path().join("blobs")).unwrap();
    assert!(matches!(blobs.check().await, Err(BlobError::Unavailable(_))));
    assert!(matches!(blobs.put("a", None).await.map(drop), Err(BlobError::Unavailable(_))));
}

#[test]
fn a_directory_that_cannot_be_made_is_said_with_its_path() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, b"").unwrap();
    let error = Blobs::directory(file.join("blobs")).unwrap_err();
    assert!(error.to_string().contains("file/blobs"), "{error}");
}
