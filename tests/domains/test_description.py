"""describe and rebuild: every domain comes back unchanged, and other input is refused."""

import dataclasses
import json
import subprocess
import sys

import numpy as np
import pytest
from cases import one_test_of

from domains import (
    AbstractDomain,
    FiniteSet,
    InvalidDomainError,
    LpBall,
    Marginals,
    Polytope,
    TensorPower,
)
from domains.algebra.hulls import Hull
from domains.algebra.images import Scaled, Translate
from domains.algebra.products import Product
from domains.description import describe, rebuild


def assert_same(a, b):
    assert type(a) is type(b)
    if isinstance(a, AbstractDomain):
        for field in dataclasses.fields(a):
            assert_same(getattr(a, field.name), getattr(b, field.name))
    elif isinstance(a, tuple):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            assert_same(x, y)
    elif isinstance(a, np.ndarray):
        assert a.dtype == b.dtype
        assert a.shape == b.shape
        assert a.tobytes() == b.tobytes()
    else:
        assert a == b


def through_json(domain):
    tree, arrays = describe(domain)
    return json.loads(json.dumps(tree, allow_nan=False)), {
        name: array.copy() for name, array in arrays.items()
    }


def is_ours(domain):
    return not isinstance(domain, AbstractDomain) or (
        type(domain).__module__.startswith("domains.")
        and all(
            all(map(is_ours, value)) if isinstance(value, tuple) else is_ours(value)
            for value in (getattr(domain, field.name) for field in dataclasses.fields(domain))
        )
    )


def test_every_domain_comes_back_bit_for_bit(case):
    if not is_ours(case.domain):
        with pytest.raises(
            InvalidDomainError, match="a class that files have a name for, got Disc"
        ):
            describe(case.domain)
        return
    assert_same(rebuild(*through_json(case.domain)), case.domain)


def test_every_class_of_the_package_is_known_to_a_fresh_process(cases):
    ours = {type(case.domain).__name__ for case in cases if is_ours(case.domain)}
    program = (
        "import sys; from domains.description import class_described;"
        "sys.exit(' '.join(name for name in sys.argv[1:] if class_described(name) is None))"
    )
    asked = subprocess.run(
        [sys.executable, "-c", program, *ours, "Disc"], capture_output=True, text=True, check=False
    )
    assert len(ours) > 20
    assert asked.stderr.split() == ["Disc"]


def test_infinite_exponents_and_nested_tuples_survive():
    K = Product(
        (
            LpBall(2, np.inf),
            Marginals((2, 3), [(0, 1), (), (1,)], weights=[0.1, 1e-99, 3.0]),
            TensorPower(2, 3),
        )
    )
    assert_same(rebuild(*through_json(K)), K)


def test_arrays_are_those_of_the_domain():
    K = FiniteSet([[1.0, 2.0]])
    tree, arrays = describe(K)
    assert tree == {"type": "FiniteSet", "fields": {"points": {"array": "array0"}}}
    assert arrays == {"array0": K.points}


def test_deep_domains_are_refused_both_ways():
    K = LpBall(1, 2.0)
    for _ in range(60):
        K = Scaled(K, 2.0)
    with pytest.raises(InvalidDomainError, match="at most 50 levels"):
        describe(K)
    tree = describe(LpBall(1, 2.0))[0]
    for _ in range(5000):
        tree = {"type": "Scaled", "fields": {"body": tree, "factor": 2.0}}
    with pytest.raises(InvalidDomainError, match="at most 50 levels"):
        rebuild(tree, {})
    nested = []
    for _ in range(5000):
        nested = [nested]
    with pytest.raises(InvalidDomainError, match="at most 50 levels"):
        rebuild({"type": "Product", "fields": {"parts": nested}}, {})


BALL = {"type": "LpBall", "fields": {"dim": 2, "q": 2.0, "radius": 1.0}}


def ball(**changes):
    return {"type": "LpBall", "fields": BALL["fields"] | changes}


def node(name, **fields):
    return {"type": name, "fields": fields}


def test_the_forgeries_below_start_from_something_valid():
    assert_same(rebuild(BALL, {}), LpBall(2, 2.0))


