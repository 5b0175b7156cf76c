//! Anthropic's memory tool, command by command, in the words of its documentation.

use crate::support::*;
use memtrove_agent::{WriteFileOptions, memory_tool};

/// A model with a memory of its own.
struct Model {
    memory: AgentMemory,
    scope: Scope,
}

impl Model {
    fn fresh() -> Self {
        Self { memory: memory(), scope: someone() }
    }

    /// What a command answers.
    #[track_caller]
    fn says<'a>(&'a self, input: Value) -> impl Future<Output = String> + 'a {
        let caller = std::panic::Location::caller();
        async move {
            let output = self.memory.call_memory_tool(&self.scope, &input).await.unwrap();
            assert!(!output.is_error, "{caller}: {input}: {}", output.text());
            output.text()
        }
    }

    /// What a command that fails answers.
    #[track_caller]
    fn fails<'a>(&'a self, input: Value) -> impl Future<Output = String> + 'a {
        let caller = std::panic::Location::caller();
        async move {
            let output = self.memory.call_memory_tool(&self.scope, &input).await.unwrap();
            assert!(output.is_error, "{caller}: {input} did not fail: {}", output.text());
            output.text()
        }
    }

    async fn create(&self, path: &str, text: &str) {
        self.says(json!({"command": "create", "path": path, "file_text": text})).await;
    }

    async fn text(&self, path: &str) -> String {
        self.memory.load_file(&self.scope, path.trim_start_matches('/')).await.unwrap().content
    }

    async fn paths(&self) -> Vec<String> {
        let files = self.memory.list_files(&self.scope, None, None).await.unwrap();
        files.into_iter().map(|file| file.path.to_string()).collect()
    }
}

#[test]
fn the_tool_is_declared_by_its_type() {
    assert_eq!(memory_tool(), json!({"type": "memory_20250818", "name": "memory"}));
}

#[tokio::test]
async fn view_lists_a_folder_and_shows_a_file() {
    let model = Model::fresh();
    let empty = model.says(json!({"command": "view", "path": "/memories"})).await;
    assert_eq!(
        empty,
        "Here're the files and directories up to 2 levels deep in /memories, excluding hidden items and node_modules:\n0B\t/memories"
    );
    model.create("/memories/notes.txt", "Hello World\nThis is line two").await;
    model.create("/memories/projects/tea/plan.md", &"x".repeat(1536)).await;
    model.create("/memories/.hidden", "h").await;
    model.memory.write_file(&model.scope, "elsewhere.md", "e", WriteFileOptions::default()).await.unwrap();
    let listed = model.says(json!({"command": "view", "path": "/memories/"})).await;
    assert_eq!(
        listed,
        "Here're the files and directories up to 2 levels deep in /memories, excluding hidden items and node_modules:\n\
         1.5K\t/memories\n28B\t/memories/notes.txt\n1.5K\t/memories/projects/\n1.5K\t/memories/projects/tea/"
    );
    let listed = model.says(json!({"command": "view", "path": "/memories/projects/tea"})).await;
    assert!(
        listed.ends_with("\n1.5K\t/memories/projects/tea\n1.5K\t/memories/projects/tea/plan.md"),
        "{listed}"
    );

    let shown = model.says(json!({"command": "view", "path": "/memories/notes.txt"})).await;
    assert_eq!(
        shown,
        "Here's the content of /memories/notes.txt with line numbers:\n     1\tHello World\n     2\tThis is line two"
    );
    let some = json!({"command": "view", "path": "/memories/notes.txt", "view_range": [2, -1]});
    assert!(model.says(some).await.ends_with(":\n     2\tThis is line two"));
    let missing = model.fails(json!({"command": "view", "path": "/memories/none"})).await;
    assert_eq!(missing, "The path /memories/none does not exist. Please provide a valid path.");
    let other_case = model.fails(json!({"command": "view", "path": "/memories/PROJECTS"})).await;
    assert_eq!(other_case, "The path /memories/PROJECTS does not exist. Please provide a valid path.");
}

