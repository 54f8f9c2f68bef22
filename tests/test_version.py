"""One command writes, commits and tags a version; its notes come from CHANGELOG.md."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import domains
import gaussnoise

ROOT = Path(__file__).parents[1]
FILES = ("gaussnoise/__init__.py", "domains/__init__.py", "CITATION.cff", ".ci/release")
PERSON = {
    f"GIT_{role}_{what}": f"{role.lower()}@example.org"
    for role in ("AUTHOR", "COMMITTER")
    for what in ("NAME", "EMAIL")
} | {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
CHANGES = """# Changelog

## 3.1.4 — unreleased

**Tables**

* Counts are exact before noise.

## 3.1.3 — 2020-01-01

* Older.
"""


def said(folder, *words):
    done = subprocess.run(
        words, cwd=folder, capture_output=True, encoding="utf-8", env=os.environ | PERSON
    )
    return done.returncode, done.stdout, done.stderr


def release(folder, *words):
    return said(folder, sys.executable, ".ci/release", *words)


@pytest.fixture
def checkout(tmp_path):
    if shutil.which("git") is None:
        pytest.skip("needs git")
    for name in FILES:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "CHANGELOG.md").write_text(CHANGES, encoding="utf-8")
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "First"]):
        assert said(tmp_path, "git", *words)[0] == 0
    return tmp_path


def test_all_files_state_the_same_version():
    assert domains.__gaussnoise_version__ == gaussnoise.__version__
    cited = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {gaussnoise.__version__}\n" in cited
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(rf"^## {gaussnoise.__version__} — ", changes, flags=re.MULTILINE)


def test_one_command_writes_commits_and_tags_a_version_and_prints_its_notes(checkout):
    notes = "gaussnoise 3.1.4\n\n**Tables**\n\n* Counts are exact before noise.\n"
    assert release(checkout, "3.1.4") == (0, notes, "")
    assert said(checkout, "git", "status", "--porcelain") == (0, "", "")
    tagged = said(checkout, "git", "for-each-ref", "refs/tags", "--format=%(contents)")
    assert tagged == (0, notes + "\n", "")
    assert said(checkout, "git", "log", "-1", "--format=%s %D")[1].startswith("Version 3.1.4 HEAD")
    changes = (checkout / "CHANGELOG.md").read_text("utf-8")
    assert re.search(r"^## 3\.1\.4 — \d{4}-\d\d-\d\d\n\n\*\*Tables", changes, flags=re.MULTILINE)
    versions = [re.findall(r"3\.1\.4", (checkout / name).read_text("utf-8")) for name in FILES]
    assert list(map(len, versions)) == [1, 1, 1, 0]


def test_a_refused_version_changes_nothing(checkout):
    assert "expected a version like" in release(checkout)[2]
    assert "expected a version like" in release(checkout, "3.1")[2]
    assert "expected a heading '## 3.2.0 — unreleased'" in release(checkout, "3.2.0")[2]
    (checkout / "new.txt").write_text("not committed")
    assert "expected a clean tree" in release(checkout, "3.1.4")[2]
    assert said(checkout, "git", "status", "--porcelain") == (0, "?? new.txt\n", "")
    (checkout / "new.txt").unlink()
    assert release(checkout, "3.1.4")[0] == 0
    code, out, err = release(checkout, "3.1.4")
    assert (code, out, err) == (1, "", "release: tag v3.1.4 is there already\n")
