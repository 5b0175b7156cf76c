//! The policies of PostgreSQL: who names no tenant sees nothing, who names one sees nothing of others, and requests name theirs.

use crate::cluster::support::*;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Tables without rows of tenants, and why.
const OF_NO_TENANT: [(&str, &str); 5] = [
    ("leases", "which node does the work that one does for all"),
    ("meta", "facts about the store itself, such as its keys of digests"),
    ("nodes", "which processes are there"),
    ("rates", "what is left of quotas, under digests that tell nobody whose"),
    ("schema_steps", "which migrations ran"),
];

/// Units of work that run for all tenants, and why each must.
const STEPS_OF_A_FORGET: [&str; 7] = [
    "forget_names",
    "forget_memory_names",
    "forget_changes",
    "forget_private_memories",
    "forget_memories",
    "forget_files",
    "forget_entries",
];
const FOR_ALL_TENANTS: &[(&str, &str)] = &[
    ("are_pieces_made", "background: vectors"),
    ("beat", "a node says that it is there"),
    ("begin_searching", "background: indexes of vectors"),
    ("bury_nodes", "background: nodes that are gone"),
    ("check_attachment", "background: bytes of deleted attachments, which tenants do not share by name"),
    ("claim_job", "background: the next job, whoever asked for it"),
    ("claim_tasks", "background: the next tasks, whoever queued them"),
    ("clear_index", "background: indexes of vectors"),
    ("clear_memories", "background: what detached scopes left"),
    ("clear_stale_pages", "background: what deleted rows left"),
    ("compact_texts", "background: what deleted texts left"),
    ("confirm_recordings", "background: recordings of this node, of several tenants at once"),
    ("copy_index", "background: a kept index; SQLite only, which has no policies"),
    ("count_memories", "metrics"),
    ("count_nodes", "metrics"),
    ("count_terms", "background: indexes of vectors"),
    ("count_texts_waiting", "metrics, and background: texts of several trees at once"),
    ("count_upgrades", "how far the store is with a new model: a number of the whole store"),
    ("count_uses", "background: what was found, of several tenants at once"),
    ("count_vectors_waiting", "metrics"),
    ("delete_uprooted", "background: attachments of trees that are gone"),
    ("delete_vectors", "background: a task"),
    ("deleted_attachments", "background: bytes of deleted attachments"),
    ("digest_key", "start"),
    ("drop_upgrades", "background: vectors"),
    ("expire_attachments", "background: attachments that nobody linked"),
    ("fill_index", "background: indexes of vectors"),
    ("find_large_scopes", "background: indexes of vectors"),
    ("find_stale_pages", "background: what deleted rows left"),
    ("forget_changes", "what a forget detached may name no tenant"),
    ("forget_entries", "what a forget detached may name no tenant"),
    ("forget_files", "what a forget detached may name no tenant"),
    ("forget_memories", "what a forget detached may name no tenant"),
    ("forget_memory_names", "what a forget detached may name no tenant"),
    ("forget_names", "what a forget detached may name no tenant"),
    ("forget_private_memories", "what a forget detached may name no tenant"),
    ("forget_traces", "background: what forgotten users left on the disk"),
    ("forgotten", "background: forgets that have not come to their end"),
    ("forgotten_traces", "background: what forgotten users left on the disk"),
    ("get_job", "a trusted client watches its job without naming the tenant again"),
    ("give_up_downloads", "background: downloads that nobody carries on"),
    ("has_counts", "background: indexes of vectors"),
    ("import", "an archive of a whole store"),
    ("import_begin", "an archive"),
    ("import_compare", "an archive"),
    ("import_end", "an archive"),
    ("import_numbers", "an archive"),
    ("import_trial", "an archive"),
    ("index_lag", "metrics"),
    ("leave", "a node says that it goes"),
    ("list_expired", "background: memories whose time has come"),
    ("list_large_scopes", "background: indexes of vectors"),
    ("list_long_memories", "background: long memories that an older version wrote"),
    ("list_nodes", "start"),
    ("list_outdated_memories", "background: retention"),
    ("list_outdated_vectors", "background: vectors"),
    ("list_scopes", "background: retention and decay of everybody's"),
    ("list_tenants", "an operator's command"),
    ("list_upgrades", "background: vectors"),
    ("listed_model", "background: vectors"),
    ("look_at_pointers", "background: memories that point at files"),
    ("make_pieces", "background: long memories that an older version wrote"),
    ("mark_pointers", "background: memories that point at files"),
    ("name_index", "background: a kept index; SQLite only, which has no policies"),
    ("note_job", "background: a job"),
    ("note_pieces", "background: vectors"),
    ("number_changes", "the feed: commits of all tenants get their numbers together"),
    ("open_signed_attachment", "a link carries no caller; the attachment it names tells the tenant"),
    ("purge_file_idempotency_keys", "background: old answers"),
    ("purge_idempotency_keys", "background: old answers"),
    ("purge_jobs", "background: old jobs"),
    ("purge_memory_keys", "background: old answers"),
    ("purge_rates", "background: full buckets of quotas"),
    ("purge_recordings", "background: recordings that ran out"),
    ("put_meanings", "background: vectors of several trees at once"),
    ("readiness", "health"),
    ("recorded_trees", "background: recordings of trees that are gone"),
    ("register_words", "background: memories that an older version wrote"),
    ("release_lease", "background: leases belong to nodes"),
    ("remove_attachment", "background: bytes of deleted attachments"),
    ("replayed_trees", "background: readers who may not read any more"),
    ("retry_index", "background: vectors"),
    ("rotate_keys", "an operator's command"),
    ("seal_index", "background: a kept index; SQLite only, which has no policies"),
    ("set_searched", "background: indexes of vectors"),
    ("settle_tasks", "background: tasks"),
    ("take_in_texts", "background: texts of several trees at once"),
    ("take_lease", "background: leases belong to nodes"),
    ("task_backlog", "metrics"),
    ("tell_recordings", "background: recordings of this node, of several tenants at once"),
    ("texts_outdated", "background: vectors"),
    ("texts_waiting", "background: texts of several trees at once"),
    ("trim_gone", "background: what indexes have heard of"),
    ("trim_stream", "background: the stream of memories"),
    ("trimmable_changes", "background: old changes"),
    ("unnumbered_changes", "the feed: whether commits have numbers to get"),
    ("upgrade_vectors", "background: vectors"),
    ("uprooted_attachments", "background: attachments of trees that are gone"),
];

