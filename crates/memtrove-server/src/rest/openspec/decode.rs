//! From the protocol's words to the types of the service. Faults of an entry are reported as `/v1/memories` does: there is one
//! set of rules.

use crate::rest::memories::decode::{access_policy, fact as read_fact, metadata_filter, stated};
use memtrove_core::identity::Tenant;
use memtrove_core::memories::members::Members;
use memtrove_core::memories::openspec::{
    KnowledgeFilter, KnowledgeSource, LayerRequest, Reach, SOURCE_TYPES, Target, Type,
};
use memtrove_core::memories::{
    AccessPolicy, AddMemory, Code, Fact, FactChange, Filter, GivenMetadata, Identifier, Identifiers, Kind,
    Layer, Memory, MemoryCaller, Policy, Precondition, Rules,
};
use memtrove_core::{Error, Result};
use memtrove_service::memories::Replacement;
use serde_json::{Map, Value};

/// The members of metadata that the protocol names; all others are `custom`.
pub(super) const NAMED: [&str; 7] =
    ["title", "description", "tags", "language", "author", "confidence", "importance"];

/// The members of a fact, in the protocol's words and in ours.
const FACT: [(&str, &str); 5] = [
    ("fact_type", "factType"),
    ("subject", "subject"),
    ("predicate", "predicate"),
    ("object", "object"),
    ("confidence", "confidence"),
];

/// The members of a policy with lists, in the protocol's words and in ours.
const POLICY: [(&str, &str); 3] =
    [("policy", "policy"), ("approved_users", "approvedUsers"), ("allowed_teams", "allowedTeams")];

/// An entry to be created.
#[derive(Debug)]
pub(super) struct NewEntry {
    pub add: AddMemory,
    /// Whether it is to be found by its meaning, and shown with its vector, if the request says.
    pub generate_embedding: Option<bool>,
}

/// What an entry is replaced by.
#[derive(Debug)]
pub(super) enum NextEntry {
    /// That of an entry which states a fact.
    Fact(FactChange),
    Text(Replacement),
}

/// Reads the body of a create.
pub(super) fn create(body: Members<'_>, caller: &MemoryCaller) -> Result<NewEntry> {
    let generate_embedding = check_options(body)?;
    let options = body.object("options", "options.")?;
    let layer = options.map(|options| options.object("layer", "options.layer.")).transpose()?.flatten();
    let Target { layer, kind, identifiers } = target(layer, caller.user(), caller.tenant())?;
    let Said { entry, mut metadata, fact } = Said::read(body, kind == Kind::Procedural)?;
    put_source(&mut metadata, source(entry)?.and_then(|source| source.into_stored(None)));
    let content = content(entry)?;
    let metadata = GivenMetadata::new(metadata)?;
    let policy = policy(body, entry, None)?;
    let fact = fact.map(|fact| read_fact(Members::within(&fact?, "fact."))).transpose()?;
    let content = content.or_else(|| fact.as_ref().map(Fact::render));
    let content = content.ok_or_else(|| Error::field("content", "is required"))?;
    let add =
        AddMemory { kind: Some(kind), metadata, policy, fact, ..AddMemory::new(layer, identifiers, content) };
    Ok(NewEntry { add, generate_embedding })
}

/// Reads the body of a replacement, in which what it does not say is removed.
pub(super) fn replacement(
    body: Members<'_>,
    stored: &Memory,
    precondition: &Precondition,
) -> Result<NextEntry> {
    let Said { entry, mut metadata, fact } = Said::read(body, stored.fact.is_some())?;
    put_source(&mut metadata, source(entry)?.and_then(|source| source.into_stored(Some(stored))));
    if entry.get("content").is_none() {
        return Err(Error::field("entry.content", "is required"));
    }
    if stored.fact.is_none() {
        let content = content(entry)?.unwrap_or_default();
        let metadata = GivenMetadata::new(metadata)?;
        return Ok(NextEntry::Text(Replacement {
            content,
            metadata,
            policy: policy(body, entry, Some(stored))?,
        }));
    }
    let Some(Ok(fact)) = fact else {
        let problem = "is required, because this entry states a fact";
        return Err(Error::field("entry.metadata.custom.fact", problem));
    };
    let fact = Members::within(&fact, "");
    // What an entry does not show, because its fact stands there, nobody meant to remove.
    for key in stored.metadata.keys().filter(|key| *key != "fact") {
        metadata.entry(key.clone()).or_insert(Value::Null);
    }
    Ok(NextEntry::Fact(FactChange {
        fact_type: stated(fact, "factType")?,
        subject: stated(fact, "subject")?,
        predicate: stated(fact, "predicate")?,
        object: stated(fact, "object")?,
        // A fact that says nothing of it is certain; one that says null leaves it as it is.
        confidence: match fact.raw("confidence") {
            None => Some(1.0),
            Some(_) => fact.number("confidence", 0.0..=1.0)?,
        },
        metadata: Some(GivenMetadata::new(metadata)?),
        content: content(entry)?,
        precondition: precondition.clone(),
    }))
}

