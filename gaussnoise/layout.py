"""Line breaks for a terminal: in prose between words, in tables inside the columns."""

import re
import shutil
import textwrap
from collections.abc import Iterator, Sequence

WIDTH = 80  # width of files, and of screens of unknown width
_INDENT = "  "  # begins the second and further lines of a broken line
_LEAST_GAP = 2  # fewest blanks between columns
_NARROWEST = 40  # narrower terminals break lines themselves
_QUOTED = re.compile(r'"[^"]*"')
_BLANK = "\0"  # replaces a blank at which no line may be broken


def on_screen(text: str) -> str:
    """Return text for output by the shell or ``print``, with lines broken to the screen's width.

    The width is the environment variable COLUMNS, else the terminal's width, else 80. Text in files
    has 80 columns: see :func:`fitted`.
    """
    return fitted(text, shutil.get_terminal_size((WIDTH, 0)).columns)


def fitted(text: str, width: int = WIDTH) -> str:
    """Return text with lines no longer than ``width``, except for longer words.

    Lines of equal length with three columns or more are rows of one table. If they are too long,
    cells of the widest text columns are broken into several lines, so that columns stay aligned.
    Text after a label is broken in the same way. Every line of a broken comment is a comment.
    Quoted texts in arrays of TOML are not broken.

    >>> print(fitted("noise        added to every count, once and for all releases", 40))
    noise        added to every count, once
                 and for all releases
    """
    width = max(width, _NARROWEST)
    given = text.split("\n")
    tables: dict[int, list[str]] = {}
    for line in given:
        if len(line) > width and len(_columns([line])) > 2:
            tables.setdefault(len(line), []).append(line)
    lines: list[str] = []
    for line in given:
        if len(line) <= width:
            lines.append(line)
        elif line.startswith("#"):
            lines += _break_line(line, width, "# ")
        else:
            rows = tables.get(len(line), []) if len(_columns([line])) > 2 else [line]
            lines += _break_row(line, rows, width)
    return "\n".join(lines)


def _break_row(line: str, rows: Sequence[str], width: int) -> Iterator[str]:
    """Yield the lines of one row of a text table, with text broken inside its column."""
    spans = _columns(rows)
    margin = line[: len(line) - len(line.lstrip())]
    has_label = len(spans) == 2 and spans[1][0] <= width // 2
    if len(rows) == 1 and not has_label:
        yield from _break_line(line, width, margin + _INDENT)
        return
    widths, gaps = _narrow(rows, spans, width)
    parts = []
    for k, ((start, end), own) in enumerate(zip(spans, widths, strict=True)):
        to_right = any(row[start] == " " for row in rows)
        pieces = _break_line(line[start:end].strip(), own, "" if k else _INDENT)
        parts.append([piece.rjust(own) if to_right else piece.ljust(own) for piece in pieces])
    for k in range(max(map(len, parts))):
        pieces = [part[k] if k < len(part) else "" for part in parts]
        cells = zip(gaps, pieces, widths, strict=True)
        yield "".join(" " * gap + one.ljust(own) for gap, one, own in cells).rstrip()


def _columns(rows: Sequence[str]) -> list[tuple[int, int]]:
    """Return (start, end) of each column of a table; columns are at least two blanks apart."""
    length = max(map(len, rows))
    filled = "".join(
        "x" if any(row[k : k + 1].strip() for row in rows) else " " for k in range(length)
    )
    return [found.span() for found in re.finditer(r"x+(?: x+)*", filled)]


def _narrow(
    rows: Sequence[str], spans: Sequence[tuple[int, int]], most: int
) -> tuple[list[int], list[int]]:
    """Return widths of columns and gaps, together at most ``most`` if no word is too long."""
    widths = [end - start for start, end in spans]
    before = [0, *(end for _, end in spans)]
    gaps = [start - end for (start, _), end in zip(spans, before, strict=False)]
    for k in sorted(range(len(spans)), key=lambda k: -widths[k]):
        excess = max(sum(widths) + sum(gaps) - most, 0)
        words = [len(word) for row in rows for word in row[slice(*spans[k])].split(" ")]
        widths[k] = max(widths[k] - excess, min(widths[k], max(words) + (0 if k else len(_INDENT))))
    if sum(widths) + sum(gaps) > most:
        gaps = [gaps[0], *(min(gap, _LEAST_GAP) for gap in gaps[1:])]
    return widths, gaps


def _break_line(line: str, width: int, indent: str) -> list[str]:
    """Return a line broken between words; pieces after the first begin with ``indent``."""
    if re.match(r'[\w".-]+ = \[', line):
        line = _QUOTED.sub(lambda quoted: quoted[0].replace(" ", _BLANK), line)
    pieces = textwrap.wrap(
        line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
    return [piece.replace(_BLANK, " ") for piece in pieces]