#[tokio::test]
async fn a_folder_of_many_files_is_listed_whole() {
    let model = Model::fresh();
    for n in 0..45 {
        model.create(&format!("/memories/{n:02}.md"), "four").await;
    }
    let listed = model.says(json!({"command": "view", "path": "/memories"})).await;
    assert_eq!(listed.lines().count(), 47);
    assert!(listed.lines().nth(1).unwrap().starts_with("180B\t"), "{listed}");
}

#[tokio::test]
async fn create_makes_a_file_where_nothing_is() {
    let model = Model::fresh();
    let create = |path: &str| json!({"command": "create", "path": path, "file_text": "a\n"});
    assert_eq!(
        model.says(create("/memories/a/b.txt")).await,
        "File created successfully at: /memories/a/b.txt"
    );
    assert_eq!(model.text("memories/a/b.txt").await, "a\n");
    assert_eq!(
        model.fails(create("/memories/a/b.txt")).await,
        "Error: File /memories/a/b.txt already exists"
    );
    assert_eq!(model.fails(create("/memories/a")).await, "Error: File /memories/a already exists");
    assert_eq!(model.fails(create("/memories")).await, "Error: File /memories already exists");
}

#[tokio::test]
async fn str_replace_edits_the_only_match() {
    let model = Model::fresh();
    model.create("/memories/p.txt", "1\n2\n3\nblue\n5\n6\n7").await;
    let replace = |path: &str, old: &str, new: &str| json!({"command": "str_replace", "path": path, "old_str": old, "new_str": new});
    let edited = model.says(replace("/memories/p.txt", "blue", "green\nyellow")).await;
    assert_eq!(
        edited,
        "The memory file has been edited. Here is the snippet showing the change (with line numbers):\n     \
         2\t2\n     3\t3\n     4\tgreen\n     5\tyellow\n     6\t5"
    );
    assert_eq!(model.text("memories/p.txt").await, "1\n2\n3\ngreen\nyellow\n5\n6\n7");
    assert_eq!(
        model.fails(replace("/memories/p.txt", "red", "x")).await,
        "No replacement was performed, old_str `red` did not appear verbatim in /memories/p.txt."
    );
    model.create("/memories/twice.txt", "a\nb\na").await;
    assert_eq!(
        model.fails(replace("/memories/twice.txt", "a", "x")).await,
        "No replacement was performed. Multiple occurrences of old_str `a` in lines: 1, 3. Please ensure it is unique"
    );
    model.create("/memories/dir/x", "a").await;
    for path in ["/memories/none", "/memories/dir", "/memories"] {
        let missing = model.fails(replace(path, "a", "b")).await;
        assert_eq!(missing, format!("Error: The path {path} does not exist. Please provide a valid path."));
    }
}

#[tokio::test]
async fn insert_puts_a_line_after_so_many() {
    let model = Model::fresh();
    model.create("/memories/todo.txt", "one\ntwo").await;
    let insert = |path: &str, line: i64| json!({"command": "insert", "path": path, "insert_line": line, "insert_text": "- review\n"});
    let edited = model.says(insert("/memories/todo.txt", 1)).await;
    assert_eq!(edited, "The file /memories/todo.txt has been edited.");
    assert_eq!(model.text("memories/todo.txt").await, "one\n- review\ntwo\n");
    for line in [-1, 4] {
        assert_eq!(
            model.fails(insert("/memories/todo.txt", line)).await,
            format!(
                "Error: Invalid `insert_line` parameter: {line}. It should be within the range of lines of the file: [0, 3]"
            )
        );
    }
    let missing = model.fails(insert("/memories/none.txt", 0)).await;
    assert_eq!(missing, "Error: The path /memories/none.txt does not exist");
}

#[tokio::test]
async fn an_edit_is_made_to_what_somebody_else_left() {
    let scope = someone();
    let model = Model { memory: memory(), scope: scope.clone() };
    model.create("/memories/a.txt", "one").await;
    let whose = scope.clone();
    let slow = interrupted(2, move |runtime| {
        let memory = memory();
        let insert = json!({"command": "insert", "path": "/memories/a.txt", "insert_line": 0, "insert_text": "theirs"});
        runtime.block_on(memory.call_memory_tool(&whose, &insert)).unwrap();
    });
    let slow = Model { memory: slow, scope };
    slow.says(
        json!({"command": "insert", "path": "/memories/a.txt", "insert_line": 0, "insert_text": "mine"}),
    )
    .await;
    assert_eq!(model.text("memories/a.txt").await, "mine\ntheirs\ntheirs\none\n");
}

