import dataclasses
import functools
import itertools
import math
import re

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.backends.backend_agg import FigureCanvasAgg

import gaussnoise as gn
from gaussnoise.errors import DomainTooLargeError, ParameterError
from gaussnoise.noise.convergence import plot_convergence
from gaussnoise.noise.covariance import FactorCovariance
from gaussnoise.noise.plots import plot_noise
from gaussnoise.noise.shadow import marginal_points

POINTS = np.array([[0.0, 0.0], [3.0, 1.0], [1.0, 2.0], [2.5, 2.5], [1.0, -0.5]])
SPACE = np.random.default_rng(0).normal(size=(12, 4)) * [1.0, 2.0, 0.5, 3.0]
TABLES = gn.Marginals((3, 2, 4), [(0, 1), (0, 2), (2,), ()], weights=[1.0, 0.5, 2.0, 1.5])
COMPASS = np.array([[math.cos(t), math.sin(t)] for t in np.linspace(0, 2 * np.pi, 73)])
CHORD = 1e-4  # relative amount by which polygons of 360 sides fall short of ellipses


class Disc(gn.domains.AbstractDomain):
    """The unit disc, with an oracle that proves only ``slack`` times the true value."""

    dim = 2
    is_symmetric = True

    def __init__(self, slack=1.0):
        self.slack = slack

    def _support_point(self, theta):
        return theta / (np.linalg.norm(theta) or 1.0)

    def _max_quadratic(self, form, center):
        values, axes = np.linalg.eigh(form)
        x = axes[:, -1] * (1.0 if axes[:, -1] @ form @ center <= 0 else -1.0)
        upper = (values[-1] ** 0.5 + (center @ form @ center) ** 0.5) ** 2
        return gn.domains.QuadraticMax(x, (x - center) @ form @ (x - center), self.slack * upper)


def drawn(figure, dpi=40):
    """Return the picture after a coarse rendering, in which warnings are errors."""
    canvas, own = FigureCanvasAgg(figure), figure.dpi
    figure.set_dpi(own if dpi == "figure" else dpi)
    canvas.draw()
    figure.set_dpi(own)
    assert np.ptp(canvas.buffer_rgba()) > 0
    return figure


def texts(figure):
    return " | ".join(
        t.get_text() for t in figure.findobj(lambda artist: hasattr(artist, "get_text"))
    )


def labelled(figure, start):
    """Return vertices of the item whose legend starts with ``start``, shape (k, 2)."""
    handles, labels = figure.axes[0].get_legend_handles_labels()
    ((handle, label),) = [
        (h, t) for h, t in zip(handles, labels, strict=True) if t.startswith(start)
    ]
    if hasattr(handle, "get_offsets"):
        return np.asarray(handle.get_offsets()), label
    return (handle.get_xy() if hasattr(handle, "get_xy") else handle.get_xydata()), label


def covered(noise):
    """Return everything the noise covers, by listing it."""
    points = noise.domain.to_finite_set().points
    if noise.shifted:
        rows = points
    elif isinstance(noise.neighbors, gn.results.PolicyGraph):
        rows = [
            sign * (points[i] - points[j]) for i, j in noise.neighbors.edges for sign in (1, -1)
        ]
    elif noise.neighbors == "replace":
        rows = [x - y for x, y in itertools.product(points, repeat=2)]
    else:
        rows = np.concatenate([points, -points])
    return np.asarray(rows)


def reaches(points, theta):
    return (points @ theta).max(axis=0)


def policy(count):
    return nx.path_graph(count)


