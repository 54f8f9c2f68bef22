"""Noise where squares of numbers are summed is made for rows: brute force over rows and pairs."""

import json
import math
import re

import cvxpy as cp
import numpy as np
import pyarrow as pa
import pytest
from browser import as_texts, node_lines

import gaussnoise as gn
from domains import BoxMoments
from gaussnoise import verifier
from gaussnoise.solvers.tables.orbits import Orbits
from gaussnoise.solvers.tables.strategies import SolvedStrategy
from gaussnoise.tables.counting.numbers import Joint, keys_and_sums
from gaussnoise.tables.planning.measure import sensitivity_in_units, units_off
from gaussnoise.tables.planning.rows import _UNITS_OFF
from gaussnoise.tables.schema import numbers as _numbers
from gaussnoise.tables.schema.numbers import STEPS
from gaussnoise.verifier import privacy

SQUARES = {"kind": "moments", "degrees": [0, 1, 2]}


def answers(plan, codes):
    """Return the exact integers that rows add to all that is measured, one line for each row.

    ``codes``: for every attribute the codes of the rows: 1 + category or step, or 0 for none.
    """
    attributes, unit, lines = plan.schema.attributes, plan.unit, len(codes[0])
    keys, sums = keys_and_sums(codes.__getitem__, attributes, None, unit)
    joint, mass = Joint.of(attributes, plan.tables.subsets), np.full(lines, unit)
    sums |= joint.sums(sums, unit)
    columns = []
    for T in plan.query.multipliers:
        numbers = tuple(i for i in T if attributes[i].is_summed)
        table = np.zeros((lines, *[attributes[i].size for i in T]), dtype=np.int64)
        parts = joint.spread(numbers, mass, sums) if numbers else [((), mass)]
        for cell, part in parts:
            own = dict(zip(numbers, cell, strict=True))
            places = [
                np.where(keys[i] > 0, own[i], attributes[i].size - 1) if i in own else codes[i] - 1
                for i in T
            ]
            np.add.at(table, (np.arange(lines), *places), part)
        answer, _ = plan.query.contrasted(plan.query.strategies_of(T), table, unit, first=1)
        columns.append(answer.reshape(lines, -1).astype(object) * plan.query.multipliers[T])
    return np.concatenate(columns, axis=1)


def random_plan(rng, neighbors):
    """A plan with moments of one to three numbers, in groups or not, of any size of noise."""
    count = int(rng.integers(1, 4))
    attributes = [gn.Attribute("sex", ["F", "M", "X"])]
    for k in range(count):
        low = float(rng.choice([-1.0, 0.0, -0.3, 20.0]))
        other = "none" if count == 1 and rng.random() < 0.5 else None
        base = SQUARES if k == 0 or rng.random() < 0.8 else None
        own = gn.Attribute(
            f"x{k}", clip=[low, low + 10 ** rng.uniform(-1, 4)], base=base, other=other
        )
        attributes.append(own)
    names = [f"x{k}" for k in range(count)]
    group = {} if rng.random() < 0.4 else {"sex": None}
    if attributes[1].other or any(a.base is None or not a.base.squares for a in attributes[1:]):
        asked = [("sex", *names), (names[0],)]
    else:
        asked = [group | {"+".join(names): "moments"}]
    privacy = gn.zCDP(10 ** rng.uniform(-8, 1))
    return gn.plan(gn.Schema(attributes), asked, privacy, neighbors=neighbors)


