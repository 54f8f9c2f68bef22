"""HTML that escapes its content, and the one style sheet of a page."""

import html
import math
import re
from collections.abc import Iterable, Sequence
from typing import final

from ....text import number_of

_MOST_LABEL = 120  # characters of a label that a page shows
_VOID = {"meta", "br", "line", "circle", "rect", "polygon", "polyline"}
_SVG_ALONE = {"line", "circle", "rect", "polygon", "polyline"}  # written <line …/>
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufdd0-\ufdef\ufffe\uffff]")
_SHORT = 14  # rows of a table that is kept on one sheet of paper
_EXACT = 1e15  # larger numbers are not written with all digits


@final
class Html(str):
    """Text that is markup already; all other text is escaped when it enters a page."""

    __slots__ = ()


def escaped(text: object) -> Html:
    """Return text escaped for a page; characters that HTML forbids are replaced."""
    return text if isinstance(text, Html) else Html(html.escape(_CONTROL.sub("\ufffd", str(text))))


def tag(name: str, /, *inside: object, **attributes: object) -> Html:
    """Return an element: ``tag("td", "a < b", class_="label")``; None attributes are left out.

    >>> tag("p", "1 < 2 ", tag("b", "&"), class_="x")
    '<p class="x">1 &lt; 2 <b>&amp;</b></p>'
    """
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escaped(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in _VOID:
        return Html(f"<{name}{given}{'/' if name in _SVG_ALONE else ''}>")
    return Html(f"<{name}{given}>{''.join(map(escaped, inside))}</{name}>")


def joined(parts: Iterable[object], between: str = "\n") -> Html:
    """Return parts one after the other."""
    return Html(escaped(between).join(map(escaped, parts)))


def shown(text: object, most: int = _MOST_LABEL) -> str:
    """Return a label on one line, cut where it is very long."""
    line = " ".join(str(text).split()) or "(blank)"
    return line if len(line) <= most else line[: most - 1] + "…"


def label(text: object) -> Html:
    """Return a label for a sentence or a cell: text of any direction stays in its place."""
    return tag("bdi", shown(text))


def digits_of(deviation: float) -> int:
    """Return the decimals that are larger than the noise."""
    if not 0 < deviation < math.inf:
        return 0
    return min(max(0, -math.floor(math.log10(2 * deviation))), 9)


def number(value: float, digits: int) -> str:
    """Return a number like ``−1,234.5``.

    >>> number(-1234.56, 1), number(-0.01, 0)
    ('−1,234.6', '0')
    """
    if not math.isfinite(value):
        return str(value)
    text = f"{value:z,.{digits}f}" if abs(value) < _EXACT else f"{value:.6g}"
    return text.replace("-", "−")


def data(value: float, digits: int) -> Html:
    """Return a number that programs can also read in full."""
    return tag("data", number(value, digits), value=repr(float(value)))


def counted(count: int, thing: str) -> str:
    """Return a count with its noun, like ``2 tables``."""
    return number_of(count, thing, form=",")


def section(title: str, name: str, *inside: object, level: int = 2) -> Html:
    """Return a part of a page under a heading that links can point to."""
    heading = tag(f"h{level}", title, id=name)
    return tag("section", "\n", heading, "\n", joined(inside), "\n", aria_labelledby=name)


def listing(pairs: Iterable[tuple[object, object]], **attributes: object) -> Html:
    """Return terms with their descriptions."""
    return tag(
        "dl",
        *(tag("div", tag("dt", term), tag("dd", text)) for term, text in pairs),
        **attributes,
    )


def paragraphs(*texts: object) -> Html:
    """Return each text in its own paragraph; empty ones are left out."""
    return joined(tag("p", text) for text in texts if text)


def grid(
    caption: object,
    columns: Sequence[object],
    rows: Iterable[Sequence[object] | Html],
    *,
    labels: int = 1,
    numeric: bool = True,
) -> Html:
    """Return a table in a box that scrolls, also by keyboard, where the page is too narrow.

    Args:
        caption: the subject of the table.
        columns: the names of the columns.
        rows: cells, the first ``labels`` of which name the row; or whole rows of markup.
        labels: how many cells name the row.
        numeric: whether other cells are numbers, aligned to the right.
    """
    kind = "n" if numeric else None
    head = [
        tag("th", name, scope="col", class_=None if k < labels else kind)
        for k, name in enumerate(columns)
    ]
    body = [
        row
        if isinstance(row, Html)
        else tag(
            "tr",
            *(
                tag("th", cell, scope="row") if k < labels else tag("td", cell, class_=kind)
                for k, cell in enumerate(row)
            ),
        )
        for row in rows
    ]
    table = tag(
        "table",
        tag("caption", caption),
        tag("thead", tag("tr", *head)),
        "\n",
        tag("tbody", joined(body)),
    )
    plain = html.unescape(re.sub("<[^>]*>", "", escaped(caption)))
    kind = "box short" if len(body) <= _SHORT else "box"
    return tag("div", table, class_=kind, role="region", aria_label=plain, tabindex=0)


def page(title: str, *inside: object) -> Html:
    """Return a whole document that needs nothing else: no script, no font, no network."""
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("title", title),
        tag("style", Html(STYLE)),
    )
    body = tag("body", "\n", joined(inside), "\n")
    return Html(f"<!DOCTYPE html>\n{tag('html', head, chr(10), body, lang='en')}\n")


