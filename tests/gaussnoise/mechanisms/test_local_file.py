"""Files of local mechanisms come from servers that users do not trust: every message is private at
the ε that is shown, for all contents of the file.
"""

import copy
import dataclasses
import itertools
import json
import math
import pickle
import zipfile
from functools import cache

import numpy as np
import pytest
from cases import exponential, one_test_of

import gaussnoise as gn
from gaussnoise.errors import CertificateError, DataError, OutputError
from gaussnoise.mechanisms.local import _RANDOMIZERS
from gaussnoise.noise.covariance import FactorCovariance

DOMAINS = {
    "ball": gn.LpBall(3, 2),
    "moved box": gn.Zonotope(np.diag([1.0, 2.0]), center=[5.0, -1.0]),
    "triangle": gn.Polytope([[0.0, 0.0], [4.0, 1.0], [1.0, 2.0]]),
    "segment": gn.LpBall(1, 2),
    "points": gn.FiniteSet(np.eye(3)),
    "marginals": gn.Marginals((2, 3), [(0,), (0, 1)]),
    "moments": gn.TensorPower(2, 2),
}
HUGE = [0.0, 0.3, -1e300, 1e308, math.inf, -math.inf, math.nan, 5e-324]


def assert_private(local):
    """Check the odds of the codebook in use against the ε that is shown, and that every record
    makes a message.
    """
    code = local._codebook
    odds = code.chance * (code.size - code.closest) / ((1 - code.chance) * code.closest)
    assert f"LocalDP(epsilon={local.privacy.epsilon!r})" in repr(local)
    assert 1 <= odds <= exponential(local.privacy.epsilon)
    fresh = _RANDOMIZERS[local.randomizer](local.dim, local.privacy.epsilon)
    assert dataclasses.astuple(code) == dataclasses.astuple(fresh)
    records = list(itertools.islice(itertools.product(HUGE, repeat=local.domain.dim), 100))
    y = local._coordinates(records, "drop")
    assert (np.linalg.norm(y, axis=1) <= 1 + 1e-12).all()
    assert {len(m) for m in local.reports(records[:20], on_outside="drop")} == {local.message_bytes}


@cache
def mechanism(name):
    return gn.LocalMechanism(DOMAINS[name], gn.LocalDP(1.5), p=3)


@pytest.fixture(params=DOMAINS)
def saved(request, tmp_path):
    local = mechanism(request.param)
    local.save(tmp_path / "local.npz")
    return local, tmp_path / "local.npz"


def test_what_was_saved_is_loaded(saved):
    local, path = saved
    again = gn.LocalMechanism.load(path)
    assert repr(again.privacy) == repr(local.privacy)
    assert (again.p, again.randomizer, again.dim, again._label) == (
        3,
        "privunit",
        local.dim,
        local._label,
    )
    np.testing.assert_array_equal(again._whitening, local._whitening)
    record = local.domain.support_point(np.ones(local.domain.dim))
    answer = local.aggregate([again.report(record) for _ in range(20)])
    assert answer.n == 20
    np.testing.assert_array_equal(
        answer.standard_deviation, again.aggregate([local.report(record)] * 20).standard_deviation
    )
    assert_private(again)


def test_files_hold_parameters_only(saved):
    with zipfile.ZipFile(saved[1]) as file:
        names = file.namelist()
        assert not any(file.read(name).startswith(b"\x80") for name in names)
    known = (
        "header",
        "center",
        "factor",
        "trace",
        "certificate",
        "coordinate",
        "domain",
        "table",
        "pattern",
        "tensor",
    )
    assert all(name.startswith(known) for name in names)


@pytest.mark.parametrize("randomizer", ["privunitg", "point-release", "randomized-response"])
def test_every_randomizer_is_kept(randomizer, tmp_path):
    gn.LocalMechanism(gn.LpBall(1, 2), gn.LocalDP(0.3), randomizer=randomizer).save(
        tmp_path / "local.npz"
    )
    again = gn.LocalMechanism.load(tmp_path / "local.npz")
    assert (again.randomizer, again.privacy) == (randomizer, gn.LocalDP(0.3))
    assert_private(again)


