//! A tenant as one caller sees it, and what it is asked.

use super::*;

/// A tenant as one caller sees it.
#[derive(Debug, Clone)]
pub struct Tenant {
    pub name: String,
    pub client: Client,
}

impl Tenant {
    /// A tenant of the shared server that no other test knows, seen by [`AGENT`].
    #[track_caller]
    pub fn fresh() -> Self {
        Self::of(&SERVER, &fresh_name("tenant"))
    }

    /// This tenant of this server, seen by [`AGENT`].
    #[track_caller]
    pub fn of(server: &TestServer, name: &str) -> Self {
        Self { name: name.to_owned(), client: server.anonymous().with_key(AGENT).in_tenant(name) }
    }

    /// The same tenant, seen by somebody else.
    pub fn seen_by(&self, client: &Client) -> Self {
        Self { client: client.clone(), ..self.clone() }
    }

    /// The same tenant and caller, with this header set on every request.
    pub fn with_header(&self, name: &str, value: &str) -> Self {
        self.seen_by(&self.client.with_header(name, value))
    }

    /// The same tenant, seen by this user, who has a credential of its own.
    pub fn as_user(&self, user: &str) -> Self {
        self.with_header("authorization", &format!("Bearer {user}"))
    }

    /// The same tenant, seen by the trusted agent for this user.
    pub fn on_behalf_of(&self, user: &str) -> Self {
        self.with_header("x-user-id", user)
    }

    /// The one scope that is the tenant itself.
    pub fn company(&self) -> Place {
        Place::company(&self.name)
    }

    /// One scope in every layer, by precedence, all of them reachable with [`Tenant::all_identifiers`].
    pub fn every_layer(&self) -> Vec<Place> {
        let all = self.all_identifiers();
        let scope = |(layer, required): &(&'static str, &[&str])| {
            let identifiers = required.iter().map(|name| ((*name).to_owned(), all[*name].clone())).collect();
            Place { layer, identifiers: Value::Object(identifiers) }
        };
        LAYERS.iter().map(scope).collect()
    }

    /// The identifiers that reach every layer.
    pub fn all_identifiers(&self) -> Value {
        json!({
            "agentId": "a1", "userId": "u1", "sessionId": "s1", "projectId": "p1", "teamId": "t1", "orgId": "o1",
            "companyId": self.name,
        })
    }

    /// Sends an entry to be added.
    #[track_caller]
    pub fn add(&self, body: Value) -> Answer {
        self.client.post("/v1/memories", body)
    }

    /// Adds an entry; as it was answered.
    #[track_caller]
    pub fn added(&self, body: Value) -> Value {
        let answer = self.add(body).expect(201);
        assert_members(&answer.json, &["memory", "embeddingGenerated"]);
        settled(&answer.json["memory"])
    }

    /// Adds this text to a scope; the id of the entry.
    #[track_caller]
    pub fn say(&self, place: &Place, content: &str) -> String {
        self.say_with(place, json!({"content": content}))
    }

    /// Adds an entry with these members to a scope; its id.
    #[track_caller]
    pub fn say_with(&self, place: &Place, members: Value) -> String {
        id_of(&self.added(place.with(members)))
    }

    /// Adds many entries at once; their ids.
    #[track_caller]
    pub fn add_all(&self, bodies: impl IntoIterator<Item = Value>) -> Vec<String> {
        let bodies: Vec<Value> = bodies.into_iter().collect();
        let mut ids = Vec::new();
        for part in bodies.chunks(500) {
            let body = json!({"memories": part, "atomic": true});
            let answer = self.client.post("/v1/memories:bulkAdd", body).expect(200);
            ids.extend(list(&answer.json["results"]).iter().map(|result| id_of(&result["memory"])));
        }
        ids
    }

    /// Reads an entry.
    #[track_caller]
    pub fn get(&self, id: &str) -> Answer {
        self.client.get(&format!("/v1/memories/{id}"))
    }

    /// The entry as it is now.
    #[track_caller]
    pub fn entry(&self, id: &str) -> Value {
        let answer = self.get(id).expect(200);
        assert_members(&answer.json, &["memory"]);
        settled(&answer.json["memory"])
    }

    /// Changes an entry.
    #[track_caller]
    pub fn change(&self, id: &str, body: Value) -> Answer {
        self.client.patch(&format!("/v1/memories/{id}"), body)
    }

