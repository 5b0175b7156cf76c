//! What 0.1.0 wrote, when the product was called Memloom: a folder, an archive and a database, all encrypted, each with an
//! attachment. They are opened by this version, prove their history and are exported again.
use memtrove_testkit::postgres::Database;
use memtrove_testkit::server::{Client, Setup, TestServer};
use memtrove_testkit::small_disk::SmallDisk;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

const BINARY: &str = env!("CARGO_BIN_EXE_memtrove");
const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/0.1.0");
/// The key that everything in the fixtures is sealed with.
const KEY: &str = "KioqKioqKioqKioqKioqKioqKioqKioqKioqKioqKio=";
/// What 0.1.0 itself said that it had exported, of the folder and of the database.
const FOLDER_DIGEST: &str = "blake3:7718552b1dfdf8a004883797bfdb26fd8a76c9e7cd00465e09e6cae4683000c4";
const DATABASE_DIGEST: &str = "blake3:84bcd19451fc2cb02b32ee792057a9e2822f729045b4b4e91e00da37e6987be5";

const TRIP: &str = "/v1/conversations/11111111-1111-4111-8111-111111111111";
const ALICE: &str = "/v1/tenants/default/users/alice";

fn unpacked(fixture: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut tar = Command::new("tar");
    tar.arg("-xzf").arg(Path::new(FIXTURES).join(fixture)).arg("-C").arg(folder.path());
    assert!(tar.status().unwrap().success(), "tar cannot unpack {fixture}");
    folder
}

/// A user who had 0.1.0 in a working directory.
struct Home {
    folder: TempDir,
}

impl Home {
    fn with_old_folder() -> Self {
        Self { folder: unpacked("encrypted-folder.tar.gz") }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Where this version keeps data unless somebody says otherwise.
    fn data(&self) -> PathBuf {
        self.path("share/memtrove")
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(BINARY);
        for (name, _) in
            std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("MEMTROVE_"))
        {
            command.env_remove(name);
        }
        command.current_dir(self.folder.path()).env("XDG_DATA_HOME", self.path("share"));
        command.env("MEMTROVE_ENCRYPTION__DEK__KEY", KEY).args(args);
        command
    }

    fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    #[track_caller]
    fn says(&self, args: &[&str]) -> String {
        let output = self.run(args);
        assert!(output.status.success(), "{args:?}: {}", text(&output.stderr));
        text(&output.stdout)
    }

    #[track_caller]
    fn refuses(&self, args: &[&str]) -> String {
        let output = self.run(args);
        assert!(!output.status.success(), "{args:?}: {}", text(&output.stdout));
        text(&output.stderr)
    }
}

