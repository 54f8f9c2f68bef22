"""Docstrings, comments, messages and the book use plain words and the field's terms."""

import ast
import functools
import json
import re
import tokenize
from pathlib import Path

import domains
import gaussnoise
from gaussnoise.text import disclaimers

SOURCES = [
    source
    for package in (domains, gaussnoise)
    for source in sorted(Path(package.__file__).parent.rglob("*.py"))
]

ROOT = Path(__file__).parents[1]
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")),
    *(ROOT / name / "README.md" for name in ("gaussnoise", "domains")),
    *sorted((ROOT / "notebooks").glob("*.md")),
]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))

# words that a reader whose English is a second language reads twice, or for which the field has
# another: privacy guarantee
HARD = re.compile(
    r"\b(whoever|nobody|whatever|anybody|everybody|somebody|whichever|whomever|promise[sd]?"
    r"|privacy definitions?)\b",
    re.IGNORECASE,
)
# what files hold already, and stays as it is
STORED = (
    "Whoever sees the release knows exactly how many rows",
    "whatever {data}",
    "whatever the data",
    "it protects nobody",
    "a promise of the publisher's",
)


# a clause in place of a noun ("what is spent" for "the cost"), and idioms
HABITS = re.compile(
    r"\bwhat (is|was|are|were|has|had)\b|\ball the same\b|\bbut for\b|\bto spare\b|\bfor ever\b"
    r"|\bso many\b|\b(tells?|told)\b|\blook(s|ed|ing)? at\b|\bas (few|little)\b[^.;]* as\b"
    r"|\bat its best\b",
    re.IGNORECASE,
)
# a docstring says what a thing is, or what a function does, in its first word
CLAUSE = re.compile(r"(What|Whose|Who|How|With|Of|In|Its|Their)\b")
NOUN = re.compile(rf"{CLAUSE.pattern}|(The|An?|All|One|Whether|If|When|Where|For|This|It)\b")
FSTRING = tuple(getattr(tokenize, name) for name in ("FSTRING_MIDDLE",) if hasattr(tokenize, name))
# a note behind a line of code names its subject: "share of the budget", not "of the budget"
FRAGMENT = re.compile(r"# (of|from|what|whose)\b")


@functools.cache
def docstrings(source):
    """All docstrings of a file, with what they belong to."""
    kinds = ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef
    nodes = [n for n in ast.walk(ast.parse(source.read_text("utf-8"))) if isinstance(n, kinds)]
    return [(node, text) for node in nodes if (text := ast.get_docstring(node)) is not None]


@functools.cache
def written(source):
    """The texts and comments of a file, as tokens."""
    kinds = tokenize.STRING, tokenize.COMMENT, *FSTRING
    with tokenize.open(source) as file:
        return [token for token in tokenize.generate_tokens(file.readline) if token.type in kinds]


def nouns_of_functions(source):
    """The functions, other than properties, whose docstring begins with no verb."""
    for node, text in docstrings(source):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and NOUN.match(text):
            if not any("property" in ast.unparse(name) for name in node.decorator_list):
                yield node.name


def habits(source):
    """The first lines of docstrings, and the comments, that have to be read twice."""
    for _, text in docstrings(source):
        if CLAUSE.match(text) or HABITS.search(text):
            yield text.split("\n")[0]
    for token in written(source):
        if token.type == tokenize.COMMENT:
            behind = not token.line.lstrip().startswith("#")
            if HABITS.search(token.string) or (behind and FRAGMENT.match(token.string)):
                yield token.string


def hard_words(source):
    """The lines of a file whose comments or texts have such a word, by number."""
    for token in written(source):
        # of f-strings from Python 3.12 on, the whole line: a token ends at each brace
        if is_hard(token.line if token.type in FSTRING else token.string):
            yield token.start[0]


def is_hard(text):
    for stored in STORED:
        text = text.replace(stored, "")
    return HARD.search(text) is not None


def test_no_comment_or_text_has_a_word_that_is_read_twice():
    assert len(SOURCES) > 100
    assert not {str(source): found for source in SOURCES if (found := list(hard_words(source)))}


def test_no_page_of_the_book_has_one():
    pages = {page: page.read_text(encoding="utf-8") for page in PAGES}
    for notebook in NOTEBOOKS:
        cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
        told = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown"]
        pages[notebook] = "\n".join(told)
    assert not [str(page) for page, text in pages.items() if is_hard(text)]


def test_such_words_are_found(tmp_path):
    path = tmp_path / "a.py"
    path.write_text('x = 1  # for nobody\n"""Whatever it is."""\ny = "plain"\n', encoding="utf-8")
    assert list(hard_words(path)) == [1, 2]
    assert is_hard("It keeps its promise.")
    assert not is_hard("a promise of the publisher's, not checked")


def test_docstrings_of_functions_begin_with_a_verb():
    found = {str(source): list(nouns_of_functions(source)) for source in SOURCES}
    assert not {source: names for source, names in found.items() if names}


def test_no_docstring_or_comment_has_a_habit_that_is_read_twice():
    assert len(SOURCES) > 200
    assert not {str(source): found for source in SOURCES if (found := list(habits(source)))}


def test_such_habits_are_found(tmp_path):
    path = tmp_path / "a.py"
    path.write_text(
        '''"""Whose each row is."""
def f():
    """The cost."""
def g():
    """Return what is left."""
class C:
    """A cost."""
    @property
    def h(self):
        """The cost."""
    # of a sum
    x = 1  # of the cost
    y = 2  # as few rounds as there are, all the same
''',
        encoding="utf-8",
    )
    assert list(nouns_of_functions(path)) == ["f"]
    assert list(habits(path)) == [
        "Whose each row is.",
        "Return what is left.",
        "# of the cost",
        "# as few rounds as there are, all the same",
    ]


def test_readers_are_told_that_a_program_is_under_review_and_not_the_data():
    """A reader took "not yet fully vetted", said of OpenDP's sampler, for a word on the tables."""
    *_, drawn = disclaimers("one row", True)
    assert "vetted" not in drawn
    assert "OpenDP" in drawn
    assert drawn.endswith("This is about that program, not about the data or the tables.")
