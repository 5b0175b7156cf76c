//! Access levels: per tree, shared by all its forks.

use crate::{Error, Result};

/// What a member may do. The order of the variants is the order of power.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AccessLevel {
    /// May read.
    Reader,
    /// May also append, sync, fork and rename.
    Writer,
    /// May also share.
    Manager,
    /// May also delete and hand over. Exactly one per tree.
    Owner,
}

impl AccessLevel {
    /// The number it is stored and sent as.
    pub const fn code(self) -> i64 {
        match self {
            AccessLevel::Owner => 1,
            AccessLevel::Manager => 2,
            AccessLevel::Writer => 3,
            AccessLevel::Reader => 4,
        }
    }

    /// The level of a stored number.
    pub const fn from_code(code: i64) -> Option<Self> {
        match code {
            1 => Some(AccessLevel::Owner),
            2 => Some(AccessLevel::Manager),
            3 => Some(AccessLevel::Writer),
            4 => Some(AccessLevel::Reader),
            _ => None,
        }
    }

    /// The contract's word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            AccessLevel::Owner => "owner",
            AccessLevel::Manager => "manager",
            AccessLevel::Writer => "writer",
            AccessLevel::Reader => "reader",
        }
    }

    /// Requires that somebody is a member at all, and then at least `needed`.
    pub fn require_member(held: Option<AccessLevel>, needed: AccessLevel) -> Result<()> {
        let not_a_member = || Error::forbidden("you are not a member of this conversation");
        held.ok_or_else(not_a_member)?.require(needed)
    }

    /// Requires at least `needed`.
    pub fn require(self, needed: AccessLevel) -> Result<()> {
        if self >= needed {
            return Ok(());
        }
        Err(Error::forbidden(format!(
            "this needs {} access to the conversation; you have {} access",
            needed.as_str(),
            self.as_str()
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::AccessLevel::{Manager, Owner, Reader, Writer};

    #[test]
    fn each_level_includes_the_ones_below() {
        let levels = [Reader, Writer, Manager, Owner];
        for (i, held) in levels.iter().enumerate() {
            for (j, needed) in levels.iter().enumerate() {
                assert_eq!(held.require(*needed).is_ok(), i >= j, "{held:?} {needed:?}");
            }
            assert_eq!(super::AccessLevel::from_code(held.code()), Some(*held));
        }
    }
}
