"""The answer as an object: its covariance agrees with the dense matrix, and files return the same
bits.
"""

import dataclasses
import json
import math

import numpy as np
import pytest
from cases import one_test_of

import gaussnoise as gn
from gaussnoise import FiniteSet, Marginals
from gaussnoise.errors import (
    CertificateError,
    CovarianceError,
    DomainTooLargeError,
    OutputError,
    ParameterError,
)
from gaussnoise.noise.covariance import FactorCovariance

WEIGHTED = Marginals((2, 3, 1, 2), [(0, 1), (1, 3), (2,), ()], weights=[1.0, 0.7, 2.0, 5.0])
RANDOM = FiniteSet(
    np.random.default_rng(0).normal(size=(6, 3)) @ np.random.default_rng(1).normal(size=(3, 5))
)

NOISES = {
    "points, gamma": gn.gamma(RANDOM),
    "points, replace": gn.optimal_noise(RANDOM),
    "points, add-remove": gn.optimal_noise(RANDOM, neighbors="add-remove"),
    "one point": gn.gamma(FiniteSet([[3.0, 4.0]])),
    "huge": gn.gamma(FiniteSet(1e150 * RANDOM.points)),
    "tiny": gn.gamma(FiniteSet(1e-150 * RANDOM.points)),
    "marginals, gamma": gn.gamma(WEIGHTED),
    "marginals, add-remove": gn.optimal_noise(WEIGHTED, neighbors="add-remove"),
    "marginals, replace": gn.optimal_noise(WEIGHTED),
}
every = pytest.mark.parametrize("noise", NOISES.values(), ids=NOISES.keys())
MODERATE = [name for name in NOISES if name not in ("huge", "tiny")]  # entries with finite squares
finite_range = pytest.mark.parametrize("noise", [NOISES[name] for name in MODERATE], ids=MODERATE)


def explicit(covariance):
    """Return the dense matrix, table by table, from the definition of the residual noises."""
    if isinstance(covariance, FactorCovariance):
        L = covariance.scale * covariance.unit_factor
        return L @ L.T
    domain = covariance.domain
    total = np.zeros((domain.dim, domain.dim))
    for T, variance in covariance.variances.items():
        blocks = []
        for S, weight in zip(domain.subsets, domain.weights, strict=True):
            block = np.array([[weight if set(T) <= set(S) else 0.0]])
            for i, n in enumerate(domain.sizes):
                centering = np.eye(n) - 1 / n
                if i in S:
                    block = np.kron(block, centering if i in T else np.full((n, 1), 1 / n))
                elif i in T:
                    block = np.kron(block, np.zeros((1, n)))
            blocks.append(block)
        lift = np.concatenate(blocks)
        total += variance * lift @ lift.T
    return total


@finite_range
def test_dense_matrix(noise):
    M = noise.covariance.toarray()
    np.testing.assert_allclose(M, explicit(noise.covariance), atol=1e-12)
    np.testing.assert_array_equal(np.asarray(noise.covariance), M)
    assert noise.covariance.shape == M.shape == (noise.domain.dim,) * 2


@finite_range
def test_factor_diagonal_and_standard_deviation(noise):
    M = noise.covariance.toarray()
    L = noise.covariance.factor()
    np.testing.assert_allclose(L @ L.T, M, atol=1e-12)
    np.testing.assert_allclose(noise.covariance.diagonal(), M.diagonal(), atol=1e-12)
    np.testing.assert_allclose(noise.covariance.standard_deviation() ** 2, M.diagonal(), atol=1e-12)


@finite_range
@pytest.mark.parametrize("tail", [(), (1,), (4,)])
def test_products(noise, tail):
    x = np.random.default_rng(2).normal(size=(noise.domain.dim, *tail))
    np.testing.assert_allclose(noise.covariance @ x, noise.covariance.toarray() @ x, atol=1e-12)


@every
def test_products_check_the_shape(noise):
    for wrong in (np.ones(noise.domain.dim + 1), 1.0, np.ones((noise.domain.dim, 1, 1))):
        with pytest.raises(ParameterError, match="expected x of shape"):
            noise.covariance @ wrong


@every
def test_numpy_does_not_swallow_the_covariance(noise):
    with pytest.raises(TypeError):
        np.eye(noise.domain.dim) @ noise.covariance


