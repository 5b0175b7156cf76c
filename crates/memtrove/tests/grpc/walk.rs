//! A walk through the API by chance: people do this and that, each time over either transport. After every step both must
//! read the same, and two worlds in which the same is done over one transport alone must have come to the same.

use crate::parity::{memory, message};
use crate::support::*;
use crate::surface::{Grpc, Op, Outcome, Rest, Surface};
use crate::world::{AGENTS, World, assert_same};
use memtrove_testkit::steps::Dice;
use std::sync::atomic::{AtomicU64, Ordering};

static SERVER: LazyLock<TestServer> = LazyLock::new(local_server);

const STEPS: usize = 250;
const PEOPLE: [&str; 3] = ["alice", "bob", "carol"];
const LEVELS: [&str; 4] = ["manager", "writer", "reader", "owner"];

/// Now this transport, now that one.
struct Either<'a> {
    rest: Rest<'a>,
    grpc: Grpc,
    coin: AtomicU64,
}

impl Surface for Either<'_> {
    fn name(&self) -> &'static str {
        "either"
    }

    fn call(&self, who: &Who, op: Op, asked: &Value) -> Outcome {
        let mut coin = Dice(self.coin.load(Ordering::Relaxed));
        let heads = coin.roll(2) == 0;
        self.coin.store(coin.0, Ordering::Relaxed);
        if heads { self.rest.call(who, op, asked) } else { self.grpc.call(who, op, asked) }
    }
}

/// A world and what has been made in it, in order, so that a number means the same in every world.
struct Walker<'a> {
    world: World<'a>,
    conversations: Vec<String>,
    entries: Vec<String>,
    transfers: Vec<String>,
}

impl<'a> Walker<'a> {
    fn new(world: World<'a>) -> Self {
        Self { world, conversations: Vec::new(), entries: Vec::new(), transfers: Vec::new() }
    }

    /// Something of this list; an id that nobody knows where there is nothing.
    fn pick(list: &[String], number: usize) -> String {
        if list.is_empty() { fresh_id() } else { list[number % list.len()].clone() }
    }

    /// The same step in every world: everything about it follows from the dice.
    fn step(&mut self, mut dice: Dice) {
        let person = *dice.pick(&PEOPLE);
        let agent = format!("{person}@{}", dice.pick(&AGENTS));
        // Recent conversations more often, so that some of them get a past.
        let back = dice.roll(self.conversations.len().clamp(1, 4)) + 1;
        let conversation = Self::pick(&self.conversations, self.conversations.len().wrapping_sub(back));
        let entry = Self::pick(&self.entries, dice.roll(1000));
        let other = *dice.pick(&PEOPLE);
        let whom = self.world.user(other);
        let transfer = Self::pick(&self.transfers, dice.roll(1000));
        let number = dice.roll(1000);
        let items = |dice: &mut Dice| -> Value {
            let kinds = [json!(1), json!({"n": 2}), json!("three"), json!([null])];
            let start = dice.roll(2);
            json!(kinds[start..start + dice.roll(3)])
        };
        match dice.roll(24) {
            0..=2 => {
                let asked = json!({"title": format!("Number {number}"), "metadata": {"n": number}});
                let made = self.world.ask(person, Op::CreateConversation, asked);
                keep(&mut self.conversations, &made);
            }
            3..=7 => {
                let said = self.world.ask(
                    person,
                    Op::AppendEntry,
                    message(&conversation, &format!("said {number}")),
                );
                keep(&mut self.entries, &said);
            }
            8..=9 => {
                let done = self.world.ask(&agent, Op::AppendEntry, memory(&conversation, items(&mut dice)));
                keep(&mut self.entries, &done);
            }
            10..=12 => {
                let done = self.world.ask(&agent, Op::SyncEntries, memory(&conversation, items(&mut dice)));
                keep(&mut self.entries, &done.map(|done| done["entry"].clone()));
            }
            13..=14 => {
                let asked = json!({"conversationId": conversation, "entryId": entry});
                let made = self.world.ask(&agent, Op::ForkConversation, asked);
                keep(&mut self.conversations, &made);
            }
            15 => {
                let id = fresh_id();
                let mut asked = message(&id, "a fork on append");
                asked["forkedAtConversationId"] = json!(conversation);
                asked["forkedAtEntryId"] = json!(entry);
                if self.world.ask(person, Op::AppendEntry, asked).is_ok() {
                    self.conversations.push(id);
                }
            }
            16..=17 => {
                let level = *dice.pick(&LEVELS);
                let asked = json!({"conversationId": conversation, "userId": whom, "accessLevel": level});
                let op = [Op::ShareConversation, Op::ShareConversation, Op::UpdateMembership][dice.roll(3)];
                drop(self.world.ask(person, op, asked));
            }
            18 => {
                let asked = json!({"conversationId": conversation, "userId": whom});
                drop(self.world.ask(person, Op::DeleteMembership, asked));
            }
            19 => {
                let asked = json!({"conversationId": conversation, "newOwnerUserId": whom});
                let made = self.world.ask(person, Op::CreateOwnershipTransfer, asked);
                keep(&mut self.transfers, &made);
            }
            20 => {
                let op = [Op::AcceptOwnershipTransfer, Op::DeleteOwnershipTransfer][dice.roll(2)];
                drop(self.world.ask(person, op, json!({"transferId": transfer})));
            }
            21 => {
                let asked = json!({"conversationId": conversation, "title": format!("Renamed {number}")});
                drop(self.world.ask(person, Op::UpdateConversation, asked));
            }
            22 => {
                let query = json!({"query": format!("said {number}"), "searchType": "fulltext"});
                drop(self.world.ask(person, Op::SearchConversations, query));
            }
            _ if number < 300 => {
                drop(self.world.ask(person, Op::DeleteConversation, json!({"conversationId": conversation})));
            }
            _ => drop(self.world.ask(person, Op::ListConversations, json!({"mode": "all", "limit": 3}))),
        }
    }
}

