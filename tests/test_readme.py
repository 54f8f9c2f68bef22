"""The README is what a newcomer runs: its code, its commands, its links."""

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_code_runs_in_order(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    assert len(blocks) == 10
    script = tmp_path / "readme.py"
    script.write_text("\n".join(blocks), encoding="utf-8")
    runpy.run_path(str(script))
    assert "certified gap" in capsys.readouterr().out


def test_two_commands_and_continuous_integration_runs_them():
    commands = [line for line in README.splitlines() if line.startswith("python3 -m venv")]
    assert len(commands) == 2
    assert commands[0].endswith("gaussnoise demo")
    assert commands[1].endswith("pytest")
    assert "README.md" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")


@pytest.mark.parametrize("target", re.findall(r"\]\((?!https?:)([^)]+)\)", README))
def test_links_exist(target):
    assert (ROOT / target).is_file()


PAGES = ["README.md", "CONTRIBUTING.md", "SECURITY.md", "gaussnoise/README.md", "domains/README.md"]


@pytest.mark.parametrize("page", PAGES)
def test_files_and_folders_that_pages_name_exist(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    named = set(re.findall(r"`([\w./]+(?:\.(?:py|md|toml)|/))`", text)) | set(
        re.findall(r"\]\((?!https?:)([^)#]+)\)", text)
    )
    missing = [
        name
        for name in sorted(named)
        if not any((start / name).exists() for start in (ROOT, (ROOT / page).parent))
    ]
    assert not missing
