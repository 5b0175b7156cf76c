//! Nodes that start beside others: the schema is brought up once, and versions that fit work side by side.

use crate::cluster::support::*;

fn steps(database: &Database) -> Vec<Vec<Option<String>>> {
    database.rows("SELECT number, name, works_with, at FROM schema_steps ORDER BY number")
}

#[test]
fn nodes_that_start_at_once_on_an_empty_database_make_its_schema_once() {
    let database = Database::bare();

    let nodes = at_once(3, |_| setup().database(&database).start());

    let made = steps(&database);
    assert!(!made.is_empty());
    let alice = Person::fresh(&nodes[0], "alice");
    let id = alice.start();
    for (n, node) in nodes.iter().enumerate() {
        alice.at(node).say(&id, &format!("{n}")).expect(201);
    }
    assert_eq!(alice.transcript(&id), ["0", "1", "2"]);
    let late = setup().database(&database).start();
    assert_eq!(alice.at(&late).transcript(&id), ["0", "1", "2"]);
    assert_eq!(steps(&database), made, "whoever comes later changes nothing");
}

#[test]
fn an_older_node_works_beside_a_newer_one_that_says_it_may() {
    let database = Database::fresh();
    let node = setup().database(&database).start();
    let alice = Person::fresh(&node, "alice");
    let id = alice.start();
    // What the first node of the next version does to the database while this one works.
    let next = "INSERT INTO schema_steps (number, name, works_with) SELECT max(number) + 1, 'next', max(works_with) \
                FROM schema_steps";
    database.execute(next, b"");
    database.execute("ALTER TABLE groups ADD COLUMN of_the_next_version BIGINT NOT NULL DEFAULT 0", b"");

    for n in 0..5 {
        alice.say(&id, &format!("{n}")).expect(201);
        assert_eq!(alice.transcript(&id).len(), n + 1);
    }
    let restarted = setup().database(&database).start();
    alice.at(&restarted).say(&id, "5").expect(201);

    // A version that cannot.
    database.execute("UPDATE schema_steps SET works_with = 1000 WHERE name = 'next'", b"");
    let failed = setup().database(&database).try_start().expect_err("it is too old");
    assert!(failed.log.contains("newer"), "{}", failed.log);
    alice.say(&id, "6").expect(201);
}