fn keep(list: &mut Vec<String>, made: &Outcome) {
    if let Ok(Value::String(id)) = made.as_ref().map(|answer| &answer["id"]) {
        list.push(id.clone());
    }
}

#[test]
fn whichever_transport_people_use_both_read_the_same_after_every_step() {
    for seed in [0x9e37_79b9_7f4a_7c15, 20_260_131] {
        let either = Either { rest: Rest(&SERVER), grpc: Grpc(channel(&SERVER)), coin: AtomicU64::new(seed) };
        let mut walkers = [
            Walker::new(World::new(&SERVER, Box::new(either))),
            Walker::new(World::over_rest(&SERVER)),
            Walker::new(World::over_grpc(&SERVER)),
        ];
        let (rest, grpc) = (Rest(&SERVER), Grpc(channel(&SERVER)));
        let mut dice = Dice(seed);
        for number in 0..STEPS {
            let fate = dice.roll(usize::MAX) as u64 | 1;
            for walker in &mut walkers {
                walker.step(Dice(fate));
            }
            let [mixed, others @ ..] = &mut walkers;
            let told = mixed.world.said.last().expect("something was asked");
            for other in others.iter() {
                let same = other.world.said.last().expect("something was asked");
                assert_eq!(told.0, same.0, "seed {seed}, step {number}: the worlds went different ways");
                let context = format!("seed {seed}, step {number}, {}: one transport", told.0);
                assert_same(&context, &told.1, "another", &same.1);
            }
            if let Some(last) = mixed.conversations.last().cloned() {
                let person = PEOPLE[number % PEOPLE.len()];
                let over_rest = mixed.world.conversation_over(&rest, person, &last);
                let over_grpc = mixed.world.conversation_over(&grpc, person, &last);
                assert_same(
                    &format!("seed {seed}, step {number}: what REST reads"),
                    &over_rest,
                    "what gRPC reads",
                    &over_grpc,
                );
            }
        }
        let states: Vec<Value> = walkers.iter_mut().map(|walker| walker.world.state()).collect();
        assert_same("the state of either", &states[0], "the state after REST alone", &states[1]);
        assert_same("the state of either", &states[0], "the state after gRPC alone", &states[2]);
        let refused = walkers[0].world.said.iter().filter(|(_, told)| told.is_string()).count();
        assert!(
            refused > STEPS / 20 && refused < STEPS * 3 / 4,
            "a walk that means something: {refused} of {STEPS} refused"
        );
    }
}