/// Operations whose answer does not end by itself, or that wait for one.
fn is_stream(described: &Value) -> bool {
    described["responses"].to_string().contains("event-stream")
}

/// The answer of something that was done.
#[track_caller]
fn done(answer: Answer) -> Answer {
    assert!(answer.status < 300, "{} answered {}: {}", answer.asked, answer.status, answer.text);
    answer
}

/// The id of what an answer made.
#[track_caller]
fn made(answer: Answer) -> String {
    let answer = done(answer);
    let places = [&answer.json["id"], &answer.json["memory"]["id"], &answer.json["fact"]["id"]];
    places.iter().find_map(|id| id.as_str()).unwrap_or_else(|| panic!("no id: {}", answer.text)).to_owned()
}

/// Something in every part of the store.
fn fill(person: &Person) -> BTreeMap<&'static str, String> {
    let (who, user) = (&person.client, person.user.as_str());
    let of_user = |mut body: Value| {
        body["layer"] = json!("user");
        body["identifiers"] = json!({"userId": user});
        body
    };
    let id = person.start();
    done(person.say(&id, "the plan of the garden"));
    let entry = made(person.say(&id, "the plan of the house"));
    done(person.sync(&id, &[json!("remembered")]));
    done(who.post(&format!("{}/{entry}/fork", entries(&id)), json!({})));
    let member = json!({"userId": "bob", "accessLevel": "reader"});
    done(who.post(&format!("/v1/conversations/{id}/memberships"), member));
    let transfer = json!({"conversationId": id, "newOwnerUserId": "bob"});
    let transfer = made(who.post("/v1/ownership-transfers", transfer));
    done(person.with_key(&fresh_name("key")).say(&id, "under a key"));
    done(person.put("notes.md", "*", json!({"lines": ["one"]})));
    done(person.tell("event-1", "met the gardener"));
    let memory = made(person.with_key(&fresh_name("key")).remember("the gardener comes on mondays"));
    let changed = json!({"content": "the gardener comes on tuesdays"});
    done(who.patch(&format!("/v1/memories/{memory}"), changed));
    done(who.post("/v1/memories", of_user(json!({"content": "for now", "kind": "working"}))));
    let fact = json!({"factType": "rule", "subject": "garden", "predicate": "has", "object": "roses"});
    let fact = made(who.post("/v1/facts", of_user(fact)));
    person.feed();
    BTreeMap::from([
        ("conversationId", id),
        ("entryId", entry),
        ("transferId", transfer),
        ("id", memory),
        ("fact", fact),
        ("tenant_id", person.tenant.clone()),
        ("user_id", person.user.clone()),
        ("userId", "bob".to_owned()),
        ("path", "notes.md".to_owned()),
    ])
}

