use super::*;
use memtrove_core::Details;
use memtrove_testkit::clock::TestClock;
use proptest::prelude::*;

const SECOND: i64 = 1_000_000;

fn rate(limit: u64, seconds: u64) -> Option<Rate> {
    Some(Rate { limit, window: Duration::from_secs(seconds) })
}

fn quotas(everywhere: QuotaLimits) -> (Quotas, Arc<TestClock>) {
    let clock = Arc::new(TestClock::new());
    let settings = QuotaSettings { everywhere, ..QuotaSettings::default() };
    (Quotas::new(settings, clock.clone()), clock)
}

fn refusal(result: Result<()>) -> Quota {
    match result {
        Err(Error { details: Details::Quota(quota), .. }) => *quota,
        other => panic!("a quota should have refused this, not {other:?}"),
    }
}

/// How many of `calls` calls are let through.
fn passed(calls: usize, mut call: impl FnMut() -> Result<()>) -> usize {
    (0..calls).filter(|_| call().is_ok()).count()
}

#[test]
fn without_quotas_everything_passes() {
    let (quotas, _) = quotas(QuotaLimits::default());
    assert_eq!(passed(10_000, || quotas.charge("acme", "alice", "agent", CallKind::Write)), 10_000);
    assert_eq!((quotas.max_files("acme"), quotas.max_events("acme")), (None, None));
}

#[test]
fn a_refusal_says_whose_quota_what_for_how_much_and_when_to_come_back() {
    let (quotas, clock) =
        quotas(QuotaLimits { user_writes: rate(2, 60), service_reads: rate(3, 1), ..QuotaLimits::default() });
    let write = || quotas.charge("acme", "alice", "agent", CallKind::Write);
    assert_eq!(passed(2, write), 2);
    let limits = |scope, resource, limit, window_seconds, retry_after_seconds| Quota {
        scope,
        resource,
        limit,
        window_seconds,
        retry_after_seconds,
    };
    assert_eq!(refusal(write()), limits("user", "writes", 2, 60, 30));
    clock.advance_micros(29 * SECOND);
    assert_eq!(refusal(write()).retry_after_seconds, 1);
    clock.advance_micros(SECOND);
    assert_eq!(write(), Ok(()));

    assert_eq!(passed(9, || quotas.charge("acme", "bob", "agent", CallKind::Read)), 3);
    let third = quotas.charge("acme", "carol", "agent", CallKind::Read);
    assert_eq!(refusal(third), limits("service", "reads", 3, 1, 1));
}

#[test]
fn users_services_kinds_and_tenants_are_counted_apart() {
    let one = rate(1, 60);
    let all = QuotaLimits {
        user_reads: one,
        user_writes: one,
        service_reads: one,
        service_writes: one,
        ..QuotaLimits::default()
    };
    let (quotas, _) = quotas(all);
    for (tenant, user, service, kind) in [
        ("acme", "alice", "a", CallKind::Read),
        ("acme", "alice", "b", CallKind::Write),
        ("acme", "bob", "b", CallKind::Read),
        ("acme", "bob", "a", CallKind::Write),
        ("other", "alice", "a", CallKind::Read),
    ] {
        assert_eq!(quotas.charge(tenant, user, service, kind), Ok(()), "{tenant} {user} {service} {kind:?}");
    }
    assert_eq!(refusal(quotas.charge("acme", "alice", "c", CallKind::Read)).scope, "user");
    assert_eq!(refusal(quotas.charge("acme", "carol", "a", CallKind::Read)).scope, "service");
}

#[test]
fn a_tenant_replaces_single_limits() {
    let everywhere = QuotaLimits { user_reads: rate(1, 60), max_files: Some(10), ..QuotaLimits::default() };
    let acme = QuotaLimits { user_reads: rate(3, 60), max_events: Some(7), ..QuotaLimits::default() };
    let tenants = BTreeMap::from([("acme".to_owned(), acme)]);
    let quotas = Quotas::new(QuotaSettings { everywhere, tenants }, Arc::new(TestClock::new()));
    assert_eq!(passed(9, || quotas.charge("acme", "alice", "agent", CallKind::Read)), 3);
    assert_eq!(passed(9, || quotas.charge("other", "alice", "agent", CallKind::Read)), 1);
    assert_eq!((quotas.max_files("acme"), quotas.max_events("acme")), (Some(10), Some(7)));
    assert_eq!((quotas.max_files("other"), quotas.max_events("other")), (Some(10), None));
}

