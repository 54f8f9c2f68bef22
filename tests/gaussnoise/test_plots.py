import itertools
import math
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgba

import gaussnoise as gn
from gaussnoise.errors import ParameterError
from gaussnoise.plots import plot_heatmap, plot_intervals, plot_release
from gaussnoise.tables.release import release_plot
from gaussnoise.tables.release.biased import BiasedTable


def simulated(attributes, workload):
    table = pa.table({a.name: [a.categories[0]] * 3 for a in attributes})
    return gn.plan(gn.Schema(attributes), workload, gn.zCDP(0.5)).simulate(
        table, np.random.default_rng(0)
    )


def attributes(*sizes):
    return [gn.Attribute(f"a{i}", [f"v{k}" for k in range(n)]) for i, n in enumerate(sizes)]


def drawn(figure, dpi=40):
    """Draw a picture coarsely, and return whether it shows anything; warnings are errors here."""
    canvas, own = FigureCanvasAgg(figure), figure.dpi
    figure.set_dpi(own if dpi == "figure" else dpi)
    canvas.draw()
    figure.set_dpi(own)
    return np.ptp(canvas.buffer_rgba()) > 0


def texts(figure):
    return [text.get_text() for text in figure.findobj(lambda artist: hasattr(artist, "get_text"))]


@pytest.mark.parametrize("k", range(4))
def test_marginals_of_any_order(k):
    assert drawn(plot_release(simulated(attributes(2, 3, 4), k)))


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


def test_large_tables_of_two_attributes_are_drawn_as_colours():
    release = simulated(attributes(40, 50), 2)
    figure = plot_release(release)
    assert drawn(figure)
    (image,) = figure.axes[0].get_images()
    low, high = release["a1", "a0"].confidence_interval(0.95)
    shown = image.get_array()
    assert np.array_equal(shown.mask, (low <= 0) & (high >= 0))
    assert np.array_equal(shown.data, release["a1", "a0"].estimate)
    assert "grey" in figure.axes[0].get_title()


def test_tables_that_are_too_large_to_look_at_are_left_out(monkeypatch):
    monkeypatch.setattr(release_plot, "_MOST_COLOURED", 11)
    monkeypatch.setattr(release_plot, "_MOST_CELLS", 4)
    release = simulated(attributes(3, 4), [("a0", "a1"), ("a0",)])
    assert plot_release(release).axes[0].get_title().startswith("a0:")
    (comparison,) = plot_release(simulated(attributes(3, 4), [("a0", "a1")])).axes
    assert "less variance" in comparison.get_title()


@pytest.mark.parametrize("asked", [("a0", "a1"), ("a1", "a0")])
def test_any_table_can_be_chosen(asked):
    assert (
        plot_release(simulated(attributes(3, 4), 2), asked)
        .axes[0]
        .get_title()
        .startswith(" × ".join(asked))
    )


def test_simulations_are_labelled():
    assert "NOT PRIVATE" in " ".join(texts(plot_release(simulated(attributes(2, 3), 2))))


def test_releases_are_not():
    plan = gn.plan(gn.Schema(attributes(2)), 1, gn.zCDP(1))
    assert "NOT PRIVATE" not in " ".join(
        texts(plot_release(plan.release(pa.table({"a0": ["v0"]}))))
    )


@pytest.mark.parametrize(
    ("label", "position"),
    [
        *itertools.product(["$_$", "_hidden", "a\nb"], [0, 1]),
        *zip(["$5", "$0 - $50", "x" * 200, "", "\\frac", "%s"], itertools.cycle([0, 1])),
    ],
)
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


def table_of(*sizes, rows=60):
    """A simulated table with rows spread over its cells."""
    schema = attributes(*sizes)
    codes = np.random.default_rng(6).integers(0, 10**6, (len(sizes), rows))
    data = pa.table(
        {
            a.name: [a.labels[c % a.size] for c in column]
            for a, column in zip(schema, codes, strict=True)
        }
    )
    plan = gn.plan(gn.Schema(schema), [tuple(a.name for a in schema)], gn.zCDP(0.5))
    return plan.simulate(data, np.random.default_rng(0))[tuple(a.name for a in schema)]


def biased(table, estimate, method="rounded"):
    return BiasedTable(
        table.attributes, table.labels, np.asarray(estimate), method, table.private, table.backend
    )


def panels_of(figure):
    """The axes that show cells; the colour bar has no image."""
    return [axes for axes in figure.axes if axes.images]


def written(axes):
    return [text.get_text() for text in axes.texts]


# Intervals of one table.


@pytest.mark.parametrize(
    "sizes", [(), (1,), (3,), (4, 3), (2, 3, 4), (2, 2, 2, 2), (60,), (40, 20)]
)
def test_intervals_of_any_shape(sizes):
    table = table_of(*sizes) if sizes else simulated(attributes(2), 1)[()]
    figure = plot_intervals(table)
    assert drawn(figure)
    assert max(figure.get_size_inches()) < 20