#[tokio::test]
async fn delete_takes_a_file_or_everything_in_a_folder() {
    let model = Model::fresh();
    for path in ["/memories/a.txt", "/memories/dir/b.txt", "/memories/dir/deep/c.txt", "/memories/dirt/d.txt"]
    {
        model.create(path, "x").await;
    }
    let delete = |path: &str| json!({"command": "delete", "path": path});
    assert_eq!(model.says(delete("/memories/a.txt")).await, "Successfully deleted /memories/a.txt");
    assert_eq!(model.says(delete("/memories/dir/")).await, "Successfully deleted /memories/dir");
    assert_eq!(model.paths().await, ["memories/dirt/d.txt"], "a folder is no mere beginning of a name");
    for path in ["/memories/a.txt", "/memories/dir"] {
        assert_eq!(model.fails(delete(path)).await, format!("Error: The path {path} does not exist"));
    }
    assert_eq!(model.fails(delete("/memories")).await, "Error: Cannot delete the /memories directory itself");
    model.create("/memories/a.txt", "again").await;
    assert_eq!(model.text("memories/a.txt").await, "again");
}

#[tokio::test]
async fn rename_moves_a_file_or_everything_in_a_folder() {
    let model = Model::fresh();
    for path in ["/memories/draft.txt", "/memories/dir/b.txt", "/memories/dir/deep/c.txt"] {
        model.create(path, path).await;
    }
    let rename = |old: &str, new: &str| json!({"command": "rename", "old_path": old, "new_path": new});
    assert_eq!(
        model.says(rename("/memories/draft.txt", "/memories/done/final.txt")).await,
        "Successfully renamed /memories/draft.txt to /memories/done/final.txt"
    );
    assert_eq!(model.text("memories/done/final.txt").await, "/memories/draft.txt");
    assert_eq!(
        model.says(rename("/memories/dir", "/memories/people/all")).await,
        "Successfully renamed /memories/dir to /memories/people/all"
    );
    assert_eq!(
        model.paths().await,
        ["memories/done/final.txt", "memories/people/all/b.txt", "memories/people/all/deep/c.txt"]
    );
    let exists = "Error: The destination /memories/done/final.txt already exists";
    assert_eq!(model.fails(rename("/memories/people/all/b.txt", "/memories/done/final.txt")).await, exists);
    assert_eq!(model.fails(rename("/memories/people", "/memories/done/final.txt")).await, exists);
    assert_eq!(
        model.fails(rename("/memories/people", "/memories/done")).await,
        "Error: The destination /memories/done already exists"
    );
    assert_eq!(
        model.fails(rename("/memories/none", "/memories/new")).await,
        "Error: The path /memories/none does not exist"
    );
    assert_eq!(
        model.fails(rename("/memories/people", "/memories/people/inner")).await,
        "Error: Cannot rename /memories/people to /memories/people/inner, which is inside it"
    );
    for (old, new) in [("/memories", "/memories/x"), ("/memories/people", "/memories")] {
        let refusal = model.fails(rename(old, new)).await;
        assert!(refusal.starts_with("Error: "), "{refusal}");
    }
    assert_eq!(model.paths().await.len(), 3);
}

#[tokio::test]
async fn a_folder_that_cannot_be_moved_whole_is_not_moved_at_all() {
    let model = Model::fresh();
    let long = "n".repeat(200);
    model.create("/memories/dir/a.txt", "a").await;
    model.create(&format!("/memories/dir/{long}/{long}/{long}/{long}/z.txt"), "z").await;
    let before = model.paths().await;
    // Together with a longer folder the second path is longer than paths may be.
    let new = format!("/memories/{}/{}", "m".repeat(150), "m".repeat(150));
    let refusal =
        model.fails(json!({"command": "rename", "old_path": "/memories/dir", "new_path": new})).await;
    assert!(refusal.contains("1024") && refusal.ends_with("Nothing was moved."), "{refusal}");
    assert_eq!(model.paths().await, before);
}

