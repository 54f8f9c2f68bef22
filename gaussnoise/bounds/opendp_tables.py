"""The tables that a measurement of OpenDP counts, and their noise."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from ..errors import ParameterError

Names = tuple[str, ...]

_FUNCTION, _ARGUMENTS = "__function__", "__kwargs__"  # OpenDP's keys in measurements and in JSON
_WITHIN = ("input_domain", "input_metric")  # arguments that repeat the steps before
_WHOLE = "value"  # the attribute of rows from which no column is selected

# Steps that turn each row into one row and depend on nothing else.
_BY_ROW = {
    "make_cast",
    "make_cast_default",
    "make_cast_inherent",
    "make_clamp",
    "make_create_dataframe",
    "make_df_cast_default",
    "make_df_is_equal",
    "make_find",
    "make_find_bin",
    "make_identity",
    "make_impute_constant",
    "make_index",
    "make_is_equal",
    "make_is_null",
    "make_metric_bounded",
    "make_metric_unbounded",
    "make_ordered_random",
    "make_select_column",
    "make_split_dataframe",
    "make_split_lines",
    "make_split_records",
    "make_unordered",
}
_TURNED = ("make_metric_bounded", "make_metric_unbounded")  # bounded metrics: of replaced rows
_WRAPPERS = ("make_zCDP_to_approxDP", "make_fix_delta", "make_approximate")
_COMPOSITIONS = ("make_composition", "make_basic_composition")
_LAPLACE = "its noise is Laplace or geometric, not Gaussian"
_CHOSEN = "it chooses an answer by the data, which costs privacy that no table shows"
_LEFT_OUT = "it leaves out small counts, so that its answers are biased"
_LATER = "its queries are chosen later; hint: certify what was released"
_WHY = {
    "make_laplace": _LAPLACE,
    "make_geometric": _LAPLACE,
    "make_laplace_threshold": _LAPLACE,
    "make_gaussian_threshold": _LEFT_OUT,
    "make_noise_threshold": _LEFT_OUT,
    "make_noisy_max": _CHOSEN,
    "make_noisy_top_k": _CHOSEN,
    "make_report_noisy_max_gumbel": _CHOSEN,
    "make_private_quantile": _CHOSEN,
    "make_select_private_candidate": _CHOSEN,
    "make_adaptive_composition": _LATER,
    "make_fully_adaptive_composition": _LATER,
    "make_sequential_composition": _LATER,
    "make_privacy_filter": _LATER,
    "make_population_amplification": "a sample of the rows is counted",
    "make_chain_pm": "its answers are changed after the noise; hint: the measurement before that",
    "make_private_lazyframe": (
        "its plan is code of polars; hint: {('age', 'sex'): scale}, with the columns that it "
        "groups by, and the scale of Gaussian noise that query.summarize() prints"
    ),
    "make_count_by": "its categories depend on the data; hint: make_count_by_categories",
    "make_drop_null": "it leaves out rows; hint: make_impute_constant",
    "make_subset_by": "it leaves out rows",
    "make_resize": "it leaves out rows, or adds some",
}


class _Arguments(dict[str, Any]):
    """The arguments of an OpenDP constructor, where a missing name raises ParameterError."""

    def __missing__(self, name: str) -> Any:
        raise ParameterError(
            f"certify: expected a measurement of OpenDP, got a constructor without {name!r:.80}"
        )


class Tables(NamedTuple):
    """Counted tables: {attributes: standard deviations}, and {attribute: categories}."""

    scales: dict[Names, list[float]]
    sizes: dict[str, int]


def is_opendp(strategy: object) -> bool:
    """Return whether a strategy is an OpenDP measurement, or the JSON object that describes one."""
    return hasattr(strategy, "__opendp_dict__") or (
        isinstance(strategy, Mapping) and _FUNCTION in strategy
    )


def tables_of(measurement: Any, neighbors: str) -> Tables:
    """Return the tables that an OpenDP measurement counts, with standard deviations of their noise.

    Raise ParameterError if the measurement does anything else.
    """
    found, views = Tables({}, {}), dict[str, str]()
    for steps, scale in _counted(measurement, ()):
        names: Names = ()
        *before, last = steps or (measurement,)
        name, given = _constructor(last)
        if name not in ("make_count", "make_count_by_categories"):
            raise _refusal(name, _WHY.get(name, "certify knows counts of rows by category alone"))
        column = _WHOLE
        for step in before:
            made, arguments = _constructor(step)
            if made not in _BY_ROW:
                raise _refusal(made, _WHY.get(made, "its effect on the rows is not known"))
            column = str(arguments.get("key", column))
        turned = [made for made, _ in map(_constructor, before) if made in _TURNED]
        if turned[:1] == ["make_metric_unbounded"] and neighbors != "replace":
            raise ParameterError(
                'certify: expected neighbors="replace" for a measurement whose metric is about '
                f"replaced rows, got {neighbors!r}"
            )
        if name == "make_count_by_categories":
            names, view = (column,), _steps_text(steps)
            found.sizes[column] = len(given["categories"]) + bool(given["null_category"])
            if found.sizes[column] < 2:  # not the number of rows, which is public under replacement
                raise _refusal(name, "rows in one category alone; hint: null_category=True")
            if views.setdefault(column, view) != view:
                raise ParameterError(
                    f"certify: expected the same categories of {column!r} in all measurements, got "
                    "two kinds; hint: certify each of them alone"
                )
        found.scales.setdefault(names, []).append(scale)
    return found


def _counted(part: Any, before: tuple[Any, ...]) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Yield (transformations before the noise, scale) for each Gaussian noise of a measurement."""
    name, given = _constructor(part)
    if name == "make_chain_mt":
        yield from _counted(given["measurement1"], (*before, *_steps(given["transformation0"])))
    elif name in _COMPOSITIONS:
        for one in given["measurements"]:
            yield from _counted(one, before)
    elif name in _WRAPPERS:
        yield from _counted(given["measurement"], before)
    elif name == "make_gaussian" or (name == "make_noise" and _is_gaussian(given)):
        if given.get("k") is not None:
            raise _refusal(name, "with k, counts are rounded before the noise")
        yield before, given["scale"]
    else:
        why = "certify knows Gaussian noise on counts alone"
        raise _refusal(name, _LAPLACE if name == "make_noise" else _WHY.get(name, why))


