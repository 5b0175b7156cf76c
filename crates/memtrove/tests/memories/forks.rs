//! Sessions that are conversations: forks inherit what was remembered before them, and what becomes of a conversation
//! becomes of its memories.

use crate::support::*;

/// A conversation of user `u`, with the memories of its sessions.
struct Talk {
    tenant: Tenant,
    user: Client,
    id: String,
}

impl Talk {
    #[track_caller]
    fn begin(tenant: &Tenant) -> Self {
        let user = tenant.as_user("u").client;
        let id = user.post("/v1/conversations", json!({"title": "Plans"})).expect(201).id();
        Self { tenant: tenant.clone(), user, id }
    }

    /// Says something; the entry's id.
    #[track_caller]
    fn say(&self, text: &str) -> String {
        let body = json!({"channel": "history", "contentType": "history", "content": [{"role": "USER", "text": text}]});
        self.user.post(&format!("/v1/conversations/{}/entries", self.id), body).expect(201).id()
    }

    /// Forks before this entry.
    #[track_caller]
    fn fork(&self, entry: &str) -> Self {
        let path = format!("/v1/conversations/{}/entries/{entry}/fork", self.id);
        Self {
            id: self.user.post_nothing(&path).expect(201).id(),
            user: self.user.clone(),
            tenant: self.tenant.clone(),
        }
    }

    fn place(&self) -> Place {
        Place::session("u", &self.id)
    }

    #[track_caller]
    fn remember(&self, content: &str) -> String {
        self.tenant.say(&self.place(), content)
    }

    /// What a list and a search of its session show; the two must agree.
    #[track_caller]
    fn remembered(&self) -> Vec<String> {
        let listed = sorted(self.tenant.contents(self.place().with(json!({}))));
        let answer = self.tenant.search(self.place().everything(json!({}))).expect(200).json;
        let found = sorted(list(&answer["results"]).iter().map(|result| text(&result["memory"]["content"])));
        assert_eq!(listed, found, "a list and a search of one session");
        assert_eq!(answer["totalCount"], found.len());
        listed
    }

    #[track_caller]
    fn delete(&self) {
        self.user.delete(&format!("/v1/conversations/{}", self.id)).expect(204);
    }
}

#[test]
fn a_fork_remembers_what_its_ancestors_remembered_before_it() {
    let tenant = Tenant::fresh();
    let root = Talk::begin(&tenant);
    let early = root.remember("early");
    root.say("first");
    let turn = root.say("second");
    root.remember("late");
    let fork = root.fork(&turn);
    fork.remember("of the fork");
    fork.say("third");
    let deep_turn = fork.say("fourth");
    fork.remember("late of the fork");
    let deep = fork.fork(&deep_turn);
    deep.remember("deep");
    root.remember("later still");

    assert_eq!(root.remembered(), ["early", "late", "later still"]);
    assert_eq!(fork.remembered(), ["early", "late of the fork", "of the fork"]);
    assert_eq!(deep.remembered(), ["deep", "early", "of the fork"]);
    assert_eq!(tenant.entry(&early)["identifiers"]["sessionId"], root.id, "it stays where it was written");

    let pages = |limit: usize| {
        let mut body = deep.place().with(json!({"limit": limit}));
        let mut contents = Vec::new();
        loop {
            let page = tenant.page(body.clone());
            assert_eq!(page.total, 3);
            contents.extend(page.entries.iter().map(|entry| text(&entry["content"])));
            match page.next {
                Some(cursor) => body["cursor"] = json!(cursor),
                None => return contents,
            }
        }
    };
    assert_eq!(pages(1), ["deep", "of the fork", "early"], "newest first, page by page");
}

