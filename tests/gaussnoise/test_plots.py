import io

import numpy as np
import pyarrow as pa
import pytest

import gaussnoise as gn
from gaussnoise.plots import plot_release


def simulated(attributes, workload):
    table = pa.table({a.name: [a.categories[0]] * 3 for a in attributes})
    return gn.plan(gn.Schema(attributes), workload, gn.zCDP(0.5)).simulate(table, np.random.default_rng(0))


def attributes(*sizes):
    return [gn.Attribute(f"a{i}", [f"v{k}" for k in range(n)]) for i, n in enumerate(sizes)]


def drawn(figure):
    """The picture as bytes; warnings while rendering are errors in this test suite."""
    file = io.BytesIO()
    figure.savefig(file, format="png")
    return file.getvalue()


def texts(figure):
    return [text.get_text() for text in figure.findobj(lambda artist: hasattr(artist, "get_text"))]


@pytest.mark.parametrize("k", range(4))
def test_marginals_of_any_order(k):
    assert drawn(plot_release(simulated(attributes(2, 3, 4), k))).startswith(b"\x89PNG")


@pytest.mark.parametrize("sizes", [(1,), (1, 1), (1, 5), (5, 1), (12, 12), (2, 40)])
def test_tables_of_any_shape(sizes):
    assert drawn(plot_release(simulated(attributes(*sizes), len(sizes))))


def test_many_marginals_are_thinned_out_and_say_so():
    figure = plot_release(simulated(attributes(*[2] * 12), 2))
    assert drawn(figure)
    assert len(figure.axes[1].get_yticks()) <= 24
    assert "of 66 marginals shown" in figure.axes[1].get_title()


def test_the_picture_shows_the_estimates_and_both_standard_deviations():
    release = simulated(attributes(3, 4), [("a0",), ("a0", "a1")])
    left, right = plot_release(release, ("a0",)).axes
    assert left.lines[0].get_ydata() == pytest.approx(release["a0"].estimate)
    ours, theirs = right.lines
    plan = release.plan
    marginals = sorted(plan.marginals, key=lambda m: plan.standard_deviation(*m))
    assert list(ours.get_xdata()) == [plan.standard_deviation(*m) for m in marginals]
    assert list(theirs.get_xdata()) == [plan.independent_standard_deviation(*m) for m in marginals]


def test_error_bars_are_the_95_percent_intervals():
    release = simulated(attributes(3), 1)
    (bars,) = plot_release(release).axes[0].containers
    low, high = release["a0"].confidence_interval(0.95)
    segments = np.array([segment[:, 1] for segment in bars.lines[2][0].get_segments()])
    assert segments == pytest.approx(np.stack([low, high], axis=1))


@pytest.mark.parametrize("asked", [("a0", "a1"), ("a1", "a0")])
def test_any_table_can_be_chosen(asked):
    assert plot_release(simulated(attributes(3, 4), 2), asked).axes[0].get_title().startswith(" × ".join(asked))


def test_simulations_are_labelled():
    assert "NOT PRIVATE" in " ".join(texts(plot_release(simulated(attributes(2, 3), 2))))


def test_releases_are_not():
    plan = gn.plan(gn.Schema(attributes(2)), 1, gn.zCDP(1))
    assert "NOT PRIVATE" not in " ".join(texts(plot_release(plan.release(pa.table({"a0": ["v0"]})))))


@pytest.mark.parametrize("label", ["$5", "$_$", "$0 - $50", "_hidden", "a\nb", "x" * 200, "", "\\frac", "%s"])
@pytest.mark.parametrize("position", [0, 1])
def test_labels_are_drawn_as_they_are_written(label, position):
    pair = attributes(3, 2)
    pair[position] = gn.Attribute("odd", [label, f"{label}2"])
    figure = plot_release(simulated(pair, 2))
    assert drawn(figure)
    axes = figure.axes[0]
    # every category of one attribute is in the legend, of the other along the axis
    shown = len(axes.get_legend().get_texts()) + len(axes.get_xticklabels())
    assert shown == sum(a.size for a in pair)


@pytest.mark.parametrize("name", ["$a$b_$", "_a", "x" * 200, "a\nb"])
def test_names_are_drawn_as_they_are_written(name):
    assert drawn(plot_release(simulated([gn.Attribute(name, ["x", "y"]), *attributes(3)], 2)))