ANSWERS = {
    "replace": lambda: gn.optimal_noise(gn.FiniteSet(POINTS)),
    "add-remove": lambda: gn.optimal_noise(gn.FiniteSet(POINTS), neighbors="add-remove"),
    "shift": lambda: gn.gamma(gn.FiniteSet(POINTS)),
    "largest error": lambda: gn.gamma(gn.FiniteSet(POINTS), p=math.inf),
    "policy": lambda: gn.optimal_noise(gn.FiniteSet(POINTS), neighbors=policy(5)),
    "space, replace": lambda: gn.optimal_noise(gn.FiniteSet(SPACE), p=4),
    "space, add-remove": lambda: gn.optimal_noise(
        gn.FiniteSet(SPACE), neighbors="add-remove", p=math.inf
    ),
    "space, shift": lambda: gn.gamma(gn.FiniteSet(SPACE)),
    "space, policy": lambda: gn.optimal_noise(gn.FiniteSet(SPACE), neighbors=policy(12)),
    "tables, replace": lambda: gn.optimal_noise(TABLES),
    "tables, add-remove": lambda: gn.optimal_noise(TABLES, neighbors="add-remove"),
    "tables, shift": lambda: gn.gamma(TABLES),
    "tables, policy": lambda: gn.optimal_noise(TABLES, neighbors=policy(24)),
    "flat": lambda: gn.optimal_noise(gn.FiniteSet([[0.0, 0.0], [1.0, 2.0], [2.0, 4.0]])),
    "one point": lambda: gn.gamma(gn.FiniteSet([[1.0, 2.0]])),
}


@pytest.fixture(scope="module", params=ANSWERS)
def noise(request):
    return ANSWERS[request.param]()


@pytest.fixture(scope="module")
def picture(noise):
    """Return the noise on a plane, drawn when first asked for."""
    return functools.cache(lambda axes: plot_noise(noise, axes))


@pytest.fixture(scope="module")
def plain():
    return ANSWERS["replace"]()


def planes(noise):
    return [(0, 1), (1, 0), (noise.domain.dim - 1, 0)]


def test_the_region_is_the_hull_of_what_is_covered(noise, picture):
    for axes in planes(noise):
        outline, label = labelled(picture(axes), "convex hull of")
        expected = covered(noise)[:, axes]
        assert ("K − K" in label) == (noise.neighbors == "replace" and not noise.shifted)
        for theta in COMPASS:
            assert reaches(outline, theta) == pytest.approx(
                reaches(expected, theta), abs=1e-3 * np.abs(expected).max()
            )
            # nothing is drawn that is not covered
            assert reaches(outline, theta) <= reaches(expected, theta) + 1e-12


def test_the_points_are_what_is_covered(noise, picture):
    for axes in planes(noise):
        points, _ = labelled(
            picture(axes), "its points" if noise.domain.dim == 2 else "projections of"
        )
        expected = np.unique(np.round(covered(noise)[:, axes], 9) + 0.0, axis=0)
        assert np.unique(np.round(points, 9) + 0.0, axis=0) == pytest.approx(expected)


def test_the_ellipse_is_the_projected_covariance_about_the_center(noise, picture):
    M = noise.covariance.toarray()
    for axes in planes(noise):
        ellipse, _ = labelled(picture(axes), "optimal noise")
        block, center = M[np.ix_(axes, axes)], noise.center[list(axes)]
        for theta in COMPASS:
            size = math.sqrt(max(theta @ block @ theta, 0.0))
            assert reaches(ellipse - center, theta) == pytest.approx(
                size, rel=CHORD, abs=1e-6 * noise.gamma
            )


def test_the_drawn_ellipse_contains_the_drawn_set(noise, picture):
    for axes in planes(noise):
        assert contained(picture(axes), noise)


def contained(figure, noise):
    outline, _ = labelled(figure, "convex hull of")
    ellipse, _ = labelled(figure, "optimal noise")
    return all(reaches(ellipse, t) >= reaches(outline, t) - CHORD * noise.gamma for t in COMPASS)


def test_a_covariance_that_is_too_small_shows(plain):
    M = plain.covariance
    smaller = dataclasses.replace(plain, covariance=FactorCovariance(M.unit_factor, 0.98 * M.scale))
    assert not contained(plot_noise(smaller), smaller)


