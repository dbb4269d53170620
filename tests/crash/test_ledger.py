"""The judge of the kills is judged."""

from tests.crash.ledger import Ledger


def ledger_of(*writes: tuple[str | None, bool]) -> Ledger:
    """One document `a`; each write with whether it was acknowledged."""
    ledger = Ledger()
    for text, is_acknowledged in writes:
        ledger.begin("a", text)
        if is_acknowledged:
            ledger.acknowledge("a", text, is_visible=True)
    return ledger


def test_what_was_acknowledged_last_is_right_and_what_was_before_it_is_lost() -> None:
    ledger = ledger_of(("one", True), ("two", True))
    assert ledger.judge("a", "two") == "right"
    assert ledger.judge("a", "one") == "lost"
    assert ledger.judge("a", None) == "lost"


def test_a_text_that_nobody_sent_is_wrong() -> None:
    assert ledger_of(("one", True)).judge("a", "two") == "wrong"


def test_a_deleted_document_that_is_there_again_is_lost() -> None:
    ledger = ledger_of(("one", True), (None, True))
    assert ledger.judge("a", None) == "right"
    assert ledger.judge("a", "one") == "lost"


def test_a_write_without_an_answer_may_have_happened_or_not() -> None:
    ledger = ledger_of(("one", True), ("two", False), (None, False))
    assert [ledger.judge("a", found) for found in ("one", "two", None)] == ["right"] * 3
    assert not ledger.view("a").is_certain


def test_an_answer_decides_about_all_writes_before_it() -> None:
    ledger = ledger_of(("one", False), ("two", True))
    assert ledger.judge("a", "one") == "lost"
    assert ledger.view("a").is_certain


def test_a_document_that_was_looked_at_is_certain_from_then_on() -> None:
    ledger = ledger_of(("one", True), ("two", False))
    ledger.settle("a", "two")
    assert ledger.judge("a", "one") == "lost"
