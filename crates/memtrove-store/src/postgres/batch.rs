//! Statements that have nothing to do with each other, sent as one: each message costs the server and us a system call.

use super::row::{Parameter, type_of};
use crate::Value;
use std::fmt::Write;
use tokio_postgres::types::Type;

#[derive(Debug, Default)]
pub(super) struct StatementBatch {
    statements: Vec<String>,
    types: Vec<Type>,
    parameters: Vec<Parameter>,
}

impl StatementBatch {
    /// Whether a statement can be part of another one. What only selects would not be run there, and what has parts of its
    /// own that write cannot be one.
    pub(super) fn takes(&self, sql: &str) -> bool {
        ["INSERT", "UPDATE", "DELETE"].iter().any(|verb| sql.starts_with(verb))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.statements.is_empty()
    }

    pub(super) fn add(&mut self, sql: &str, params: &[Value<'_>]) {
        self.statements.push(renumbered(sql, self.types.len()));
        self.types.extend(params.iter().map(type_of));
        self.parameters.extend(params.iter().map(Parameter::from));
    }

    /// One statement that does all of them.
    pub(super) fn joined(mut self) -> (String, Vec<Type>, Vec<Parameter>) {
        let last = self.statements.pop().unwrap_or_default();
        let mut sql = String::new();
        for (number, statement) in self.statements.iter().enumerate() {
            let before = if number == 0 { "WITH" } else { "," };
            // Writing to a `String` cannot fail.
            let _ = write!(sql, "{before} part{number} AS ({statement})");
        }
        sql.push(' ');
        sql.push_str(&last);
        (sql, self.types, self.parameters)
    }
}

/// The statement with its placeholders counted on from `offset`. Text in quotes is left alone.
fn renumbered(sql: &str, offset: usize) -> String {
    let mut renumbered = String::with_capacity(sql.len() + 16);
    for (number, part) in sql.split('\'').enumerate() {
        if number > 0 {
            renumbered.push('\'');
        }
        if number % 2 == 1 {
            renumbered.push_str(part);
            continue;
        }
        let mut pieces = part.split('$');
        renumbered.push_str(pieces.next().unwrap_or_default());
        for piece in pieces {
            let digits = piece.bytes().take_while(u8::is_ascii_digit).count();
            let (placeholder, rest) = piece.split_at(digits);
            match placeholder.parse::<usize>() {
                Ok(placeholder) => {
                    let _ = write!(renumbered, "${}{rest}", placeholder + offset);
                }
                Err(_) => {
                    let _ = write!(renumbered, "${piece}");
                }
            }
        }
    }
    renumbered
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_counted_on() {
        let mut batch = StatementBatch::default();
        batch.add("INSERT INTO a VALUES ($1, '$1', $2)", &[1.into(), "x".into()]);
        batch.add("UPDATE b SET c = $2 WHERE d = $1 AND e = 'it''s $3'", &[2.into(), 3.into()]);
        batch.add("DELETE FROM f", &[]);
        let (sql, types, parameters) = batch.joined();
        assert_eq!(
            sql,
            "WITH part0 AS (INSERT INTO a VALUES ($1, '$1', $2)), \
             part1 AS (UPDATE b SET c = $4 WHERE d = $3 AND e = 'it''s $3') DELETE FROM f"
        );
        assert_eq!(types, [Type::INT8, Type::TEXT, Type::INT8, Type::INT8]);
        assert_eq!(parameters.len(), 4);
    }

    #[test]
    fn only_what_writes_by_itself_is_in_a_batch() {
        let batch = StatementBatch::default();
        assert!(batch.takes("INSERT INTO a DEFAULT VALUES"));
        assert!(!batch.takes("SELECT setval('a', 1)"));
        assert!(!batch.takes("WITH gone AS (DELETE FROM a RETURNING b) DELETE FROM c USING gone"));
    }
}
