//! One memory.

use super::{
    AddMemoryRequest, AddedMemory, DeletedMemory, Memory, MemoryIdentifiers, MemoryLayer, OneMemory,
    UpdateMemoryRequest, UpdatedMemory,
};
use crate::call::Call;
use crate::{Client, Result, operations};
use uuid::Uuid;

/// What is expected of a memory that is named by its id. Where it is otherwise, nothing happens.
#[derive(Debug, Clone, Default)]
pub struct Expect {
    /// It is in this layer.
    pub layer: Option<MemoryLayer>,
    /// It belongs to these.
    pub identifiers: MemoryIdentifiers,
    /// It is at this version; not asked by reads.
    pub version: Option<i64>,
}

impl Expect {
    /// Whatever it is.
    pub fn nothing() -> Self {
        Self::default()
    }

    /// It is at this version.
    pub fn version(version: i64) -> Self {
        Self { version: Some(version), ..Self::default() }
    }

    pub(super) fn on(&self, call: Call) -> Result<Call> {
        call.query("layer", self.layer.map(MemoryLayer::as_str))
            .identifiers(&self.identifiers)
            .version(self.version)
    }
}

impl Call {
    /// Adds identifiers as parameters.
    pub(super) fn identifiers(self, identifiers: &MemoryIdentifiers) -> Self {
        self.query("agentId", identifiers.agent_id.as_ref())
            .query("userId", identifiers.user_id.as_ref())
            .query("sessionId", identifiers.session_id.as_ref())
            .query("projectId", identifiers.project_id.as_ref())
            .query("teamId", identifiers.team_id.as_ref())
            .query("orgId", identifiers.org_id.as_ref())
            .query("companyId", identifiers.company_id.as_ref())
    }
}

impl Client {
    /// Remembers something.
    pub async fn add_memory(&self, request: AddMemoryRequest) -> Result<AddedMemory> {
        self.call(&operations::ADD_MEMORY, &[])?.json(&request)?.receive().await
    }

    /// Reads a memory.
    pub async fn get_memory(&self, id: Uuid, expect: Expect) -> Result<Memory> {
        let call = self.call(&operations::GET_MEMORY, &[&id.to_string()])?;
        let one: OneMemory = Expect { version: None, ..expect }.on(call)?.receive().await?;
        Ok(one.memory)
    }

    /// Reads a memory unless it is still at this version.
    pub async fn get_memory_if_changed(&self, id: Uuid, seen: i64, expect: Expect) -> Result<Option<Memory>> {
        let call = self.call(&operations::GET_MEMORY, &[&id.to_string()])?.unless_version(seen)?;
        let call = Expect { version: None, ..expect }.on(call)?;
        Ok(call.receive_changed::<OneMemory>().await?.map(|one| one.memory))
    }

    /// Reads a memory with its embedding.
    pub async fn get_memory_with_embedding(&self, id: Uuid, expect: Expect) -> Result<Memory> {
        let call =
            self.call(&operations::GET_MEMORY, &[&id.to_string()])?.query("includeEmbedding", Some(true));
        let one: OneMemory = Expect { version: None, ..expect }.on(call)?.receive().await?;
        Ok(one.memory)
    }

    /// Changes a memory.
    pub async fn update_memory(
        &self,
        id: Uuid,
        request: UpdateMemoryRequest,
        expect: Expect,
    ) -> Result<UpdatedMemory> {
        expect.on(self.call(&operations::UPDATE_MEMORY, &[&id.to_string()])?)?.json(&request)?.receive().await
    }

    /// Deletes a memory; says whether it was there.
    pub async fn delete_memory(&self, id: Uuid, expect: Expect) -> Result<DeletedMemory> {
        expect.on(self.call(&operations::DELETE_MEMORY, &[&id.to_string()])?)?.receive().await
    }
}
