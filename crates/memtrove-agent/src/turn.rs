//! What an agent needs before it answers: the documents of its slots and the events that fit.

use crate::{AgentMemory, Recall, SlotDocument, TemplateVariables};
use memtrove_client::{Assemble, DroppedFile, EventDigest, FilePath, Result, Scope, Timestamp};
use std::collections::BTreeSet;

/// What a turn needs. By default: the slots that every turn has, and no events.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PrepareTurn {
    /// What to recall events by; none are recalled where it is blank.
    pub recall_query: Option<String>,
    /// The most events; [`AgentMemoryOptions::recall_top_k`](crate::AgentMemoryOptions) unless said otherwise.
    pub recall_top_k: Option<u32>,
    /// Slots besides those that every turn has.
    pub additional_slot_ids: Vec<String>,
    /// For slots with a template.
    pub template_variables: TemplateVariables,
    /// Only events of this service.
    pub service_id: Option<String>,
    /// Only events of this kind of source.
    pub source_type: Option<String>,
    /// Only events of this project.
    pub project_id: Option<String>,
    /// Only events at or after.
    pub from: Option<Timestamp>,
    /// Only events at or before.
    pub to: Option<Timestamp>,
    /// The most files; [`AgentMemoryOptions::assemble_max_docs`](crate::AgentMemoryOptions) unless said otherwise.
    pub max_docs: Option<u32>,
    /// The most characters of all files;
    /// [`AgentMemoryOptions::assemble_max_chars_total`](crate::AgentMemoryOptions) unless said otherwise.
    pub max_chars_total: Option<u32>,
}

/// A turn, prepared.
#[derive(Debug, Clone, Default)]
pub struct PreparedTurn {
    /// The documents that exist and fit, in the order of the slots.
    pub documents: Vec<SlotDocument>,
    /// The events found, best first.
    pub events: Vec<EventDigest>,
    /// The files that did not fit.
    pub dropped_files: Vec<DroppedFile>,
}

impl AgentMemory {
    /// Gathers what a turn needs: at most one request for documents and one for events.
    pub async fn prepare_turn(&self, scope: &Scope, turn: PrepareTurn) -> Result<PreparedTurn> {
        let slots = self.slots_of(&turn)?;
        let mut prepared = PreparedTurn::default();
        if !slots.is_empty() {
            let request = Assemble {
                files: slots.iter().map(|(_, path)| path.clone()).collect(),
                max_docs: Some(turn.max_docs.unwrap_or(self.options.assemble_max_docs)),
                max_chars_total: Some(turn.max_chars_total.unwrap_or(self.options.assemble_max_chars_total)),
                ..Assemble::default()
            };
            let context = self.client.assemble_context(scope, request).await?;
            prepared.dropped_files = context.dropped_files;
            // Files come in the order they were asked for; what is missing or dropped is passed over.
            let mut asked = slots.into_iter();
            for file in context.files {
                let slot_id = asked.find(|(_, path)| *path == file.path).map(|(slot_id, _)| slot_id);
                prepared.documents.push(SlotDocument {
                    slot_id,
                    path: file.path.to_string(),
                    etag: file.etag,
                    envelope: file.document,
                });
            }
        }
        if turn.recall_query.as_deref().is_some_and(|query| !query.trim().is_empty()) {
            let recall = Recall {
                query: turn.recall_query,
                top_k: turn.recall_top_k,
                service_id: turn.service_id,
                source_type: turn.source_type,
                project_id: turn.project_id,
                from: turn.from,
                to: turn.to,
            };
            prepared.events = self.recall_with(scope, recall).await?;
        }
        Ok(prepared)
    }

    /// The slots of a turn and where they are: those that every turn has, then those it asks for, each once.
    fn slots_of(&self, turn: &PrepareTurn) -> Result<Vec<(String, FilePath)>> {
        let default = self.slots()?.iter().filter(|slot| slot.load_by_default).map(|slot| &slot.slot_id);
        let mut seen = BTreeSet::new();
        default
            .chain(&turn.additional_slot_ids)
            .filter(|slot_id| seen.insert(slot_id.as_str()))
            .map(|slot_id| {
                let path = self.slot(slot_id)?.file_path(&turn.template_variables)?;
                Ok((slot_id.clone(), path))
            })
            .collect()
    }
}
