"""Synthetic records that look like a release's tables, drawn from a model of mbi."""

import contextlib
import io
import logging
import warnings
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ...errors import NotAvailableError, ParameterError
from ..schema.numbers import cell_numbers
from ..schema.schema import Attribute, Category

if TYPE_CHECKING:
    from .release import TableRelease

_MOST_RECORDS = 10**8


def synthetic_records(release: "TableRelease", n: int | None) -> Any:
    """Return an arrow table of records with labels, see :meth:`TableRelease.synthetic`."""
    if n is not None and (type(n) is not int or not 1 <= n <= _MOST_RECORDS):
        raise ParameterError(
            f"synthetic: expected a number of records, from 1 to {_MOST_RECORDS}, got {n!r:.50}"
        )
    try:
        with _quiet():
            import jax
            import mbi
    except ImportError:
        raise NotAvailableError(
            'synthetic: needs mbi; hint: pip install "gaussnoise[synth]"'
        ) from None
    import pyarrow as pa

    with _quiet(), jax.enable_x64(True):
        model: Any = mbi.estimation.MirrorDescent().estimate(*release.to_mbi())
        records = model.synthetic_data(rows=n)
    drawn = [a for a in release.plan.schema.attributes if a.name in records.domain.attributes]
    codes = [pa.array(records.data[a.name]) for a in drawn]
    columns = [pa.array(_values(a)).take(own) for a, own in zip(drawn, codes, strict=True)]
    return pa.table(columns, [a.name for a in drawn])


def _values(attribute: Attribute) -> Sequence[Category | float | None]:
    """Return the value of the records of each cell: its label, or the number of its weight."""
    return attribute.labels if attribute.clip is None else cell_numbers(attribute)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Silence what jax and mbi print about devices, precision, caches and progress."""
    logger = logging.getLogger("jax")
    level, silent = logger.level, io.StringIO()
    logger.setLevel(logging.ERROR)
    try:
        with (
            warnings.catch_warnings(),
            contextlib.redirect_stdout(silent),
            contextlib.redirect_stderr(silent),
        ):
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