/// Looks at what a write says besides the entry: whether it is to be found by its meaning. What needs an approval is refused:
/// nobody here gives one. Auditing, which may be asked for, is always on.
pub(super) fn check_options(body: Members<'_>) -> Result<Option<bool>> {
    if let Some(governance) = body.object("governance", "governance.")? {
        governance.flag("audit_log")?;
        for name in ["require_approval", "verification_required"] {
            if governance.flag(name)? {
                let message = format!("there is no approval here: 'governance.{name}' cannot be asked for");
                return Err(Error::new(Code::NotImplemented, message));
            }
        }
    }
    let options = body.object("options", "options.")?;
    options.map_or(Ok(None), |options| options.boolean("generate_embedding"))
}

/// Looks at what a deletion says about how. Nothing is kept of a deleted entry, so there is nothing to choose.
pub(super) fn check_deletion(body: Members<'_>) -> Result<()> {
    let options = body.object("options", "options.")?;
    options.map_or(Ok(()), |options| options.flag("hard_delete").map(drop))
}

/// Reads the layer object of a query or a stream.
pub(super) fn reach(layer: Option<Members<'_>>, rules: &Rules, caller: &MemoryCaller) -> Result<Reach> {
    let types = layer.map(types).transpose()?.unwrap_or_default();
    let named = layer.map(identifiers).transpose()?.unwrap_or_default();
    Reach::new(types, named, rules, caller)
}

/// Reads the member `filters` of a query.
pub(super) fn filter(filters: Option<Members<'_>>) -> Result<Filter> {
    const KNOWN: [&str; 7] = [
        "source_type",
        "access_policy",
        "created_after",
        "created_before",
        "tags",
        "author",
        "custom_filters",
    ];
    let Some(filters) = filters else { return Ok(Filter::default()) };
    if let Some(unknown) = filters.names().find(|name| !KNOWN.contains(name)) {
        return Err(filters.refuse(unknown, &format!("is no filter; there are {}", KNOWN.join(", "))));
    }
    let knowledge = KnowledgeFilter {
        types: Vec::new(),
        source_type: filters.word("source_type", source_type, &SOURCE_TYPES)?,
        policy: filters.word("access_policy", Policy::parse, &Policy::ALL.map(Policy::as_str))?,
        created_after: filters.instant("created_after")?,
        created_before: filters.instant("created_before")?,
    };
    let custom = filters.object("custom_filters", "filters.custom_filters.")?;
    let mut custom = custom.map(|custom| custom.to_map()).unwrap_or_default();
    if let Some(author) = filters.text("author")?
        && custom.insert("author".to_owned(), author.into()).is_some()
    {
        return Err(filters.refuse("author", "has a condition in 'custom_filters' already"));
    }
    let mut members = Map::from_iter([("custom".to_owned(), Value::Object(custom))]);
    if let Some(tags) = filters.get("tags") {
        members.insert("tags".to_owned(), tags.clone());
    }
    Ok(Filter { knowledge, ..metadata_filter(Some(Members::within(&members, "filters.")))? })
}

/// The protocol's name of an identifier.
pub(super) fn identifier_name(identifier: Identifier) -> &'static str {
    match identifier {
        Identifier::Agent => "agent_id",
        Identifier::User => "user_id",
        Identifier::Session => "session_id",
        Identifier::Project => "project_id",
        Identifier::Team => "team_id",
        Identifier::Org => "org_id",
        Identifier::Company => "company_id",
    }
}

/// What a body says about an entry, before it is known what else has to be checked.
struct Said<'a> {
    entry: Members<'a>,
    /// In our form: `custom` beside the named members, without the source.
    metadata: Map<String, Value>,
    /// The members of a fact in our words, where one is looked for.
    fact: Option<Result<Map<String, Value>>>,
}

impl<'a> Said<'a> {
    fn read(body: Members<'a>, states_a_fact: bool) -> Result<Self> {
        let entry = body.required("entry", body.object("entry", "entry."))?;
        let mut metadata = metadata(entry)?;
        let fact = if states_a_fact { metadata.shift_remove("fact") } else { None };
        let fact = fact.filter(|fact| !fact.is_null()).map(|fact| match fact {
            Value::Object(members) => Ok(in_our_words(&members, &FACT)),
            _ => Err(Error::field("fact", "must be an object")),
        });
        Ok(Self { entry, metadata, fact })
    }
}