#[tokio::test]
async fn a_folder_that_was_deleted_half_way_is_deleted_by_the_same_command() {
    let model = Model::fresh();
    for name in ["a", "b", "c"] {
        model.create(&format!("/memories/dir/{name}.txt"), "x").await;
    }
    let delete = json!({"command": "delete", "path": "/memories/dir"});
    // The folder as a file, the list, the first file, the second.
    let outcome = cut_off_at(4).call_memory_tool(&model.scope, &delete).await;
    assert!(matches!(outcome, Err(Error::Transport { .. })), "{outcome:?}");
    assert_eq!(model.paths().await, ["memories/dir/b.txt", "memories/dir/c.txt"]);
    assert_eq!(model.says(delete).await, "Successfully deleted /memories/dir");
    assert_eq!(model.paths().await, Vec::<String>::new());
}

#[tokio::test]
async fn a_folder_that_was_renamed_half_way_is_as_it_was() {
    let model = Model::fresh();
    for name in ["a", "b", "c"] {
        model.create(&format!("/memories/dir/{name}.txt"), name).await;
    }
    let before = model.paths().await;
    let rename = json!({"command": "rename", "old_path": "/memories/dir", "new_path": "/memories/new"});
    // What is at the new path, what is in it, the files of the folder, the folder as a file, the first file, the second.
    let outcome = cut_off_at(6).call_memory_tool(&model.scope, &rename).await;
    assert!(matches!(outcome, Err(Error::Transport { .. })), "{outcome:?}");
    assert_eq!(model.paths().await, before);
    assert_eq!(model.text("memories/dir/a.txt").await, "a");
    model.says(rename).await;
    assert_eq!(model.paths().await, ["memories/new/a.txt", "memories/new/b.txt", "memories/new/c.txt"]);
}

/// A model with three files in a folder, behind a gateway that knows each move by its `"from":"…"`, and the command that
/// renames the folder.
async fn renaming(decide: impl Fn(&str) -> Fate + Send + Sync + 'static) -> (Model, Value) {
    let scope = someone();
    let near = Model { memory: memory(), scope: scope.clone() };
    for name in ["a", "b", "c"] {
        near.create(&format!("/memories/dir/{name}.txt"), name).await;
    }
    let rename = json!({"command": "rename", "old_path": "/memories/dir", "new_path": "/memories/new"});
    (Model { memory: AgentMemory::new(behind_a_gateway(decide).build().unwrap()), scope }, rename)
}

const DIR: [&str; 3] = ["memories/dir/a.txt", "memories/dir/b.txt", "memories/dir/c.txt"];

#[tokio::test]
async fn a_move_whose_answer_was_lost_is_moved_back_like_every_other() {
    let (model, rename) = renaming(|request| match request.contains(r#""from":"memories/dir/b.txt""#) {
        true => Fate::BadGateway,
        false => Fate::Answered,
    })
    .await;
    let refusal = model.fails(rename).await;
    assert!(refusal.contains("HTTP_502") && refusal.ends_with("Nothing was moved."), "{refusal}");
    assert_eq!(model.paths().await, DIR);
}

#[tokio::test]
async fn what_may_still_be_under_way_is_not_said_to_be_back() {
    let (model, rename) = renaming(|request| match request.contains(r#""from":"memories/dir/b.txt""#) {
        true => Fate::Unavailable,
        false => Fate::Answered,
    })
    .await;
    let refusal = model.fails(rename).await;
    assert!(!refusal.contains("Nothing was moved"), "{refusal}");
    assert!(
        refusal.ends_with("It is not known whether these files are at their old paths or at the new ones: /memories/dir/b.txt; /memories/new/b.txt. View both folders to see."),
        "{refusal}"
    );
    assert_eq!(model.paths().await, DIR);
}