def test_the_ball_is_the_least_around_the_center(noise, picture):
    rows = covered(noise)
    radius = np.linalg.norm(rows - noise.center, axis=1).max()
    ball, label = labelled(picture((0, 1)), "plain spherical noise")
    distances = np.linalg.norm(ball - noise.center[:2], axis=1)
    assert distances == pytest.approx(np.full(361, radius), rel=1e-9, abs=1e-9)
    assert f"radius {radius:.3g}" in label
    if noise.gamma > 0:
        times = radius * noise.domain.dim ** (1 / noise.p) / noise.gamma
        assert f"{times:.2f} times the error" in label
        assert times >= 1 - noise.gap


def test_areas_of_the_certificate_are_its_weights():
    for name in ("replace", "add-remove", "shift", "policy", "largest error"):
        noise = ANSWERS[name]()
        collection = plot_noise(noise).axes[0].collections[0]
        areas = dict(
            zip(
                map(tuple, np.round(collection.get_offsets(), 6) + 0.0),
                collection.get_sizes(),
                strict=True,
            )
        )
        signs = (1,) if noise.shifted else (1, -1)
        share = {
            tuple(np.round(sign * x, 6) + 0.0): w / len(signs)
            for x, w in zip(noise.certificate.points, noise.certificate.weights, strict=True)
            for sign in signs
        }
        scale = max(areas.values()) / max(share.values())
        assert all(
            area == pytest.approx(scale * share[point], rel=1e-6) for point, area in areas.items()
        )
        # points that are not drawn are too small to see
        assert sum(share[point] for point in areas) > 0.999 * sum(share.values())


def test_weights_that_share_a_projection_are_added():
    noise = gn.optimal_noise(gn.FiniteSet(np.eye(6)))
    collection = plot_noise(noise, (2, 4)).axes[0].collections[0]
    areas = {
        tuple(np.round(x) + 0.0): a
        for x, a in zip(collection.get_offsets(), collection.get_sizes(), strict=True)
    }
    # counts of 30 signed differences of 6 basis vectors
    counts = {(0, 0): 12, (1, 0): 4, (-1, 0): 4, (0, 1): 4, (0, -1): 4, (1, -1): 1, (-1, 1): 1}
    assert areas == pytest.approx(
        {point: max(areas.values()) * n / 12 for point, n in counts.items()}, rel=1e-3
    )


@pytest.mark.parametrize(
    ("name", "told"), [("replace", "±2 points"), ("shift", "4 points"), ("flat", "±1 point")]
)
def test_the_legend_counts_the_points_that_matter(name, told):
    label = labelled(plot_noise(ANSWERS[name]()), "certificate")[1]
    assert label.endswith(f" on {told}")


def test_certificates_without_points_are_skipped_aloud():
    figure = drawn(plot_noise(ANSWERS["tables, add-remove"]()))
    assert "uniform on all records, not drawn" in texts(figure)
    assert not figure.axes[0].collections


def test_unknown_certificates_are_named(plain):
    class Tensor(gn.results.Certificate):
        def lower_bound(self):
            return 0.0

        def spectrum(self):
            return np.zeros(1), np.ones(1)

    figure = drawn(plot_noise(dataclasses.replace(plain, certificate=Tensor())))
    assert "certificate: Tensor, which lists no points" in texts(figure)


def test_the_title_says_what_was_asked(noise, picture):
    title = picture((0, 1)).axes[0].get_title()
    assert f"p = {'∞' if noise.p == math.inf else f'{noise.p:g}'}" in title
    if noise.shifted:
        assert "least ellipsoid around K" in title
    elif noise.neighbors == "replace":
        assert "one record replaced" in title
    elif noise.neighbors == "add-remove":
        assert "one record added or removed" in title
    else:
        assert str(noise.neighbors) in title
    assert (f"projected from R^{noise.domain.dim}" in title) == (noise.domain.dim > 2)


