"""The HTML page of a stream: tables of all rows so far, and tables over time."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..tables.planning.facts import marginal_name

if TYPE_CHECKING:
    from .tables import StreamTables

_MOST_TABLES = 12  # most tables over time on the page


def report(
    tables: "StreamTables",
    path: str | os.PathLike[str],
    *,
    title: str | None = None,
    ask: Sequence[str] = (),
) -> None:
    """Write one HTML page for the readers of a stream, like :meth:`TableRelease.report`.

    Its tables count all rows so far. The first twelve are also shown tick by tick: numbers with
    intervals and, if a table has few cells, a picture.

    Args:
        tables: the tables of the stream.
        path: a new file, like ``report.html``.
        title: the heading of the page.
        ask: questions that the page answers, in the forms that :meth:`ask` takes.

    Raises:
        OutputError: the file exists, or cannot be written.
        ParameterError: the stream has no tick yet, the title is not a text, or the tables do not
            answer a question.

    >>> import pathlib, tempfile
    >>> import numpy as np, pyarrow as pa
    >>> schema = gn.Schema([gn.Attribute("sex", ["F", "M"])])
    >>> plan = gn.plan(schema, 1, gn.zCDP(0.1), over=gn.streams.Ticks(12))
    >>> days = [pa.table({"sex": ["F", "M", "F"] * 400})] * 3
    >>> so_far = plan.simulate(days, np.random.default_rng(0))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     so_far.report(f"{folder}/report.html")
    ...     page = pathlib.Path(folder, "report.html").read_text(encoding="utf-8")
    >>> "sex by tick" in page
    True
    """
    # imported here: only a report needs these modules
    from ..tables.release.report.answers import answers_of
    from ..tables.release.report.over_time import OverTime
    from ..tables.release.report.pages import release_page, save_page

    kept = tables.kept()

    def page() -> str:
        heading, shown = tables.plan.schema.heading, tables.plan.marginals[:_MOST_TABLES]
        titles = [marginal_name(tuple(map(heading, names))) for names in shown]
        over_time = [
            OverTime(own, title, f"over-time-{k}", tables.plan.schema, own.word, own.times)
            for k, (own, title) in enumerate(zip(map(kept.series, shown), titles, strict=True), 1)
        ]
        answers = answers_of(kept, ask)
        tick = getattr(tables.periods[0], "folder", None)  # STREAM/ticks/0001/period
        folder = None if tick is None else tick.parents[2]
        total = kept.total()
        return release_page(total, title, over_time=over_time, answers=answers, folder=folder)

    save_page(page, path, title, [])
