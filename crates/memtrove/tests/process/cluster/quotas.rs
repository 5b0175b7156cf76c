//! Quotas hold for all nodes together.

use crate::cluster::support::*;

#[test]
fn no_more_calls_pass_than_a_quota_allows_whichever_node_is_asked() {
    let nodes = setup().toml("[quotas]\nuser_writes = {limit = 20, window = \"1h\"}").nodes(2);
    let alice = Person::fresh(&nodes[0], "alice");

    let statuses = at_once(6, |n| {
        let alice = alice.at(&nodes[n % 2]);
        (0..8).map(|m| alice.put(&format!("{n}-{m}.md"), "*", json!({})).status).collect::<Vec<_>>()
    })
    .concat();

    assert!(statuses.iter().all(|status| matches!(status, 200 | 429)), "{statuses:?}");
    let passed = statuses.iter().filter(|status| **status == 200).count();
    // A node may hold a twentieth back, and more comes within seconds.
    assert!((17..=20).contains(&passed), "{passed} of 20 passed");
    Person::of(&nodes[1], &alice.tenant, &fresh_name("bob")).put("a.md", "*", json!({})).expect(200);
}

#[test]
fn nobody_has_more_files_than_it_may_whichever_node_is_asked() {
    let nodes = setup().toml("[quotas]\nmax_files = 10").nodes(2);
    let alice = Person::fresh(&nodes[0], "alice");

    let statuses = at_once(6, |n| {
        let alice = alice.at(&nodes[n % 2]);
        (0..4).map(|m| alice.put(&format!("{n}-{m}.md"), "*", json!({})).status).collect::<Vec<_>>()
    })
    .concat();

    assert!(statuses.iter().all(|status| matches!(status, 200 | 429)), "{statuses:?}");
    assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 10);
    assert_eq!(number(nodes[0].database().expect("a database"), "SELECT count(*) FROM files"), 10);
}