/// The tables of a database, those of its volatile half included.
fn tables(database: &Database) -> Vec<String> {
    let rows = database.rows(
        "SELECT CASE nspname WHEN 'public' THEN '' ELSE nspname || '.' END || relname FROM pg_class \
         JOIN pg_namespace n ON n.oid = relnamespace WHERE relkind IN ('r', 'p', 'm') \
         AND nspname NOT IN ('pg_catalog', 'information_schema') AND nspname NOT LIKE 'pg_toast%' ORDER BY 1",
    );
    rows.into_iter().flatten().flatten().collect()
}

fn is_of_no_tenant(table: &str) -> bool {
    let name = table.rsplit('.').next().unwrap_or(table);
    OF_NO_TENANT.iter().any(|(known, _)| *known == name)
}

fn count(rows: Vec<Vec<Option<String>>>) -> i64 {
    rows[0][0].as_deref().unwrap().parse().unwrap()
}

/// Gives a tenant a row of a table, made up as far as the table does not care.
fn put_row(database: &Database, table: &str, tenant: &str) {
    let (schema, name) = table.split_once('.').unwrap_or(("public", table));
    let columns = database.rows(&format!(
        "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid = '{schema}.{name}'::regclass \
         AND attnum > 0 AND NOT attisdropped AND attnotnull AND NOT atthasdef AND attidentity = '' AND attgenerated = '' \
         AND attname <> 'tenant' ORDER BY attnum"
    ));
    let (mut names, mut values) = (vec!["tenant".to_owned()], vec![format!("'{tenant}'")]);
    for column in columns {
        let [Some(name), Some(kind)] = &column[..] else { panic!("{column:?}") };
        // Different for every tenant, because keys may not name it. Negative, so that no parent is found by accident.
        values.push(match kind.as_str() {
            "bigint" | "integer" | "double precision" | "real" => format!("-1 - length('{tenant}')"),
            "uuid" => "gen_random_uuid()".to_owned(),
            "text" => format!("'{tenant}'"),
            "bytea" => format!("'{tenant}'::bytea"),
            "boolean" => "false".to_owned(),
            list if list.ends_with("[]") => "'{}'".to_owned(),
            other => format!("''::{other}"),
        });
        names.push(name.clone());
    }
    let (names, values) = (names.join(", "), values.join(", "));
    database.execute(&format!("INSERT INTO {table} ({names}) VALUES ({values})"), &[]);
}

#[test]
fn who_names_no_tenant_sees_no_row_and_who_names_one_sees_its_own() {
    const TENANTS: [&str; 2] = ["one", "another"];
    let database = Database::fresh();
    let mut node = setup().database(&database).start();
    TENANTS.iter().for_each(|tenant| drop(fill(&Person::of(&node, tenant, "alice"))));
    let with_policy: BTreeSet<String> = database
        .rows("SELECT DISTINCT CASE schemaname WHEN 'public' THEN '' ELSE schemaname || '.' END || tablename FROM pg_policies")
        .into_iter()
        .flatten()
        .flatten()
        .collect();
    // What a node does in the background would take made-up rows away. Its last commit may come when it is gone.
    node.kill();
    until("its connections have ended", || {
        let others = "FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()";
        count(database.rows(&format!("SELECT count(*) {others}"))) == 0
    });
    let mut made_up = BTreeSet::new();
    for table in tables(&database).into_iter().filter(|table| !is_of_no_tenant(table)) {
        assert!(with_policy.contains(&table), "{table} has no policy");
        let select = format!("SELECT count(*) FROM {table}");
        let rows_of = |tenant: &str| count(database.rows(&format!("{select} WHERE tenant = '{tenant}'")));
        for tenant in TENANTS.into_iter().filter(|tenant| rows_of(tenant) == 0) {
            put_row(&database, &table, tenant);
            made_up.insert(table.clone());
        }

        for nobody in ["", "SET memloom.tenant = ''; ", "BEGIN; SET LOCAL memloom.tenant = 'one'; COMMIT; "] {
            let seen = count(database.rows_without_tenant(&format!("{nobody}{select}")));
            assert_eq!(seen, 0, "{table} after {nobody:?}");
        }
        for tenant in TENANTS {
            let as_tenant = |query: &str| {
                count(database.rows_without_tenant(&format!("SET memloom.tenant = '{tenant}'; {query}")))
            };
            let own = rows_of(tenant);
            assert!(own > 0, "{table} has no row of {tenant}");
            assert_eq!(as_tenant(&select), own, "{table} as {tenant}: its own rows and no others");
            assert_eq!(as_tenant(&format!("{select} WHERE tenant <> '{tenant}'")), 0, "{table} as {tenant}");
        }
        if !made_up.contains(&table) {
            let unknown = count(database.rows(&format!("{select} WHERE tenant = E'\\x01all'")));
            assert_eq!(unknown, 0, "{table} has rows whose tenant nobody knows");
        }
    }
    let volatile = with_policy.iter().filter(|table| table.contains('.')).count();
    assert_eq!((with_policy.len() - volatile, volatile), (46, 46), "{with_policy:?}");
    let by_operations: Vec<&String> = with_policy.difference(&made_up).collect();
    assert!(by_operations.len() >= 24, "operations fill these tables only: {by_operations:?}");
}