#[test]
fn a_call_for_no_user_counts_for_its_service_alone() {
    let (quotas, _) =
        quotas(QuotaLimits { user_reads: rate(1, 60), service_reads: rate(3, 60), ..QuotaLimits::default() });
    assert_eq!(passed(9, || quotas.charge("acme", None::<&str>, "agent", CallKind::Read)), 3);
    assert_eq!(refusal(quotas.charge("acme", "alice", "agent", CallKind::Read)).scope, "service");
    assert_eq!(quotas.charge("acme", "alice", "another", CallKind::Read), Ok(()));
}

#[test]
fn a_clock_that_is_set_back_costs_at_most_one_window() {
    let (quotas, clock) = quotas(QuotaLimits { user_reads: rate(5, 10), ..QuotaLimits::default() });
    let read = || quotas.charge("acme", "alice", "agent", CallKind::Read);
    assert_eq!(passed(9, read), 5);
    clock.advance_micros(-3600 * SECOND);
    assert!(refusal(read()).retry_after_seconds <= 2);
    clock.advance_micros(10 * SECOND);
    assert_eq!(passed(9, read), 5);
}

#[test]
fn a_limit_of_nothing_lets_nothing_through_and_one_beyond_measure_does_no_harm() {
    let (nothing, _) = quotas(QuotaLimits { user_reads: rate(0, 60), ..QuotaLimits::default() });
    assert_eq!(passed(3, || nothing.charge("acme", "alice", "agent", CallKind::Read)), 0);
    let (boundless, _) =
        quotas(QuotaLimits { user_reads: rate(u64::MAX, u64::MAX), ..QuotaLimits::default() });
    assert_eq!(passed(100, || boundless.charge("acme", "alice", "agent", CallKind::Read)), 100);
}

#[test]
fn a_refund_is_never_more_than_was_taken() {
    let (quotas, clock) = quotas(QuotaLimits { user_writes: rate(2, 60), ..QuotaLimits::default() });
    let write = || quotas.charge("acme", "alice", "agent", CallKind::Write);
    quotas.refund("acme", "alice", "agent", CallKind::Write);
    assert_eq!(passed(9, write), 2);
    quotas.refund("acme", "alice", "agent", CallKind::Read);
    assert_eq!(passed(9, write), 0);
    clock.advance_micros(59 * SECOND);
    quotas.refund("acme", "alice", "agent", CallKind::Write);
    assert_eq!(passed(9, write), 2);
}

#[test]
fn calls_at_once_share_what_there_is() {
    let (quotas, _) = quotas(QuotaLimits {
        user_writes: rate(1000, 60),
        service_writes: rate(300, 60),
        ..QuotaLimits::default()
    });
    let quotas = &quotas;
    let passed: usize = std::thread::scope(|scope| {
        let callers: Vec<_> = (0..8)
            .map(|caller| {
                let (user, service) = (format!("user-{}", caller % 3), format!("agent-{}", caller % 2));
                scope.spawn(move || {
                    passed(500, || quotas.charge("acme", user.as_str(), &service, CallKind::Write))
                })
            })
            .collect();
        callers.into_iter().map(|caller| caller.join().unwrap()).sum()
    });
    assert_eq!(passed, 600, "two services with 300 each");
}

#[test]
fn buckets_that_are_full_again_take_no_memory() {
    let (quotas, clock) = quotas(QuotaLimits { user_reads: rate(10, 10), ..QuotaLimits::default() });
    let held = || quotas.users.shards.iter().map(|shard| shard.lock().unwrap().full_at.len()).sum::<usize>();
    let call =
        |number: usize| quotas.charge("acme", format!("user-{number}").as_str(), "agent", CallKind::Read);
    (0..20_000).for_each(|number| call(number).unwrap());
    assert_eq!(held(), 20_000, "all of them have called within the last second");
    // From here on a thousand users call per second, and each of their buckets is full again a second later.
    for number in 20_000..60_000 {
        clock.advance_micros(1000);
        call(number).unwrap();
    }
    assert!(held() <= 2 * (1000 + SHARDS * CLEAN_UP_EVERY), "{} buckets for 1000 users", held());
}

/// Calls of a few users through a few services: who, through whom, what, and how long after the one before.
fn calls() -> impl Strategy<Value = Vec<(usize, usize, CallKind, i64)>> {
    let pause = prop_oneof![Just(0), 1..2_000i64, 0..(3 * SECOND)];
    let kind = prop_oneof![Just(CallKind::Read), Just(CallKind::Write)];
    prop::collection::vec((0..3usize, 0..2usize, kind, pause), 1..200)
}

