"""The verifier checks saved answers on listed points, and no changed one passes."""

import importlib
import json
import random
import re
import sys

import networkx as nx
import numpy as np
import pytest
from changed import changed, fault, leaves

import gaussnoise as gn
from gaussnoise import verifier
from gaussnoise.cli.app import run
from gaussnoise.verifier import optimality
from gaussnoise.verifier.optimality import Answer, nuclear

RNG = np.random.default_rng(11)
POINTS = RNG.normal(size=(9, 4))
PREFIX = np.tril(np.ones((6, 6)))
CORNERS = gn.FiniteSet(np.array([[0, 0], [1, 0], [0, 1], [1, 3]]))  # means are no integers


ANSWERS = {
    "prefix sums": lambda: gn.factorize(PREFIX, "mean").noise,
    "largest error": lambda: gn.factorize(PREFIX, "max").noise,
    "between": lambda: gn.factorize(PREFIX, 4.0).noise,
    "rows exchanged": lambda: gn.optimal_noise(gn.FiniteSet(POINTS)),
    "more queries than cells": lambda: gn.optimal_noise(
        gn.FiniteSet.from_workload(RNG.normal(size=(8, 3))), neighbors="add-remove"
    ),
    "categories": lambda: gn.optimal_noise(gn.FiniteSet(np.eye(5))),
    "around the points": lambda: gn.gamma(gn.FiniteSet(POINTS)),
    "around integers": lambda: gn.gamma(CORNERS),
    "large": lambda: gn.optimal_noise(gn.FiniteSet(1e120 * POINTS), neighbors="add-remove"),
    "small": lambda: gn.optimal_noise(gn.FiniteSet(1e-120 * POINTS)),
    "uneven": lambda: gn.optimal_noise(
        gn.FiniteSet(POINTS * [1, 1e-3, 1e3, 1e-6]), neighbors="add-remove"
    ),
}


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    place = tmp_path_factory.mktemp("answers")
    for name, answer in ANSWERS.items():
        answer().save(place / f"{name}.npz")
    return {name: place / f"{name}.npz" for name in ANSWERS}


@pytest.fixture(scope="module", params=["integers", "balls"])
def program(request):
    """The program that checks answers: the one by integers, and the one for large answers."""
    if request.param == "integers":
        return {}
    pytest.importorskip("flint", reason="python-flint is missing")
    return {"answer": importlib.import_module("gaussnoise.cli.balls").Balls}


def contents(path):
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    return json.loads(str(arrays.pop("header"))), arrays


def write(path, header, arrays):
    np.savez(path, header=np.array(json.dumps(header)), **arrays)


def of_the_header(header, arrays, rng):
    known = [x for x in leaves(header) if not re.fullmatch("/(method|steps|status)", x[0])]
    path, inside, key = rng.choice(known)
    before = inside[key]
    inside[key] = 3.0 if path == "/p" else changed(before, rng)  # p may be infinite
    return f"{path}: {before!r} became {inside[key]!r}"


def of_a_number(header, arrays, rng):
    """One number, by a part in a thousand or more: what is proven changes with it."""
    name = rng.choice([x for x in arrays if x not in ("trace", "center", "coordinate_weights")])
    array = arrays[name] = arrays[name].copy()
    place = tuple(rng.randrange(n) for n in array.shape)
    if array.dtype.kind == "i":
        array[place] = rng.choice([k for k in range(-1, 10) if k != array[place]])
    else:
        array[place] += rng.choice([-1, 1]) * rng.uniform(1e-3, 1) * (abs(array).max() or 1)
    return f"{name}{place}"


def of_arrays(header, arrays, rng):
    name, how = rng.choice([x for x in arrays if x != "trace"]), rng.randrange(3)
    if how == 0:
        del arrays[name]
    elif how == 1:
        arrays["more"] = arrays[name]
    else:
        arrays[name] = arrays[name][:-1]
    return f"array {name}, {how}"


def test_answers_pass(answers, program):
    for name, path in answers.items():
        lines = verifier.verified(path, **program)
        assert fault(path, **program) is None, (name, lines)
        assert [line[11:15] for line in lines[1:3]] == ["gamm", "gamm"]
        assert any(line.startswith("unchecked  status, method") for line in lines)
        assert verifier.verified(str(path), **program) == lines


@pytest.mark.parametrize("kind", ANSWERS)
def test_no_changed_answer_passes(kind, answers, tmp_path, program):
    rng, passed = random.Random(kind), []
    # with balls, the checks of the file itself are the same
    for change in [of_the_header, of_a_number, of_arrays] * (20 if program else 60):
        header, arrays = contents(answers[kind])
        what = change(header, arrays, rng)
        write(tmp_path / "changed.npz", header, arrays)
        if fault(tmp_path / "changed.npz", **program) is None:
            passed.append(what)
    assert passed == []