#[tokio::test]
async fn a_lost_connection_does_not_hide_what_is_where() {
    let cut = std::sync::atomic::AtomicBool::new(false);
    let (model, rename) = renaming(move |request| {
        use std::sync::atomic::Ordering::SeqCst;
        if request.contains(r#""from":"memories/dir/b.txt""#) {
            cut.store(true, SeqCst);
            return Fate::Lost;
        }
        if cut.load(SeqCst) && request.contains("files:move") { Fate::Dropped } else { Fate::Answered }
    })
    .await;
    let error = model.memory.call_memory_tool(&model.scope, &rename).await.unwrap_err();
    assert!(matches!(error, Error::Transport { .. }), "{error:?}");
    for path in ["/memories/dir/a.txt", "/memories/new/a.txt", "/memories/dir/b.txt", "/memories/new/b.txt"] {
        assert!(error.to_string().contains(path), "{error}");
    }
    assert_eq!(model.paths().await, ["memories/dir/c.txt", "memories/new/a.txt", "memories/new/b.txt"]);
}

#[tokio::test]
async fn nothing_is_made_below_a_file() {
    let model = Model::fresh();
    model.create("/memories/a", "text").await;
    model.create("/memories/other/x.md", "x").await;
    let create = |path: &str| json!({"command": "create", "path": path, "file_text": ""});
    for path in ["/memories/a/b", "/memories/a/b/c"] {
        assert_eq!(
            model.fails(create(path)).await,
            format!(
                "Error: Cannot create {path}: /memories/a is a file, and nothing can be inside a file. Choose another path."
            )
        );
        let view = model.fails(json!({"command": "view", "path": path})).await;
        assert_eq!(
            view,
            format!("The path {path} does not exist: /memories/a is a file. Please provide a valid path.")
        );
    }
    let rename = |old: &str, new: &str| json!({"command": "rename", "old_path": old, "new_path": new});
    for old in ["/memories/other", "/memories/other/x.md"] {
        let refusal = model.fails(rename(old, "/memories/a/b")).await;
        assert!(refusal.contains("/memories/a is a file, and nothing can be inside a file"), "{refusal}");
    }
    assert_eq!(
        model.fails(rename("/memories/a", "/memories/a/b")).await,
        "Error: Cannot rename /memories/a to /memories/a/b, which is inside it"
    );
    assert_eq!(model.paths().await, ["memories/a", "memories/other/x.md"]);
}

#[tokio::test]
async fn a_file_that_others_made_a_folder_of_too_goes_with_everything_below_it() {
    let model = Model::fresh();
    for path in ["memories/a", "memories/a/b", "memories/a/c/d"] {
        model.memory.write_file(&model.scope, path, path, WriteFileOptions::default()).await.unwrap();
    }
    let view = model.says(json!({"command": "view", "path": "/memories/a"})).await;
    assert_eq!(
        view,
        "Here's the content of /memories/a with line numbers:\n     1\tmemories/a\n\n\
         /memories/a is also a directory, with: /memories/a/b, /memories/a/c/d"
    );
    model.says(json!({"command": "rename", "old_path": "/memories/a", "new_path": "/memories/z"})).await;
    assert_eq!(model.paths().await, ["memories/z", "memories/z/b", "memories/z/c/d"]);
    assert_eq!(model.text("memories/z/c/d").await, "memories/a/c/d");
    model.says(json!({"command": "delete", "path": "/memories/z"})).await;
    assert_eq!(model.paths().await, Vec::<String>::new());
}