#[test]
fn only_named_work_runs_for_all_tenants_and_every_statement_for_some() {
    let cluster = Cluster::logging_statements();
    let database = Database::on(&cluster);
    let node = setup().database(&database).start();
    // Before it listens a node makes tables, and empties those of working memory if it is the first.
    let started = cluster.log().len();
    let document = node.anonymous().get("/openapi.json").expect(200).json;
    let person = Person::of(&node, "one", "alice");
    let known = fill(&person);
    person
        .client
        .post(
            "/v1/memories:search",
            json!({"layer": "user", "identifiers": {"userId": "alice"}, "query": "gardener"}),
        )
        .expect(200);
    person.client.post("/v1/conversations/search", json!({"query": "garden"})).expect(200);

    let (mut answered, mut asked) = (0, 0);
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, described) in methods.as_object().unwrap() {
            if is_stream(described) {
                continue;
            }
            // What removes comes last: what is read is to be there.
            let mut path = path.clone();
            for (name, value) in &known {
                let value =
                    if path.starts_with("/v1/facts") && *name == "id" { &known["fact"] } else { value };
                path = path.replace(&format!("{{{name}}}"), value);
            }
            let path = path.replace(['{', '}'], "");
            let body = match method.as_str() {
                "get" | "delete" => Body::None,
                _ => {
                    Body::Json(json!({"layer": "user", "identifiers": {"userId": "alice"}, "query": "garden",
                                       "content": "roses", "title": "Plans"}))
                }
            };
            for who in [&person.client, &person.admin()] {
                let answer =
                    who.with_header("if-match", "*").send(&method.to_uppercase(), &path, body.clone());
                assert!(answer.status < 500 || answer.status == 501, "{method} {path}: {}", answer.status);
                asked += 1;
                answered += usize::from(answer.status < 300);
            }
        }
    }
    assert!(answered > 40, "{answered} of {asked} operations did something");

    let named: BTreeSet<&str> = FOR_ALL_TENANTS.iter().map(|(operation, _)| *operation).collect();
    let metrics = node.anonymous().get("/metrics").expect(200).text;
    let ran: BTreeSet<&str> = metrics
        .lines()
        .filter_map(|line| {
            line.strip_prefix("memory_store_all_tenants_total{operation=\"")?.split('"').next()
        })
        .collect();
    assert!(ran.contains("digest_key"), "{ran:?}");
    let unnamed: Vec<&&str> = ran.difference(&named).collect();
    assert!(
        unnamed.is_empty(),
        "these ran for all tenants and are not named here with a reason: {unnamed:?}"
    );

    let mut tables = tables(&database);
    tables.retain(|table| !is_of_no_tenant(table));
    let log = cluster.log();
    let statements = Statements::read(&log, started, database.name());
    assert!(statements.of_tenant.len() > 500, "{} statements ran for a tenant", statements.of_tenant.len());
    assert!(!statements.of_all.is_empty());
    for table in &tables {
        let name = table.rsplit('.').next().unwrap();
        let touching: Vec<&&str> =
            statements.of_nobody.iter().filter(|statement| names(statement, name)).collect();
        assert!(touching.is_empty(), "{name} is used where no tenant is named: {touching:?}");
    }
    assert_eq!(statements.others, BTreeSet::new(), "tenants that no request was of");
}