def test_a_bit_of_the_file_is_not_lost(answers, tmp_path):
    """Files are compressed, and have checksums."""
    content = bytearray(answers["prefix sums"].read_bytes())
    rng, known = random.Random(2), verifier.verified(answers["prefix sums"])
    for _ in range(100):
        place = rng.randrange(len(content))
        other = bytearray(content)
        other[place] ^= 1 << rng.randrange(8)
        (tmp_path / "bit.npz").write_bytes(other)
        lines = verifier.verified(tmp_path / "bit.npz")
        # a time, or the version that wrote it, is no part of the answer
        assert not lines[0].startswith("checked") or lines == known


@pytest.mark.parametrize("kind", ["prefix sums", "rows exchanged", "around the points"])
def test_too_little_noise_is_found_where_the_file_agrees_with_itself(
    kind, answers, tmp_path, program
):
    """A factor scaled down by 2⁻³⁰, and gamma with it: the change is covered no more."""
    header, arrays = contents(answers[kind])
    for name in ("scale", "gamma", "gamma_lower"):
        header[name] *= 1 - 2**-30
    write(tmp_path / "less.npz", header, arrays)
    assert fault(tmp_path / "less.npz", **program).startswith("FAILED: too little noise")


def test_less_noise_than_the_deviations_is_never_stated(answers, program, tmp_path):
    """The stated end is at least the proven one, by less than the 1e-11 that both may differ."""
    header, arrays = contents(answers["prefix sums"])
    header["gamma"] *= 1 - 5e-12
    write(tmp_path / "less.npz", header, arrays)
    assert fault(tmp_path / "less.npz", **program).startswith("FAILED: gamma is at least")


def test_a_lower_end_beyond_its_measure_is_found(answers, tmp_path, program):
    """A measure that proves less than is stated, however near."""
    header, arrays = contents(answers["prefix sums"])
    arrays["certificate_weights"] = arrays["certificate_weights"][::-1].copy()
    write(tmp_path / "other.npz", header, arrays)
    assert fault(tmp_path / "other.npz", **program).startswith("FAILED: gamma_lower is not proven")
    header, arrays = contents(answers["prefix sums"])
    header["gamma_lower"] = header["gamma"]
    write(tmp_path / "other.npz", header, arrays)
    assert fault(tmp_path / "other.npz", **program).startswith("FAILED: gamma_lower is not proven")


def test_a_direction_without_noise_is_found(answers, tmp_path, program):
    header, arrays = contents(answers["rows exchanged"])
    arrays["factor"] = arrays["factor"][:, :3]
    write(tmp_path / "flat.npz", header, arrays)
    assert fault(tmp_path / "flat.npz", **program) == "FAILED: noise that leaves a direction out"


def test_edges_of_a_policy_graph_are_all_covered(tmp_path, program):
    noise = gn.optimal_noise(gn.FiniteSet(POINTS[:4]), neighbors=nx.path_graph(4))
    noise.save(tmp_path / "path.npz")
    lines = verifier.verified(tmp_path / "path.npz", **program)
    assert lines[0].startswith("checked    3 changes, policy graph: covered")
    header, arrays = contents(tmp_path / "path.npz")
    arrays["policy_edges"] = np.vstack([arrays["policy_edges"], [[0, 3]]])
    write(tmp_path / "path.npz", header, arrays)
    assert fault(tmp_path / "path.npz", **program).startswith("FAILED: too little noise")


def test_the_first_bounds_of_a_method_may_be_infinite(tmp_path, program):
    """The trace is no part of the proof; every other array holds finite numbers."""
    noise = gn.optimal_noise(gn.FiniteSet(np.random.default_rng(0).normal(size=(70, 3))))
    noise.save(tmp_path / "pairs.npz")
    header, arrays = contents(tmp_path / "pairs.npz")
    assert np.isinf(arrays["trace"]).any()
    assert fault(tmp_path / "pairs.npz", **program) is None
    for name in ("factor", "certificate_weights"):
        changed = arrays[name].copy()
        changed.flat[0] = np.inf
        write(tmp_path / "other.npz", header, arrays | {name: changed})
        assert fault(tmp_path / "other.npz", **program) == f"FAILED: {name}.npy"


def test_too_many_pairs_are_not_begun(answers, tmp_path, program, monkeypatch):
    """They would take hours; records that are added or removed have no pairs."""
    monkeypatch.setattr(optimality, "_MOST_PAIRS", 20)  # nine points have 36
    found = {name: fault(answers[name], **program) for name in ("rows exchanged", "uneven")}
    assert found == {
        "rows exchanged": "UNKNOWN: no check of such a folder: too many points",
        "uneven": None,
    }
    said = verifier.verified(answers["categories"], **program)[0]  # five have ten, in a plane
    assert said.endswith("up to rounding outside its span"), said


