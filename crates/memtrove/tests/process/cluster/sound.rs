//! What must never be in a database, whatever happened to those who wrote to it.

use crate::cluster::support::*;

/// Each as a query that counts it. The schema has no foreign keys: transactions are what keeps rows together, and these
/// say whether they did.
const WRONGS: [(&str, &str); 22] = [
    (
        "conversations without their tree",
        "SELECT count(*) FROM conversations c
         WHERE NOT EXISTS (SELECT 1 FROM groups g WHERE g.id = c.group_id AND g.tenant = c.tenant)",
    ),
    (
        "trees that do not have exactly one owner, who is the one they name",
        "SELECT count(*) FROM groups g
         WHERE 1 <> (SELECT count(*) FROM memberships m WHERE m.group_id = g.id AND m.access_level = 1)
            OR NOT EXISTS (SELECT 1 FROM memberships m
                           WHERE m.group_id = g.id AND m.user_id = g.owner_user_id AND m.access_level = 1)",
    ),
    (
        "entries without their conversation",
        "SELECT count(*) FROM entries e WHERE NOT EXISTS
         (SELECT 1 FROM conversations c WHERE c.group_id = e.group_id AND c.id = e.conversation_id)",
    ),
    (
        "trees in which two entries have one place",
        "SELECT count(*) FROM (SELECT 1 FROM entries GROUP BY group_id, ord HAVING count(*) > 1) twice",
    ),
    (
        "trees with a place that no entry has",
        "SELECT count(*) FROM (SELECT 1 FROM entries GROUP BY group_id HAVING max(ord) - min(ord) + 1 <> count(*)) gaps",
    ),
    (
        "trees that would give a place away again, or leave one out",
        "SELECT count(*) FROM groups g WHERE g.next_ord <>
         (SELECT COALESCE(max(e.ord) + 1, g.next_ord) FROM entries e WHERE e.group_id = g.id)",
    ),
    (
        "trees that name another conversation than the one that was updated last",
        "SELECT count(*) FROM groups g WHERE (g.latest_updated_at, g.latest_conversation_id) IS DISTINCT FROM
         (SELECT ROW(c.updated_at, c.id) FROM conversations c WHERE c.group_id = g.id
          ORDER BY c.updated_at DESC, c.id DESC LIMIT 1)",
    ),
    (
        "history entries that no search can find, or that are found without being there",
        "SELECT count(*) FROM (SELECT id, group_id, conversation_id FROM entries WHERE channel = 1) e
         FULL JOIN texts t ON t.id = e.id AND t.group_id = e.group_id AND t.conversation_id = e.conversation_id
         WHERE e.id IS NULL OR t.id IS NULL",
    ),
    (
        "entries that were not told of exactly once",
        "SELECT count(*) FROM entries e WHERE 1 <>
         (SELECT count(*) FROM changes c WHERE c.version = e.id::text
          AND c.kind = CASE e.channel WHEN 1 THEN 'entry.appended' ELSE 'memory.appended' END)",
    ),
    (
        "changes that tell of an entry that is not there",
        "SELECT count(*) FROM changes c WHERE c.kind IN ('entry.appended', 'memory.appended')
         AND EXISTS (SELECT 1 FROM conversations k WHERE k.tenant = c.tenant AND k.id::text = c.resource)
         AND NOT EXISTS (SELECT 1 FROM entries e WHERE e.id::text = c.version)",
    ),
    (
        "conversations that were not told of exactly once",
        "SELECT count(*) FROM conversations k WHERE 1 <>
         (SELECT count(*) FROM changes c WHERE c.kind = 'conversation.created' AND c.resource = k.id::text)",
    ),
    (
        "keys without the entry that they stand for",
        "SELECT count(*) FROM idempotency_keys k
         WHERE NOT EXISTS (SELECT 1 FROM entries e WHERE e.id = k.entry_id)",
    ),
    (
        "feeds with a gap",
        "SELECT count(*) FROM
         (SELECT 1 FROM changes GROUP BY tenant HAVING min(sequence) <> 1 OR max(sequence) <> count(*)) gaps",
    ),
    (
        "users whose files or events are miscounted",
        "SELECT count(*) FROM scopes s
         WHERE s.file_count <> (SELECT count(*) FROM files f WHERE f.scope_id = s.id)
            OR s.event_count <> (SELECT count(*) FROM events e WHERE e.scope_id = s.id)",
    ),
    (
        "files whose versions are not all in the audit trail",
        "SELECT count(*) FROM files f WHERE f.revision <>
         (SELECT count(*) FROM audit a WHERE a.scope_id = f.scope_id AND a.path = f.path)
            OR NOT EXISTS (SELECT 1 FROM audit a WHERE a.change_id = f.change_id AND a.revision = f.revision)",
    ),
    (
        "audit trails with a gap",
        "SELECT count(*) FROM scopes s WHERE s.next_sequence <>
         (SELECT count(*) + 1 FROM audit a WHERE a.scope_id = s.id)",
    ),
    (
        "versions of files that were not told of exactly once",
        "SELECT count(*) FROM audit a JOIN scopes s ON s.id = a.scope_id
         JOIN files f ON f.scope_id = a.scope_id AND f.path = a.path WHERE 1 <>
         (SELECT count(*) FROM changes c WHERE c.tenant = s.tenant AND c.user_id = s.user_id
          AND c.kind IN ('file.created', 'file.updated') AND c.resource = a.path
          AND strpos(c.version, replace(a.change_id::text, '-', '')) > 0)",
    ),
    (
        "scopes of memories that are miscounted",
        "SELECT count(*) FROM memory_scopes s
         WHERE s.entries <> (SELECT count(*) FROM memories m WHERE m.scope_no = s.id)",
    ),
    (
        "memories that no search can find, or that are found without being there",
        "SELECT count(*) FROM memories m FULL JOIN memory_index i ON i.no = m.no
         WHERE m.no IS NULL OR i.no IS NULL OR i.scope_no <> m.scope_no",
    ),
    (
        "memories that were not told of exactly once",
        "SELECT count(*) FROM memories m WHERE 1 <>
         (SELECT count(*) FROM changes c WHERE c.kind = 'memory.created' AND c.resource = m.id::text)",
    ),
    (
        "memories whose making is not in the audit trail exactly once",
        "SELECT count(*) FROM memories m WHERE m.version = 1 AND 1 <>
         (SELECT count(*) FROM audit a WHERE a.path = 'memories/' || m.id::text)",
    ),
    (
        "facts without their memory",
        "SELECT count(*) FROM memory_facts f WHERE NOT EXISTS
         (SELECT 1 FROM memories m WHERE m.no = f.no AND m.scope_no = f.scope_no)",
    ),
];

/// Requires that everything in a database belongs together, once what was committed is numbered. Nobody was forgotten in it, and
/// nobody wrote events, which are memories under another name.
#[track_caller]
pub fn assert_sound(database: &Database) {
    until("every change has its number", || number(database, "SELECT count(*) FROM changes_outbox") == 0);
    for (wrong, query) in WRONGS {
        assert_eq!(number(database, query), 0, "{wrong}");
    }
}