def rows_near(plan, rng, rows=None, size=600, reach=0.0):
    """Random rows, with ends and middles; or, near given ones, at most a share ``reach`` away."""
    codes = []
    for i, own in enumerate(plan.schema.attributes):
        if not own.is_summed:
            codes.append(rng.integers(1, own.size + 1, size) if rows is None else rows[i])
            continue
        if rows is None:
            step = rng.integers(0, STEPS + 1, size)
            ends = rng.choice([0, STEPS // 4, STEPS // 2, 3 * STEPS // 4, STEPS], size)
            code = 1 + np.where(rng.random(size) < 0.6, ends, step)
            codes.append(np.where(rng.random(size) < 0.2, 0, code) if own.other else code)
        else:
            moved = rows[i] + np.rint(rng.normal(0, reach * STEPS, size)).astype(np.int64)
            codes.append(np.where(rows[i] > 0, np.clip(moved, 1, STEPS + 1), 0))
    return [np.asarray(c, dtype=np.int64) for c in codes]


def largest_change(plan, rng):
    """The largest squared change found by random rows, or pairs, and search near the best."""
    codes = rows_near(plan, rng)
    A = answers(plan, codes)
    floats = A.astype(float)
    G = floats @ floats.T
    squares = np.diag(G)
    if plan.neighbors == "add-remove":
        k = int(squares.argmax())
        best, found = [c[[k]] for c in codes], int((A[k] * A[k]).sum())
    else:
        k, j = np.unravel_index((squares[:, None] + squares - 2 * G).argmax(), G.shape)
        best, found = [c[[k, j]] for c in codes], int(((A[k] - A[j]) ** 2).sum())
    for reach in np.geomspace(0.2, 1e-5, 12):
        pair, size = len(best[0]), 60
        near = [
            np.concatenate([b, c])
            for b, c in zip(
                best,
                rows_near(plan, rng, [np.tile(b, size) for b in best], pair * size, reach),
                strict=True,
            )
        ]
        A = answers(plan, near).reshape(size + 1, pair, -1)
        moved = A[:, 0] if pair == 1 else A[:, 0] - A[:, 1]
        lengths = (moved * moved).sum(axis=1)
        k = int(np.argmax(lengths))
        if lengths[k] > found:
            found, best = int(lengths[k]), [c[k * pair : (k + 1) * pair] for c in near]
    return found


@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
def test_no_row_and_no_pair_moves_the_integers_more_than_is_stated(neighbors):
    """The largest change found is at most the stated one, and nearly it: noise is not too large."""
    for seed in range(12):
        rng = np.random.default_rng(seed)
        plan = random_plan(rng, neighbors)
        stated = plan.query.query.sensitivity_squared
        share = largest_change(plan, rng) / stated
        assert 0.98 - 0.05 * (neighbors == "replace") <= share <= 1, seed


def test_the_curve_is_in_its_triangles_and_ends_of_it_are_reached():
    rng = np.random.default_rng(1)
    t = np.linspace(0, 1, 5001)
    for size in (3, 4):
        for _ in range(10):
            own = SolvedStrategy(rng.integers(-250, 250, (size - 1, size)), off=7)
            rows = np.zeros((size, len(t)))
            rows[:3] = (1 - t) ** 2, 2 * t * (1 - t), t**2
            rows = np.hstack([rows, np.eye(size)[:, 3:]])
            products = rows.T @ (own.contrasts.T @ own.contrasts) @ rows
            assert 0 <= own.square - np.diag(products).max() <= 1e-3 * own.farthest
            assert 0 <= products.min() - own.least <= 1e-3 * own.farthest
            # without the curve, every column counts
            assert SolvedStrategy(own.contrasts).square == own.farthest >= own.square


def test_units_off_the_curves_are_no_more_than_is_planned_for():
    """A row's units in all products of cells, against its exact share of them."""
    rng = np.random.default_rng(3)
    for sizes in ((3,), (3, 3), (2, 3), (3, 2), (3, 3, 3), (2, 3, 3), (2, 2, 3, 3), (3, 2, 2, 3)):
        unit, numbers = 2**10, tuple(range(len(sizes)))
        a = rng.integers(0, unit + 1, (len(sizes), 4000))
        sums = {f"a{i}": a[i] for i in numbers}
        sums |= {f"q{i}": a[i] ** 2 // unit for i in numbers if sizes[i] == 3}
        joint = Joint(dict(enumerate(sizes)), (numbers,) if len(sizes) > 1 else ())
        sums |= joint.sums(sums, unit)
        off = np.zeros(a.shape[1])
        for cell, part in joint.spread(numbers, np.full(a.shape[1], unit), sums):
            exact = np.full(a.shape[1], float(unit))
            for i, k in enumerate(cell):
                t = a[i] / unit
                exact *= (
                    ((1 - t) ** 2, 2 * t * (1 - t), t**2)[k] if sizes[i] == 3 else (1 - t, t)[k]
                )
            off += np.abs(part - exact)
        assert off.max() <= _UNITS_OFF / 2 * math.prod(sizes)


@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
@pytest.mark.parametrize("low", [0.0, -1.0])
def test_noise_of_two_numbers_is_near_the_best_for_their_moments(low, neighbors):
    """The reference is the certified optimum over the body of all moments."""
    names = [gn.Attribute(name, clip=[low, 1], base=SQUARES) for name in ("x", "y")]
    plan = gn.plan(gn.Schema(names), [{"x+y": "moments"}], gn.zCDP(0.5), neighbors=neighbors)
    best = gn.optimal_noise(BoxMoments([low] * 2, [1.0] * 2), neighbors=neighbors)
    lower, upper = plan.bracket
    most = {"add-remove": 1.012 - low * 0.04, "replace": 1.03 - low * 0.04}[neighbors]
    assert upper <= most * best.gamma
    assert lower <= best.gamma * (1 + 1e-6)
    assert plan.error == pytest.approx(upper, rel=1e-9)  # at rho = 1/2
    drawn = plan.query.variances
    for T, variance in plan._unit_covariance.variances.items():
        assert drawn[T] == pytest.approx(variance, rel=1e-3)


def least_errors(low):
    """The least errors of moments of two numbers, by semidefinite programs over 17 × 17 rows.

    With any noise; and if one contrast of their product is measured besides each number alone, with
    the longest row of all, or with the longest rows of both parts added.
    """
    t, middle = np.linspace(low, 1, 17), (low + 1) / 2
    x, y = (axis.ravel() for axis in np.meshgrid(t, t))
    rows, one = np.stack([x**0, x, y, x * x, x * y, y * y]), np.eye(6)

    def error(X, alone, rest):
        lengths = cp.sum(cp.multiply(rows, alone @ rows), axis=0)
        problem = cp.Problem(cp.Minimize(cp.tr_inv(X)), [lengths + rest <= 1])
        return math.sqrt(problem.solve(solver=cp.CLARABEL))

    free, share = cp.Variable((6, 6), PSD=True), cp.Variable(nonneg=True)
    numbers = one[:, [0, 1, 3]], one[:, [0, 2, 5]]
    alone = sum(S @ cp.Variable((3, 3), PSD=True) @ S.T for S in numbers)
    product = np.array([middle**2, -middle, -middle, 0, 1, 0])  # (x - middle) (y - middle)
    X = alone + share * np.outer(product, product)
    return error(free, free, 0), error(X, X, 0), error(X, alone, share * (1 - middle) ** 4)


def test_how_near_one_contrast_of_products_would_come():
    """The numbers of the book: products are measured by the contrasts of squares too."""
    for low, together, added in ((-1.0, 0.0086, 0.0189), (0.0, 0.0044, 0.0062)):
        best, *others = least_errors(low)
        exact = gn.optimal_noise(BoxMoments([low] * 2, [1.0] * 2), neighbors="add-remove")
        assert best == pytest.approx(exact.gamma, rel=2e-5)
        found = [other / best - 1 for other in others]
        assert found == pytest.approx([together, added], rel=0.02)


def test_only_numbers_with_growing_budgets_are_not_rounded():
    """The schema says which these are, as in the verifiers, not how a number is measured."""
    curve = SolvedStrategy(np.array([[-3, 0, 3], [2, -5, 2]]), off=21)
    sums, unit = SolvedStrategy(np.array([[0, 1]])), 2**10
    orbits, squares = Orbits(((0,), (1,))), {(): 4, (0,): 9, (1,): 25}
    M, V = 4 + 9 * curve.square + 25, 4 + 9 * curve.farthest + 25
    found = sensitivity_in_units(orbits, [curve, sums], squares, "add-remove", unit)
    assert found == unit**2 * M + 21 * unit * (M + V) + 21**2 * V


def test_units_are_off_by_the_cells_of_numbers_that_tables_join():
    """A number alone has three cells, also beside one in other tables."""
    attributes = [gn.Attribute(name, clip=[-1, 1], base=SQUARES) for name in "abcd"]
    for workload, cells in (
        ([("a", "b", "c"), "d"], 27),
        ([("a", "b"), ("c", "d")], 9),
        ([("a", "b"), ("b", "c")], 27),
        (["a", "b", "c", "d"], 3),
    ):
        plan = gn.plan(gn.Schema(attributes), workload, gn.zCDP(1e-4))
        assert units_off(plan.strategies) == _UNITS_OFF * cells
        found = largest_change(plan, np.random.default_rng(1))
        assert 0.95 < found / plan.query.query.sensitivity_squared <= 1


@pytest.mark.parametrize(
    ("workload", "known"),
    [
        ([("a", "b", "c"), "d"], True),
        ([("a", "b"), ("c", "d"), ("b", "c")], False),
        ([("a", "b"), ("b", "c"), ("c", "d")], False),
    ],
)
def test_more_cells_than_the_proof_takes_are_unknown(workload, known, tmp_path, monkeypatch):
    """Four numbers with squares have 81 products of cells, if tables join them."""
    attributes = [gn.Attribute(name, clip=[-1, 1], base=SQUARES) for name in "abcd"]
    monkeypatch.setattr(_numbers, "MOST_PARTS", 81)
    plan = gn.plan(gn.Schema(attributes), workload, gn.zCDP(0.5))
    plan.release(pa.table({name: [0.5, -2.0, 0.1] * 50 for name in "abcd"}), out=tmp_path / "out")
    ours = verifier.verified(tmp_path / "out")
    [theirs] = node_lines([as_texts(tmp_path / "out")])
    for lines in (ours, theirs):
        if known:
            assert verifier.verdict(lines).startswith("VERIFIED"), lines
        else:
            assert re.match("UNKNOWN.*too many numbers", lines[0]), lines


def test_budgets_that_grow_take_the_curve_too(tmp_path):
    """A number without an upper end, beside a table with squares: rows with and without it."""
    schema = gn.Schema(
        [gn.Attribute("x", clip=[-1, 1], base=SQUARES), gn.Attribute("pay", unit=1.0)]
    )
    privacy = gn.PerRecord(gn.zCDP(0.1), scale={"pay": 100})
    plan = gn.plan(schema, ["x", "pay"], privacy)
    x = np.linspace(1, STEPS + 1, 500).astype(np.int64)
    found = answers(plan, [x, np.ones(500, dtype=np.int64)])
    largest = max(int((row * row).sum()) for row in found)
    assert 0.5 <= largest / plan.query.query.sensitivity_squared <= 1
    plan.release(pa.table({"x": [0.5, -0.1] * 50, "pay": [10.0, 2.0] * 50}), out=tmp_path / "out")
    [theirs] = node_lines([as_texts(tmp_path / "out")])
    for lines in (verifier.verified(tmp_path / "out"), theirs):
        assert verifier.verdict(lines).startswith("VERIFIED"), lines


@pytest.mark.parametrize("persons", [False, True])
def test_folders_are_verified_and_read_again_with_the_same_noise(persons, tmp_path):
    names = [gn.Attribute(name, clip=[-1, 1], base=SQUARES) for name in ("x", "y")]
    more = {"person": "id", "rows_per_person": 2, "neighbors": "replace"} if persons else {}
    plan = gn.plan(gn.Schema(names), [{"x+y": "moments"}], gn.zCDP(0.5), **more)
    rows = pa.table({"x": [0.5, -2.0, 0.1] * 50, "y": [1.0, 0.0, -0.7] * 50, "id": [*range(150)]})
    plan.release(rows, out=tmp_path / "out")
    found = verifier.verified(tmp_path / "out")
    assert verifier.verdict(found).startswith("VERIFIED"), found
    again = gn.TableRelease.load(tmp_path / "out").query.query
    assert again.sensitivity_squared == plan.query.query.sensitivity_squared
    # contrasts that count every virtual cell as a row's would need more noise
    whole = [SolvedStrategy(own.contrasts) for own in plan.strategies]
    assert all(one.square > 2 * own.square for one, own in zip(whole, plan.strategies, strict=True))


def test_squares_of_weighted_rows_are_no_proof(tmp_path):
    """The proof is of whole rows: a part of a row may lie further from the curve."""
    plan = gn.plan(gn.Schema([gn.Attribute("x", clip=[-1, 1], base=SQUARES)]), ["x"], gn.zCDP(0.5))
    plan.release(pa.table({"x": [0.5, -2.0, 0.1] * 50}), out=tmp_path / "out")
    path = tmp_path / "out" / "release.json"
    record = json.loads(path.read_text(encoding="utf-8"))
    record["plan"]["weight"] = record["noise"]["unit"]["weight"] = {"column": "w", "most": 1.0}
    path.write_text(json.dumps(record), encoding="utf-8")
    with pytest.raises(ValueError, match="squares of weighted rows"):
        privacy.opened(tmp_path / "out").check()


@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
@pytest.mark.parametrize(("rows", "rho"), [(100, 0.01), (1000, 0.1)])
def test_large_noise_is_stated_as_it_is_drawn(rows, rho, neighbors):
    """With coarse units of rows, rounding takes up to half more noise than was planned."""
    names = [gn.Attribute(f"x{k}", clip=[-1, 1], base=SQUARES) for k in range(3)]
    persons = {"person": "id", "rows_per_person": rows, "neighbors": neighbors}
    plan = gn.plan(gn.Schema(names), [("x0", "x1", "x2")], gn.zCDP(rho), **persons)
    assert plan.unit < STEPS
    drawn, stated = plan.query.variances, plan._unit_covariance.variances
    ratios = [drawn[T] * 2 * plan.row_rho / stated[T] for T in drawn]
    assert max(ratios) == pytest.approx(1, rel=1e-12)
    assert min(ratios) > 0.98  # multipliers are integers of 2^6 and more


def test_a_target_is_met_by_the_noise_that_is_drawn():
    names = [gn.Attribute(f"x{k}", clip=[-1, 1], base=SQUARES) for k in range(3)]
    target = gn.Target(20000.0)
    plan = gn.plan(
        gn.Schema(names), [("x0", "x1", "x2")], targets=target, person="id", rows_per_person=1000
    )
    assert 0.95 < plan.target_ratio <= 1 + 1e-9
    drawn = plan.covariance.table_variance((0, 1, 2))
    assert 1.96 * math.sqrt(drawn.max()) <= 20000.0