/// The statements in a log, by whom they ran for.
#[derive(Debug, Default)]
struct Statements<'a> {
    of_tenant: Vec<&'a str>,
    of_all: Vec<&'a str>,
    /// Outside a transaction that names a tenant.
    of_nobody: Vec<&'a str>,
    others: BTreeSet<&'a str>,
}

impl<'a> Statements<'a> {
    /// Reads what the server logged of one database from there on. A node names the tenant in the message that begins a
    /// transaction; until that ends, what the connection runs is of that tenant.
    fn read(log: &'a str, started: usize, database: &str) -> Self {
        let mut statements = Self::default();
        let mut tenants: BTreeMap<&str, &str> = BTreeMap::new();
        let mut at = 0;
        for record in records(log) {
            at += record.len();
            let Some((process, logged)) = record.split_once("] ").and_then(|(head, rest)| {
                let logged = rest.strip_prefix(database)?.trim_start().strip_prefix("LOG:  ")?;
                Some((head.rsplit_once('[')?.1, logged))
            }) else {
                continue;
            };
            let Some((kind, sql)) = logged.trim_end().split_once(": ") else { continue };
            if kind != "statement" && !kind.starts_with("execute ") {
                continue;
            }
            if let Some((_, named)) = sql.split_once("SET LOCAL memloom.tenant = '") {
                assert!(sql.starts_with("BEGIN"), "the tenant changes within a transaction: {sql}");
                tenants.insert(process, named.split('\'').next().unwrap());
            } else if let Some((_, named)) = sql.split_once("SET memloom.tenant = '") {
                tenants.insert(process, named.split('\'').next().unwrap());
            } else if sql.starts_with("COMMIT") || sql.starts_with("ROLLBACK") {
                tenants.remove(process);
            } else if at > started {
                match tenants.get(process) {
                    None => statements.of_nobody.push(sql),
                    Some(&"\u{1}all") => statements.of_all.push(sql),
                    Some(&"one") => statements.of_tenant.push(sql),
                    Some(other) => drop(statements.others.insert(other)),
                }
            }
        }
        statements
    }
}

/// The records of a log: what begins with a tab goes on from the line before.
fn records(log: &str) -> impl Iterator<Item = &str> {
    let mut rest = log;
    std::iter::from_fn(move || {
        let mut end = 0;
        loop {
            end += rest[end..].find('\n')? + 1;
            if !rest[end..].starts_with('\t') {
                break;
            }
        }
        let (record, next) = rest.split_at(end);
        rest = next;
        Some(record)
    })
}

/// Whether a statement has a word in it.
fn names(statement: &str, word: &str) -> bool {
    statement.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').any(|part| part == word)
}

/// Every place in the source that names all tenants, by its operation.
#[test]
fn the_source_names_all_tenants_where_this_says() {
    let mut found = BTreeSet::new();
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for name in ["memtrove", "memtrove-server", "memtrove-service", "memtrove-store"] {
        operations_for_all_tenants(&crates.join(name).join("src"), &mut found);
    }
    let named: BTreeSet<String> =
        FOR_ALL_TENANTS.iter().map(|(operation, _)| (*operation).to_owned()).collect();
    assert_eq!(found, named);
}

fn operations_for_all_tenants(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            operations_for_all_tenants(&path, found);
        } else if path.extension().is_some_and(|kind| kind == "rs") && !path.ends_with("tests.rs") {
            let source = std::fs::read_to_string(&path).unwrap();
            let named = source.split("AllTenants,").skip(1).filter_map(|rest| {
                let (operation, _) = rest.trim_start().strip_prefix('"')?.split_once('"')?;
                Some(operation.to_owned())
            });
            found.extend(named);
            // Three name it apart from their operation: one has a unit of its own, one several steps, one serves requests too.
            if source.contains("Unit::new(AllTenants") {
                found.insert("number_changes".to_owned());
            }
            if source.contains(".write(AllTenants, name") {
                found.extend(STEPS_OF_A_FORGET.map(str::to_owned));
            }
            if source.contains("register(&self.cx.store, AllTenants") {
                found.insert("register_words".to_owned());
            }
        }
    }
}
