"""Print how much one must know to change this package: ``python tests/measures.py [commit ...]``.

Of each commit, such as one that adds an option of a plan, it prints the number of files touched.
"""

import ast
import csv
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

import networkx

import domains
import gaussnoise as gn

ROOT = Path(__file__).parents[1]
PACKAGES = [Path(package.__file__).parent for package in (gn, domains)]
FILES = {
    ".".join(path.relative_to(root.parent).with_suffix("").parts).removesuffix(".__init__"): path
    for root in PACKAGES
    for path in sorted(root.rglob("*.py"))
}


def imports(name, path):
    """Yield the modules of these packages that a module imports when it is loaded."""
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in FILES)
        elif isinstance(node, ast.ImportFrom):
            parts = package.split(".")
            above = parts[: len(parts) + 1 - node.level] if node.level else []
            base = ".".join([*above, *filter(None, [node.module])])
            for alias in node.names:
                wanted = [one for one in (f"{base}.{alias.name}", base) if one in FILES]
                yield from wanted[:1]


def longest_chain():
    """Return the longest chain of modules that import the next; a circle is one module."""
    graph = networkx.DiGraph(
        (name, other) for name, path in FILES.items() for other in imports(name, path)
    )
    return networkx.dag_longest_path(networkx.condensation(graph))


def way_of_a_row():
    """Return the files that run for a CSV file of one row, and the calls from file to file."""
    plan = gn.plan(gn.Schema([gn.Attribute("a", ["x", "y"])]), [("a",)], privacy=gn.zCDP(1.0))
    own = {str(path) for path in FILES.values()}
    files, calls = set(), set()

    def note(frame, event, _):
        here = frame.f_code.co_filename
        if event != "call" or here not in own:
            return
        files.add(here)
        caller = frame.f_back.f_code.co_filename if frame.f_back else ""
        if caller in own and caller != here:
            calls.add((caller, here, frame.f_code.co_name))

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "t.csv")
        with path.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([["a"], ["x"]])
        sys.setprofile(note)
        try:
            plan.release(path)
        finally:
            sys.setprofile(None)
    return files, calls


def repeated_sentences():
    """Return the texts of five words and more that are written in several places.

    The verifier imports nothing of the product that it checks, so it has words of its own.
    """
    places = defaultdict(set)
    for name, path in FILES.items():
        if name.startswith("gaussnoise.verifier"):
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        documents = {
            id(node.body[0].value)
            for node in ast.walk(tree)
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
            and node.body
            and isinstance(node.body[0], ast.Expr)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                text = " ".join(node.value.split())
                if id(node) not in documents and len(re.findall(r"[a-z]{2,}", text)) >= 5:
                    places[text].add((name, node.lineno))
    return {text: where for text, where in places.items() if len(where) > 1}


def main():
    lines = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in FILES.values())
    chain = longest_chain()
    files, calls = way_of_a_row()
    repeated = repeated_sentences()
    print(f"{len(FILES)} modules, {lines} lines, {len(gn.__all__)} names at the top")
    print(f"longest chain of imports: {len(chain)} modules")
    print(f"a row of a CSV file: {len(files)} files, {len(calls)} calls from file to file")
    print(f"texts of five words and more that are written more than once: {len(repeated)}")
    for text, where in sorted(repeated.items()):
        print(f"  {text[:70]!r}: {', '.join(f'{name}:{line}' for name, line in sorted(where))}")
    for commit in sys.argv[1:]:
        shown = subprocess.run(
            ["git", "show", "--stat", "--format=%h %s", "--name-only", commit],
            capture_output=True,
            text=True,
            check=True,
            cwd=ROOT,
        ).stdout.split("\n")
        touched = [name for name in shown[1:] if name]
        own = sum(name.startswith(("gaussnoise/", "domains/")) for name in touched)
        print(f"{shown[0]}: {len(touched)} files, {own} of them of the package")


if __name__ == "__main__":
    main()
