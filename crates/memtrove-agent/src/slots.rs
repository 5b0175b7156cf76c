//! Slots: files by the names that the policy gives them.

use crate::{AgentMemory, TemplateVariables};
use memtrove_client::{
    ETag, Envelope, Error, FilePath, PatchOp, PatchRequest, Precondition, Result, Scope, StoredFile,
    WriteRequest,
};
use serde_json::Value;

/// The document of a slot.
#[derive(Debug, Clone)]
pub struct SlotDocument {
    /// The slot.
    pub slot_id: Option<String>,
    /// Where the file is.
    pub path: String,
    /// Its version.
    pub etag: ETag,
    /// What it holds.
    pub envelope: Envelope,
}

impl SlotDocument {
    fn of(slot_id: &str, path: &FilePath, file: StoredFile) -> Self {
        Self {
            slot_id: Some(slot_id.to_owned()),
            path: path.to_string(),
            etag: file.etag,
            envelope: file.document,
        }
    }
}

/// A change of parts of a slot.
#[derive(Debug, Clone, Default)]
pub struct SlotPatch {
    /// Operations on the whole envelope: content begins with `/content`.
    pub ops: Vec<PatchOp>,
    /// Why, for the audit trail.
    pub reason: Option<String>,
    /// What it rests on: any JSON, kept in the audit trail.
    pub evidence: Option<Value>,
    /// For slots with a template.
    pub template_variables: TemplateVariables,
}

/// A whole new document for a slot.
#[derive(Debug, Clone)]
pub struct SlotReplace {
    /// The document.
    pub document: Envelope,
    /// Why, for the audit trail.
    pub reason: Option<String>,
    /// What it rests on: any JSON, kept in the audit trail.
    pub evidence: Option<Value>,
    /// For slots with a template.
    pub template_variables: TemplateVariables,
}

impl From<Envelope> for SlotReplace {
    fn from(document: Envelope) -> Self {
        Self { document, reason: None, evidence: None, template_variables: TemplateVariables::new() }
    }
}

impl AgentMemory {
    /// Loads the document of a slot.
    pub async fn load_slot(
        &self,
        scope: &Scope,
        slot_id: &str,
        template_variables: &TemplateVariables,
    ) -> Result<SlotDocument> {
        let path = self.slot(slot_id)?.file_path(template_variables)?;
        let file = self.client.get_file(scope, &path).await?;
        Ok(SlotDocument::of(slot_id, &path, file))
    }

    /// Changes parts of a slot. What its rules do not allow is refused before anything is sent.
    pub async fn patch_slot(
        &self,
        scope: &Scope,
        slot_id: &str,
        patch: SlotPatch,
        precondition: impl Into<Precondition>,
    ) -> Result<SlotDocument> {
        let slot = self.slot(slot_id)?;
        let path = slot.file_path(&patch.template_variables)?;
        if patch.ops.is_empty() {
            return Err(Error::invalid(format!(
                "slot '{slot_id}': there is no operation: give at least one"
            )));
        }
        slot.rules.check_patch(&patch.ops).map_err(|fault| violation(slot_id, &fault))?;
        let request =
            PatchRequest { reason: patch.reason, evidence: patch.evidence, ..PatchRequest::ops(patch.ops) };
        let file = self.client.patch_file(scope, &path, request, precondition).await?;
        Ok(SlotDocument::of(slot_id, &path, file))
    }

    /// Replaces the document of a slot. What its rules do not allow is refused before anything is sent.
    pub async fn replace_slot(
        &self,
        scope: &Scope,
        slot_id: &str,
        replacement: impl Into<SlotReplace>,
        precondition: impl Into<Precondition>,
    ) -> Result<SlotDocument> {
        let replacement = replacement.into();
        let slot = self.slot(slot_id)?;
        let path = slot.file_path(&replacement.template_variables)?;
        slot.rules
            .check_content(&replacement.document.content)
            .map_err(|fault| violation(slot_id, &fault))?;
        let request = WriteRequest {
            document: replacement.document,
            reason: replacement.reason,
            evidence: replacement.evidence,
        };
        let file = self.client.write_file(scope, &path, request, precondition).await?;
        Ok(SlotDocument::of(slot_id, &path, file))
    }
}

fn violation(slot_id: &str, fault: &str) -> Error {
    Error::invalid(format!("slot '{slot_id}': {fault}"))
}