@one_test_of(
    "tree",
    [
        None, 3, "LpBall", [], [BALL], {}, {"type": "LpBall"}, {**BALL, "more": 1},
        {"type": "LpBall", "fields": [2, 2.0, 1.0]},
        {"type": "AbstractDomain", "fields": {}},
        {"type": "int", "fields": {}},
        {"type": "domains.sets.finite.FiniteSet", "fields": {"points": {"array": "a"}}},
        {"type": "__class__", "fields": {}},
        {"type": ["LpBall"], "fields": {}},
        {"type": "LpBall", "fields": {"dim": 2, "q": 2.0}},
        ball(self=3), ball(more=3), ball(dim=0), ball(dim=2.5), ball(dim=True), ball(dim="2"),
        ball(dim=None),
        ball(q=0.5), ball(q={"float": "nan"}), ball(q={"float": 3.0}), ball(q={"float": ["inf"]}),
        ball(radius={"float": "inf"}),
        ball(radius=-1.0), ball(radius=10**400), ball(radius=BALL), ball(radius=[1.0]),
        ball(radius={"array": "a"}),
        ball(dim={"array": "missing"}), ball(dim={"array": ["a"]}), ball(dim={"array": "a",
        "b": 1}),
        node("FiniteSet", points={"array": "missing"}), node("FiniteSet",
        points={"array": "integers"}),
        node("FiniteSet", points={"array": "objects"}), node("FiniteSet", points={"array": "not "
        "an array"}),
        node("FiniteSet", points={"array": "nan"}), node("FiniteSet", points={"array": "vector"}),
        node("Polytope", vertices={"array": "half"}),
        node("Product", parts=[]), node("Product", parts=3), node("Product", parts=[3]),
        node("Product", parts=BALL),
        node("Product", parts={"array": "a"}), node("Hull", parts=[]), node("MinkowskiSum",
        parts=[BALL, 1.0]),
        node("Hull", parts=[BALL, ball(dim=3)]), node("DifferenceBody", body=3),
        node("DifferenceBody", body={"array": "a"}),
        node("Scaled", body=1.0, factor=2.0), node("Scaled", body=BALL, factor=0.0),
        node("Scaled", body=BALL, factor=BALL),
        node("Scaled", body=BALL, factor={"array": "number"}), node("Scaled", body=BALL,
        factor={"float": "inf"}),
        node("Scaled", body=[BALL], factor=1.0),
        node("Translate", body=BALL, shift={"array": "a"}), node("Translate", body=BALL,
        shift=BALL),
        node("LinearImage", matrix={"array": "vector"}, body=BALL), node("Kronecker", left=BALL,
        right=1),
        node("Marginals", sizes=[2], subsets=[[1]], weights=[1.0]),
        node("Marginals", sizes=2, subsets=[[0]], weights=[1.0]),
        node("Marginals", sizes=[2], subsets=[[0]], weights=[-1.0]),
        node("Marginals", sizes=[2], subsets=[[BALL]], weights=[1]),
        node("TensorPower", dim=10**6, order=10**6), node("TensorPower", base=2, order=2),
        node("SchattenBall", shape=[2], q=1.0, radius=1.0),
        node("Ellipsoid", M={"array": "a"}, center={"array": "vector"}),
    ],
    ids=lambda tree: str(tree)[:60],
)  # fmt: skip
def test_forged_descriptions_are_refused(tree):
    arrays = {
        "a": np.array([[1.0, 2.0, 3.0]]),
        "integers": np.eye(2, dtype=int),
        "objects": np.array([[object()]]),
        "not an array": [[1.0]],
        "nan": np.array([[np.nan]]),
        "vector": np.ones(2),
        "number": np.array(2.0),
        "half": np.eye(2, dtype=np.float16),
    }
    with pytest.raises(InvalidDomainError):
        rebuild(tree, arrays)


def test_reasons_are_ours_and_show_no_data():
    with pytest.raises(
        InvalidDomainError, match="make a LpBall: LpBall: expected 1 <= q"
    ) as caught:
        rebuild(ball(q=0.5), {})
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


def test_a_subclass_or_namesake_is_not_ours():
    class FiniteSet(AbstractDomain):
        dim = 1

        def _support_point(self, theta):
            return theta

        def _max_quadratic(self, form, center):
            raise NotImplementedError

    with pytest.raises(InvalidDomainError, match="hint: stored_as"):
        describe(Translate(FiniteSet(), np.ones(1)))


def test_rebuilt_arrays_are_private():
    tree, arrays = through_json(Hull((Polytope([[0.0, 1.0]]), LpBall(2, 2.0))))
    K = rebuild(tree, arrays)
    arrays["array0"][:] = 9
    np.testing.assert_array_equal(K.parts[0].vertices, [[0, 1]])
