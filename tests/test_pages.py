"""README and book are what a newcomer runs: their code, their commands, their links."""

import importlib
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from cases import one_test_of

import gaussnoise as gn
import gaussnoise.indicators
import gaussnoise.plots
import gaussnoise.privacy
import gaussnoise.signing
from gaussnoise.cli.app import run

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BOOK = sorted((ROOT / "notebooks").glob("*.md"))
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")),
    *(ROOT / name / "README.md" for name in ("gaussnoise", "domains")),
    *BOOK,
]
every_page = one_test_of("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


def blocks(page):
    """The code of a page, in order: its language and its text."""
    text = page.read_text(encoding="utf-8")
    return re.findall(r"```(python|sh)\n(.*?)```", text, flags=re.DOTALL)


def commands(text):
    """The lines of a block that call us; those that install or build are run elsewhere."""
    lines = text.replace("\\\n", " ").splitlines()
    return [
        shlex.split(line, comments=True)[1:] for line in lines if line.startswith("gaussnoise ")
    ]


TRAINING = ROOT / "notebooks" / "training.md"
WITH_CODE = [
    page
    for page in PAGES
    if page != TRAINING
    and any(language == "python" or commands(text) for language, text in blocks(page))
]


@pytest.mark.integration
@pytest.mark.parametrize("page", WITH_CODE, ids=lambda page: page.name)
def test_code_and_commands_run_in_order(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "page"}
    for language, text in blocks(page):
        if language == "python":
            exec(compile(text, page.name, "exec"), names)
        else:
            for command in commands(text):
                assert run(command) == 0, command


def test_there_is_code_to_run():
    assert len(WITH_CODE) >= 8
    assert ROOT / "README.md" in WITH_CODE


@pytest.mark.integration
# jax-privacy 2.0 calls it
@pytest.mark.filterwarnings("ignore:optax.global_norm is deprecated:DeprecationWarning")
@pytest.mark.parametrize("library", ["optax", "jax_privacy", "torch.nn.utils", "opacus"])
def test_a_training_loop_takes_our_noise(library):
    """The first block of the page, and that of one library, where it is installed."""
    pytest.importorskip(library)
    first, *others = [text for _, text in blocks(TRAINING)]
    [own] = [text for text in others if re.search(f"^(import|from) {library}\\b", text, re.M)]
    names = {"__name__": "page"}
    for text in (first, own):
        exec(compile(text, TRAINING.name, "exec"), names)


R = shutil.which("Rscript")
OPTIONAL = ("reticulate", "arrow")


def has_package(name):
    """Return whether R has a package."""
    found = [R, "-e", f"quit(status = !requireNamespace('{name}', quietly = TRUE))"]
    return R is not None and subprocess.run(found, capture_output=True).returncode == 0


@pytest.fixture(scope="module")
def ran_by_r(tmp_path_factory):
    """The folder in which R ran the blocks of its page, without those of packages that are missing.

    No block before the first of an optional package needs one.
    """
    if not has_package("jsonlite"):
        pytest.skip("R, or its package jsonlite, is missing")
    folder = tmp_path_factory.mktemp("r")
    text = (ROOT / "notebooks" / "r.md").read_text(encoding="utf-8")
    code = re.findall(r"```r\n(.*?)```", text, flags=re.DOTALL)
    optional = [any(f"library({name})" in block for name in OPTIONAL) for block in code]
    assert optional == sorted(optional)
    assert optional.count(True) == len(OPTIONAL)
    missing = [f"library({name})" for name in OPTIONAL if not has_package(name)]
    chosen = [block for block in code if not any(one in block for one in missing)]
    (folder / "page.R").write_text("\n".join(chosen), encoding="utf-8")
    commands = Path(sys.executable).parent
    done = subprocess.run(
        [R, "page.R"],
        cwd=folder,
        env=os.environ
        | {
            "PATH": f"{commands}{os.pathsep}{os.environ['PATH']}",
            "RETICULATE_PYTHON": sys.executable,
        },
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.mark.integration
@pytest.mark.parametrize("package", ["jsonlite", *OPTIONAL])
def test_the_code_for_r_runs(package, ran_by_r):
    """All blocks that need this package or none of the optional ones."""
    if not has_package(package):
        pytest.skip(f"R, or its package {package}, is missing")
    assert {"ages.png", "published", "as parquet"} <= {path.name for path in ran_by_r.iterdir()}
    assert (ran_by_r / "from python").exists() == has_package("reticulate")


def test_two_commands_and_continuous_integration_runs_them():
    commands = [line for line in README.splitlines() if line.startswith("python3 -m venv")]
    assert len(commands) == 2
    assert commands[0].endswith("gaussnoise demo")
    assert commands[1].endswith("pytest")
    program = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert "README.md" in program
    assert "pytest -m integration" in program  # which the second command leaves out
    assert "- run: .ci/run\n" in (ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8")


@every_page
def test_files_and_folders_that_pages_name_exist(page):
    text = page.read_text(encoding="utf-8")
    named = set(re.findall(r"`([\w./]+(?:\.(?:py|md)|/))`", text)) | set(
        re.findall(r"\]\((?!https?:|#)([^)#]+)\)", text)
    )
    missing = [
        name
        for name in sorted(named)
        if not any((start / name).exists() for start in (ROOT, page.parent))
    ]
    assert not missing


@every_page
def test_pages_of_the_book_link_to_each_other_by_their_files(page):
    """Links to other files are dead where the book is published without the source."""
    if page in BOOK:
        targets = re.findall(r"\]\((?!https?:|#)([^)#]+)\)", page.read_text(encoding="utf-8"))
        assert not [name for name in targets if "/" in name]


def test_every_page_and_notebook_is_in_one_table_of_contents():
    listed = [
        line.strip()
        for page in BOOK
        for tree in re.findall(
            r"```\{toctree\}\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL
        )
        for line in tree.splitlines()
        if line.strip() and not line.startswith(":")
    ]
    there = {page.stem for page in (*BOOK, *(ROOT / "notebooks").glob("*.ipynb"))} - {"index"}
    assert sorted(listed) == sorted(there)


def test_every_public_name_is_in_the_reference():
    text = (ROOT / "notebooks" / "reference.md").read_text(encoding="utf-8")
    module, listed = None, set()
    for line in text.splitlines():
        if line.startswith(".. currentmodule:: "):
            module = importlib.import_module(line.split()[-1])
        elif re.fullmatch(r"   \w+", line):
            listed.add(getattr(module, line.strip()))
    spaces = (gn.domains, gn.errors, gn.estimators, gn.plots, gn.results, gn.streams)
    public = {
        getattr(module, name)
        for module in (gn, gaussnoise.privacy, gaussnoise.signing, gaussnoise.indicators)
        for name in module.__all__
    }
    public |= {getattr(module, name) for module in spaces for name in module.__all__}
    assert listed == public - set(spaces)
