//! The words of the memories contract.

use crate::enums::words;
use memtrove_core::memories as domain;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use utoipa::ToSchema;

words!(
    /// Whose memory it is; the first is strongest.
    MemoryLayer {
        /// What one agent learned about one user.
        Agent = "agent",
        /// The person, across sessions.
        User = "user",
        /// One conversation of one user.
        Session = "session",
        /// A repository or project.
        Project = "project",
        /// A team.
        Team = "team",
        /// An organisation.
        Org = "org",
        /// The tenant.
        Company = "company",
    }
);

words!(
    /// How a memory is kept, and for how long.
    MemoryKind {
        /// Scratch context of one running operation; in memory only.
        Working = "working",
        /// Context of one conversation.
        Session = "session",
        /// Events with a time.
        Episodic = "episodic",
        /// General knowledge.
        Semantic = "semantic",
        /// Facts: subject, predicate, object.
        Procedural = "procedural",
        /// Personal profile and preferences.
        UserPersonal = "user_personal" | "userPersonal" | "user-personal" | "personal",
        /// Faded or cold memory.
        Archival = "archival",
    }
);

words!(
    /// Where a memory is in its life.
    MemoryState {
        /// Stored without an embedding: found by id and in lists.
        Created = "created",
        /// Normal.
        Active = "active",
        /// Faded, but still found.
        Decayed = "decayed",
        /// Put away; hidden unless asked for.
        Archived = "archived",
    }
);

words!(
    /// Who of those who have the scope may see a memory.
    AccessPolicyWord {
        /// Whoever made it.
        Private = "private",
        /// Whoever made it, and the approved users.
        Restricted = "restricted",
        /// The members of the allowed teams.
        Shared = "shared",
        /// Everybody who has the scope.
        Organization = "organization",
        /// Everybody who has the scope.
        Public = "public",
    }
);

words!(
    /// Where a memory comes from.
    MemorySourceType {
        /// A conversation.
        Conversation = "conversation",
        /// The result of a tool.
        ToolResult = "tool_result",
        /// A document that is kept in step.
        KnowledgeSync = "knowledge_sync",
        /// Somebody wrote it.
        Manual = "manual",
        /// Another system.
        Import = "import",
    }
);

words!(
    /// What decides the order of results.
    MemoryRanking {
        /// The layer first, then the score.
        Precedence = "precedence",
        /// The score first.
        Score = "score",
    }
);

words!(
    /// What decides the score of a result.
    MemorySearchMode {
        /// Meaning, raised by words in common.
        Hybrid = "hybrid",
        /// Meaning alone.
        Semantic = "semantic",
    }
);

/// Words of the contract that the domain has a type for.
macro_rules! words_of {
    ($($domain:ident => $word:ident { $($item:ident),+ }),+ $(,)?) => {
        $(impl From<domain::$domain> for $word {
            fn from(word: domain::$domain) -> Self {
                match word { $(domain::$domain::$item => Self::$item),+ }
            }
        })+
    };
}

words_of!(
    Layer => MemoryLayer { Agent, User, Session, Project, Team, Org, Company },
    Kind => MemoryKind { Working, Session, Episodic, Semantic, Procedural, UserPersonal, Archival },
    State => MemoryState { Created, Active, Decayed, Archived },
    Policy => AccessPolicyWord { Private, Restricted, Shared, Organization, Public },
);