@pytest.mark.parametrize("level", [0.5, 0.95])
def test_intervals_are_the_tables_at_the_level_asked_for(level):
    table = table_of(4, 3)
    (axes,) = plot_intervals(table, level).axes
    low, high = table.confidence_interval(level)
    for k, bars in enumerate(axes.containers):
        assert bars.lines[0].get_ydata() == pytest.approx(table.estimate[:, k])
        segments = np.array([segment[:, 1] for segment in bars.lines[2][0].get_segments()])
        assert segments == pytest.approx(np.stack([low[:, k], high[:, k]], axis=1))
    assert f"{100 * level:g} % interval" in axes.get_ylabel()


def test_every_colour_of_a_legend_is_another():
    (axes,) = plot_intervals(table_of(2, 20)).axes
    assert len({to_rgba(bars.lines[0].get_color()) for bars in axes.containers}) == 20


def test_legends_hide_no_cell():
    figure = plot_intervals(table_of(6, 5))
    drawn(figure, "figure")
    (axes,) = figure.axes
    assert axes.get_legend().get_window_extent().x0 >= axes.get_window_extent().x1


def test_positions_beyond_the_room_are_thinned_out_and_say_so():
    (axes,) = plot_intervals(table_of(99)).axes
    assert [t.get_text() for t in axes.get_xticklabels()] == [f"v{k}" for k in range(0, 99, 4)]
    assert axes.get_xlabel() == "a0 (one label in 4)"


def test_too_many_series_are_refused_with_a_way_out():
    with pytest.raises(
        ParameterError,
        match="expected at most 20 values of the last attribute, got 21; hint: put",
    ):
        plot_intervals(table_of(2, 21))
    assert plot_intervals(table_of(21, 2))


def test_only_unbiased_tables_have_intervals():
    with pytest.raises(
        ParameterError, match="expected a MarginalTable or a QueryTable, got BiasedTable; hint"
    ):
        plot_intervals(biased(table_of(3), [1, 0, 2]))


@pytest.mark.parametrize("draw", [plot_heatmap, plot_intervals])
def test_whole_releases_are_not_tables(draw):
    with pytest.raises(ParameterError, match="got TableRelease; hint: one table of a release"):
        draw(simulated(attributes(2), 1))


def test_a_level_outside_the_unit_interval_is_refused():
    with pytest.raises(ParameterError, match="0 < level < 1"):
        plot_intervals(table_of(3), 95)


# Heat maps.


@pytest.mark.parametrize(
    "sizes", [(), (1,), (8,), (300,), (1, 1), (6, 5), (100, 40), (3, 200), (2, 3, 4), (9, 9, 9)]
)
def test_heat_maps_of_any_shape(sizes):
    table = table_of(*sizes) if sizes else simulated(attributes(2), 1)[()]
    figure = plot_heatmap(table)
    assert drawn(figure)
    assert max(figure.get_size_inches()) < 20


def test_cells_are_where_their_labels_say():
    table = table_of(6, 5)
    (axes,) = panels_of(plot_heatmap(table))
    assert axes.images[0].get_array().data == pytest.approx(table.estimate)
    assert (axes.get_ylabel(), axes.get_xlabel()) == ("a0", "a1")
    assert [t.get_text() for t in axes.get_yticklabels()] == list(table.labels[0])
    assert [t.get_text() for t in axes.get_xticklabels()] == list(table.labels[1])


def test_one_attribute_goes_down():
    table = table_of(4)
    (axes,) = panels_of(plot_heatmap(table))
    assert axes.images[0].get_array().data == pytest.approx(table.estimate[:, None])
    assert [t.get_text() for t in axes.get_yticklabels()] == list(table.labels[0])
    assert not list(axes.get_xticks())


@pytest.mark.parametrize("sizes", list(itertools.permutations((2, 3, 5))))
def test_three_attributes_are_panels_of_the_one_with_the_fewest_values(sizes):
    table = table_of(*sizes)
    fewest = sizes.index(2)
    panels = panels_of(plot_heatmap(table))
    assert [axes.get_title() for axes in panels] == [f"a{fewest} = v0", f"a{fewest} = v1"]
    for k, axes in enumerate(panels):
        assert axes.images[0].get_array().data == pytest.approx(table.estimate.take(k, axis=fewest))
        assert axes.images[0].norm is panels[0].images[0].norm
        assert written(axes) == [
            f"{cell:z.0f}" for cell in table.estimate.take(k, axis=fewest).ravel()
        ]
    down, across = (axis for axis in range(3) if axis != fewest)
    assert panels[0].get_ylabel() == f"a{down}"
    assert all(axes.get_xlabel() == f"a{across}" for axes in panels)