fn metadata(entry: Members<'_>) -> Result<Map<String, Value>> {
    let Some(given) = entry.object("metadata", "entry.metadata.")? else { return Ok(Map::new()) };
    let mut metadata: Map<String, Value> =
        NAMED.iter().filter_map(|name| Some(((*name).to_owned(), given.get(name)?.clone()))).collect();
    let custom = given.object("custom", "entry.metadata.custom.")?;
    for (key, value) in custom.map(|custom| custom.to_map()).into_iter().flatten() {
        if key == "source" || NAMED.contains(&key.as_str()) {
            return Err(given.refuse(&format!("custom.{key}"), "has its own place beside 'custom'"));
        }
        metadata.insert(key, value);
    }
    Ok(metadata)
}

fn content(entry: Members<'_>) -> Result<Option<String>> {
    let entry = entry.to_map();
    Ok(Members::within(&entry, "").spoken("content")?.map(str::to_owned))
}

fn source(entry: Members<'_>) -> Result<Option<KnowledgeSource>> {
    let Some(source) = entry.object("source", "entry.source.")? else { return Ok(None) };
    let source_type = source.required("type", source.word("type", source_type, &SOURCE_TYPES))?;
    let identifier = source.text("identifier")?.map(str::to_owned);
    let mut further = source.to_map();
    further.retain(|name, _| name != "type" && name != "identifier");
    Ok(Some(KnowledgeSource { source_type, identifier, further }))
}

fn put_source(metadata: &mut Map<String, Value>, source: Option<Map<String, Value>>) {
    metadata.extend(source.map(|source| ("source".to_owned(), source.into())));
}

/// The type of source a word stands for, in any letter case.
fn source_type(word: &str) -> Option<&'static str> {
    SOURCE_TYPES.into_iter().find(|known| known.eq_ignore_ascii_case(word))
}

/// The access policy of a request. The bare word that an entry shows keeps the lists it stands for: without them a policy would
/// let in more people, or fewer, than anybody meant.
fn policy(body: Members<'_>, entry: Members<'_>, stored: Option<&Memory>) -> Result<Option<AccessPolicy>> {
    let options = body.object("options", "options.")?;
    let given = options.and_then(|options| options.get("access_policy"));
    let word = given.or_else(|| entry.get("access_policy"));
    let members = match (given, word) {
        (Some(Value::Object(members)), _) => in_our_words(members, &POLICY),
        (_, Some(word)) => Map::from_iter([("policy".to_owned(), word.clone())]),
        (_, None) => return Ok(None),
    };
    let is_bare = !matches!(given, Some(Value::Object(_)));
    let named = Map::from_iter([("accessPolicy".to_owned(), Value::Object(members))]);
    let policy = access_policy(Members::within(&named, ""))?;
    let stored = stored.map(|stored| &stored.policy).filter(|_| is_bare);
    Ok(policy.map(|policy| match stored {
        Some(stored) if stored.policy == policy.policy => stored.clone(),
        _ => policy,
    }))
}

fn target(layer: Option<Members<'_>>, user: Option<&str>, tenant: &Tenant) -> Result<Target> {
    let given = match layer {
        Some(layer) => LayerRequest {
            identifiers: identifiers(layer)?,
            of: layer.word("type", Type::parse, &Type::ALL.map(Type::as_str))?,
            scope: scope(layer)?,
        },
        None => LayerRequest::default(),
    };
    Target::new(given, user, tenant)
}

fn scope(layer: Members<'_>) -> Result<Option<Layer>> {
    let Some(word) = layer.text("scope")? else { return Ok(None) };
    let unknown = || {
        let message = format!("the scope must be one of {}", Layer::ALL.map(Layer::as_str).join(", "));
        Error::new(Code::InvalidLayer, message)
    };
    Ok(Some(Layer::parse(word).ok_or_else(unknown)?))
}

fn identifiers(layer: Members<'_>) -> Result<Identifiers> {
    let mut identifiers = Identifiers::default();
    for identifier in Identifier::ALL {
        let name = identifier_name(identifier);
        if let Some(text) = layer.text(name)? {
            identifiers.set(identifier, name, text)?;
        }
    }
    Ok(identifiers)
}

fn types(layer: Members<'_>) -> Result<Vec<Type>> {
    let mut types = Vec::new();
    for given in layer.items("types")?.unwrap_or_default() {
        let Some(of) = given.as_str().and_then(Type::parse) else {
            let words = Type::ALL.map(Type::as_str).join(", ");
            return Err(layer.refuse("types", &format!("must hold some of {words}")));
        };
        if !types.contains(&of) {
            types.push(of);
        }
    }
    Ok(types)
}

/// The members of an object that a table knows, by the names that we have for them.
fn in_our_words(members: &Map<String, Value>, table: &[(&str, &str)]) -> Map<String, Value> {
    let named =
        table.iter().filter_map(|(theirs, ours)| Some(((*ours).to_owned(), members.get(*theirs)?.clone())));
    named.collect()
}

#[cfg(test)]
mod tests;
