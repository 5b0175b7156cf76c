//! What is recorded is nowhere to be read, and nothing of it is left.

use crate::recorder::support::*;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

const KEY: &str = "MTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTI=";

/// Every file below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return vec![] };
    let entries = entries.filter_map(Result::ok).map(|entry| entry.path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// Files that a process has open and that have no name any more.
fn nameless_files(pid: u32) -> Vec<PathBuf> {
    let handles = files(Path::new(&format!("/proc/{pid}/fd")));
    let is_nameless = |path: &PathBuf| {
        let named = std::fs::read_link(path).unwrap_or_default();
        named.to_string_lossy().ends_with("(deleted)")
    };
    handles.into_iter().filter(is_nameless).collect()
}

fn contains(file: &Path, word: &str) -> bool {
    let bytes = std::fs::read(file).unwrap_or_default();
    bytes.windows(word.len()).any(|window| window == word.as_bytes())
}

#[test]
fn a_recording_is_sealed_wherever_it_lies_and_a_crash_leaves_none_of_it() {
    let temp = tempfile::tempdir().unwrap();
    for encryption in [format!("[encryption.dek]\nkey = \"{KEY}\""), String::new()] {
        let toml = format!("[recorder]\ntemp_dir = {:?}\n{encryption}", temp.path());
        let mut node = setup().toml(&toml).start();
        let alice = Caller::fresh(&node, "alice");
        let id = alice.start();
        let recording = alice.record(&id);
        let word = fresh_name("quicksilver");
        let text = format!("{word} ").repeat(40_000);
        recording.say(&text);
        alice.replay(&id).expect(&text);

        let on_disk: u64 =
            nameless_files(node.pid()).iter().filter_map(|f| Some(f.metadata().ok()?.size())).sum();
        assert!(on_disk > 500_000, "most of it is on the disk: {on_disk} bytes");
        let folders = [node.data_dir(), temp.path()];
        let lying_about = folders.into_iter().flat_map(files).chain(nameless_files(node.pid()));
        let readable: Vec<PathBuf> = lying_about.filter(|file| contains(file, &word)).collect();
        assert_eq!(readable, Vec::<PathBuf>::new());
        assert_eq!(files(temp.path()), Vec::<PathBuf>::new(), "nothing has a name that a crash could leave");
        assert!(!node.log().contains(&word));

        node.kill();
        assert_eq!(files(temp.path()), Vec::<PathBuf>::new());
        drop(recording);
    }
}

#[test]
fn nodes_tell_each_other_where_and_never_what() {
    let database = Database::fresh();
    let node = setup().database(&database).start();
    let alice = Caller::fresh(&node, "alice");
    let id = alice.start();
    let recording = alice.record(&id);
    let word = fresh_name("quicksilver");
    recording.say(&word);
    alice.replay(&id).expect(&word);
    let rows = format!("{:?}", database.rows("SELECT * FROM recordings WHERE tenant <> ''"));
    assert!(rows.contains("127.0.0.1"), "{rows}");
    assert!(!rows.contains(&word), "{rows}");
    recording.complete();
    assert_eq!(
        database.rows("SELECT * FROM recordings WHERE tenant <> ''"),
        Vec::<Vec<Option<String>>>::new()
    );
}