@pytest.mark.parametrize("panels", [1, 2, 3, 5, 7])
def test_every_column_and_row_of_panels_is_labelled(panels):
    shown = panels_of(plot_heatmap(table_of(panels, 8, 8)))
    assert len(shown) == panels
    abreast = math.ceil(math.sqrt(panels))
    assert [bool(axes.get_ylabel()) for axes in shown] == [k % abreast == 0 for k in range(panels)]
    assert [bool(axes.get_xlabel()) for axes in shown] == [
        k + abreast >= panels for k in range(panels)
    ]


def test_more_than_three_attributes_are_refused_with_a_way_out():
    with pytest.raises(
        ParameterError,
        match=r"expected at most 3 attributes, got 4; hint: .*release\[two, names\]",
    ):
        plot_heatmap(table_of(2, 2, 2, 2))


def test_too_many_panels_are_refused_with_a_way_out():
    with pytest.raises(
        ParameterError, match=r"expected at most 16 values of one of 3 .*, got at least 17; hint"
    ):
        plot_heatmap(table_of(17, 18, 19))


def test_cells_whose_interval_holds_zero_are_grey_and_no_others():
    table = table_of(30, 20, rows=1000)
    figure = plot_heatmap(table)
    (axes,) = panels_of(figure)
    grey = np.ma.getmaskarray(axes.images[0].get_array())
    assert np.array_equal(
        grey, np.abs(table.estimate) <= 1.959963984540054 * table.standard_deviation
    )
    assert 0 < grey.sum() < grey.size
    assert (table.estimate[~grey] < 0).any()
    assert "grey: not significantly different from 0 at 95 %" in figure.get_suptitle()
    # masked cells show the background
    assert axes.get_facecolor() == to_rgba("0.87")
    assert axes.images[0].get_cmap().get_bad()[3] == 0


def test_grey_is_explained_only_where_there_is_some():
    table = table_of(3, rows=10_000)
    assert "grey" not in plot_heatmap(table).get_suptitle()


def test_numbers_are_written_where_there_is_room():
    table = table_of(6, 5)
    (axes,) = panels_of(plot_heatmap(table))
    assert written(axes) == [f"{cell:z.0f}" for cell in table.estimate.ravel()]
    for text, (row, column) in zip(axes.texts, np.ndindex(6, 5), strict=True):
        assert text.get_position() == (column, row)
    for crowded in ((15, 14), (2, 100)):
        assert not written(panels_of(plot_heatmap(table_of(*crowded)))[0])


@pytest.mark.parametrize(("rho", "digits"), [(0.5, 0), (50, 1), (500, 2), (0.0005, 0)])
def test_numbers_have_the_digits_that_the_noise_leaves(rho, digits):
    release = gn.plan(gn.Schema(attributes(3)), 1, gn.zCDP(rho)).simulate(
        pa.table({"a0": ["v1"] * 9}), np.random.default_rng(0)
    )
    (axes,) = panels_of(plot_heatmap(release["a0"]))
    assert written(axes) == [f"{cell:z.{digits}f}" for cell in release["a0"].estimate]


@pytest.mark.parametrize("number", [-123456789.0, 12345678, 0.0, 1e300])
def test_numbers_fit_into_their_cells(number):
    figure = plot_heatmap(biased(table_of(4, 4), np.full((4, 4), number)))
    drawn(figure, "figure")
    (axes,) = panels_of(figure)
    cell = axes.get_window_extent().width / 4
    assert all(text.get_window_extent().width < cell for text in axes.texts)


def test_numbers_can_be_read_on_their_colours():
    figure = plot_heatmap(biased(table_of(5), [0, 25, 50, 75, 100]))
    (axes,) = panels_of(figure)
    image = axes.images[0]
    for text, value in zip(axes.texts, image.get_array().ravel(), strict=True):
        behind = np.dot(image.get_cmap()(image.norm(value))[:3], (0.299, 0.587, 0.114))
        assert abs(behind - np.mean(to_rgba(text.get_color())[:3])) >= 0.5


@pytest.mark.parametrize(
    ("estimate", "limits", "palest_is_zero"),
    [
        ([0.0, 50.0, 100.0], (0, 100), False),
        ([-9.0, 50.0, 100.0], (-9, 100), False),
        ([-11.0, 50.0, 100.0], (-100, 100), True),
        ([-200.0, 50.0, 100.0], (-200, 200), True),
        ([-3.0, -2.0, -1.0], (-3, 3), True),
        ([0.0, 0.0, 0.0], (0, 1), False),
        ([5.0, 5.0, 5.0], (0, 5), False),
    ],
)
def test_zero_is_the_middle_only_where_negative_cells_matter(estimate, limits, palest_is_zero):
    (axes,) = panels_of(plot_heatmap(biased(table_of(3), estimate)))
    image = axes.images[0]
    assert image.get_clim() == limits
    ends = image.get_cmap()([0.0, 0.5, 1.0])[:, :3].sum(axis=1)
    assert bool(ends[1] == ends.max()) == palest_is_zero


