//! The examples of the client run.

use crate::support::*;

#[allow(dead_code, reason = "an example has a main of its own")]
#[path = "../../../memtrove-client/examples/chat.rs"]
mod chat;
#[allow(dead_code, reason = "an example has a main of its own")]
#[path = "../../../memtrove-client/examples/files.rs"]
mod files;
#[allow(dead_code, reason = "an example has a main of its own")]
#[path = "../../../memtrove-client/examples/first.rs"]
mod first;
#[allow(dead_code, reason = "an example has a main of its own")]
#[path = "../../../memtrove-client/examples/remember_and_recall.rs"]
mod remember_and_recall;

#[tokio::test(flavor = "multi_thread")]
async fn the_first_program() {
    let world = World::new();
    assert_eq!(first::run(&world.agent("alice")).await.unwrap(), "Alice prefers window seats");
}

#[tokio::test(flavor = "multi_thread")]
async fn remembering_and_recalling() {
    let world = World::new();
    let recalled = remember_and_recall::run(&world.agent("dana"), "dana").await.unwrap();
    assert_eq!(recalled, "Dana prefers aisle seats since her knee surgery");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chat_with_a_fork() {
    let world = World::new();
    assert_eq!(chat::run(&world.agent("dana")).await.unwrap(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_others_change_too() {
    let world = World::new();
    let (client, scope) = (world.agent("dana"), world.scope("dana"));
    let text = files::run(&client, &scope).await.unwrap();
    assert_eq!(text, "# Dana\n\n- lives in Porto\n- drinks green tea\n");
    let again = files::run(&client, &scope).await.unwrap();
    assert!(again.starts_with("# Dana\n\n- lives in Porto\n"), "{again}");
}
