"""The command that answers questions about a release."""

from typing import Annotated

import typer

from .console import say, show
from .options import Json, Published, SomeTicks
from .published import published


def ask(
    folder: Published,
    question: Annotated[str, typer.Argument(help='In quotes, like "count of sex=F".')],
    level: Annotated[float, typer.Option("--level", help="Of the intervals.")] = 0.95,
    ticks: SomeTicks = None,
    as_json: Json = False,
) -> None:
    """Answer a question from a published folder alone, with intervals.

    A question is one of these:

      count of sex=F, age=[18, 65)
      share of employed=yes given sex, age
      ratio of (sex=F, employed=yes) to (sex=M, employed=yes)
      difference of share of employed=yes given sex=F and sex=M
      difference of (sex=F) and (sex=M) given age
      cdf of age given sex
      quantile 0.5, 0.9 of age given sex
      sum of income given sex
      mean of income given sex

    sex=F takes one label; age=[0, 18)|[18, 65) or age in (…, …) adds up
    several; a name alone, sex, asks for each of its labels. Where an
    attribute has edges: age<65, age>=18, age=[0, 65), born<2000-01-01.
    After given, or by, come the groups: names, or names with labels (names
    alone for sums and means). Names and labels with commas, bars, brackets
    or other words in them stand in "…".
    """
    answer = published(folder, ticks).ask(question, level)
    if as_json:
        show(answer.to_dict())
    else:
        say(str(answer))