@pytest.mark.parametrize("tol", [0.3, 1e-2, 1e-6, 1e-9])
def test_the_bracket_is_rounded_outwards(tol):
    noise = gn.optimal_noise(gn.FiniteSet(SPACE), tol=tol)
    title = plot_noise(noise).axes[0].get_title()
    low, high = map(float, re.search(r"(\S+) ≤ γ ≤ (\S+),", title).groups())
    assert low <= noise.gamma_lower <= noise.gamma <= high
    # no meaningless digits, and no bracket that rounding made much wider
    assert high / low - 1 <= 1.3 * noise.gap + 2e-9
    assert f"gap {noise.gap:.1e}" in title


def test_nothing_to_protect_is_drawn():
    figure = drawn(plot_noise(gn.optimal_noise(gn.FiniteSet([[1.0, 2.0]]))))
    assert "γ = 0" in figure.axes[0].get_title()
    assert "times the error" not in texts(figure)


def test_scales_are_equal_and_the_legend_is_below_the_picture(noise):
    figure = drawn(plot_noise(noise), "figure")
    (axes,) = figure.axes
    assert axes.get_aspect() == 1
    assert axes.get_legend().get_window_extent().y1 < axes.xaxis.get_label().get_window_extent().y0
    assert axes.get_legend().get_window_extent().y0 >= 0
    assert axes.title.get_window_extent().y1 <= figure.bbox.y1
    assert axes.yaxis.get_label().get_window_extent().x0 >= 0


@pytest.mark.parametrize(
    "axes", [(0, 0), (0, 2), (-1, 0), (0,), (0, 1, 1), (0.0, 1.0), (True, 0), "01", 3, None]
)
def test_axes_must_be_two_coordinates(plain, axes):
    with pytest.raises(
        ParameterError,
        match=r"expected axes=\(i, j\), two different coordinates of 0..1, .*hint",
    ):
        plot_noise(plain, axes)


def test_numpy_integers_are_coordinates(plain):
    ellipse = labelled(plot_noise(plain, tuple(np.arange(2))), "optimal noise")[0]
    assert np.array_equal(ellipse, labelled(plot_noise(plain), "optimal noise")[0])


@pytest.mark.parametrize(
    "find", [gn.optimal_noise, lambda K: gn.optimal_noise(K, neighbors="add-remove"), gn.gamma]
)
def test_one_dimension_is_drawn_as_intervals(find):
    noise = find(gn.FiniteSet([[0.0], [1.0], [4.0]]))
    figure = drawn(plot_noise(noise))
    outline, ellipse, ball = (sorted(line.get_xdata()) for line in figure.axes[0].lines[2:5])
    expected = covered(noise)
    assert outline == [expected.min(), expected.max()]
    assert ellipse == pytest.approx(outline, abs=1e-5)
    assert ball == pytest.approx(outline, abs=1e-5)
    assert ellipse[0] <= outline[0] + 1e-12
    assert outline[1] <= ellipse[1] + 1e-12
    assert "1.00 times the error" in texts(figure)
    assert sorted(figure.axes[0].lines[5].get_xdata()) == sorted(set(expected.ravel()))
    with pytest.raises(ParameterError, match=r"expected no axes for a domain in R\^1"):
        plot_noise(noise, (0, 0))


@pytest.mark.parametrize("shifted", [True, False])
def test_a_domain_of_ones_own_is_traced_by_its_support_points(shifted):
    square = gn.FiniteSet([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]])
    base = gn.gamma(square) if shifted else gn.optimal_noise(square, neighbors="add-remove")
    noise = dataclasses.replace(base, domain=Disc())
    figure = drawn(plot_noise(noise))
    outline, _ = labelled(figure, "K" if shifted else "convex hull of K ∪ −K")
    assert np.linalg.norm(outline, axis=1) == pytest.approx(1)
    assert len(outline) >= 360
    assert "points" not in labelled(figure, "K" if shifted else "convex hull")[1]
    assert "radius 1, 1.00 times the error" in texts(figure)