def _steps(part: Any) -> Iterator[Any]:
    """Yield the transformations of a chain one by one, in the order in which they are applied."""
    name, given = _constructor(part)
    if name == "make_chain_tt":
        yield from _steps(given["transformation0"])
        yield from _steps(given["transformation1"])
    else:
        yield part


def _is_gaussian(arguments: _Arguments) -> bool:
    """Return whether ``make_noise`` draws Gaussian noise, by its privacy measure."""
    return _constructor(arguments["output_measure"])[0] == "zero_concentrated_divergence"


def _constructor(part: Any) -> tuple[str, _Arguments]:
    """Return (name, arguments) of the OpenDP constructor that made this part."""
    part = getattr(part, "__opendp_dict__", part)
    try:
        return str(part[_FUNCTION]), _Arguments(part[_ARGUMENTS])
    except (LookupError, TypeError, ValueError):
        raise ParameterError(
            "certify: expected a measurement of OpenDP with the constructors of all its parts, got "
            f"a part that does not name its own, {type(part).__name__}; hint: "
            "{('age', 'sex'): standard_deviation}"
        ) from None


def _steps_text(steps: tuple[Any, ...]) -> str:
    """Return a text that identifies transformations by their names and arguments."""
    found = []
    for step in steps:
        name, given = _constructor(step)
        found.append((name, {key: str(x) for key, x in given.items() if key not in _WITHIN}))
    return repr(found)


def _refusal(name: str, why: str) -> ParameterError:
    """Return the error for an OpenDP constructor ``name`` that cannot be certified."""
    return ParameterError(f"certify: expected Gaussian noise on counts, got {name}: {why}")
