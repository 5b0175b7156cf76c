//! Files: 20 kB ones that are read and changed, and small ones that make up a context.

use super::{World, users};
use crate::dataset::Writer;
use crate::dataset::files::{self as requests, Note};
use crate::load::{self, Side};
use crate::sender::{Sender, Template};
use anyhow::Result;

/// Where each user has its file.
const PATH: &str = "notes/plan.md";

/// Size of a file in kilobytes.
const LARGE: usize = 20;
/// Eight of these fit into the budget of a context.
const SMALL: usize = 4;

impl World {
    /// Reads of one of 1,000 files.
    pub async fn file_gets(&mut self) -> Result<Side> {
        let users = users("reader", 1_000);
        let create = |user: &String| requests::create(user, PATH, &Note::new(LARGE, &mut self.writer));
        load::send_all(self.server.address, users.iter().map(create).collect()).await?;
        Ok(self.side(users.iter().map(|user| requests::get(user, PATH)).collect()))
    }

    /// Rewrites of a file; each connection has its own.
    pub async fn file_puts(&mut self) -> Result<Side> {
        let other = Note::new(LARGE, &mut self.writer);
        self.file_chains("writer", |user, note, _| requests::puts(user, PATH, [&other, note])).await
    }

    /// Edits of a file; each connection has its own.
    pub async fn file_patches(&mut self) -> Result<Side> {
        self.file_chains("editor", |user, note, writer| requests::patches(user, PATH, note, writer)).await
    }

    /// A file for each connection, and conditional requests on it.
    async fn file_chains(
        &mut self,
        name: &str,
        templates: impl Fn(&str, &Note, &mut Writer) -> Vec<Template>,
    ) -> Result<Side> {
        let (mut creations, mut chains) = (Vec::new(), Vec::new());
        for user in users(name, self.connections) {
            let note = Note::new(LARGE, &mut self.writer);
            creations.push(requests::create(&user, PATH, &note));
            chains.push(templates(&user, &note, &mut self.writer));
        }
        let answers = load::send_all(self.server.address, creations).await?;
        let senders = chains.into_iter().zip(&answers).map(|(chain, answer)| Sender::chain(chain, answer));
        Ok(self.side_of(senders.collect::<Result<_>>()?))
    }

    /// Contexts of the eight files of one of 200 users.
    pub async fn assemblies(&mut self) -> Result<Side> {
        let paths: Vec<String> = (0..8).map(|number| format!("context/{number}.md")).collect();
        let (mut creations, mut assemblies) = (Vec::new(), Vec::new());
        for user in users("assembler", 200) {
            let create = |path: &String| requests::create(&user, path, &Note::new(SMALL, &mut self.writer));
            creations.extend(paths.iter().map(create));
            assemblies.push(requests::assemble(&user, &paths));
        }
        load::send_all(self.server.address, creations).await?;
        Ok(self.side(assemblies))
    }
}