#[tokio::test]
async fn a_folder_reads_what_it_shows_and_nothing_else() {
    let ((memory, sent), scope) = (watched(), someone());
    for path in ["memories/.git/a", "memories/node_modules/b", "memories/x/.c"] {
        memory.write_file(&scope, path, "hidden", WriteFileOptions::default()).await.unwrap();
    }
    sent.take();
    let view = json!({"command": "view", "path": "/memories"});
    let listed = memory.call_memory_tool(&scope, &view).await.unwrap().text();
    assert!(listed.ends_with(":\n0B\t/memories"), "{listed}");
    assert_eq!(sent.take(), ["GET files:list"]);

    for n in 0..503 {
        memory
            .write_file(&scope, &format!("memories/{n:03}"), "four", WriteFileOptions::create_only())
            .await
            .unwrap();
    }
    sent.take();
    let listed = memory.call_memory_tool(&scope, &view).await.unwrap().text();
    let requests = sent.take();
    assert_eq!(requests.iter().filter(|request| request.ends_with("assemble")).count(), 25, "{requests:?}");
    assert_eq!(listed.lines().count(), 503);
    assert!(
        listed.ends_with(
            "4B\t/memories/499\n(3 more files are neither shown nor counted. View a folder further down.)"
        ),
        "{listed}"
    );
}

#[tokio::test]
async fn numbers_may_be_written_as_models_write_them() {
    let model = Model::fresh();
    model.create("/memories/a", "1\n2\n3\n").await;
    for range in [json!([2.0, 3.0]), json!(["2", " 3 "]), json!(["2.0", 3])] {
        let view = model.says(json!({"command": "view", "path": "/memories/a", "view_range": range})).await;
        assert!(view.ends_with("     2\t2\n     3\t3"), "{view}");
    }
    let insert = |line: Value| json!({"command": "insert", "path": "/memories/a", "insert_line": line, "insert_text": "x"});
    model.says(insert(json!(1.0))).await;
    assert_eq!(model.text("memories/a").await, "1\nx\n2\n3\n");
    let refusal = model.fails(insert(json!(1.5))).await;
    assert!(refusal.contains("'insert_line' is not a whole number"), "{refusal}");
}

#[tokio::test]
async fn what_leads_out_of_memories_is_refused() {
    let model = Model::fresh();
    model.memory.write_file(&model.scope, "secret.md", "s", WriteFileOptions::default()).await.unwrap();
    for path in ["/memories/../secret.md", "/memories/%2e%2e/secret.md", "/memories/..\\secret.md"] {
        assert_eq!(
            model.fails(json!({"command": "view", "path": path})).await,
            format!("Error: Path {path} would escape /memories directory")
        );
    }
    for path in ["/secret.md", "secret.md", "/memoriesecret.md"] {
        assert_eq!(
            model.fails(json!({"command": "delete", "path": path})).await,
            format!("Error: Path must start with /memories, got: {path}")
        );
    }
    let rename =
        json!({"command": "rename", "old_path": "/memories/../secret.md", "new_path": "/memories/mine.md"});
    model.fails(rename).await;
    assert_eq!(model.paths().await, ["secret.md"]);
}

#[tokio::test]
async fn what_cannot_be_read_says_what_there_is() {
    let model = Model::fresh();
    assert_eq!(
        model.fails(json!({"command": "append", "path": "/memories/a"})).await,
        "Error: Unknown command: append. Valid commands are: view, create, str_replace, insert, delete, rename"
    );
    for (input, about) in [
        (json!({"path": "/memories"}), "'command' is missing. Give a command: view"),
        (json!([1]), "not a JSON object"),
        (json!({"command": "view"}), "'path' is missing. view takes"),
        (
            json!({"command": "view", "path": "/memories", "view_range": [1]}),
            "'view_range' is not a list of two",
        ),
        (json!({"command": "create", "path": "/memories/a"}), "'file_text' is missing"),
        (json!({"command": "insert", "path": "/memories/a", "insert_text": "x"}), "'insert_line'"),
        (
            json!({"command": "str_replace", "path": "/memories/a", "old_str": "", "new_str": ""}),
            "'old_str' is empty",
        ),
        (json!({"command": "rename", "old_path": "/memories/a"}), "'new_path' is missing"),
    ] {
        let refusal = model.fails(input).await;
        assert!(refusal.starts_with("Error: ") && refusal.contains(about), "{refusal}");
    }
    let long = json!({"command": "create", "path": "/memories/long", "file_text": "x".repeat(256_001)});
    let refusal = model.fails(long).await;
    assert!(refusal.starts_with("Error: ") && refusal.ends_with("(DOCUMENT_SIZE_EXCEEDED)"), "{refusal}");
}