def test_an_oracle_that_proves_less_gives_a_range_of_errors():
    base = gn.gamma(gn.FiniteSet([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]]))
    figure = plot_noise(dataclasses.replace(base, domain=Disc(slack=1.44)))
    ball, label = labelled(figure, "plain")
    assert np.linalg.norm(ball, axis=1) == pytest.approx(1.2)
    assert label.endswith("radius 1.2, 1.00 to 1.20 times the error")


@pytest.mark.parametrize("failure", [DomainTooLargeError, None])
def test_a_ball_that_cannot_be_bounded_is_skipped_aloud(failure):
    class Unbounded(Disc):
        def _max_quadratic(self, form, center):
            if failure:
                raise failure("too many")
            return gn.domains.QuadraticMax(np.zeros(2), 0.0, math.inf)

    base = gn.gamma(gn.FiniteSet([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]]))
    figure = drawn(plot_noise(dataclasses.replace(base, domain=Unbounded())))
    ball, label = labelled(figure, "plain spherical noise")
    assert len(ball) == 0
    assert label.endswith("no bound at this size")


def test_a_ball_much_larger_than_the_rest_leaves_the_frame():
    noise = gn.optimal_noise(gn.FiniteSet(SPACE * [1000.0, 1.0, 1.0, 1.0]))
    figure = drawn(plot_noise(noise, (1, 2)))
    _, label = labelled(figure, "plain")
    assert label.endswith("beyond the frame")
    ellipse, _ = labelled(figure, "optimal noise")
    assert np.abs(ellipse).max() < figure.axes[0].get_xlim()[1] < 1.2 * np.abs(ellipse).max()
    assert "beyond" not in texts(plot_noise(noise, (0, 1)))


@pytest.mark.parametrize("size", [1e-290, 1e-120, 1e120, 1e290])
def test_any_size_is_drawn(plain, size):
    figure = drawn(plot_noise(gn.optimal_noise(gn.FiniteSet(size * POINTS))))
    for start in ("optimal noise", "plain", "convex hull"):
        mine, usual = labelled(figure, start)[0], labelled(plot_noise(plain), start)[0]
        assert mine == pytest.approx(usual, rel=1e-5, abs=1e-4)
    assert f"{size:.0e}" in figure.axes[0].get_xlabel()


def test_many_points_are_not_drawn_one_by_one():
    points = np.random.default_rng(1).normal(size=(3000, 2))
    for noise in (gn.gamma(gn.FiniteSet(points)), gn.optimal_noise(gn.FiniteSet(points[:60]))):
        figure = drawn(plot_noise(noise))
        assert "its points" not in texts(figure)
        assert len(figure.axes[0].collections[0].get_offsets()) < 50


def test_marginals_too_large_to_list():
    sizes = (100, 100, 100, 99, 85, 42, 16, 15, 9, 7, 6, 5, 2, 2)
    noise = gn.optimal_noise(gn.Marginals.all_kway(sizes, 2), neighbors="add-remove")
    figure = drawn(plot_noise(noise, (0, 10050)))
    assert figure.axes[0].get_ylabel() == "coordinate 10050: cell (0, 50) of table (0, 2)"
    assert f"radius {math.sqrt(91):.3g}" in texts(figure)
    assert contained(figure, noise)
    with pytest.raises(ParameterError, match=r"0\.\.148136"):
        plot_noise(noise, (0, 148137))


@settings(derandomize=True, max_examples=40, deadline=None)
@given(st.data())
def test_records_seen_on_two_cells(data):
    sizes = data.draw(st.lists(st.integers(1, 3), min_size=1, max_size=4))
    every = [S for k in range(len(sizes) + 1) for S in itertools.combinations(range(len(sizes)), k)]
    subsets = data.draw(st.lists(st.sampled_from(every), min_size=1, max_size=3, unique=True))
    weights = data.draw(
        st.lists(st.sampled_from([0.5, 1.0, 3.0]), min_size=len(subsets), max_size=len(subsets))
    )
    domain = gn.Marginals(sizes, subsets, weights=weights)
    points = domain.to_finite_set().points
    for i, j in itertools.permutations(range(domain.dim), 2):
        expected = np.unique(points[:, [i, j]], axis=0)
        assert np.array_equal(np.unique(marginal_points(domain, [i, j]), axis=0), expected)
    assert np.array_equal(np.unique(marginal_points(domain, [0])), np.unique(points[:, 0]))