@finite_range
def test_array_takes_a_dtype_and_is_always_new(noise):
    assert np.asarray(noise.covariance, dtype=np.float32).dtype == np.float32
    with pytest.raises(ValueError, match="always a new one"):
        noise.covariance.__array__(copy=False)  # as NumPy 2 calls it; NumPy 1 never does


def test_dense_arrays_that_would_not_fit_are_refused():
    covariance = gn.gamma(Marginals((2,) * 14, [range(14)])).covariance
    with pytest.raises(DomainTooLargeError, match="GB"):
        covariance.toarray()


@every
def test_gamma_is_the_error_of_the_stored_covariance(noise):
    assert float(noise) == noise.gamma
    assert noise.gamma == pytest.approx(noise.covariance.error(2), rel=1e-11, abs=0)
    assert noise.gamma >= noise.covariance.error(2)
    assert noise.gap == (noise.gamma / noise.gamma_lower - 1 if noise.gamma else 0)


@pytest.mark.parametrize("p", [2, 3, math.inf])
def test_error_is_the_norm_of_standard_deviations(p):
    covariance = NOISES["points, gamma"].covariance
    assert covariance.error(p) == pytest.approx(np.linalg.norm(covariance.standard_deviation(), p))


@every
def test_noise_is_frozen(noise):
    with pytest.raises(dataclasses.FrozenInstanceError):
        noise.gamma = 0.0


def test_stored_factor_is_a_read_only_copy():
    L = np.eye(2)
    covariance = FactorCovariance(L, 1.0)
    L[:] = 9
    np.testing.assert_array_equal(covariance.toarray(), np.eye(2))
    with pytest.raises(ValueError, match="read-only"):
        covariance.unit_factor[0, 0] = 1
    with pytest.raises(TypeError):
        NOISES["marginals, gamma"].covariance.variances[()] = 0.0


def test_gap_is_zero_for_one_point():
    assert NOISES["one point"].gap == 0
    assert float(NOISES["one point"]) == 0


def test_repr_shows_the_bracket_and_the_relation():
    text = repr(NOISES["points, add-remove"])
    assert "gamma_2, add-remove" in text
    assert "FiniteSet(6 points in R^5)" in text
    assert "gamma_2(K)" in repr(NOISES["marginals, gamma"])


# Files


def fields(noise):
    """Return everything in an answer, as bytes and plain values."""
    flat = {}
    for field in dataclasses.fields(noise):
        value = getattr(noise, field.name)
        own = dataclasses.fields(value) if dataclasses.is_dataclass(value) else ()
        parts = {part.name: getattr(value, part.name) for part in own} or {"": value}
        for name, part in parts.items():
            if hasattr(part, "items"):
                part = dict(part.items())
            elif dataclasses.is_dataclass(part):
                part = {k: v for k, v in vars(part).items()}
            elif isinstance(part, np.ndarray):
                part = (part.dtype, part.shape, part.tobytes())
            flat[field.name, name] = part
    return flat


@every
def test_files_bring_back_every_bit(noise, tmp_path):
    noise.save(tmp_path / "noise.any")
    assert fields(gn.OptimalNoise.load(tmp_path / "noise.any")) == fields(noise)


def test_a_save_to_a_string_path_keeps_the_name(tmp_path):
    NOISES["points, gamma"].save(str(tmp_path / "noise"))
    assert (tmp_path / "noise").exists()


def test_loaded_arrays_are_read_only(tmp_path):
    NOISES["points, gamma"].save(tmp_path / "noise.npz")
    loaded = gn.OptimalNoise.load(tmp_path / "noise.npz")
    assert not loaded.center.flags.writeable
    assert not loaded.certificate.points.flags.writeable


@pytest.mark.parametrize("name", ["nowhere.npz", "."])
def test_a_file_that_cannot_be_read_is_named(tmp_path, name):
    with pytest.raises(OutputError, match="load: cannot read") as caught:
        gn.OptimalNoise.load(tmp_path / name)
    assert str(tmp_path / name) in str(caught.value)


@pytest.fixture
def stored(tmp_path):
    NOISES["points, replace"].save(tmp_path / "noise.npz")
    return tmp_path / "noise.npz"


@pytest.mark.parametrize(
    "content", [b"", b"text", b"PK\x03\x04 no zip", b"\x93NUMPY\x01\x00", b"\x80\x04K\x01."]
)
def test_foreign_files_are_refused(tmp_path, content):
    (tmp_path / "foreign").write_bytes(content)
    with pytest.raises(CertificateError, match="foreign"):
        gn.OptimalNoise.load(tmp_path / "foreign")