fn limits() -> impl Strategy<Value = QuotaLimits> {
    let rate =
        || prop::option::of((1..20u64, 1..10u64).prop_map(|(limit, window)| rate(limit, window).unwrap()));
    (rate(), rate(), rate(), rate()).prop_map(|(user_reads, user_writes, service_reads, service_writes)| {
        QuotaLimits { user_reads, user_writes, service_reads, service_writes, ..QuotaLimits::default() }
    })
}

const USERS: [&str; 3] = ["alice", "bob", "carol"];
const SERVICES: [&str; 2] = ["agent", "robot"];

proptest! {
    #[test]
    fn never_more_than_the_limit_and_its_refill_in_any_length_of_time(limits in limits(), calls in calls()) {
        let (quotas, clock) = quotas(limits);
        let mut accepted: HashMap<(&str, &str, bool), Vec<i64>> = HashMap::new();
        for (user, service, kind, pause) in calls {
            clock.advance_micros(pause);
            if quotas.charge("acme", USERS[user], SERVICES[service], kind).is_ok() {
                for whose in [(USER, USERS[user]), (SERVICE, SERVICES[service])] {
                    let times = accepted.entry((whose.0, whose.1, kind == CallKind::Write)).or_default();
                    times.push(clock.now().as_micros());
                }
            }
        }
        for ((scope, _, write), times) in accepted {
            let rate = match (scope, write) {
                (USER, false) => limits.user_reads,
                (USER, true) => limits.user_writes,
                (_, false) => limits.service_reads,
                (_, true) => limits.service_writes,
            };
            let Some(rate) = rate else { continue };
            for (first, from) in times.iter().enumerate() {
                for (last, to) in times.iter().enumerate().skip(first) {
                    let refill = (to - from) as u128 * u128::from(rate.limit) / rate.window.as_micros();
                    let calls = (last - first + 1) as u128;
                    prop_assert!(calls <= u128::from(rate.limit) + refill, "{calls} calls in {} µs", to - from);
                }
            }
        }
    }

    #[test]
    fn a_refused_call_consumes_nothing(limits in limits(), calls in calls()) {
        let (all, clock) = quotas(limits);
        let (accepted_only, clock_of_those) = quotas(limits);
        for (user, service, kind, pause) in calls {
            clock.advance_micros(pause);
            clock_of_those.advance_micros(pause);
            let charge = |quotas: &Quotas| quotas.charge("acme", USERS[user], SERVICES[service], kind);
            if charge(&all).is_ok() {
                prop_assert_eq!(charge(&accepted_only), Ok(()));
            } else {
                // Whatever the refused calls did to the one, the other would refuse this call as well.
                let probe = accepted_only.charge("acme", USERS[user], SERVICES[service], kind);
                prop_assert_eq!(probe, charge(&all));
            }
        }
    }

    #[test]
    fn a_refunded_call_consumes_nothing(limits in limits(), calls in calls()) {
        let (all, clock) = quotas(limits);
        let (kept_only, clock_of_those) = quotas(limits);
        for (number, (user, service, kind, pause)) in calls.into_iter().enumerate() {
            clock.advance_micros(pause);
            clock_of_those.advance_micros(pause);
            let charged = all.charge("acme", USERS[user], SERVICES[service], kind);
            if number % 2 == 0 {
                prop_assert_eq!(charged, kept_only.charge("acme", USERS[user], SERVICES[service], kind));
            } else if charged.is_ok() {
                all.refund("acme", USERS[user], SERVICES[service], kind);
            }
        }
    }

    #[test]
    fn whoever_waits_as_told_is_let_through_and_a_second_less_is_not_enough(limits in limits(), calls in calls()) {
        let (quotas, clock) = quotas(limits);
        for (user, service, kind, pause) in calls {
            clock.advance_micros(pause);
            let charge = || quotas.charge("acme", USERS[user], SERVICES[service], kind);
            let Err(error) = charge() else { continue };
            let wait = i64::from(refusal(Err(error)).retry_after_seconds);
            prop_assert!(wait >= 1);
            clock.advance_micros((wait - 1) * SECOND);
            if wait > 1 {
                prop_assert!(charge().is_err());
            }
            clock.advance_micros(SECOND);
            prop_assert_eq!(charge(), Ok(()));
        }
    }
}
