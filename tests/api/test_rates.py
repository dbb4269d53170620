"""How often a caller may ask."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.api import rates
from app.api.rates import RateLimit
from app.errors import RateLimited
from app.keys import Scope, new_key
from app.storage.sqlite import SqliteRows
from tests.api.stand_up import assert_problem, client_of, settings_in


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def allowed(limit: RateLimit, caller: str = "a") -> bool:
    try:
        limit.take(caller)
    except RateLimited:
        return False
    return True


def test_a_burst_is_allowed_and_then_as_many_as_time_gives() -> None:
    clock = Clock()
    limit = RateLimit(2, 3, clock=clock)
    assert [allowed(limit) for _ in range(4)] == [True, True, True, False]
    clock.now += 0.5
    assert [allowed(limit) for _ in range(2)] == [True, False]
    clock.now += 1000
    assert [allowed(limit) for _ in range(4)] == [True, True, True, False]


def test_it_says_after_how_many_whole_seconds_one_is_allowed_again() -> None:
    clock = Clock()
    limit = RateLimit(0.1, 1, clock=clock)
    limit.take("a")
    clock.now += 2.5
    with pytest.raises(RateLimited) as refused:
        limit.take("a")
    assert refused.value.retry_after_s == 8
    clock.now += 8
    limit.take("a")


def test_callers_do_not_count_for_each_other() -> None:
    limit = RateLimit(1, 1, clock=Clock())
    assert allowed(limit, "a")
    assert allowed(limit, "b")
    assert not allowed(limit, "a")


def test_0_means_any_number() -> None:
    limit = RateLimit(0, 1, clock=Clock())
    assert all(allowed(limit) for _ in range(100))


def test_only_so_many_callers_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rates, "MAX_CALLERS", 2)
    limit = RateLimit(1, 1, clock=Clock())
    assert [allowed(limit, caller) for caller in "abcbca"] == [True, True, True, False, False, True]


@given(st.lists(st.floats(0, 5), max_size=60), st.floats(0.1, 10), st.integers(1, 10))
def test_never_more_than_burst_and_rate_times_time(waits: list[float], per_s: float, burst: int) -> None:
    clock = Clock()
    limit = RateLimit(per_s, burst, clock=clock)
    n_allowed = 0
    for wait in waits:
        clock.now += wait
        n_allowed += allowed(limit)
    assert n_allowed <= burst + sum(waits) * per_s + 1e-6


def test_too_many_requests_get_429_and_when_to_come_back(tmp_path: Path) -> None:
    with client_of(settings_in(tmp_path, rate_limit=0.01, rate_burst=2)) as client:
        assert [client.get("/v1/collections").status_code for _ in range(2)] == [200, 200]
        answer = client.get("/v1/collections")
        problem = assert_problem(answer, 429, "rate-limited")
        assert "rate_limit" in problem["detail"]
        assert 0 < int(answer.headers["retry-after"]) <= 100
        assert client.get("/livez").status_code == 200


def test_a_key_has_its_own_bucket_and_bad_keys_count_for_the_address(tmp_path: Path) -> None:
    rows = SqliteRows(tmp_path / "bifocal.db")
    headers = []
    for name in ("a", "b"):
        stored, secret = new_key(name, scopes=[Scope.READ])
        rows.add_key(stored)
        headers.append({"X-API-Key": secret})
    rows.close()
    with client_of(settings_in(tmp_path, rate_limit=0.01, rate_burst=1)) as client:
        bad = [{"X-API-Key": "x"}, {"X-API-Key": "y"}]
        sent = [headers[0], headers[1], headers[0], *bad, headers[1]]
        statuses = [client.get("/v1/collections", headers=each).status_code for each in sent]
    assert statuses == [200, 200, 429, 401, 429, 429]