def test_plain_arrays_are_refused(tmp_path):
    np.save(tmp_path / "array.npy", np.eye(2))
    np.savez(tmp_path / "arrays.npz", a=np.eye(2))
    for name in ("array.npy", "arrays.npz"):
        with pytest.raises(CertificateError):
            gn.OptimalNoise.load(tmp_path / name)


def test_truncated_files_are_refused(stored):
    content = stored.read_bytes()
    for length in range(0, len(content), 97):
        stored.write_bytes(content[:length])
        with pytest.raises(CertificateError):
            gn.OptimalNoise.load(stored)


def test_a_flipped_byte_is_refused_or_harmless(stored):
    content = stored.read_bytes()
    refused = 0
    for place in range(0, len(content), 23):
        stored.write_bytes(content[:place] + bytes([content[place] ^ 0x55]) + content[place + 1 :])
        try:
            assert fields(gn.OptimalNoise.load(stored)) == fields(NOISES["points, replace"])
        except CertificateError:
            refused += 1
    assert refused > 10


def edit(path, **changes):
    """Rewrite a stored answer; None removes the entry, a callable receives the old one."""
    with np.load(path) as file:
        arrays = dict(file)
    header = json.loads(str(arrays["header"]))
    for name, value in changes.items():
        target = header if name in header else arrays
        if value is None:
            del target[name]
        else:
            target[name] = value(target[name]) if callable(value) else value
    arrays["header"] = np.array(json.dumps(header))
    np.savez(path, **arrays)


def test_an_edit_that_changes_nothing_is_accepted(stored):
    edit(stored)
    assert float(gn.OptimalNoise.load(stored)) == float(NOISES["points, replace"])


@one_test_of(
    "change",
    [
        {"format": "gaussnoise.noise/0"},
        {"gamma": lambda g: 0.99 * g},
        {"gamma_lower": lambda g: 1.01 * g},
        {"sensitivity_squared": 0.5},
        {"sensitivity_squared": math.nan},
        {"scale": lambda s: 0.999 * s},
        {"factor": lambda L: 0.999 * L},
        {"domain.array0": lambda x: 1.001 * x},
        {"domain.array0": lambda x: np.full_like(x, np.nan)},
        {"certificate_weights": lambda w: w - w.mean()},
        {"certificate_weights": lambda w: w[1:]},
        {"center": None},
        {"factor": None},
        {"status": None},
        {"gamma": None},
        {"status": "PERFECT"},
        {"gamma": "much"},
        {"header": np.array("[]")},
        {"header": np.array("not json")},
    ],
    ids=" ".join,
)
def test_tampered_files_are_refused(stored, change):
    if "header" in change:
        with np.load(stored) as file:
            np.savez(stored, **(dict(file) | change))
    else:
        edit(stored, **change)
    with pytest.raises((CertificateError, CovarianceError)):
        gn.OptimalNoise.load(stored)


@pytest.mark.parametrize("neighbors", ["none", None, 3, ["replace"]])
def test_a_relation_that_is_none_is_refused_in_memory(neighbors):
    for noise in (
        *NOISES.values(),
        gn.optimal_noise(gn.LpBall(2, 2)),
        gn.gamma(gn.FiniteSet(np.eye(3))),
    ):
        with pytest.raises(CertificateError, match="neighbors"):
            dataclasses.replace(noise, neighbors=neighbors).verify()


@pytest.mark.parametrize(
    "change",
    [
        {"variances": lambda v: [[T, 0.999 * x] for T, x in v]},
        {"variances": lambda v: v[1:]},
        {"variances": lambda v: [[[9], 1.0], *v]},
        {
            "domain": lambda d: (
                d | {"fields": d["fields"] | {"weights": [2.0 * w for w in d["fields"]["weights"]]}}
            )
        },
        {"domain": lambda d: d | {"fields": d["fields"] | {"sizes": [-1]}}},
        {"domain": None},
    ],
    ids=" ".join,
)
def test_tampered_marginal_files_are_refused(tmp_path, change):
    path = tmp_path / "noise.npz"
    NOISES["marginals, add-remove"].save(path)
    edit(path, **change)
    with pytest.raises((CertificateError, CovarianceError)):
        gn.OptimalNoise.load(path)