/// The digest of what is in a folder. Its schema is older than this version's, so a copy is upgraded first, as a server does it.
#[track_caller]
fn digest(home: &Home, folder: &Path) -> String {
    let copy = tempfile::tempdir().unwrap();
    let copied = Command::new("cp").arg("-a").arg(folder.join(".")).arg(copy.path()).status().unwrap();
    assert!(copied.success());
    let refused = home.refuses(&["export", "--checksum", "--data-dir", folder.to_str().unwrap()]);
    assert!(refused.contains("start this one's server on it first, which upgrades it"), "{refused}");
    drop(Setup::new(BINARY).data_dir(copy.path()).toml(&encrypted()).start());
    home.says(&["export", "--checksum", "--data-dir", copy.path().to_str().unwrap()])
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn encrypted() -> String {
    format!("[encryption.dek]\nkey = \"{KEY}\"\n[indexing]\nauto_derive = \"text\"\n")
}

fn planner(server: &TestServer) -> Client {
    server.as_user("alice").with_key("planner")
}

/// Reads everything that 0.1.0 was told, and proves every version of the file.
#[track_caller]
fn everything_is_there(server: &TestServer) {
    let alice = planner(server);
    let page = alice.get(&format!("{TRIP}/entries")).expect(200).json;
    let texts: Vec<&str> = page["data"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|entry| entry["content"][0]["text"].as_str())
        .collect();
    assert_eq!(
        texts,
        ["Plan three days in Lisbon", "Here is my boarding pass", "Day one: Alfama and the castle."]
    );
    let href = page["data"][1]["content"][0]["attachments"][0]["href"].as_str().unwrap().to_owned();
    assert_eq!(alice.get(&href).expect(200).text, "Seat 12A, Lisbon to Porto\n".repeat(40));
    let memory = alice.get(&format!("{TRIP}/entries?channel=memory")).expect(200).json;
    assert_eq!(memory["data"][0]["content"], json!(["budget: 600 EUR", "vegetarian"]));
    let forks = alice.get(&format!("{TRIP}/forks")).expect(200).json;
    assert!(forks.to_string().contains("Lisbon, by the sea"), "{forks}");
    let shared = server.as_user("bob").get("/v1/conversations?mode=all").expect(200).json;
    assert!(shared.to_string().contains("Plan three days in Lisbon"), "{shared}");
    let found = alice.post("/v1/conversations/search", json!({"query": "alfama castle"})).expect(200).json;
    assert!(found.to_string().contains("Alfama"), "{found}");
    let looked =
        json!({"query": "which food must she avoid?", "threshold": 0.1, "identifiers": {"userId": "alice"}});
    let recalled = alice.post("/v1/memories:search", looked).expect(200).json;
    assert!(recalled.to_string().contains("allergic to peanuts"), "{recalled}");
    let events = alice.post(&format!("{ALICE}/events:search"), json!({"query": "faro"})).expect(200).json;
    assert!(events.to_string().contains("Alice moved to Faro"), "{events}");
    let file = alice.get(&format!("{ALICE}/files/profile.md")).expect(200).json;
    assert_eq!(file["document"]["content"]["text"], "Lives in Faro.");
    every_version_is_proved(&server.as_user("admin").with_key("auditor"));
}

#[track_caller]
fn every_version_is_proved(admin: &Client) {
    let records = admin.get(&format!("{ALICE}/audit?path=profile.md")).expect(200).json;
    let mut changes: Vec<(&str, &str)> = list(&records)
        .iter()
        .map(|record| {
            (record["timestamp"].as_str().unwrap_or_default(), record["change_id"].as_str().unwrap())
        })
        .collect();
    changes.sort_unstable();
    let lives_in = |change: &str| {
        let asked = json!({"path": "profile.md", "change_id": change});
        let version = admin.post(&format!("{ALICE}/audit:reconstruct"), asked).expect(200).json;
        version["document"]["content"]["text"].as_str().unwrap().to_owned()
    };
    let versions: Vec<String> = changes.iter().map(|(_, change)| lives_in(change)).collect();
    assert_eq!(versions, ["Lives in Lisbon.", "Lives in Porto.", "Lives in Faro."], "{records}");
}

fn list(page: &Value) -> &Vec<Value> {
    page.as_object().unwrap().values().find_map(Value::as_array).unwrap()
}

#[test]
fn a_folder_of_the_old_name_is_found_moved_and_read() {
    let home = Home::with_old_folder();
    std::fs::write(home.path("memloom.toml"), "").unwrap();
    let found = text(&home.command(&["adopt"]).env("MEMLOOM_SERVER__LISTEN", "x").output().unwrap().stdout);
    let data = home.data();
    assert_eq!(
        found,
        format!(
            "./memloom-data holds what was stored before the product was renamed: `memtrove adopt ./memloom-data` moves it \
             to {}\nmemloom.toml is not read any more: rename it to memtrove.toml\nvariables that begin with MEMLOOM_ are \
             not read any more: rename MEMLOOM_SERVER__LISTEN\n",
            data.display()
        )
    );
    let examined = home.run(&["doctor", "--listen", "127.0.0.1:0"]);
    assert!(!examined.status.success(), "a server would not start");
    assert!(text(&examined.stdout).contains("`memtrove adopt ./memloom-data` moves it"));

    // Nobody begins with an empty memory in its place.
    for command in [&["serve", "--listen", "127.0.0.1:0"][..], &["mcp"]] {
        let refused = home.refuses(command);
        assert!(refused.contains("`memtrove adopt ./memloom-data` moves it to"), "{refused}");
        assert!(!data.exists());
    }

    let moved = home.says(&["adopt", "./memloom-data"]);
    assert_eq!(moved, format!("Moved ./memloom-data to {}.\n", data.display()));
    assert!(!home.path("memloom-data").exists());
    let mut left: Vec<String> = std::fs::read_dir(&data)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    left.sort_unstable();
    left.retain(|name| name != "memtrove.db.lock");
    assert_eq!(left, ["attachments", "memtrove.db"]);
    assert!(digest(&home, &data).contains(FOLDER_DIGEST));

    let server = Setup::new(BINARY).data_dir(&data).toml(&encrypted()).start();
    everything_is_there(&server);
    drop(server);
    let said = home.says(&["export", "-o", "again.mtz"]);
    assert!(said.contains("1 attachment with 1 file"), "{said}");
    assert!(home.says(&["import", "again.mtz", "--verify"]).contains("digest"), "the export can be read");
    assert_eq!(
        home.says(&["adopt"]).lines().next(),
        Some("memloom.toml is not read any more: rename it to memtrove.toml")
    );
}

#[test]
fn the_platforms_folder_of_the_old_name_is_found_too() {
    let home = Home::with_old_folder();
    std::fs::create_dir(home.path("share")).unwrap();
    std::fs::rename(home.path("memloom-data"), home.path("share/memloom")).unwrap();
    let old = home.path("share/memloom").display().to_string();
    assert!(home.says(&["adopt"]).contains(&format!("`memtrove adopt {old}` moves it")));
    home.says(&["adopt", &old]);
    assert!(digest(&home, &home.data()).contains(FOLDER_DIGEST));
}

#[test]
fn a_folder_can_stay_where_it_is() {
    let home = Home::with_old_folder();
    let here = ["--data-dir", "./memloom-data"];
    // A new database must not be made beside the one that was meant.
    let refused = home.refuses(&[&["serve", "--listen", "127.0.0.1:0"][..], &here].concat());
    assert!(
        refused.contains("`memtrove adopt ./memloom-data --data-dir ./memloom-data` renames it"),
        "{refused}"
    );
    assert!(!home.path("memloom-data/memtrove.db").exists());
    home.says(&[&["adopt", "./memloom-data"][..], &here].concat());
    assert!(digest(&home, &home.path("memloom-data")).contains(FOLDER_DIGEST));
    let again = home.refuses(&[&["adopt", "./memloom-data"][..], &here].concat());
    assert!(again.contains("there is nothing to do"), "{again}");
}

#[test]
fn a_move_that_was_cut_off_goes_on() {
    let home = Home::with_old_folder();
    let folder = home.path("memloom-data");
    std::fs::rename(folder.join("memloom.db"), folder.join("memtrove.db")).unwrap();
    home.says(&["adopt", "./memloom-data"]);
    assert!(digest(&home, &home.data()).contains(FOLDER_DIGEST));
}

#[test]
fn a_folder_moves_to_another_disk_or_stays_whole_where_it_does_not_fit() {
    let Some(disk) = SmallDisk::mount("8m") else { return };
    let home = Home::with_old_folder();
    let there = disk.path().join("data");
    let elsewhere = ["--data-dir", there.to_str().unwrap()];
    disk.fill();
    let refused = home.refuses(&[&["adopt", "./memloom-data"][..], &elsewhere].concat());
    assert!(refused.contains("cannot be copied to") && refused.contains("No space left"), "{refused}");
    assert!(!there.exists() && home.path("memloom-data/memtrove.db").is_file());

    disk.free();
    // As a run leaves it that was killed while it copied.
    std::fs::create_dir_all(disk.path().join("data.adopting/attachments")).unwrap();
    home.says(&[&["adopt", "./memloom-data"][..], &elsewhere].concat());
    assert!(!home.path("memloom-data").exists());
    assert_eq!(std::fs::read_dir(disk.path()).unwrap().count(), 1, "nothing is left of the copying");
    assert!(digest(&home, &there).contains(FOLDER_DIGEST));
}

#[test]
fn a_disk_that_fills_up_in_the_middle_leaves_the_folder_whole() {
    let home = Home::with_old_folder();
    let half = size(&home.path("memloom-data")) / 2;
    let Some(disk) = SmallDisk::mount(&format!("{half}")) else { return };
    let there = disk.path().join("data");
    let adopt = ["adopt", "./memloom-data", "--data-dir", there.to_str().unwrap()];
    for _ in 0..2 {
        let refused = home.refuses(&adopt);
        assert!(refused.contains("and is as it was") && refused.contains("No space left"), "{refused}");
        assert_eq!(std::fs::read_dir(disk.path()).unwrap().count(), 0, "half a copy takes no room");
    }
    assert!(digest(&home, &home.path("memloom-data")).contains(FOLDER_DIGEST), "nothing is lost");

    disk.remount("size=64m");
    home.says(&adopt);
    assert!(!home.path("memloom-data").exists());
    everything_is_there(&Setup::new(BINARY).data_dir(&there).toml(&encrypted()).start());
}

/// Memory as the other disk, which everybody may write to: the move itself is tried without root too.
#[test]
fn a_folder_moves_to_another_file_system() {
    let Some(disk) = other_file_system() else { return };
    let home = Home::with_old_folder();
    std::os::unix::fs::symlink("elsewhere", home.path("memloom-data/attachments/link")).unwrap();
    let there = disk.path().join("data");
    home.says(&["adopt", "./memloom-data", "--data-dir", there.to_str().unwrap()]);
    assert!(!home.path("memloom-data").exists());
    assert_eq!(std::fs::read_link(there.join("attachments/link")).unwrap(), Path::new("elsewhere"));
    std::fs::remove_file(there.join("attachments/link")).unwrap();
    assert_eq!(std::fs::read_dir(disk.path()).unwrap().count(), 1, "nothing is left of the copying");
    assert!(digest(&home, &there).contains(FOLDER_DIGEST));
    everything_is_there(&Setup::new(BINARY).data_dir(&there).toml(&encrypted()).start());
}

/// A folder on another file system than temporary folders are on; says so where there is none.
#[track_caller]
fn other_file_system() -> Option<TempDir> {
    use std::os::unix::fs::MetadataExt;
    let device = |path: &Path| path.metadata().ok().map(|found| found.dev());
    let candidates = ["/dev/shm", "/run/user", "/var/tmp"].map(Path::new);
    let other = candidates.iter().find(|path| {
        device(path).is_some_and(|other| Some(other) != device(&std::env::temp_dir()))
            && tempfile::tempdir_in(path).is_ok()
    });
    let Some(other) = other else {
        assert!(
            std::env::var("MEMTROVE_ALLOW_SKIPS").is_ok_and(|allowed| allowed == "1"),
            "this test needs a second file system, and none of {candidates:?} is one: set TMPDIR, or MEMTROVE_ALLOW_SKIPS=1 to \
             leave it out"
        );
        eprintln!("skipped, because there is one file system only");
        return None;
    };
    Some(tempfile::tempdir_in(other).unwrap())
}

/// What the files of a folder take.
fn size(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.map(|path| if path.is_dir() { size(&path) } else { path.metadata().unwrap().len() }).sum()
}

#[test]
fn what_is_in_the_way_is_named_and_nothing_moves() {
    let home = Home::with_old_folder();
    std::fs::create_dir_all(home.data()).unwrap();
    std::fs::write(home.data().join("memtrove.db"), "").unwrap();
    let refused = home.refuses(&["adopt", "./memloom-data"]);
    assert!(refused.contains("is there and not empty") && refused.contains("--data-dir"), "{refused}");
    assert!(
        home.says(&["adopt"])
            .contains("`memtrove adopt ./memloom-data --data-dir FOLDER` moves it elsewhere")
    );
    assert!(home.refuses(&["adopt", "./nowhere"]).contains("there is no folder ./nowhere"));
    assert!(home.refuses(&["adopt", "share"]).contains("holds no memloom.db"));

    let lock = std::fs::File::create(home.path("memloom-data/memloom.db.lock")).unwrap();
    lock.try_lock().unwrap();
    let refused = home.refuses(&["adopt", "./memloom-data", "--data-dir", "./elsewhere"]);
    assert!(refused.contains("another memtrove process uses this data folder"), "{refused}");
    drop(lock);
    assert!(home.path("memloom-data/memloom.db").is_file() && !home.path("elsewhere").exists());
    home.says(&["adopt", "./memloom-data", "--data-dir", "./elsewhere"]);
    assert!(digest(&home, &home.path("elsewhere")).contains(FOLDER_DIGEST));
}

#[test]
fn attachments_beside_a_database_on_a_server_are_found_and_moved() {
    let home = Home { folder: unpacked("postgres.tar.gz") };
    std::fs::create_dir(home.path("memloom-data")).unwrap();
    std::fs::rename(home.path("attachments"), home.path("memloom-data/attachments")).unwrap();
    let store = ["--store", "postgres://memtrove@127.0.0.1/memtrove"];
    assert_eq!(home.says(&["adopt"]), "There is nothing to adopt.\n");
    let found = home.says(&[&["adopt"][..], &store].concat());
    assert!(found.contains("`memtrove adopt ./memloom-data` moves it to"), "{found}");
    home.says(&[&["adopt", "./memloom-data"][..], &store].concat());
    assert!(home.data().join("attachments").is_dir() && !home.path("memloom-data").exists());
}

#[test]
fn what_was_in_the_log_comes_along() {
    let home = Home::with_old_folder();
    let folder = home.path("memloom-data");
    // As a process leaves it that was killed: the change is in the log alone.
    let copy = home.path("killed");
    std::fs::create_dir(&copy).unwrap();
    let open = rusqlite::Connection::open(folder.join("memloom.db")).unwrap();
    open.execute_batch("CREATE TABLE late (it TEXT); INSERT INTO late VALUES ('kept')").unwrap();
    for name in ["memloom.db", "memloom.db-wal"] {
        std::fs::copy(folder.join(name), copy.join(name)).unwrap();
    }
    drop(open);
    home.says(&["adopt", "./killed"]);
    let moved = rusqlite::Connection::open(home.data().join("memtrove.db")).unwrap();
    let late: String = moved.query_row("SELECT it FROM late", [], |row| row.get(0)).unwrap();
    assert_eq!(late, "kept");
}

#[test]
fn an_archive_of_the_old_name_is_imported() {
    let home = Home { folder: tempfile::tempdir().unwrap() };
    let archive = format!("{FIXTURES}/archive.mlz");
    assert!(home.says(&["import", &archive, "--verify"]).contains(FOLDER_DIGEST));
    home.says(&["import", &archive]);
    assert!(home.says(&["export", "--checksum"]).contains(FOLDER_DIGEST));
    everything_is_there(&Setup::new(BINARY).data_dir(home.data()).toml(&encrypted()).start());
}

#[test]
fn a_database_of_the_old_name_is_served() {
    let dump = unpacked("postgres.tar.gz");
    let sql = std::fs::read_to_string(dump.path().join("postgres.sql")).unwrap();
    let database = Database::bare();
    database.rows(&sql);
    let attachments = dump.path().join("attachments");
    let toml = format!("{}[attachments]\ndirectory = \"{}\"\n", encrypted(), attachments.display());
    let home = Home { folder: tempfile::tempdir().unwrap() };
    let server = Setup::new(BINARY).database(&database).toml(&toml).start();
    let checksum = home.says(&["export", "--checksum", "--store", database.url()]);
    assert!(checksum.contains(DATABASE_DIGEST), "{checksum}");
    everything_is_there(&server);
    // A tenant still sees nothing of another one: the policies read the setting that this version makes.
    let stranger = server.as_user("alice").with_key("planner").in_tenant("elsewhere");
    stranger.get(&format!("{TRIP}/entries")).expect_error(404, "not_found");
    drop(server);
    std::fs::write(home.path("memtrove.toml"), toml).unwrap();
    let said = home.says(&["export", "-o", "again.mtz", "--store", database.url()]);
    assert!(said.contains("1 attachment with 1 file"), "{said}");
}
