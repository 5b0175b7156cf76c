//! Facts: memories that state something of something.

use super::{
    AddFactRequest, AddedFact, DeletedMemory, Expect, Fact, FactPage, MemoryIdentifiers, MemoryLayer,
    MemorySourceType, OneFact, QueryFactsRequest, UpdateFactRequest,
};
use crate::paging::pages;
use crate::{Client, Result, operations};
use futures_util::Stream;
use uuid::Uuid;

/// Which facts of one scope to list: every member that is given must be equal.
#[derive(Debug, Clone, Default)]
pub struct ListFacts {
    /// Whose.
    pub layer: Option<MemoryLayer>,
    /// Those that the layer needs.
    pub identifiers: MemoryIdentifiers,
    /// With this type.
    pub fact_type: Option<String>,
    /// With this subject.
    pub subject: Option<String>,
    /// With this predicate.
    pub predicate: Option<String>,
    /// With this object.
    pub object: Option<String>,
    /// At least so sure.
    pub min_confidence: Option<f64>,
    /// Only the strongest of those with one subject and predicate.
    pub resolve: Option<bool>,
    /// The most facts; 100 unless said otherwise.
    pub limit: Option<u32>,
    /// Where the page before this one ended.
    pub cursor: Option<String>,
    /// With at least one of these tags.
    pub tags: Vec<String>,
    /// From this kind of source.
    pub source_type: Option<MemorySourceType>,
    /// Only those that point at a document, or only those that do not.
    pub has_knowledge_pointer: Option<bool>,
}

impl Client {
    /// States a fact. The same statement again changes the first.
    pub async fn add_fact(&self, request: AddFactRequest) -> Result<AddedFact> {
        self.call(&operations::ADD_FACT, &[])?.json(&request)?.receive().await
    }

    /// Reads a fact.
    pub async fn get_fact(&self, id: Uuid, expect: Expect) -> Result<Fact> {
        let call = self.call(&operations::GET_FACT, &[&id.to_string()])?;
        let one: OneFact = Expect { version: None, ..expect }.on(call)?.receive().await?;
        Ok(one.fact)
    }

    /// Reads a fact unless it is still at this version.
    pub async fn get_fact_if_changed(&self, id: Uuid, seen: i64, expect: Expect) -> Result<Option<Fact>> {
        let call = self.call(&operations::GET_FACT, &[&id.to_string()])?.unless_version(seen)?;
        let call = Expect { version: None, ..expect }.on(call)?;
        Ok(call.receive_changed::<OneFact>().await?.map(|one| one.fact))
    }

    /// Changes a fact.
    pub async fn update_fact(&self, id: Uuid, request: UpdateFactRequest, expect: Expect) -> Result<Fact> {
        let call = expect.on(self.call(&operations::UPDATE_FACT, &[&id.to_string()])?)?;
        call.json(&request)?.receive::<OneFact>().await.map(|one| one.fact)
    }

    /// Deletes a fact; says whether it was there.
    pub async fn delete_fact(&self, id: Uuid, expect: Expect) -> Result<DeletedMemory> {
        expect.on(self.call(&operations::DELETE_FACT, &[&id.to_string()])?)?.receive().await
    }

    /// Lists the facts of one scope.
    pub async fn list_facts(&self, request: ListFacts) -> Result<FactPage> {
        self.call(&operations::LIST_FACTS, &[])?
            .query("layer", request.layer.map(MemoryLayer::as_str))
            .identifiers(&request.identifiers)
            .query("factType", request.fact_type)
            .query("subject", request.subject)
            .query("predicate", request.predicate)
            .query("object", request.object)
            .query("minConfidence", request.min_confidence)
            .query("resolve", request.resolve)
            .query("limit", request.limit)
            .query("cursor", request.cursor)
            .each("tag", request.tags)
            .query("sourceType", request.source_type.map(MemorySourceType::as_str))
            .query("hasKnowledgePointer", request.has_knowledge_pointer)
            .receive()
            .await
    }

    /// Lists the facts of one scope to the last one, asking for more as they are taken.
    pub fn list_facts_all(&self, request: ListFacts) -> impl Stream<Item = Result<Fact>> + Send + use<> {
        let client = self.clone();
        pages(request.cursor.clone(), move |cursor| {
            let (client, request) = (client.clone(), request.clone());
            async move {
                let page = client.list_facts(ListFacts { cursor, ..request }).await?;
                Ok((page.facts, page.next_cursor))
            }
        })
    }

    /// Queries facts in every layer that the identifiers open.
    pub async fn query_facts(&self, request: QueryFactsRequest) -> Result<FactPage> {
        self.call(&operations::QUERY_FACTS, &[])?.json(&request)?.receive().await
    }

    /// Queries facts to the last one, asking for more as they are taken.
    pub fn query_facts_all(
        &self,
        request: QueryFactsRequest,
    ) -> impl Stream<Item = Result<Fact>> + Send + use<> {
        let client = self.clone();
        pages(request.cursor.clone(), move |cursor| {
            let (client, request) = (client.clone(), request.clone());
            async move {
                let page = client.query_facts(QueryFactsRequest { cursor, ..request }).await?;
                Ok((page.facts, page.next_cursor))
            }
        })
    }
}