def test_titles_and_colour_bars_say_what_the_numbers_are():
    table = table_of(3, 4)
    figure = plot_heatmap(table)
    warning = "SIMULATION, NOT PRIVATE — "
    assert plot_intervals(table).axes[0].get_title().startswith(f"{warning}a0 × a1: sd ")
    assert (
        plot_intervals(replace(table, private=True)).axes[0].get_title().startswith("a0 × a1: sd ")
    )
    assert plot_heatmap(replace(table, private=True)).get_suptitle().startswith("a0 × a1: sd ")
    assert figure.get_suptitle().startswith(
        f"{warning}a0 × a1: sd {table.standard_deviation[0, 0]:.3g} in every cell"
    )
    (bar,) = (axes for axes in figure.axes if not axes.images)
    assert bar.get_ylabel() == "rows (unbiased estimate)"


@pytest.mark.parametrize("estimate", [np.arange(12), np.arange(12.0)])
def test_biased_tables_say_so_and_test_nothing(estimate):
    figure = plot_heatmap(biased(table_of(3, 4), estimate.reshape(3, 4), "nearest integers"))
    assert figure.get_suptitle() == "SIMULATION, NOT PRIVATE — a0 × a1, biased: nearest integers"
    (axes,) = panels_of(figure)
    assert not np.ma.getmaskarray(axes.images[0].get_array()).any()
    assert written(axes) == [str(k) for k in estimate]
    assert "rows (biased)" in texts(figure)


def test_labels_beyond_the_room_are_thinned_out_and_say_so():
    figure = plot_heatmap(table_of(300, 100))
    drawn(figure, "figure")
    (axes,) = panels_of(figure)
    for axis, name in ((axes.yaxis, "a0"), (axes.xaxis, "a1")):
        step = int(axis.get_label_text().removeprefix(f"{name} (one label in ").removesuffix(")"))
        shown = [label.get_text() for label in axis.get_ticklabels()]
        assert shown == [f"v{k}" for k in axis.get_ticklocs()]
        assert np.array_equal(np.diff(axis.get_ticklocs()), np.full(len(shown) - 1, step))
    boxes = [label.get_window_extent() for label in axes.get_yticklabels()]
    assert all(upper.y0 >= lower.y1 for upper, lower in itertools.pairwise(boxes))


@pytest.mark.parametrize(
    ("label", "draw"),
    [
        *itertools.product(["$_$", "_hidden", "a\nb"], [plot_heatmap, plot_intervals]),
        *zip(
            ["$5", "x" * 200, "", "\\frac", "%s", "Ünïcödé ≥ π"],
            itertools.cycle([plot_heatmap, plot_intervals]),
        ),
    ],
)
def test_odd_labels_and_names_of_one_table_are_drawn(draw, label):
    three = [
        gn.Attribute(f"{label}{i}", [label, *(f"{label}{k}" for k in range(i + 1))])
        for i in range(3)
    ]
    figure = draw(simulated(three, 3)[tuple(a.name for a in three)])
    assert drawn(figure)
    shown = "".join(texts(figure)).replace("\\$", "$").replace(" ", "")
    # at least once for every attribute's name and one of its labels
    assert shown.count("".join(label.split())[:20]) >= 6


def answers(*entries):
    schema = gn.Schema(
        [
            gn.Attribute("age", edges=[0, 20, 40, 60, 80], base="prefix"),
            gn.Attribute("sex", ["F", "M"]),
        ]
    )
    data = pa.table({"age": [10, 30, 30, 70] * 50, "sex": ["F", "M"] * 100})
    return gn.plan(schema, list(entries), gn.zCDP(0.5)).simulate(data, np.random.default_rng(0))


def test_answers_are_drawn_like_tables():
    release = answers(("age", "sex"))
    found = release.answers(("age", "sex"))
    ticks = plot_intervals(found).axes[0].get_xticklabels()
    assert [tick.get_text() for tick in ticks] == ["below 20", "below 40", "below 60", "up to 80"]
    title = plot_heatmap(found).get_suptitle()
    sd = found.standard_deviation
    assert f"sd {sd.min():.3g} to {sd.max():.3g}" in title


def test_releases_of_several_entries_compare_their_answers():
    release = answers(("age", "sex"), {"age": "ranges"})
    axes = plot_release(release).axes[1]
    assert sorted(tick.get_text() for tick in axes.get_yticklabels()) == [
        "age (prefix) × sex",
        "age (ranges)",
    ]
    assert axes.get_xlabel() == "standard deviation, root mean square of the answers"
