//! Numbers that a store gives to rows, and what other rows refer to them by.
//!
//! An empty store takes them as they are. In one that has rows they are moved past its own, all of a kind by the same, so
//! that whatever referred to a row still does.

use super::tables::Column;
use crate::memories::ScopeNo;
use crate::{StoreError, Tx, Value};
use serde::{Deserialize, Serialize};

/// What a column's numbers count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Number {
    /// Users with files or events.
    Scope,
    /// Users that are being forgotten.
    Forget,
    MemoryScope,
    Memory,
    /// Changes of scopes of memories: the scope's number is the front part.
    Place,
}

/// One number for each kind: the last that was given, or by how much they move.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Numbers {
    scopes: i64,
    forgotten_users: i64,
    memory_scopes: i64,
    memories: i64,
}

impl Numbers {
    /// The last numbers that a store gave.
    pub(super) fn given(tx: &mut dyn Tx) -> Result<Self, StoreError> {
        Ok(Self {
            scopes: tx.last_number("scopes")?,
            forgotten_users: tx.last_number("forgotten_users")?,
            memory_scopes: tx.last_number("memory_scopes")?,
            memories: tx.last_number("memories")?,
        })
    }

    /// Sees to it that none of these is given again, moved by `by`.
    pub(super) fn are_given(&self, tx: &mut dyn Tx, by: &Self) -> Result<(), StoreError> {
        tx.number_past("scopes", self.scopes + by.scopes)?;
        tx.number_past("forgotten_users", self.forgotten_users + by.forgotten_users)?;
        tx.number_past("memory_scopes", self.memory_scopes + by.memory_scopes)?;
        tx.number_past("memories", self.memories + by.memories)
    }

    /// By how much numbers move that sealed content is bound to.
    pub(super) fn move_what_is_sealed(&self) -> bool {
        self.scopes != 0 || self.memory_scopes != 0
    }

    fn of(&self, number: Number) -> i64 {
        match number {
            Number::Scope => self.scopes,
            Number::Forget => self.forgotten_users,
            Number::MemoryScope => self.memory_scopes,
            Number::Memory => self.memories,
            Number::Place => ScopeNo(self.memory_scopes).place(0),
        }
    }

    /// A value, moved by these if it is such a number.
    pub(super) fn move_on<'a>(&self, column: &Column, value: Value<'a>) -> Value<'a> {
        match (column.number, value) {
            (Some(number), Value::Int(given)) => Value::Int(given + self.of(number)),
            _ => value,
        }
    }

    /// A value as it was before it was moved by these.
    pub(super) fn move_back<'a>(&self, column: &Column, value: Value<'a>) -> Value<'a> {
        match (column.number, value) {
            (Some(number), Value::Int(moved)) => Value::Int(moved - self.of(number)),
            _ => value,
        }
    }
}
