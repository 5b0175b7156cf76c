//! Folders and ZIPs, friendly and not.

use super::*;
use std::io::Write;
use tempfile::TempDir;
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

const CHATGPT: &[u8] = br#"[{"conversation_id":"c","mapping":{}}]"#;

fn zipped(folder: &TempDir, files: &[(&str, &[u8])]) -> PathBuf {
    let path = folder.path().join("export.zip");
    let mut writer = ZipWriter::new(File::create(&path).unwrap());
    for (name, bytes) in files {
        writer.start_file(*name, SimpleFileOptions::default()).unwrap();
        writer.write_all(bytes).unwrap();
    }
    writer.finish().unwrap();
    path
}

fn selected(path: &Path, from: Option<Format>) -> anyhow::Result<(Format, Vec<String>)> {
    let mut source = Source::open(path)?;
    let selection = source.select(path, from)?;
    Ok((selection.format, selection.parts.into_iter().map(|part| part.name).collect()))
}

#[test]
fn what_is_wanted_of_a_zip_is_found_by_its_content() {
    let folder = tempfile::tempdir().unwrap();
    let path =
        zipped(&folder, &[("export/any name", CHATGPT), ("user.json", b"{}"), ("picture.png", b"\x89PNG")]);
    assert_eq!(selected(&path, None).unwrap(), (Format::Chatgpt, vec!["export/any name".to_owned()]));
    let why = selected(&path, Some(Format::Claude)).unwrap_err().to_string();
    assert!(why.contains("nothing in"), "{why}");
}

#[test]
fn several_things_need_a_word() {
    let folder = tempfile::tempdir().unwrap();
    let path = zipped(&folder, &[("a.json", CHATGPT), ("notes.md", b"# Hi")]);
    let why = selected(&path, None).unwrap_err().to_string();
    assert!(why.contains("--from says which one"), "{why}");
    assert_eq!(selected(&path, Some(Format::Markdown)).unwrap().1, ["notes.md"]);
}

#[test]
fn a_zip_that_would_fill_the_machine_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bomb.zip");
    let mut writer = ZipWriter::new(File::create(&path).unwrap());
    writer.start_file("conversations.json", SimpleFileOptions::default()).unwrap();
    writer.write_all(CHATGPT.strip_suffix(b"]").unwrap()).unwrap();
    for _ in 0..80 {
        writer.write_all(&vec![b' '; 1024 * 1024]).unwrap();
    }
    writer.finish().unwrap();
    let mut source = Source::open(&path).unwrap();
    let parts = source.parts(&path, &mut LeftOut::default()).unwrap();
    let why = source.read(&parts[0], &mut |_| Ok(())).unwrap_err().to_string();
    assert!(why.contains("no export is like that"), "{why}");
}

#[test]
fn half_a_zip_says_that_it_is_damaged() {
    let folder = tempfile::tempdir().unwrap();
    let path = zipped(&folder, &[("a.json", CHATGPT)]);
    let whole = std::fs::read(&path).unwrap();
    std::fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    let why = format!("{:#}", selected(&path, None).unwrap_err());
    assert!(why.contains("damaged or cut off"), "{why}");
}

#[cfg(unix)]
#[test]
fn links_and_hidden_files_of_a_folder_stay_out() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(folder.path().join("sub/.git")).unwrap();
    std::fs::write(folder.path().join("sub/a.md"), "a").unwrap();
    std::fs::write(folder.path().join("sub/.git/b.md"), "b").unwrap();
    std::os::unix::fs::symlink("/", folder.path().join("sub/root")).unwrap();
    let mut source = Source::open(folder.path()).unwrap();
    let selection = source.select(folder.path(), None).unwrap();
    assert_eq!(selection.parts.len(), 1);
    assert_eq!(selection.parts[0].name, "sub/a.md");
    assert_eq!(selection.left_out.iter().map(|(_, times)| times).sum::<u64>(), 2);
}