    /// Changes an entry; as it was answered.
    #[track_caller]
    pub fn changed(&self, id: &str, body: Value) -> Value {
        let answer = self.change(id, body).expect(200);
        assert_members(&answer.json, &["memory", "embeddingRegenerated"]);
        settled(&answer.json["memory"])
    }

    /// Deletes an entry.
    #[track_caller]
    pub fn delete(&self, id: &str) -> Answer {
        self.client.delete(&format!("/v1/memories/{id}"))
    }

    /// Asks for one page of a scope.
    #[track_caller]
    pub fn list(&self, body: Value) -> Answer {
        self.client.post("/v1/memories:list", body)
    }

    /// All entries of a scope that such a request lists, page by page.
    #[track_caller]
    pub fn all(&self, body: Value) -> Vec<Value> {
        let mut body = merged(json!({"limit": 100}), &body);
        let mut entries = Vec::new();
        loop {
            let page = self.page(body.clone());
            entries.extend(page.entries);
            match page.next {
                Some(cursor) => body["cursor"] = json!(cursor),
                None => {
                    assert_eq!(entries.len(), page.total, "the count is the sum of the pages");
                    return entries;
                }
            }
        }
    }

    /// One page of a scope.
    #[track_caller]
    pub fn page(&self, body: Value) -> Page {
        Page::of(&self.list(body))
    }

    /// The contents that such a request lists, in its order.
    #[track_caller]
    pub fn contents(&self, body: Value) -> Vec<String> {
        self.all(body).iter().map(|entry| text(&entry["content"])).collect()
    }

    /// Searches.
    #[track_caller]
    pub fn search(&self, body: Value) -> Answer {
        self.client.post("/v1/memories:search", body)
    }

    /// What a search finds, in its order.
    #[track_caller]
    pub fn results(&self, body: Value) -> Vec<Value> {
        let answer = self.search(body).expect(200);
        let members = ["results", "totalCount", "totalCountExact", "searchedLayers", "thresholdUsed"];
        assert_members(&answer.json, &members);
        let results = list(&answer.json["results"]);
        for result in &results {
            assert_entry(&result["memory"]);
            assert_eq!(result["layer"], result["memory"]["layer"], "{result}");
            let (score, similarity) = (number(&result["score"]), number(&result["similarity"]));
            assert!((0.0..=1.0).contains(&score) && (0.0..=1.0).contains(&similarity), "{result}");
        }
        results
    }

    /// The contents of what a search finds, in its order.
    #[track_caller]
    pub fn found(&self, body: Value) -> Vec<String> {
        self.results(body).iter().map(|result| text(&result["memory"]["content"])).collect()
    }

    /// The ids of what a search finds, in its order.
    #[track_caller]
    pub fn found_ids(&self, body: Value) -> Vec<String> {
        self.results(body).iter().map(|result| id_of(&result["memory"])).collect()
    }

    /// Sends a fact.
    #[track_caller]
    pub fn fact(&self, body: Value) -> Answer {
        self.client.post("/v1/facts", body)
    }

    /// Adds a fact; as it was answered.
    #[track_caller]
    pub fn stated(&self, place: &Place, members: Value) -> Value {
        let answer = self.fact(place.with(members)).expect(201);
        assert_members(&answer.json, &["fact", "created"]);
        answer.json["fact"].clone()
    }

    /// Asks for facts.
    #[track_caller]
    pub fn facts(&self, body: Value) -> Answer {
        self.client.post("/v1/facts:query", body)
    }
}

/// One page of a list.
#[derive(Debug, Clone)]
pub struct Page {
    pub entries: Vec<Value>,
    pub next: Option<String>,
    pub total: usize,
}

impl Page {
    #[track_caller]
    pub fn of(answer: &Answer) -> Self {
        let answer = answer.clone().expect(200);
        assert_members(&answer.json, &["memories", "nextCursor", "totalCount"]);
        let entries = list(&answer.json["memories"]);
        entries.iter().for_each(assert_entry);
        let next = answer.json["nextCursor"].as_str().map(str::to_owned);
        assert!(next.is_some() || answer.json["nextCursor"].is_null(), "{}", answer.describe());
        if let Some(cursor) = &next {
            assert!(cursor.len() <= 512 && *cursor == encoded(cursor), "not a cursor for URLs: {cursor:?}");
        }
        let total = answer.json["totalCount"].as_u64().unwrap_or_else(|| panic!("{}", answer.describe()));
        Self { entries, next, total: usize::try_from(total).unwrap() }
    }

    pub fn ids(&self) -> Vec<String> {
        self.entries.iter().map(id_of).collect()
    }
}