STYLE = """
:root{--ink:#1b1f24;--soft:#57606a;--line:#d0d7de;--pale:#f6f8fa;--ours:#1b6ca8;--band:#bcd7ea;
--theirs:#b3423c}
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%;text-size-adjust:100%}
body{margin:0 auto;max-width:52rem;padding:1rem;color:var(--ink);background:#fff;
font:1rem/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans",sans-serif;
overflow-wrap:break-word}
h1{font-size:1.75rem;line-height:1.2;margin:.5rem 0}
h2{font-size:1.3rem;line-height:1.3;margin:2.5rem 0 .5rem;padding-top:.75rem;
border-top:1px solid var(--line)}
h3{font-size:1.05rem;margin:1.75rem 0 .25rem}
p{margin:.5rem 0;max-width:44rem}
a{color:#0b57a0}
.lead{font-size:1.1rem}
.note,caption,figcaption{color:var(--soft);font-size:.9rem}
.alarm{border:3px solid #a40e26;background:#ffebe9;color:#82071e;padding:.75rem 1rem;
font-weight:700}
nav ul{padding:0;margin:.5rem 0;display:flex;flex-wrap:wrap;gap:.25rem 1.25rem;list-style:none}
dl{margin:.75rem 0}
dl>div{padding:.4rem 0;border-bottom:1px solid var(--line)}
dt{font-weight:600}
dd{margin:0}
.facts{display:grid;grid-template-columns:repeat(auto-fit,minmax(8.5rem,1fr));gap:.6rem}
.facts>div{background:var(--pale);border:1px solid var(--line);border-radius:.4rem;
padding:.5rem .75rem}
.facts dt{font-weight:400;color:var(--soft);font-size:.85rem}
.facts dd{font-weight:600}
.facts small{display:block;font-weight:400;color:var(--soft)}
.box{overflow-x:auto;margin:.75rem 0}
.box:focus-visible{outline:2px solid var(--ours)}
table{border-collapse:collapse;min-width:min(100%,18rem);font-size:.925rem;
font-variant-numeric:tabular-nums}
caption{text-align:left;padding:.25rem 0}
th,td{padding:.25rem .6rem .25rem 0;text-align:left;vertical-align:top;
border-bottom:1px solid var(--line);min-width:4.5rem}
thead th{border-bottom:2px solid var(--soft)}
tbody th{font-weight:400}
td.n,th.n{text-align:right;padding-left:.6rem}
td.n{white-space:nowrap}
td code{white-space:normal}
td small{display:block;color:var(--soft)}
tr.gap td{color:var(--soft);font-style:italic;text-align:left}
figure{margin:.75rem 0;max-width:44rem}
svg{display:block;width:100%;overflow:visible;font-size:12px}
svg text{fill:var(--ink);paint-order:stroke;stroke:#fff;stroke-width:3px;stroke-linejoin:round}
svg .s{fill:var(--soft);font-size:11px}
svg .h{font-weight:600}
svg .g{stroke:var(--line)}
svg .z{stroke:var(--soft)}
svg .i{stroke:var(--ours);stroke-width:2}
svg .o{fill:var(--ours)}
svg .t{fill:var(--theirs)}
svg .b{fill:var(--band)}
svg .l{fill:none;stroke:var(--ours);stroke-width:1.5}
code{overflow-wrap:anywhere}
code,pre{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;font-size:.85rem}
pre{background:var(--pale);padding:.6rem;overflow-x:auto;overflow-wrap:normal}
@media (min-width:44rem){
dl:not(.facts)>div{display:grid;grid-template-columns:12rem 1fr;gap:1rem}
}
@media print{
@page{size:A4;margin:16mm 14mm}
body{max-width:none;padding:0;font-size:10pt}
nav{display:none}
a{color:inherit;text-decoration:none}
.box{overflow:visible}
pre{white-space:pre-wrap}
h2,h3,h3+.note,caption{break-after:avoid}
figcaption{break-before:avoid}
h2{margin-top:1.5rem}
figure,tr,.facts,dl>div,.short{break-inside:avoid}
thead{display:table-header-group}
*{print-color-adjust:exact;-webkit-print-color-adjust:exact}
}
"""