def test_bodies_are_named_as_unknown(tmp_path):
    for domain, name in (
        (gn.LpBall(3, 4), "LpBall"),
        (gn.Marginals([2, 3], [(0, 1)]), "Marginals"),
    ):
        gn.optimal_noise(domain).save(tmp_path / f"{name}.npz")
        assert fault(tmp_path / f"{name}.npz").endswith(f"{name} has no list of points")


def test_large_answers_are_checked_in_balls_by_the_shell(
    answers, program, tmp_path, monkeypatch, capsys
):
    if not program:
        monkeypatch.setitem(sys.modules, "flint", None)
        monkeypatch.delitem(sys.modules, "gaussnoise.cli.balls", raising=False)
    monkeypatch.setattr(Answer.__init__, "__defaults__", (100,))  # as if six points were many
    path = str(answers["prefix sums"])
    status, said = run(["verify", path]), " ".join(capsys.readouterr().out.split())
    assert (status, "6 changes, add-remove: covered, in balls" in said) == (
        (0, True) if program else (1, False)
    )
    if not program:
        assert 'too many points; hint: pip install "gaussnoise[verify]"' in said
        return
    header, arrays = contents(answers["prefix sums"])
    write(tmp_path / "less.npz", header, arrays | {"factor": arrays["factor"] * (1 - 2**-30)})
    assert run(["verify", str(tmp_path / "less.npz")]) == 1
    assert "NOT VERIFIED: too little noise" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("seed", range(3))
def test_both_ends_in_balls_are_those_of_exact_integers(seed, tmp_path):
    """Random points in odd scales; the ends are compared as printed, to 12 digits."""
    pytest.importorskip("flint", reason="python-flint is missing")
    balls = importlib.import_module("gaussnoise.cli.balls").Balls
    rng = np.random.default_rng(seed)
    n, d = rng.integers(3, 30, size=2)
    points = rng.normal(size=(n, d)) * np.exp2(rng.integers(-20, 20, size=d))
    relation = ["replace", "add-remove", "replace"][seed]
    noise = gn.optimal_noise(gn.FiniteSet(points), neighbors=relation, tol=1e-3)
    noise.save(tmp_path / "one.npz")
    ends = [
        [float(x) for line in lines[1:3] for x in re.findall(r"[\d.]+(?:e[-+]\d+)?", line)]
        for lines in (
            verifier.verified(tmp_path / "one.npz", **how) for how in ({"answer": balls}, {})
        )
    ]
    assert len(ends[0]) == 4
    assert ends[0] == pytest.approx(ends[1], rel=1e-12)


def test_poor_doubles_prove_nothing_false(answers, tmp_path, monkeypatch):
    pytest.importorskip("flint", reason="python-flint is missing")
    balls = importlib.import_module("gaussnoise.cli.balls").Balls
    inverse, singular = np.linalg.pinv, np.linalg.svd
    header, arrays = contents(answers["prefix sums"])
    # three rounds with an inverse that is 5 % too small leave out .05³ = 1.25e-4 of every change
    monkeypatch.setattr(np.linalg, "pinv", lambda *given, **how: 0.95 * inverse(*given, **how))
    for name in ("scale", "gamma", "gamma_lower"):
        header[name] *= 1 - 1e-4
    write(tmp_path / "less.npz", header, arrays)
    assert fault(tmp_path / "less.npz", answer=balls) == (
        "FAILED: noise that leaves a direction out"
    )
    integers = np.random.default_rng(3).integers(-9, 9, size=(4, 6))
    norm = singular(integers, compute_uv=False).sum()
    assert (
        norm * (1 - 1e-12) <= balls.nuclear((integers << 40).tolist()) / 2**40 <= norm * (1 + 1e-12)
    )

    def scaled(share):
        return lambda A, **how: (share * (found := singular(A, **how))[0], *found[1:])

    for share in (-1.0, 0.5, 1.5, 1.9):
        monkeypatch.setattr(np.linalg, "svd", scaled(share))
        assert balls.nuclear(integers.tolist()) < norm
    monkeypatch.setattr(np.linalg, "svd", scaled(-4.0))  # −4 (3 − 16)/2 = 26 times the norm
    with pytest.raises(ValueError, match="singular values"):
        balls.nuclear(integers.tolist())


@pytest.mark.parametrize("shape", [(3, 8), (8, 3), (5, 5)])
def test_the_nuclear_norm_is_bounded_from_below(shape):
    rng = np.random.default_rng(shape)
    A = rng.integers(-(2**40), 2**40, shape)
    norm = np.linalg.norm(A.astype(float), "nuc")
    assert norm * (1 - 1e-12) < nuclear(A.tolist()) < norm * (1 + 1e-14)
    one = np.outer(A[:, 0] >> 15, A[0] >> 15)
    norm = np.linalg.norm(one.astype(float), "nuc")
    assert norm * (1 - 1e-9) < nuclear(one.tolist()) < norm * (1 + 1e-14)
