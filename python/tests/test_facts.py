from __future__ import annotations

import pytest

from memtrove import ApiError, InvalidInputError, MemtroveClient


def test_facts_are_stated_queried_changed_and_forgotten(alice: MemtroveClient, user: str) -> None:
    me = {"user_id": user}
    added = alice.facts.add(
        "dana", "lives_in", "Lisbon", fact_type="home", layer="user", identifiers=me, confidence=0.8
    )
    assert added.created and added.fact.content == "dana lives in Lisbon"
    again = alice.facts.add(
        "dana", "lives_in", "Lisbon", fact_type="home", layer="user", identifiers=me, confidence=0.9
    )
    assert not again.created and again.fact.id == added.fact.id and again.fact.version == 2

    listed = alice.facts.list(layer="user", identifiers=me, subject="dana", predicate="lives_in", min_confidence=0.85)
    assert [fact.object for fact in listed.facts] == ["Lisbon"] and listed.total_count == 1
    assert alice.facts.list(layer="user", identifiers=me, subject="Dana").facts == []

    changed = alice.facts.update(added.fact.id, object="Porto", if_match=again.fact.etag)
    assert changed.object == "Porto" and changed.etag != again.fact.etag
    assert alice.facts.get(added.fact.id).object == "Porto"
    with pytest.raises(ApiError) as late:
        alice.facts.update(added.fact.id, object="Faro", if_match=again.fact.etag)
    assert late.value.is_conflict
    with pytest.raises(InvalidInputError):
        alice.facts.update(added.fact.id)

    assert alice.facts.delete(added.fact.id) and not alice.facts.delete(added.fact.id)


def test_the_strongest_layer_wins_where_facts_are_resolved(agent: MemtroveClient, user: str) -> None:
    ids = {"user_id": user, "project_id": f"p-{user}"}
    agent.facts.add("style", "indent", "tabs", fact_type="rule", layer="project", identifiers=ids)
    agent.facts.add("style", "indent", "spaces", fact_type="rule", layer="user", identifiers=ids)
    every = agent.facts.query(identifiers=ids, subject="style")
    assert {fact.object for fact in every.facts} == {"tabs", "spaces"}
    assert len(list(agent.facts.query_all(identifiers=ids, subject="style"))) == 2
    resolved = agent.facts.query(identifiers=ids, subject="style", resolve=True)
    assert [fact.object for fact in resolved.facts] == ["spaces"]
