"""Messages in the words of the page: they name its fields, not options or classes of errors."""

import re

# the fields about how files are written, by the keys of [file] in a schema file
DIALECT = {
    "delimiter": "Delimiter, if not found rightly: ; or tab",
    "decimal": "Decimal mark: . or ,",
    "thousands": "Mark of thousands",
    "encoding": "Encoding: utf-8, cp1252 …",
    "quote": "Quote around fields",
    "date_format": "Dates: dd.MM.yyyy, M/d/yyyy …",
    "skip": "Lines before the column names",
}
WRITTEN = "How the file is written"  # the title above these fields
_WHO = re.compile(r"(app|check|plan|release|schema|ledger|stream|start|tick|open): ")
_STATED = re.compile(
    r"(\w+) = (\".*?\"|'.*?'|\d+) in the schema's \[file\], --[\w-]+ .*?, or Dialect\([^()]*\)"
)
_IN_PAGE = {
    r"^(error: \w+|warning): ": "",
    r"; hint: [^\n]*--\w[^\n]*": "",  # options; the page has other ways
    r", or (on_outside=\"refuse\"|--on-outside refuse) refuses the table:": " of all tables:",
    r"\bin (?:the|its) catch-all\b": "as the rest",
    r", with its catch-alls$": "",
    # the numbers of a check of rows, in sentences
    r"^([\d,]+) rows?, \1 counted$": r"All \1 rows count.",
    r"^([\d,]+) rows?, ([\d,]+) counted$": r"\2 of \1 rows count.",
    r"^1 left out of all tables:\n  (\S.*?) +no person +1$(?!\n  )": "1 row has no value "
    r"in “\1”.",
    r"^([\d,]+) left out of all tables:\n  (\S.*?) +no person +\1$(?!\n  )": r"\1 rows have "
    r"no value in “\2”.",
    r"^1 not counted: further rows of persons who are counted$": "1 row is a second "
    "one of a person.",
    r"^([\d,]+) not counted: further rows of persons who are counted$": r"\1 rows are of "
    "persons who are counted already.",
    r"^NOT PRIVATE: for you alone, with exact counts and values of your data\.$": "Only for you, "
    "with exact counts and values: do not publish these lines.",
    r"`gaussnoise check TABLE -s SCHEMA`": "Check the rows",
    r"give the number edges in place of clip": "make the number intervals, in place of “a number, "
    "for sums and means”",
}
_OF_DRAFTS = {
    r"write clip = \[(.*?), (.*?)\] in place of edges(?: and names)?": r"a number from \1 to \2 is "
    "proposed",
    r'add the line missing = \[(.*?)\](?:, and other = ".*?")?': r"press “Count \1 as no answer”",
    r"; hint: (leave it out, or )?--person .*": "",
}


def in_page(text: str) -> str:
    """Return a message of the library or of a command in the words of the page.

    >>> in_page("error: BudgetError: ledger: expected a cost of at most rho = 0.1")
    'Expected a cost of at most rho = 0.1'
    """
    said = _STATED.sub(_field, text.strip())
    for words, own in _IN_PAGE.items():
        said = re.sub(words, own, said, flags=re.MULTILINE)
    who = _WHO.match(said)
    return said if who is None else said[who.end() :][:1].upper() + said[who.end() + 1 :]


def _label(name: str) -> str:
    """Return the label of the form's field for a property of files, such as its delimiter."""
    return re.split("[,:]", DIALECT[name])[0] if name in DIALECT else name


def _field(found: re.Match[str]) -> str:
    name, value = found.groups()
    shown = value if value.isdigit() else repr(value[1:-1])
    return f"{shown} in the field {_label(name)} under {WRITTEN}, on the page Table"


def in_words(reason: str) -> str:
    """Return the comment of a drafted attribute, with fields of the page instead of TOML lines."""
    for line, field in _OF_DRAFTS.items():
        reason = re.sub(line, field, reason)
    return in_page(reason)