# Hostile files.


def rewrite(path, change):
    """Give header and arrays to ``change``, and write its result."""
    with np.load(path) as file:
        arrays = dict(file)
    header = json.loads(str(arrays.pop("header")))
    change(header, arrays)
    np.savez(path, header=np.array(json.dumps(header)), **arrays)


def scaled(name, factor):
    def change(header, arrays):
        target = header if name in header else arrays
        if name in target:
            target[name] = target[name] * factor

    return change


def put(**values):
    return lambda header, arrays: header.update(values)


def noisier(header, arrays):
    """Make a consistent but useless file: everything is a thousand times as large."""
    header["scale"] = header.get("scale", 1.0) * 1000
    header["gamma"] *= 1000 * (1 + 1e-9)
    header["gamma_lower"] /= 1000


HOSTILE = {
    "epsilon x": put(epsilon="1.0"),
    "epsilon true": put(epsilon=True),
    "epsilon nan": put(epsilon=math.nan),
    "epsilon inf": put(epsilon=math.inf),
    "epsilon 0": put(epsilon=0.0),
    "epsilon < 0": put(epsilon=-1.0),
    "epsilon tiny": put(epsilon=1e-12),
    "epsilon large": put(epsilon=699.0),
    "epsilon huge": put(epsilon=1e300),
    "epsilon list": put(epsilon=[1.0]),
    "randomizer": put(randomizer="open"),
    "randomizer list": put(randomizer=["privunit"]),
    "response": put(randomizer="randomized-response"),
    "codebook": put(codebook={"hits": 1, "bits": 0}, _codebook=7, hits=2**300, pairs=1, closest=1),
    "p": put(p=1.0),
    "p text": put(p="2"),
    "not shifted": put(shifted=False),
    "sums": put(neighbors="add-remove"),
    "less noise": scaled("factor", 0.1),
    "no noise": scaled("factor", 0.0),
    "least noise": scaled("scale", 1e-300),
    "more noise": scaled("scale", 1e300),
    "other center": scaled("center", 3.0),
    "far center": lambda header, arrays: arrays.update(
        center=np.full_like(arrays["center"], 1e300)
    ),
    "center nan": lambda header, arrays: arrays.update(
        center=np.full_like(arrays["center"], math.nan)
    ),
    "factor nan": lambda header, arrays: arrays.update(factor=np.full((3, 3), math.nan)),
    "wide factor": lambda header, arrays: arrays.update(
        factor=np.hstack([arrays.get("factor", np.eye(3))] * 9)
    ),
    "no factor": lambda header, arrays: arrays.pop("factor", None),
    "no center": lambda header, arrays: arrays.pop("center", None),
    "tiny domain": put(domain={"type": "LpBall", "fields": {"dim": 3, "q": 2, "radius": 1e-200}}),
    "huge domain": put(domain={"type": "LpBall", "fields": {"dim": 3, "q": 2, "radius": 1e200}}),
    "wide domain": put(domain={"type": "LpBall", "fields": {"dim": 10**9, "q": 2, "radius": 1.0}}),
    "no domain": put(domain=None),
    "noisier": noisier,
    "turned": lambda header, arrays: arrays.update(
        {
            name: np.ascontiguousarray(array[:, ::-1])
            for name, array in arrays.items()
            if name == "factor"
        }
    ),
}


