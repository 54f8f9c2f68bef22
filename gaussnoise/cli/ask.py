"""The command that answers questions about a release."""

from typing import Annotated

import typer

from .console import say, show
from .options import Json, Published, SomeTicks
from .published import published, streamed


def ask(
    folder: Published,
    question: Annotated[str, typer.Argument(help='In quotes, like "count of sex=F".')],
    level: Annotated[float, typer.Option("--level", help="Of the intervals.")] = 0.95,
    ticks: SomeTicks = None,
    as_json: Json = False,
) -> None:
    """Answer a question about a published folder, with intervals. Needs no data.

    A question is one of these, or similar:

      how many, sex=F, age at least 18        (count of sex=F, age=[18, 65))
      how many women in North                 (labels that one attribute has)
      share of employed=yes given sex, age    (per cent of employed=yes by sex)
      mean of income by sex                   (average, sum, or total income)
      largest region                          (top 3 of mean of income by region)
      difference of (mean of income, sex=F) and (mean of income, sex=M)
      difference of share of employed=yes between sex=F and sex=M
      percentage of people with employed=yes  (share by region)
      ratio of (sex=F, employed=yes) and (sex=M, employed=yes) given age
      how many stays in March 2023            (the title's noun; from … to, since)
      entropy of region by sex                (concentration, odds ratio of … and)
      variance of income, sex=F
      regression of income on sex, age and sex:age
      logistic regression of employed=yes on sex
      are sex and employed independent
      cdf of age given sex
      quantile 0.5, 0.9 of age given sex      (median of age)
      count of sex by tick                    (of a stream; in ticks 3 to 5)
      change of count of sex=F from tick 3 to tick 7
      trend of share of employed=yes by sex   (with a test of no change)

    sex=F takes one label; age=[0, 18)|[18, 65) or age in (…, …) adds up
    several; a name alone, sex, asks for each of its labels. Where an
    attribute has edges: age<65, age>=18, age=[0, 65), age between 18 and 65,
    age more than 18 (18 included), born<2000-01-01. After given, or by, come
    the groups. Where rows of a stream say their tick in a column, like week, its
    name stands for tick. A question that is not answered is refused with the
    nearest one that is. Names and labels with commas, bars, brackets or other
    words in them stand in "…".
    """
    tables = None if ticks is not None else streamed(folder)
    source = published(folder, ticks) if tables is None else tables
    answer = source.ask(question, level)
    if as_json:
        show(answer.to_dict())
    else:
        say(str(answer))
