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
    let mem0 = br#"[{"id":"1","memory":"x"}]"#;
    for other in [("b.json", &mem0[..]), ("b.json", br#"[{"uuid":"u","chat_messages":[]}]"#)] {
        let path = zipped(&folder, &[("a.json", CHATGPT), other]);
        let why = selected(&path, None).unwrap_err().to_string();
        assert!(why.contains("--from says which one"), "{why}");
    }
    let path = zipped(&folder, &[("a.json", mem0), ("notes.md", b"# Hi")]);
    assert!(selected(&path, None).unwrap_err().to_string().contains("--from says which one"));
}

#[test]
fn what_people_gave_a_chat_to_read_is_no_note_of_theirs() {
    let folder = tempfile::tempdir().unwrap();
    let path = zipped(&folder, &[("conversations.json", CHATGPT), ("file-1-notes.md", b"# Hi")]);
    assert_eq!(selected(&path, None).unwrap(), (Format::Chatgpt, vec!["conversations.json".to_owned()]));
    assert_eq!(selected(&path, Some(Format::Markdown)).unwrap().1, ["file-1-notes.md"]);
    let selection = Source::open(&path).unwrap().select(&path, None).unwrap();
    let left_out: Vec<_> = selection.left_out.iter().collect();
    assert!(left_out[0].0.contains("--from markdown"), "{left_out:?}");
}

/// Makes a ZIP unreadable in one place: behind the name of a file, in each of the two headers that it has.
fn damage(path: &Path, name: &str, local: impl Fn(&mut [u8]), central: impl Fn(&mut [u8])) {
    let mut bytes = std::fs::read(path).unwrap();
    for at in 0..bytes.len() - name.len() {
        let begins = |header: &[u8], length: usize| {
            at >= length
                && bytes[at..].starts_with(name.as_bytes())
                && bytes[at - length..].starts_with(header)
        };
        if begins(b"PK\x03\x04", 30) {
            local(&mut bytes[at - 30..]);
        } else if begins(b"PK\x01\x02", 46) {
            central(&mut bytes[at - 46..]);
        }
    }
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn what_cannot_be_read_of_a_zip_is_named_unless_nobody_would_look_at_it() {
    let folder = tempfile::tempdir().unwrap();
    let told = |name: &str, how: &str| {
        let path = zipped(&folder, &[("a.json", CHATGPT), ("b.json", CHATGPT), ("b.png", CHATGPT)]);
        match how {
            // As if it were encrypted.
            "flag" => damage(&path, name, |local| local[6] |= 1, |central| central[8] |= 1),
            // What it was packed into is no such thing any more.
            _ => damage(&path, name, |local| local[30 + name.len()..][..6].fill(0xff), |_| {}),
        }
        let selection = Source::open(&path).unwrap().select(&path, None).unwrap();
        assert_eq!(selection.parts[0].name, "a.json");
        selection.unreadable.into_iter().map(|one| one.name).collect::<Vec<_>>()
    };
    for how in ["flag", "bytes"] {
        assert_eq!(told("b.json", how), ["b.json"], "{how}");
        assert!(told("b.png", how).is_empty(), "{how}");
    }
}

#[test]
fn whether_a_part_is_whole_shows_at_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let path = zipped(&folder, &[("a.md", b"# Hi")]);
    damage(&path, "a.md", |_| {}, |central| central[16] ^= 1);
    let mut source = Source::open(&path).unwrap();
    let selection = source.select(&path, None).unwrap();
    let mut text = String::new();
    let read =
        source.read(&selection.parts[0], &mut |reader| Ok(reader.read_to_string(&mut text).map(drop)?));
    assert!(read.unwrap_err().to_string().to_lowercase().contains("checksum"));
}

#[test]
fn what_is_hidden_in_a_folder_is_hidden_in_its_zip() {
    let folder = tempfile::tempdir().unwrap();
    let names = [
        "a.md",
        ".trash/b.md",
        "x/.obsidian/c.md",
        "x/.obsidian/d.json",
        "__MACOSX/._a.md",
        "x/.e.md",
        "../f.md",
    ];
    let path = zipped(&folder, &names.map(|name| (name, &b"# Hi"[..])));
    let selection = Source::open(&path).unwrap().select(&path, None).unwrap();
    let parts: Vec<&str> = selection.parts.iter().map(|part| part.name.as_str()).collect();
    assert_eq!(parts, ["../f.md", "a.md"], "what leads elsewhere is not hidden, and is refused later");
    assert_eq!(selection.left_out.iter().collect::<Vec<_>>(), [(HIDDEN, 4)]);
}

#[test]
fn a_file_or_folder_that_cannot_be_read_is_one_that_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let give = |name: &str, bytes: &[u8]| std::fs::write(folder.path().join(name), bytes).unwrap();
    ["a.json", "b.json", "c.png"].into_iter().for_each(|name| give(name, CHATGPT));
    let mut deep = folder.path().to_owned();
    (0..=MAX_DEPTH).for_each(|_| deep.push("d"));
    std::fs::create_dir_all(&deep).unwrap();
    let mut source = Source::open(folder.path()).unwrap();
    let listing = source.list(folder.path()).unwrap();
    // Permissions would hinder nobody who is root.
    ["b.json", "c.png"].into_iter().for_each(|name| std::fs::remove_file(folder.path().join(name)).unwrap());
    let selection = source.select_among(folder.path(), listing, None).unwrap();
    assert_eq!(selection.parts.len(), 1);
    let told: Vec<_> = selection.unreadable.iter().map(|one| (one.name.len(), one.why.as_str())).collect();
    assert_eq!(told[0], (2 * MAX_DEPTH + 1, "folders lie in each other more than 64 deep"));
    assert!(told[1].1.contains("it cannot be read") && told.len() == 2, "{told:?}");
}

#[test]
fn where_nothing_can_be_read_it_says_why() {
    let folder = tempfile::tempdir().unwrap();
    for from in [None, Some(Format::Chatgpt)] {
        let path = zipped(&folder, &[("conversations.json", CHATGPT)]);
        damage(&path, "conversations.json", |local| local[6] |= 1, |central| central[8] |= 1);
        let why = selected(&path, from).unwrap_err().to_string();
        assert!(why.contains("conversations.json: it cannot be read") && why.contains("nothing in"), "{why}");
    }
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
    let why = selected(&path, None).unwrap_err().to_string();
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