@pytest.mark.parametrize("change", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_files_are_refused_or_private(saved, change):
    _, path = saved
    rewrite(path, change)
    try:
        local = gn.LocalMechanism.load(path)
    except (CertificateError, OutputError):
        return
    assert_private(local)


@pytest.mark.parametrize(
    ("name", "shown"), [("noisier", 1.5), ("epsilon large", 699.0), ("codebook", 1.5)]
)
def test_some_hostile_files_are_read(tmp_path, name, shown):
    """They cost the server its accuracy, or show the ε that they ask for."""
    mechanism("triangle").save(tmp_path / "local.npz")
    rewrite(tmp_path / "local.npz", HOSTILE[name])
    local = gn.LocalMechanism.load(tmp_path / "local.npz")
    assert local.privacy == gn.LocalDP(shown)
    assert_private(local)


@one_test_of("scale", [1e-300, 1e-160, 1.0, 1e160, 1e300])
@one_test_of("center", [0.0, 1e-300, 1e300, -1e308])
def test_privacy_needs_nothing_from_the_noise(scale, center):
    """Privacy does not need even what verification checks: with any noise messages are private."""
    honest = gn.gamma(gn.LpBall(3, 2))
    factor = FactorCovariance(
        np.array([[1.0, 1e-200, 0.0], [0.0, 1.0, 1e200], [1e-308, 0.0, 1.0]]), scale
    )
    noise = dataclasses.replace(honest, covariance=factor, center=np.full(3, center))
    local = gn.LocalMechanism._of(noise, gn.LocalDP(1.5), "privunit")
    assert_private(local)
    assert len(local.report([0.6, 0.0, 0.8])) == local.message_bytes


# Pickles and copies.


@pytest.mark.parametrize(
    "again", [lambda x: pickle.loads(pickle.dumps(x)), copy.copy, copy.deepcopy]
)
def test_a_codebook_put_in_its_place_does_not_travel(again):
    local = gn.LocalMechanism(gn.LpBall(3, 2), gn.LocalDP(1.0))
    before = local._label
    code = local._codebook
    vars(local)["_codebook"] = dataclasses.replace(code, hits=2**code.bits - 1)
    vars(local)["_whitening"] = np.zeros((3, 3))
    found = again(local)
    assert_private(found)
    assert found._label == before
    np.testing.assert_allclose(found._whitening @ found._factor.unit_factor, np.eye(3), atol=1e-12)


# Records outside.


@pytest.mark.parametrize("domain", DOMAINS.values(), ids=DOMAINS.keys())
def test_dropped_records_are_messages_about_nothing(domain):
    local = gn.LocalMechanism(domain, gn.LocalDP(2.0))
    inside = domain.support_point(np.ones(domain.dim))
    assert local._coordinates([inside], "drop").any()
    for value in (1e9, -1e308, math.nan, math.inf):
        for place in range(domain.dim):
            outside = np.array(inside)
            outside[place] = value
            y = local._coordinates([inside, outside], "drop")
            np.testing.assert_allclose(y[0], local._coordinates([inside], "drop")[0], atol=1e-12)
            assert not y[1].any()
            with pytest.raises(DataError):
                local.report(outside)


def test_row_indices_out_of_range_are_dropped():
    local = gn.LocalMechanism(gn.FiniteSet(np.eye(3)), gn.LocalDP(2.0))
    y = local._coordinates(np.array([0, 3, -1, 2], dtype=np.int64), "drop")
    np.testing.assert_array_equal(y.any(axis=1), [True, False, False, True])
    assert len(local.report(np.uint64(2**64 - 1), on_outside="drop")) == local.message_bytes


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_projected_records_are_never_refused(bad):
    box = DOMAINS["moved box"]
    local = gn.LocalMechanism(box, gn.LocalDP(2.0))
    y = local._coordinates([[bad, 0.0], [0.0, bad], [5.0, -1.0], [1e308, -1e308]], "project")
    np.testing.assert_allclose(y[:2], y[[2, 2]])  # at the center
    assert np.linalg.norm(y[3]) > 0.5


def test_the_hint_is_not_to_unpickle():
    local = gn.LocalMechanism(gn.LpBall(3, 2), gn.LocalDP(1.0))
    with pytest.raises(DataError) as caught:
        local.aggregate([b"something else"])
    assert "pickle" not in str(caught.value)
    assert "save() one mechanism and load() it" in str(caught.value)
