"""Released tables: unbiased, consistent with each other, with exact covariances."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import NDArray

from domains import Identity, Marginals

from ...errors import ParameterError
from ...files.pickling import PickledByArguments
from ...mechanisms.projection import nearest
from ...noise.product_covariance import constants
from ...noise.table_covariance import TableCovariance
from ...numerics.intervals import Contrast, Contrasts
from ...privacy.definitions import dp_event
from ...solvers.tables.boxes import Box
from ...solvers.tables.residuals import Subset, part_of
from ...text import near, number_of
from ..planning.again import planned_again
from ..planning.facts import OverTime
from ..planning.measure import ResidualQuery
from ..schema.bases import as_base, query_labels
from ..schema.entries import Entry, entry_term
from ..schema.numbers import in_own_unit
from ..schema.schema import Category, OnOutside
from .answer import Answer
from .ask import answered
from .biased import BiasedTable
from .contrasts import ROUNDED, Names, Weights, combined
from .files import read_release, save_release
from .measurements import Measurement, measurements_of
from .merged import MergedPlan
from .people import synthetic_records
from .quantiles import QuantileTable, quantiles_of, steps_of
from .shares import covariances, has_levels, within
from .store import FileFormat
from .sums import MeanTable, SumTable, check_no_number, means_of, sums_of
from .table import MarginalTable, ProportionTable, QueryTable
from .tidy import LEVEL

if TYPE_CHECKING:
    from dp_accounting.dp_event import DpEvent

    from ..planning.plan import Plan
    from .synthetic import MbiProblem

_CANCELLED = 1e-12  # relative to a variance: below this, it is rounding
_PROJECTED = "nearest marginals of a table of records, all tables together"
Array = NDArray[np.float64]


@final
@dataclass(frozen=True, eq=False)
class TableRelease(PickledByArguments):
    """All marginals of one release. All of it is safe to publish when ``private`` is true.

    ``release["age", "income"]`` is a table with axes in that order; any part of a released marginal
    can be asked for, ``release["age"]`` or the total ``release[()]``. Iteration yields the planned
    marginals. A release with files reads its tables from there when they are asked for.

    Attributes:
        plan: the plan of the release.
        private: False for simulations, whose numbers must not be published.
        rho_charged: what OpenDP's map charges for all noise drawn; at most the planned ρ.
        covariance: of the noise that was drawn, over all cells of the planned marginals, which come
            in the order of the plan, the cells of each in C order.
        query: the integer query that was answered with noise.
        tables: estimates of the planned marginals; keys are sorted positions of their attributes.
        backend: the dataframe library of ``to_frame()``.
        on_outside: how rows with values outside the schema were treated, see :meth:`Plan.release`.
        over: for tables of a stream, the ticks they are about and the privacy guarantee of the
            stream; ``rho_charged`` is then that of the whole stream.
        without_zone: attributes whose Parquet files hold timestamps of a type (INT96) that has no
            time zone: they are counted as written.

    >>> import pyarrow as pa
    >>> schema = gn.Schema(
    ...     [gn.Attribute("sex", ["F", "M"]), gn.Attribute("age", edges=[0, 18, 65, 120])]
    ... )
    >>> people = pa.table({"sex": ["F", "M", "F"] * 400, "age": [7, 33, 61] * 400})
    >>> release = gn.plan(schema, 2, gn.zCDP(0.1)).release(people)
    >>> table = release["sex", "age"]  # .to_frame(), .confidence_interval(0.95), .projected()
    >>> print(table.estimate.shape, f"{table.standard_deviation[0, 0]:.4f}")
    (2, 3) 2.2361
    >>> more = release.contrast({("sex",): [1, -1]})  # women less men: 400
    >>> print(abs(more.estimate - 400) < 8 * more.standard_deviation)
    True
    """

    plan: "Plan"
    private: bool
    rho_charged: float
    covariance: TableCovariance = field(repr=False)
    query: ResidualQuery = field(repr=False)
    tables: Mapping[Subset, Array] = field(repr=False)
    backend: Any = field(repr=False)
    on_outside: OnOutside = "refuse"
    over: OverTime | None = None
    without_zone: tuple[str, ...] = ()

    @property
    def times(self) -> str | None:
        """The ticks that these tables of a stream are about; None if there is no stream."""
        return None if self.over is None else self.over.times

    def __iter__(self) -> Iterator[tuple[str, ...]]:
        return iter(self.plan.marginals)

    def __len__(self) -> int:
        return len(self.plan.marginals)

    def __getitem__(self, names: Names) -> MarginalTable:
        asked, S, estimate = self._estimate(names)
        schema = self.plan.schema
        estimate = estimate.transpose([S.index(i) for i in asked])
        return MarginalTable(
            attributes=tuple(schema.names[i] for i in asked),
            labels=tuple(schema.attributes[i].labels for i in asked),
            estimate=_read_only(estimate),
            standard_deviation=np.broadcast_to(
                _ordered(self.deviation(S), S, asked), estimate.shape
            ),
            private=self.private,
            backend=self.backend,
        )

    @property
    def public_rows(self) -> float | None:
        """The number of rows where it is public, which is under replacement, or None."""
        return self._rows

    @cached_property
    def _rows(self) -> float | None:
        """The number of rows where it is public, or None."""
        return None if () in self.query.multipliers else float(self._estimate(())[2])

    def deviation(self, S: Subset, box: Box | None = None) -> Array:
        """Return standard deviations of the table of S, or of a box; one number if all agree."""
        return np.sqrt(np.asarray(self.covariance.table_variance(S, box)))

    def answers(self, entry: Entry) -> QueryTable:
        """Return answers to queries about one table, whether they were planned or not.

        Queries can be cumulative counts, ranges, bins, moments, or the rows of any query matrix.

        Args:
            entry: attribute names, asked about through their own bases, or a mapping from names to
                bases, as in :func:`plan`.

        Returns:
            A :class:`QueryTable`, axes in the order of ``entry``.

        Raises:
            ParameterError: unknown attributes or bases, or a table that was not released.

        >>> import pyarrow as pa
        >>> schema = gn.Schema(
        ...     [gn.Attribute("sex", ["F", "M"]), gn.Attribute("age", edges=[0, 18, 65, 120])]
        ... )
        >>> people = pa.table({"sex": ["F", "M", "F"] * 400, "age": [7, 33, 61] * 400})
        >>> release = gn.plan(schema, [{"sex": "identity", "age": "prefix"}], gn.zCDP(0.1)).release(
        ...     people
        ... )
        >>> cumulative = release.answers({"age": "prefix"})
        >>> print(cumulative.labels, cumulative.estimate.shape)
        (('below 18', 'below 65', 'up to 120'),) (3,)
        """
        term = {i: in_own_unit(b) for i, b in entry_term(self.plan.schema, entry).items()}
        asked, S, answers = self._estimate(tuple(self.plan.schema.names[i] for i in term))
        for axis, i in enumerate(S):
            answers = term[i].answer(answers, axis)
        variance = self.covariance.term_variance(tuple((i, term[i]) for i in S))
        if self._rows is not None:  # queries that only count all rows are known exactly
            exact = reduce(np.multiply.outer, (constants(term[i]) for i in S), np.array(self._rows))
            answers = np.where(np.isnan(exact), answers, exact)
        attributes = [self.plan.schema.attributes[i] for i in asked]
        return QueryTable(
            attributes=tuple(attribute.name for attribute in attributes),
            labels=tuple(query_labels(term[i], a) for i, a in zip(asked, attributes, strict=True)),
            estimate=_read_only(_ordered(np.asarray(answers, dtype=np.float64), S, asked)),
            standard_deviation=_read_only(_ordered(np.sqrt(variance), S, asked)),
            private=self.private,
            backend=self.backend,
        )

    def sums(self, name: str, given: Names = ()) -> SumTable:
        """Return sums of a clipped number within groups.

        Args:
            name: an attribute with ``clip``.
            given: attributes that define the groups; none for all records.

        Returns:
            A :class:`SumTable`, one axis for each group attribute: unbiased for the values as they
            are clipped, standard deviations exact.

        Raises:
            ParameterError: unknown attributes, no clipped number, or a table that was not released.

        >>> import pyarrow as pa
        >>> schema = gn.Schema(
        ...     [gn.Attribute("sex", ["F", "M"]), gn.Attribute("pay", clip=[0, 5000])]
        ... )
        >>> people = pa.table({"sex": ["F", "M"] * 5000, "pay": [2000.0, 9000.0] * 5000})
        >>> release = gn.plan(schema, [("sex", "pay")], gn.zCDP(0.5)).release(people)
        >>> release.sums("pay", given="sex").estimate.round(-6).tolist()
        [10000000.0, 25000000.0]
        """
        return sums_of(self, name, given)

    def means(self, name: str, given: Names = ()) -> MeanTable:
        """Return means of a clipped number within groups: released sums over released counts.

        Records without a number, where the schema has a catch-all for them, enter neither the sums
        nor the counts.

        Args:
            name: an attribute with ``clip``.
            given: attributes that define the groups; none for all records.

        Returns:
            A :class:`MeanTable`, one axis for each group attribute; its intervals are exact.

        Raises:
            ParameterError: unknown attributes, no clipped number, or a table that was not released.

        >>> import pyarrow as pa
        >>> schema = gn.Schema([gn.Attribute("pay", clip=[0, 5000])])
        >>> people = pa.table({"pay": [2000.0, 9000.0] * 50000})
        >>> release = gn.plan(schema, ["pay"], gn.zCDP(0.5)).release(people)
        >>> means = release.means("pay")
        >>> low, high = means.confidence_interval(0.999999)
        >>> bool(low < 3500 < high), bool(high - low < 5)
        (True, True)
        """
        return means_of(self, name, given)

    def proportions(self, names: Entry, given: Entry = ()) -> ProportionTable:
        """Return shares: counts divided by the counts of their groups.

        Args:
            names: attributes of the table. Where the schema has groups, a level stands for its
                attribute: ``("region", "sex")`` where counties have regions; a mapping like
                ``{"county": "region", "sex": None}`` says the same, or takes :class:`Groups`.
            given: those attributes or levels that define the groups; none for shares of the total.
                ``proportions("county", given="region")`` is the share of each county in its region.

        Returns:
            A :class:`ProportionTable`, axes in the order of ``names``.

        Raises:
            ParameterError: unknown attributes, a table that was not released, groups by other
                attributes, or a part that lies in no group or in several groups.
        """
        if isinstance(names, Mapping) or isinstance(given, Mapping):
            return self._grouped_proportions(names, given)
        if has_levels(self, names) or has_levels(self, given):
            return self._grouped_proportions(names, given)
        check_no_number(self, "proportions", names)
        asked, S, counts = self._estimate(names)
        group, G, _ = self._estimate(given)
        if not set(G) <= set(S):
            table = tuple(
                self.plan.schema.names[i] for i in (*(i for i in group if i not in asked), *asked)
            )
            raise ParameterError(
                f"proportions: expected groups by some of {names!r}, got given={given!r}; "
                f"hint: proportions({table!r}, given={given!r})"
            )
        labels = tuple(self.plan.schema.attributes[i].labels for i in asked)
        groups = self._groups(counts, tuple(axis for axis, i in enumerate(S) if i not in G))
        share = self.query.spread(np.ones([self.query.strategies[i].size for i in G]), G, S)
        variance = np.asarray(self.covariance.table_variance(S))
        return self._shares(asked, S, group, labels, (counts, groups, variance, share))

    def _grouped_proportions(self, names: Entry, given: Entry) -> ProportionTable:
        """Return :meth:`proportions` where the cells are counted in groups."""
        found = within(self, names, given)
        plain = self.plan.schema.names
        counts = self._estimate(tuple([plain[i] for i in found.subset]))[2]
        groups = self._estimate(tuple([plain[i] for i in sorted(found.given)]))[2]
        for axis, (_, base) in enumerate(found.parts):
            counts = np.asarray(base.answer(counts, axis))
        for axis, (_, base) in enumerate(found.wholes):
            groups = np.asarray(base.answer(groups, axis))
        variance = self.covariance.term_variance(found.parts)
        group_variance = found.spread(np.asarray(self.covariance.term_variance(found.wholes)))
        zeros = np.zeros(group_variance.shape)
        share = np.divide(
            covariances(self, found), group_variance, out=zeros, where=group_variance > 0
        )
        asked = tuple(found.asked)
        attributes = [self.plan.schema.attributes[i] for i in asked]
        labels = tuple(
            query_labels(found.asked[i], a) for i, a in zip(asked, attributes, strict=True)
        )
        said = [given] if isinstance(given, str) else given
        parts = counts, found.spread(groups), variance, share, group_variance
        return self._ratio_table(asked, found.subset, tuple(said), labels, parts)

    def cdf(self, name: str, given: Names = ()) -> ProportionTable:
        """Return cumulative shares of an attribute, in the order of the schema, within groups.

        The shares are of all records of a group. Records in the catch-all of the attribute are
        counted in the group, but have no place in the order.

        Args:
            name: the attribute.
            given: attributes that define the groups; none for all records.

        Returns:
            A :class:`ProportionTable`, axes of ``given`` first. Its simultaneous intervals are
            bands around the CDFs.

        Raises:
            ParameterError: unknown attributes, or a table that was not released.

        >>> import pyarrow as pa
        >>> schema = gn.Schema(
        ...     [gn.Attribute("sex", ["F", "M"]), gn.Attribute("age", edges=[0, 18, 65, 120])]
        ... )
        >>> people = pa.table({"sex": ["F", "M", "F"] * 4000, "age": [7, 33, 61] * 4000})
        >>> release = gn.plan(schema, [{"sex": "identity", "age": "prefix"}], gn.zCDP(0.1)).release(
        ...     people
        ... )
        >>> bool(
        ...     abs(release.cdf("age", given="sex").estimate - [[0.5, 1, 1], [0, 1, 1]]).max()
        ...     < 0.02
        ... )
        True
        """
        for asked in ((name,), given):
            check_no_number(self, "cdf", asked)
        group = self.plan.subset((given,) if isinstance(given, str) else given)
        if self.plan.subset((name,))[0] in group:
            raise ParameterError(
                f"cdf: expected groups by other attributes than {name!r}, got given={given!r}"
            )
        names = self.plan.schema.names
        asked, S, counts = self._estimate((*(names[i] for i in group), name))
        i = asked[-1]
        axis, attribute = S.index(i), self.plan.schema.attributes[i]
        prefix = as_base("prefix", attribute)
        term = tuple((k, prefix if k == i else Identity(self.plan.schema.sizes[k])) for k in S)
        G = tuple(sorted(group))
        share = self.query.spread(np.ones([self.query.strategies[k].size for k in G]), G, S)
        groups = self._groups(counts, (axis,))
        sums, share = (np.array(prefix.answer(values, axis)) for values in (counts, share))
        if attribute.other is None:
            last = (*[slice(None)] * axis, slice(-1, None))
            sums[last], share[last] = groups, 1.0  # exactly, without rounding
        variance = self.covariance.term_variance(term)
        labels = [self.plan.schema.attributes[k].labels for k in group]
        labels.append(query_labels(prefix, attribute))
        shares = self._shares(asked, S, group, tuple(labels), (sums, groups, variance, share))
        return replace(shares, steps=steps_of(attribute))

    def _groups(self, counts: Array, axes: tuple[int, ...]) -> Array:
        """Return counts added up along axes; a public number of rows is rounded to an integer."""
        groups = counts.sum(axis=axes, keepdims=True)
        return np.rint(groups) if groups.size == 1 and self._rows is not None else groups

    def _shares(
        self,
        asked: Subset,
        S: Subset,
        group: Subset,
        labels: tuple[tuple[Category, ...], ...],
        parts: tuple[Array, Array, Array, Array],
    ) -> ProportionTable:
        """Return sums divided by the counts of their groups.

        The parts are sums, groups, variances and shares, with axes in the order of S.
        """
        names, G = self.plan.schema.names, tuple(sorted(group))
        group_variance = np.asarray(self.covariance.table_variance(G))
        if group_variance.ndim:
            group_variance = group_variance.reshape(
                [self.plan.schema.sizes[i] if i in G else 1 for i in S]
            )
        given = tuple(names[i] for i in group)
        return self._ratio_table(asked, S, given, labels, (*parts, group_variance))

    def _ratio_table(
        self,
        asked: Subset,
        S: Subset,
        given: tuple[str, ...],
        labels: tuple[tuple[Category, ...], ...],
        parts: tuple[Array, Array, Array, Array, Array],
    ) -> ProportionTable:
        """Return shares from counts, group counts and their covariances, axes in the order of S."""
        names, shape = self.plan.schema.names, parts[0].shape
        counts, groups, variance, share, group_variance = (
            _ordered(np.broadcast_to(part, shape), S, asked) for part in parts
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            estimate = np.where(groups > 0, counts / groups, np.nan)
            squared = (
                variance - 2 * estimate * share * group_variance + estimate**2 * group_variance
            )
            # a group divided by itself has no variance: only rounding is left
            deviation = np.sqrt(np.where(squared > _CANCELLED * variance, squared, 0)) / groups
            # a share of exactly 0 or 1 is certain; so is any share of exact tables
            whole = (deviation == 0) & (
                not self.query.public or np.abs(estimate - np.rint(estimate)) < ROUNDED
            )
            estimate = np.where(whole, np.rint(estimate), estimate)
        return ProportionTable(
            attributes=tuple(names[i] for i in asked),
            labels=labels,
            estimate=_read_only(estimate),
            standard_deviation=_read_only(deviation),
            private=self.private,
            backend=self.backend,
            given=given,
            counts=counts,
            groups=groups,
            variance=variance,
            group_variance=group_variance,
            share=share,
        )

    def quantiles(
        self, name: str, probabilities: Sequence[float], given: Names = ()
    ) -> QuantileTable:
        """Return quantiles of a numeric attribute within groups, with intervals: BIASED.

        They are computed from its cumulative counts, which are first made to increase (isotonic
        regression) and then interpolated linearly inside bins. For integer categories, the
        quantile is the first category whose cumulative share reaches the probability. The
        catch-all is left out.

        Args:
            name: an attribute with edges (numbers or dates), or with increasing integer categories.
            probabilities: each in [0, 1].
            given: attributes that define the groups; none for all records.

        Returns:
            A :class:`QuantileTable`, axes of ``given`` first. Its numbers are in the attribute's
            unit, infinite in a bin without end, and NaN in a group whose count is not positive; its
            dates are NaT in both cases. ``low`` and ``high`` are the ends of intervals that
            cover at least as often as their level says.

        Raises:
            ParameterError: unknown or unordered attributes, a table that was not released, bad
                probabilities.

        >>> import pyarrow as pa
        >>> schema = gn.Schema([gn.Attribute("age", edges=[0, 20, 40, 60, 80])])
        >>> people = pa.table({"age": list(range(80)) * 1000})
        >>> release = gn.plan(schema, [{"age": "prefix"}], gn.zCDP(0.1)).release(people)
        >>> found = release.quantiles("age", [0.5, 0.9])
        >>> found.estimate.round(0).tolist()
        [40.0, 72.0]
        >>> found.low.tolist()[1], found.high.tolist()[1]  # what the bins can tell
        (60.0, 80.0)
        """
        group = self.plan.subset((given,) if isinstance(given, str) else given)
        (i,) = self.plan.subset((name,))
        check_no_number(self, "quantiles", (name,))
        if i in group:
            raise ParameterError(
                f"quantiles: expected groups by other attributes than {name!r}, got given={given!r}"
            )
        attributes = [self.plan.schema.attributes[k] for k in group]
        groups = {a.name: Identity(a.size) for a in attributes}
        marks = quantiles_of(self.answers, self.plan.schema.attributes[i], probabilities, groups)
        return replace(marks, labels=(*(a.labels for a in attributes), marks.labels[-1]))

    def ask(self, question: str, level: float = LEVEL) -> Answer:
        """Return the answer to a question in words, with intervals, from what was released.

        Questions are of seven forms. ``given``, or ``by``, names groups; a name alone, like
        ``sex``, asks for each of its labels; ``a|b`` adds labels up; names and labels that need it
        stand in ``"…"``:

        * ``count``, ``count of sex=F, age=[18, 65)``, ``count given sex``
        * ``share of employed=yes given sex, age``
        * ``ratio of (sex=F, employed=yes) to (sex=M, employed=yes) given age``
        * ``difference of share of employed=yes given sex=F and sex=M``, or of two counts
        * ``ratio of (sum of income, sex=F) to (sum of income, sex=M)``, or difference
        * ``cdf of age given sex``
        * ``quantile 0.5, 0.9 of age given sex``, ``median of age``
        * ``sum of income given sex``, ``mean of income``: where numeric columns were released

        Args:
            question: see above; labels as in the schema.
            level: of the intervals, each taken alone.

        Returns:
            An :class:`Answer`. Its intervals cover at least as often as their level says: intervals
            of counts exactly; of shares and ratios exactly where the denominator is clear of zero
            (Fieller 1954); of quantiles up to the width of bins. Intervals of differences of shares
            cover to first order.

        Raises:
            ParameterError: the text is no question, has unknown names or labels, or asks for a
                table that was not released; the message marks the place.
            NotAvailableError: sums or means of a release that has none.

        >>> import pyarrow as pa
        >>> schema = gn.Schema(
        ...     [gn.Attribute("sex", ["F", "M"]), gn.Attribute("age", edges=[0, 18, 65, 120])]
        ... )
        >>> people = pa.table({"sex": ["F", "M", "F"] * 4000, "age": [7, 33, 61] * 4000})
        >>> release = gn.plan(schema, 2, gn.zCDP(0.1)).release(people)
        >>> answer = release.ask("share of age=[18, 65) given sex")
        >>> answer.meaning, answer.labels, answer.estimate.round(2).tolist()
        ('share of age=[18, 65) given sex', (('F', 'M'),), [0.5, 1.0])
        """
        return answered(self, question, level)

    def cell(self, **labels: Category) -> Weights:
        """Return weights of a cell for :meth:`contrast`: ``release.cell(sex="F", age="18-64")``.

        Raises:
            ParameterError: an unknown attribute or label.
        """
        attributes = [self.plan.schema.attributes[i] for i in self.plan.subset(tuple(labels))]
        weights = np.zeros([attribute.size for attribute in attributes])
        for attribute, label in zip(attributes, labels.values(), strict=True):
            if label not in attribute.labels:
                raise ParameterError(
                    f"cell: expected a label of {attribute.name!r}, one of "
                    f"{list(attribute.labels)}, got {label!r:.80}" + near(label, attribute.labels)
                )
        weights[
            tuple(
                a.labels.index(label) for a, label in zip(attributes, labels.values(), strict=True)
            )
        ] = 1
        return {tuple(labels): weights}

    def contrast(self, weights: Weights) -> Contrast:
        """Return a linear combination of cells of one or several tables.

        Its standard deviation is exact.

        Args:
            weights: for each marginal, an array shaped like its table.

        Returns:
            The estimate and its standard deviation, which includes correlations between tables.

        Raises:
            ParameterError: an unknown marginal or a wrong shape.
        """
        if not isinstance(weights, Mapping):
            raise ParameterError(
                f'contrast: expected weights like {{("age", "sex"): array}}, got '
                f"{type(weights).__name__}; "
                "hint: contrasts() takes a list of them"
            )
        both = self.contrasts([weights])
        return Contrast(float(both.estimate[0]), float(both.standard_deviation[0]))

    def contrasts(self, combinations: Sequence[Weights]) -> Contrasts:
        """Return several linear combinations of cells, with their exact covariance matrix.

        Args:
            combinations: k mappings like the argument of :meth:`contrast`.

        Returns:
            Their estimates, shape (k,), and their covariance, shape (k, k).

        Raises:
            ParameterError: an unknown marginal or a wrong shape.
        """
        if not isinstance(combinations, list | tuple) or not all(
            isinstance(w, Mapping) for w in combinations
        ):
            raise ParameterError(
                'contrasts: expected a list of weights like [{("age", "sex"): array}], got '
                f"{type(combinations).__name__}; hint: release.cell(sex=...) makes the weights of "
                "one cell"
            )
        return combined(combinations, self._estimate, self.query, self.covariance, self._rows)

    def measurements(self) -> Iterator[Measurement]:
        """Return the independent noisy measurements that all tables are computed from.

        Other inference engines can start from them.
        """
        return measurements_of(self)

    def dp_event(self) -> "DpEvent":
        """Return what was charged, as :func:`gaussnoise.privacy.dp_event`.

        ``dp-accounting`` composes it with other events.
        """
        return dp_event(self.rho_charged)

    def to_mbi(self) -> "MbiProblem":
        """Return the measurements as input of ``mbi``, for synthetic records.

        The records are biased, but have no further privacy cost:
        ``mbi.estimation.MirrorDescent().estimate(*release.to_mbi())`` is a model to draw records
        from.

        Raises:
            NotAvailableError: ``mbi`` is not installed; the message says how to install it.
            ParameterError: the plan has ``public`` attributes: models of ``mbi`` take no exact
                tables.
        """
        if self.query.public:
            raise ParameterError(
                "to_mbi: expected a plan without public attributes: models of mbi take noisy "
                "tables, and no exact ones beside the number of rows"
            )
        from .synthetic import mbi_measurements

        strategies = dict(zip(self.plan.schema.names, self.query.strategies, strict=True))
        return mbi_measurements(self.measurements(), self.plan.schema, strategies)

    def synthetic(self, n: int | None = None) -> Any:
        """Return synthetic records that look like the released tables; a model makes them: BIASED.

        A graphical model of ``mbi`` is fitted to the noisy measurements, and records are drawn from
        it: post-processing, at no further privacy cost. Counts of these records are not the
        released estimates and have no known standard deviation. Relations that no released table
        holds are assumptions of the model, not facts of the data. For numbers with intervals, ask
        the release itself. The records are as private as the release: not at all for a simulation.

        A clipped number is at an end of its interval, or in the middle where the workload asks for
        squares: its sums and means are about right, and no other statistics of it are.

        ``mbi`` draws from numpy's global generator. Nothing private depends on these draws, so you
        may seed that generator to draw the same records again.

        Args:
            n: the number of records; about as many as the release estimates if left out.

        Returns:
            A dataframe of the library that the records came in (pyarrow for files and remote
            engines), one column for each released attribute, with its labels: bins as
            ``"[18, 65)"``.

        Raises:
            NotAvailableError: ``mbi`` is not installed; the message says how to install it.
            ParameterError: n is not a positive integer.

        Source: McKenna, Sheldon & Miklau (2019), see :meth:`to_mbi`.
        """
        import narwhals as nw

        return nw.from_arrow(synthetic_records(self, n), backend=self.backend).to_native()

    def _is_exact(self, S: Subset) -> bool:
        """Return whether the table of S has no noise: that of all rows, or of public attributes."""
        return () not in self.query.multipliers and set(S) <= set(self.query.public)

    def _estimate(self, names: Names) -> tuple[Subset, Subset, Array]:
        """Return positions as asked for, the same positions sorted, and the sorted estimates."""
        asked = self.plan.subset((names,) if isinstance(names, str) else names)
        S = tuple(sorted(asked))
        if S in self.tables:
            return asked, S, self.tables[S]
        self.plan.check_released(S)
        domain, wanted = self.plan.tables, set(S)
        above = min((A for A in domain.subsets if wanted <= set(A)), key=domain.cells)
        part = part_of(self.tables[above], above, S)
        return (
            asked,
            S,
            # a public number of rows is an integer
            np.rint(part) if self._is_exact(S) or (part.size == 1 and self._is_exact(())) else part,
        )

    def projected(self) -> Mapping[tuple[str, ...], BiasedTable]:
        """Return all planned marginals, moved to the nearest tables that some records have. BIASED.

        Nearest in the sum of squares over all cells, among tables with the released total (zero if
        that is negative). They are non-negative and consistent with each other in every way, not
        only on shared margins. Every step looks at all cells of the full table, so that table must
        fit into memory; hundreds of released cells take seconds, thousands take minutes.

        Returns:
            A :class:`BiasedTable` for each planned marginal; cells are real numbers.

        Raises:
            DomainTooLargeError: the full table has more cells than can be listed.

        Source: Nikolov, Talwar & Zhang (2016).

        >>> import pyarrow as pa
        >>> schema = gn.Schema([gn.Attribute(name, ["no", "yes"]) for name in "abc"])
        >>> rows = pa.table({"a": ["no"] * 9, "b": ["yes"] * 9, "c": ["no"] * 9})
        >>> release = gn.plan(schema, 2, gn.zCDP(0.01)).release(rows)
        >>> tables = release.projected()
        >>> print(len(tables), min(table.estimate.min() for table in tables.values()) >= 0)
        3 True
        """
        domain = Marginals(self.plan.schema.sizes, self.plan.tables.subsets)  # all weights 1
        stacked = np.concatenate([np.ravel(self.tables[S]) for S in domain.subsets])
        rows = max(float(np.sum(self.tables[domain.subsets[0]])), 0.0)
        nearby = rows * nearest(domain, stacked / rows)[0] if rows else np.zeros_like(stacked)
        ends = np.cumsum([domain.cells(S) for S in domain.subsets])[:-1]
        parts = dict(zip(domain.subsets, np.split(nearby, ends), strict=True))
        tables = {}
        for names in self:
            asked, released = self.plan.subset(names), self[names]
            S = tuple(sorted(asked))
            estimate = (
                parts[S]
                .reshape([domain.sizes[i] for i in S])
                .transpose([S.index(i) for i in asked])
            )
            tables[names] = BiasedTable(
                released.attributes,
                released.labels,
                _read_only(estimate),
                _PROJECTED,
                self.private,
                self.backend,
            )
        return tables

    def save(self, directory: str | os.PathLike[str], format: FileFormat = "csv") -> None:
        """Write the release to a new directory.

        The directory holds the tables, ``release.json``, ``summary.txt`` and ``release.png``: one
        tidy file per marginal, or one Parquet dataset for more than 1000 marginals.

        Args:
            directory: must not exist; it appears only when it is complete.
            format: "csv" or "parquet".

        Raises:
            OutputError: the directory exists, or its parent cannot be written.
            ParameterError: the release has more than 1000 marginals for CSV, is about ticks of a
                stream, or combines other releases.
        """
        if self.times is not None:
            raise ParameterError(
                f"save: these tables are about {self.times} of a stream; hint: its own folder has "
                "the tables of every "
                "tick; to_frame() for others"
            )
        plan: object = self.plan
        if isinstance(plan, MergedPlan):
            raise ParameterError(
                f"save: this combines {len(plan.sources)} releases; hint: save each of them, and "
                "combine them again after loading"
            )
        save_release(self, directory, format)

    def report(self, path: str | os.PathLike[str], *, title: str | None = None) -> None:
        """Write one HTML page for all readers of a release: director, auditor, journalist.

        It holds the request, tables and pictures with intervals, the largest and smallest groups,
        what is noise and what is not, privacy in plain words and in full, how close to optimal the
        noise is, and how the release was made. It needs no other file, no network and no script;
        the same release gives the same page. It tells nothing beyond the release, at no further
        cost; the page of a simulation says that it is not private.

        Args:
            path: a new file, like ``report.html``; not in the folder of the release.
            title: the heading of the page.

        Raises:
            OutputError: the file exists, cannot be written, or would be among released files.
            ParameterError: the title is not a text.

        >>> import pathlib, tempfile
        >>> import pyarrow as pa
        >>> survey = gn.plan(gn.Schema([gn.Attribute("sex", ["F", "M"])]), 1, gn.zCDP(0.1))
        >>> release = survey.release(pa.table({"sex": ["F", "M", "F"] * 400}))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     release.report(f"{folder}/report.html", title="A survey")
        ...     page = pathlib.Path(folder, "report.html").read_text(encoding="utf-8")
        >>> "<h1>A survey</h1>" in page
        True
        """
        from .report.pages import save_report

        save_report(self, path, title)

    @classmethod
    def load(cls, directory: str | os.PathLike[str], plan: "Plan | None" = None) -> "TableRelease":
        """Return a release that :meth:`save` or ``plan.release(out=...)`` wrote.

        It can then be asked further questions.

        Args:
            directory: the folder of the release; its files are checked against the sha256 in
                ``release.json``. It may hold no other files, and no links.
            plan: the plan of the release, planned again with the same arguments; if left out, it is
                planned here, from the request in ``release.json``.

        Raises:
            OutputError: files are missing, altered or added, the release is of another plan, or
                another version calibrated its noise.
        """
        if plan is None:
            plan = planned_again(directory)
        private, rho, on_outside, zoneless, tables = read_release(plan, directory)
        return cls(
            plan,
            private,
            rho,
            plan.covariance,
            plan.query,
            tables,
            "pyarrow",
            on_outside,
            without_zone=zoneless,
        )

    def __repr__(self) -> str:
        warning = "" if self.private else "NOT PRIVATE, a simulation: "
        if self.times is None:
            plan: object = self.plan
            combined = isinstance(plan, MergedPlan)
            many = f" combined from {len(plan.sources)} releases" if combined else ""
            return (
                f"TableRelease({warning}{number_of(len(self), 'marginal')}{many}, "
                f"rho charged {self.rho_charged:.6g})"
            )
        whole = f"rho charged for the whole stream {self.rho_charged:.6g}"
        return f"TableRelease({warning}{number_of(len(self), 'marginal')} of {self.times}, {whole})"


def _ordered(values: Array, S: Subset, asked: Subset) -> Array:
    """Return axes moved from the order of S to the one asked for; a single number stays one."""
    return values.transpose([S.index(i) for i in asked]) if values.ndim else values


def _read_only(values: Array) -> Array:
    values = np.asarray(values).view()
    values.flags.writeable = False
    return values
