"""How far probabilities can be believed: bins, their mean error, and their picture."""

import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexer.evaluation.reliability import Bin, expected_calibration_error, reliability, write_reliability

JUDGED = st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=40)


def test_a_probability_on_a_border_belongs_to_the_bin_below() -> None:
    assert reliability([0.0, 0.5, 0.75], [True, False, True], n_bins=2) == [
        Bin(0.0, 0.5, 2, 0.25, 0.5),
        Bin(0.5, 1.0, 1, 0.75, 1.0),
    ]


def test_calibration_error_weighs_the_gap_of_each_bin() -> None:
    """Up to 0.5: 0.1 and 0.5, none right, 0.6 apart; above: 0.9 and 0.8, one right, 0.7 apart."""
    bins = reliability([0.1, 0.5, 0.9, 0.8], [False, False, True, False], n_bins=2)
    assert expected_calibration_error(bins) == pytest.approx((0.6 + 0.7) / 4)


def test_what_is_always_as_right_as_probable_is_calibrated() -> None:
    assert expected_calibration_error(reliability([1.0, 0.0], [True, False])) == 0.0
    assert expected_calibration_error(reliability([1.0, 0.0], [False, True])) == 1.0


@given(JUDGED)
def test_calibration_error_agrees_with_a_loop_over_bins(judged: list[tuple[float, bool]]) -> None:
    total = 0.0
    for i in range(10):
        inside = [(p, r) for p, r in judged if max(0, int(np.ceil(p * 10)) - 1) == i]
        if inside:
            share_right = sum(r for _, r in inside) / len(inside)
            mean = sum(p for p, _ in inside) / len(inside)
            total += len(inside) / len(judged) * abs(share_right - mean)
    probabilities, is_right = zip(*judged, strict=True)
    assert expected_calibration_error(reliability(probabilities, is_right)) == pytest.approx(total, abs=1e-12)


def test_the_picture_has_a_point_for_each_bin_that_holds_something(tmp_path: Path) -> None:
    bins = reliability([0.05, 0.15, 0.16, 0.95], [False, True, False, True])
    write_reliability({"that it is <right>": bins}, tmp_path / "reliability.svg")
    drawn = ET.parse(tmp_path / "reliability.svg").getroot()
    assert len(drawn.findall(".//{*}circle")) == 3
    assert "that it is <right>" in [text.text for text in drawn.findall(".//{*}text")]
