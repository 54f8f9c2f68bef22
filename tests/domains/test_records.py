"""Records as arrays: refused input, and messages that reveal nothing about the records."""

import re

import numpy as np
import pytest

import domains
from domains.records import is_masked

CANARY = "739173917391"
MASKED = np.ma.array([[0, 1], [1, 0]], mask=[[False, True], [False, False]])
EMBEDDINGS = {
    "tensors": domains.TensorPower(2, 2),
    "marginals": domains.Marginals((2, 2), [(0, 1)]),
    "products": domains.Products([domains.Prefix(2), domains.Identity(2)], [(0, 1)]),
}
embeddings = pytest.mark.parametrize("domain", EMBEDDINGS.values(), ids=EMBEDDINGS.keys())


def boxed(x):
    """Return an array of objects that holds x."""
    box = np.empty(1, dtype=object)
    box[0] = x
    return box


class Holder:
    """Numbers of another library that numpy can convert."""

    def __init__(self, array):
        self.array = array

    def __array__(self, dtype=None, copy=None):
        return self.array


MASKS = {
    "array": MASKED,
    "no mask": np.ma.array([[0, 1]]),
    "rows": list(MASKED),
    "tuple of rows": tuple(MASKED),
    "constant": [[0, np.ma.masked]],
    "objects": boxed(MASKED),
    "deep": [[[[[MASKED]]]]],
    "asked for": Holder(MASKED),
}
masks = pytest.mark.parametrize("records", MASKS.values(), ids=MASKS.keys())


@masks
@embeddings
def test_masks_are_never_ignored(domain, records):
    with pytest.raises(
        domains.InvalidDomainError, match="a masked array, whose mask would be ignored; hint"
    ):
        domain.embed(records)


@masks
def test_masked_points_are_refused(records):
    with pytest.raises(domains.InvalidDomainError):
        domains.FiniteSet(records)


@pytest.mark.parametrize(
    "x", [MASKED[0], [0, np.ma.masked], Holder(MASKED[0])], ids=["array", "constant", "asked for"]
)
@pytest.mark.parametrize(
    "domain", [domains.LpBall(2, 2), domains.FiniteSet(np.eye(2))], ids=["ball", "points"]
)
def test_masked_points_are_members_of_nothing(domain, x):
    with pytest.raises(domains.InvalidDomainError, match="masked"):
        domain.contains(x)


def test_masked_coordinates_of_bodies_are_refused():
    widths = np.ma.array([1.0, 2.0], mask=[False, True])
    for build in (lambda: domains.Zonotope([widths]), lambda: domains.LpBall(2, 2) + widths):
        with pytest.raises(domains.InvalidDomainError):
            build()


def test_what_holds_no_mask_is_not_taken_for_one():
    endless = []
    endless.append(endless)
    endless.append(endless)
    for values in (
        [[1, 2.5], [3, np.float64(4)]],
        "text",
        b"text",
        [],
        range(3),
        np.eye(2),
        None,
        [None, "a"],
        endless,
    ):
        assert not is_masked(values)


def said(call, argument):
    """Return the message of a refusal."""
    with pytest.raises(
        (domains.InvalidDomainError, domains.DimensionError, domains.DomainTooLargeError)
    ) as caught:
        call(argument)
    assert not caught.value.__suppress_context__ or caught.value.__context__ is None
    return str(caught.value)


@pytest.mark.parametrize(
    "make",
    [
        lambda n: [CANARY] * n,
        lambda n: [[CANARY, "x"]] * n,
        lambda n: [[CANARY, 1]] * n,
        lambda n: [[0.25, 0.5, 0.125]] * n,
        lambda n: [[int(CANARY), 7]] * n,
        lambda n: [[float(CANARY), 7.5]] * n,
        lambda n: [[1j, float(CANARY)]] * n,
        lambda n: [[0, 1]] * (n - 1) + [[int(CANARY)]],
        lambda n: np.zeros((2, n)).T[:, :1],
        lambda n: np.zeros((2, n)),
        lambda n: np.full(n, np.datetime64("1973-11-29")),
    ],
)
@embeddings
def test_refused_records_are_not_described(domain, make):
    """A refusal has the same words for 41 records as for 4242, and shows no value."""
    few, many = said(domain.embed, make(41)), said(domain.embed, make(4242))
    assert few == many
    assert "73917" not in few
    assert not re.search(r"<U|dtype|datetime|\b41\b", few)


def test_a_text_of_any_length_is_described_alike():
    embed = EMBEDDINGS["marginals"].embed
    assert said(embed, [["a", "b"]]) == said(embed, [["a" * 37, "b"]])


@pytest.mark.parametrize(
    "domain",
    [
        domains.Marginals((2,) * 14, [range(14)]),
        domains.Products([domains.Prefix(2)] * 14, [tuple(range(14))]),
    ],
    ids=["marginals", "products"],
)
def test_too_many_records_are_not_counted_in_public(domain):
    few, many = (said(domain.embed, np.zeros((n, 14), dtype=int)) for n in (10_001, 20_002))
    assert few == many
    assert "at most 8192 records" in few


@pytest.mark.parametrize(
    "domain", [domains.LpBall(2, 2), domains.FiniteSet(np.eye(2))], ids=["ball", "points"]
)
def test_members_are_not_described_either(domain):
    for bad in (
        [[CANARY]],
        CANARY,
        [CANARY, "1"],
        [float(CANARY), np.nan],
        [[1], [2, int(CANARY)]],
        [10**400, 1],
    ):
        assert "73917" not in said(domain.contains, bad)
    assert said(domain.contains, np.zeros((41, 2))) == said(domain.contains, np.zeros((4242, 2)))
