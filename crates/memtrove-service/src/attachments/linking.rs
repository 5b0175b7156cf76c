//! Making attachments part of the entry that names them, in the unit of work that appends it.

use crate::conversations::access::{Access, AsWriter};
use memtrove_core::attachments::{Attachment, Linking, not_found};
use memtrove_core::conversations::content::Reference;
use memtrove_core::identity::Caller;
use memtrove_core::{AttachmentId, EntryId, Result, Timestamp};
use memtrove_store::Tx;
use memtrove_store::attachments;
use std::collections::HashMap;

/// An attachment that an entry names.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Named {
    pub id: AttachmentId,
    /// What a record is called that has to be made for this entry, because the one that is named belongs to another.
    pub copy: AttachmentId,
}

/// Links what an entry names to it; answers where it is found.
pub(crate) fn link(
    tx: &mut dyn Tx,
    caller: &Caller,
    access: &Access<AsWriter>,
    entry: EntryId,
    named: &[Named],
    now: Timestamp,
) -> Result<HashMap<AttachmentId, Reference>> {
    let tree = access.group();
    let ids: Vec<AttachmentId> = named.iter().map(|named| named.id).collect();
    let records = attachments::find(tx, caller.tenant(), &ids)?;
    let mut linked = HashMap::with_capacity(named.len());
    for Named { id, copy } in named {
        let record = records.iter().find(|record| record.id == *id).ok_or_else(|| not_found(*id))?;
        let effective = match record.linking(&caller.user, tree, now)? {
            Linking::Take => {
                attachments::link(tx, *id, tree, entry)?;
                *id
            }
            Linking::Share => {
                let shared = Attachment {
                    id: *copy,
                    user_id: Some(caller.user.clone()),
                    entry_id: Some(entry),
                    group_id: Some(tree),
                    expires_at: None,
                    created_at: now,
                    ..record.clone()
                };
                attachments::share(tx, *id, &shared)?;
                *copy
            }
        };
        let reference = Reference {
            href: memtrove_core::attachments::href(effective),
            content_type: record.known_content_type().map(str::to_owned),
            name: record.filename.clone(),
        };
        linked.insert(*id, reference);
    }
    Ok(linked)
}
