"""The page that proves privacy names code, tests, theorems and constants that are there; and its
steps about the sampler hold, by references of their own.
"""

import ast
import importlib
import itertools
import math
import re
from fractions import Fraction
from pathlib import Path

import mpmath as mp
import numpy as np
import pytest
from scipy import stats

from gaussnoise.privacy.sampler import MAX_SCALE, discrete_gaussian

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "notebooks" / "proof.md").read_text(encoding="utf-8")
STEPS = re.findall(r"^\*\*(\d+)\. .*?(?=^\*\*\d+\. |^## )", PAGE, flags=re.MULTILINE | re.DOTALL)
NAMES = set(re.findall(r"`([a-z_]+(?:\.\w+)+)`", PAGE))
TESTS = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE)
FIRST = "privacy.sampler.discrete_gaussian"


def found(name):
    """What has this dotted name below the package; AttributeError if nothing has."""
    parts = ["gaussnoise", *name.split(".")]
    for k in range(len(parts), 0, -1):
        try:
            thing = importlib.import_module(".".join(parts[:k]))
        except ModuleNotFoundError:
            continue
        for part in parts[k:]:
            thing = getattr(thing, part)
        return thing
    raise AttributeError(name)


def test_the_page_is_read_at_one_sitting():
    assert len(PAGE.splitlines()) <= 300


def test_every_name_of_the_page_is_in_the_code():
    assert FIRST in NAMES
    assert len(NAMES) > 50
    missing = []
    for name in sorted(NAMES):
        try:
            found(name)
        except AttributeError:
            missing.append(name)
    assert missing == []
    with pytest.raises(AttributeError):
        found(f"{FIRST}s")


def test_every_step_names_its_code_and_has_a_test():
    assert [int(number) for number in STEPS] == list(range(1, 23))
    texts = re.split(r"^\*\*\d+\. ", PAGE, flags=re.MULTILINE)[1:]
    # the theorem is a sentence about the steps before it
    without = [k for k, text in enumerate(texts, 1) if "\n→ `" not in text.split("\n## ")[0]]
    assert without == [4]
    tested = re.findall(r"^\| ([\d, ]+) \|[^|]*\| `tests/", PAGE, flags=re.MULTILINE)
    numbers = [int(number) for cell in tested for number in cell.split(",")]
    assert sorted([*numbers, 4]) == list(range(1, 23))


def test_every_test_of_the_page_is_there():
    for path, name in TESTS:
        tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
        defined = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
        assert name in defined, (path, name)


def test_every_theorem_of_the_page_is_in_the_source():
    source = Path(__file__).with_name("sensitivity.v").read_text(encoding="utf-8")
    rows = re.findall(r"^\| [\d, ]+ \|([^|]*)\| `tests/", PAGE, flags=re.MULTILINE)
    names = [name for row in rows for name in re.findall(r"`(\w+)`", row)]
    assert len(set(names)) == 11
    assert set(names) <= set(re.findall(r"^\s*Theorem (\w+)", source, flags=re.MULTILINE))


def value(text):
    """The number that a cell of the page states, or the version."""
    if text.startswith("2^"):
        return 2 ** int(text[2:])
    return float(text) if "e" in text else tuple(map(int, text.split(".")))


def test_constants_are_those_of_the_code():
    rows = re.findall(r"^\| `([\w.]+)` \| (\S+) \|", PAGE, flags=re.MULTILINE)
    assert len(rows) == 9
    assert {name: value(text) for name, text in rows} == {name: found(name) for name, _ in rows}


def test_the_chance_of_noise_beyond_64_bits_is_the_stated_one():
    assert Fraction(2**63) ** 2 / (2 * Fraction(MAX_SCALE) ** 2) == 2**17
    assert math.log10(2) - 2**17 / math.log(10) < -56000


def test_noise_beyond_64_bits_is_cut_off():
    """A third of the draws of this scale, which no release has."""
    noise = discrete_gaussian(2.0**63)([0] * 200)
    assert (min(noise), max(noise)) == (-(2**63), 2**63 - 1)


# The steps about the sampler.


def law_fits(scale, draws=20_000):
    """Whether OpenDP's draws of this scale follow the law of scale 2, by a test of χ²; a sampler
    without fault fails once in 10⁹ times.
    """
    noise = np.abs(discrete_gaussian(scale)([0] * draws))
    weights = np.exp(-np.square(np.arange(40.0)) / 8) * np.where(np.arange(40) > 0, 2, 1)
    expected = draws * weights / weights.sum()
    cut = int(np.argmax(expected < 5))
    seen = np.bincount(np.minimum(noise, cut), minlength=cut + 1)
    expected = np.append(expected[:cut], expected[cut:].sum())
    return stats.chisquare(seen, expected).pvalue > 1e-9


def test_draws_follow_the_law():
    assert law_fits(2.0)
    # ten per cent of variance are ten standard errors of as many draws
    assert not law_fits(2.0 * math.sqrt(1.1))


def excess(a, b, sigma, order):
    """``log Σ P^α Q^(1−α) − α(α−1)(a−b)²/2σ²`` of discrete Gaussians around a and b, by summation;
    exponents are completed to squares, so that nothing underflows.
    """
    a, b, sigma, order = map(mp.mpf, (a, b, sigma, order))

    def log_sum(center):
        first = int(mp.floor(center - 20 * sigma - 20))
        ks = range(first, first + int(40 * sigma + 40))
        return mp.log(mp.fsum(mp.exp(-((k - center) ** 2) / (2 * sigma**2)) for k in ks))

    return log_sum(order * a + (1 - order) * b) - order * log_sum(a) - (1 - order) * log_sum(b)


def test_shifts_by_integers_cost_what_the_proof_says():
    with mp.workdps(50):
        for sigma, shift, order in itertools.product((0.3, 1, 4.7), (1, 3), (1.5, 2, 7.25)):
            lost = excess(shift, 0, sigma, order)
            assert lost <= mp.mpf(10) ** -40
            assert order != 2 or lost >= -(mp.mpf(10) ** -40)  # the middle is an integer


def test_other_shifts_cost_more():
    with mp.workdps(50):
        assert excess(0.5, 0, 0.3, 2) > 1


def test_opendp_charges_no_less_than_the_quotient():
    rng = np.random.default_rng(0)
    for exponent, ratio in zip(rng.uniform(0, 53, 400), rng.uniform(-20, 20, 400), strict=True):
        scale = 2.0**exponent
        distance = scale * 2.0**ratio
        charge = discrete_gaussian(scale).map(distance)
        exact = Fraction(distance) ** 2 / (2 * Fraction(scale) ** 2)
        assert exact <= Fraction(charge) <= exact * (1 + Fraction(1, 2**50))
