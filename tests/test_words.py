"""Docstrings, comments, messages and the book use plain words and the field's terms."""

import json
import re
import tokenize
from pathlib import Path

import domains
import gaussnoise

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


def hard_words(source):
    """The lines of a file whose comments or texts have such a word, by number."""
    with tokenize.open(source) as file:
        for token in tokenize.generate_tokens(file.readline):
            if token.type in (tokenize.STRING, tokenize.COMMENT, *FSTRING):
                # of f-strings from Python 3.12 on, the whole line: a token ends at each brace
                if is_hard(token.line if token.type in FSTRING else token.string):
                    yield token.start[0]


def is_hard(text):
    for stored in STORED:
        text = text.replace(stored, "")
    return HARD.search(text) is not None


FSTRING = tuple(getattr(tokenize, name) for name in ("FSTRING_MIDDLE",) if hasattr(tokenize, name))


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
