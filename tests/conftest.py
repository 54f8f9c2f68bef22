"""Every test that asks for ``case`` runs once on each entry of ``cases.py``."""

import gc
import importlib.util
import os
import sys
from pathlib import Path

# before numpy is loaded: several processes run tests, and threads of linear algebra would wait for
# each other. Children and the kernels of notebooks take it over.
for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

# or every child compiles the package again, and every process these tests
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
os.environ.pop("COLUMNS", None)  # set by readline, which pytest loads: commands would break lines
sys.dont_write_bytecode = False

import pytest  # noqa: E402


def _loaded(name):
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up; tests import it
    spec.loader.exec_module(module)
    return module


CASES = _loaded("cases").CASES
_loaded("two_dates")
_loaded("changed")
_loaded("browser")


def pytest_generate_tests(metafunc):
    if "case" in metafunc.fixturenames:
        metafunc.parametrize("case", CASES, ids=lambda case: case.name)


_LONGEST = (
    "test_notebooks.py",
    "test_pages.py",
    "test_executors.py",
    "test_bodies.py",
    "test_one_way_in.py",
)


def pytest_ignore_collect(collection_path, config):
    """Files without integration tests are not even read where only these are asked for."""
    if config.option.markexpr != "integration" or collection_path.suffix != ".py":
        return None
    audits = collection_path.parent.name == "audit"
    return None if audits or "integration" in collection_path.read_text("utf-8") else True


@pytest.hookimpl(tryfirst=True)  # before marks are selected
def pytest_collection_modifyitems(items):
    """Audits are of the whole product. The longest files come first: the processes end at about the
    same time.
    """
    for item in items:
        if item.path.parent.name == "audit":
            item.add_marker("integration")
    items.sort(key=lambda item: item.path.name not in _LONGEST)


def pytest_collection_finish():
    """All that was imported stays: every full garbage collection would look through it again. The
    small ones, after 700 new objects each, find next to nothing.
    """
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


@pytest.fixture
def cases():
    return CASES


@pytest.fixture(scope="session", autouse=True)
def _wide_screen():
    """Sentences of the shell and of ``print`` are in one line, in which tests find them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", "1000")
        yield


@pytest.fixture(scope="session", autouse=True)
def _one_engine():
    """Files are counted by connections to one duckdb: to start and end an engine, as a program does
    once for each file, takes as long as counting a small one.
    """
    import duckdb

    start, started = duckdb.connect, {}

    def connect(*arguments, **options):
        if arguments or "temp_directory" not in options.get("config", {}):
            return start(*arguments, **options)  # not what a file is counted by
        key = repr(options)
        if key not in started:
            started[key] = start(**options)
        return started[key].cursor()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(duckdb, "connect", connect)
        yield


@pytest.fixture(scope="module")
def quick_pictures():
    """Releases draw empty pictures, where tests are about everything else in a folder; gives what
    draws whole ones.
    """
    from matplotlib.figure import Figure

    from gaussnoise.tables.release import release_plot

    with pytest.MonkeyPatch.context() as patch:
        whole = release_plot.plot_release
        patch.setattr(release_plot, "plot_release", lambda release: Figure(figsize=(1, 1)))
        yield whole


@pytest.fixture
def counted_once(monkeypatch):
    """One table's many releases and simulations count it once, where tests are about
    their noise.
    """
    from gaussnoise.tables.release import publish

    count, known = publish.count_marginals, {}

    def count_marginals(table, attributes, subsets, *options):
        if any(hasattr(option, "key") for option in options):
            # which rows of a person count is drawn anew every time
            return count(table, attributes, subsets, *options)
        key = (id(table), tuple(attributes), tuple(subsets), *map(str, options))
        if key not in known:
            known[key] = (
                table,
                list(count(table, attributes, subsets, *options)),
            )  # the table keeps its id
        return iter([(S, counts.copy()) for S, counts in known[key][1]])

    monkeypatch.setattr(publish, "count_marginals", count_marginals)