#[test]
fn inheritance_is_a_matter_of_one_user_and_of_reading() {
    let tenant = Tenant::fresh();
    let root = Talk::begin(&tenant);
    let kept = root.remember("of the root");
    tenant.say(&Place::session("v", &root.id), "of another user");
    root.say("first");
    let turn = root.say("second");
    let fork = root.fork(&turn);
    fork.remember("of the fork");
    assert_eq!(fork.remembered(), ["of the fork", "of the root"]);

    let cleared = tenant
        .client
        .post("/v1/memories:clear", fork.place().with(json!({"kinds": ["session"]})))
        .expect(200)
        .json;
    assert_eq!(cleared["cleared"], 1);
    assert_eq!(fork.remembered(), ["of the root"]);
    let end = json!({"identifiers": fork.place().identifiers, "autoDelete": true, "retentionPeriod": "0s"});
    let ended = tenant.client.post("/v1/sessions:end", end).expect(200).json;
    assert_eq!((&ended["evaluated"], &ended["deleted"]), (&json!(0), &json!(0)), "the given session only");
    assert_eq!(tenant.entry(&kept)["version"], 1);
    assert_eq!(root.remembered(), ["of the root"]);
}

#[test]
fn what_an_ancestor_forgets_the_fork_forgets() {
    let tenant = Tenant::fresh();
    let root = Talk::begin(&tenant);
    let id = root.remember("early");
    root.say("first");
    let turn = root.say("second");
    let fork = root.fork(&turn);
    assert_eq!(fork.remembered(), ["early"]);
    tenant.changed(&id, json!({"content": "early, corrected"}));
    assert_eq!(fork.remembered(), ["early, corrected"], "made before the fork, whatever it says now");
    tenant.delete(&id).expect(200);
    assert_eq!(fork.remembered(), Vec::<String>::new());
}

#[test]
fn a_deleted_conversation_hides_its_memories_and_a_restored_one_brings_them_back() {
    let tenant = Tenant::fresh();
    let root = Talk::begin(&tenant);
    root.say("first");
    let turn = root.say("second");
    let fork = root.fork(&turn);
    let important = json!({"content": "of the root", "metadata": {"importance": 1}});
    let ids = [
        tenant.say_with(&root.place(), important),
        fork.remember("of the fork"),
        tenant.say(&Place::session("v", &root.id), "of a member"),
        tenant.say_with(&root.place(), json!({"content": "scratch", "kind": "working"})),
    ];
    let other = tenant.say(&Place::session("u", "no conversation"), "of another session");

    fork.delete();

    for id in &ids {
        tenant.get(id).not_found();
        tenant.change(id, json!({"metadata": {"n": 1}})).not_found();
    }
    assert_eq!((root.remembered(), fork.remembered()), (vec![], vec![]));
    assert_eq!(tenant.page(Place::session("v", &root.id).with(json!({}))).total, 0);
    assert_eq!(tenant.page(Place::user("u").with(json!({}))).total, 0, "nothing was promoted");
    assert_eq!(tenant.entry(&other)["version"], 1);

    let admin = tenant.as_user("admin").client;
    admin.post_nothing(&format!("/v1/admin/conversations/{}/restore", root.id)).expect(200);

    assert_eq!(root.remembered(), ["of the root", "scratch"]);
    assert_eq!(fork.remembered(), ["of the fork"]);
    for id in &ids {
        tenant.entry(id);
    }
}

#[test]
fn an_evicted_conversation_takes_its_memories_along() {
    let server = server_with("");
    let tenant = Tenant::of(&server, "acme");
    let root = Talk::begin(&tenant);
    root.say("first");
    let turn = root.say("second");
    let fork = root.fork(&turn);
    let gone = [root.remember("a walrus of the root"), fork.remember("a walrus of the fork")];
    let kept = Talk::begin(&tenant);
    let kept_id = kept.remember("a walrus that stays");
    root.delete();
    std::thread::sleep(std::time::Duration::from_millis(1100));
    let admin = tenant.as_user("admin").client;
    let body = json!({"retentionPeriod": "PT1S", "resourceTypes": ["conversations"]});
    admin.post("/v1/admin/evict", body).expect(204);

    for id in &gone {
        tenant.get(id).not_found();
    }
    tenant.entry(&kept_id);
    // The session may be used again, as any text may, and begins empty.
    assert_eq!(root.remembered(), Vec::<String>::new());
    crate::instants::eventually("the eviction of what was remembered", || {
        let again = Place::session("u", &root.id);
        (tenant.page(again.with(json!({"includeArchived": true}))).total == 0).then_some(())
    });
    root.remember("anew");
    assert_eq!(root.remembered(), ["anew"]);
}