def traced(noise, *entries):
    return dataclasses.replace(
        noise, trace=tuple(gn.results.Progress(*entry) for entry in entries), steps=len(entries)
    )


def curve(axes, start):
    (line,) = [line for line in axes.lines if line.get_label().startswith(start)]
    return line.get_xydata()


def test_convergence_shows_both_ends_and_their_gap(plain):
    low, high = plain.gamma_lower, plain.gamma
    noise = traced(
        plain, (1, low / 2, math.inf), (2, low * 0.9, high * 1.5), (4, low * 0.99, high * 1.01)
    )
    left, right = drawn(plot_convergence(noise)).axes
    assert curve(left, "upper") == pytest.approx(np.array([[2, 1.5], [4, 1.01]]))
    assert curve(left, "lower")[:, 1] == pytest.approx(np.array([0.5, 0.9, 0.99]) * low / high)
    gaps = [high * 1.5 / (low * 0.9) - 1, high * 1.01 / (low * 0.99) - 1]
    assert curve(right, "gap") == pytest.approx(np.column_stack([[2, 4], gaps]))
    assert curve(right, "lower")[:, 1] == pytest.approx(
        [high / (low * x) - 1 for x in (0.5, 0.9, 0.99)]
    )
    assert curve(right, "upper")[:, 1] == pytest.approx([high * x / low - 1 for x in (1.5, 1.01)])
    assert curve(right, "final gap")[:, 1] == pytest.approx(np.full(2, noise.gap))
    assert right.get_yscale() == "log"


def test_what_was_proved_once_stays_proved(plain):
    low, high = plain.gamma_lower, plain.gamma
    noise = traced(plain, (1, low * 0.9, high * 1.1), (2, low * 0.8, high * 1.2), (3, low, high))
    left, _ = plot_convergence(noise).axes
    assert curve(left, "upper")[:, 1] == pytest.approx([1.1, 1.1, 1.0])
    assert curve(left, "lower")[:, 1] == pytest.approx(np.array([0.9, 0.9, 1.0]) * low / high)


@pytest.mark.parametrize("count", [1, 2, 1000])
def test_traces_of_any_length(plain, count):
    steps = range(1, count + 1)
    entries = [(k, plain.gamma_lower * (1 - 0.5 / k), plain.gamma * (1 + 9 / k)) for k in steps]
    figure = drawn(plot_convergence(traced(plain, *entries)))
    assert all(tick == int(tick) for axes in figure.axes for tick in axes.get_xticks())
    assert figure.axes[0].get_ylim()[1] <= 2.6 or count > 9


def test_traces_without_a_bound_yet(plain):
    drawn(
        plot_convergence(
            traced(plain, (0, 0.0, math.inf), (1, 0.0, plain.gamma), (2, plain.gamma, plain.gamma))
        )
    )


@pytest.mark.parametrize("gap", [1e-12, 3e-9, 8.617044546799235e-07, 1e-3])
def test_a_gap_that_never_changes_is_in_the_middle_of_its_picture(plain, gap):
    """It is drawn by two lines that matplotlib places with different roundings."""
    noise = dataclasses.replace(plain, gamma=1 + gap, gamma_lower=1.0)
    _, right = drawn(plot_convergence(traced(noise, (1, 1.0, 1 + gap)))).axes
    low, high = right.get_ylim()
    assert low * 1.9 < noise.gap < high / 1.9


def test_without_a_trace_there_is_no_convergence(plain):
    closed = dataclasses.replace(plain, trace=(), steps=0)
    with pytest.raises(ParameterError, match="closed form"):
        plot_convergence(closed)
    with pytest.raises(ParameterError, match="loaded from a file"):
        plot_convergence(dataclasses.replace(plain, trace=(), steps=7))
