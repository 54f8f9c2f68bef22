"""The command that makes a small table for trying the other commands."""

import os
import shutil
import sys
from pathlib import Path

from ..errors import OutputError
from ..privacy.definitions import zCDP
from ..tables import plan
from .console import say
from .release import released


def demo() -> None:
    """Release all 2-way marginals of the embedded demo table into a new folder."""
    import pyarrow.csv

    from ..demo import load

    table, schema = load()
    folder = next(
        f
        for k in range(1, 10_000)
        if not (f := Path("gaussnoise-demo" + (f"-{k}" if k > 1 else ""))).exists()
    )
    try:
        folder.mkdir()
    except OSError as error:
        raise OutputError(f"demo: cannot create {folder} here ({type(error).__name__})") from None
    pyarrow.csv.write_csv(table, folder / "survey.csv")
    (folder / "schema.toml").write_text(schema.to_toml(), encoding="utf-8")
    planned = plan(schema, 2, zCDP(0.1))
    result = released(planned, str(folder / "survey.csv"), folder / "release")
    affair = result["marriage", "affair"]
    low, high = affair.confidence_interval()
    say(
        "For example, people with an affair, by how they rate their marriage (private estimate, "
        "95 % interval):"
    )
    for k, label in enumerate(affair.labels[0]):
        say(f"  {label!s:<10} {affair.estimate[k, 1]:8.0f}   {low[k, 1]:8.0f} … {high[k, 1]:.0f}")
    say(
        f"\nwrote {folder}/survey.csv          the sensitive table (6366 answers to a magazine "
        "survey of 1974)"
    )
    say(f"wrote {folder}/schema.toml         its public schema")
    # if its environment is not activated, the command is not on the path
    command = "gaussnoise" if shutil.which("gaussnoise") else os.path.relpath(sys.argv[0])
    if Path(command).name == "__main__.py":
        command = "python -m gaussnoise"
    say(
        "\nTry next:\n"
        f"  {command} plan -s {folder}/schema.toml -m 3 --rho 0.1\n"
        f"  {command} release {folder}/survey.csv \\\n"
        f"    -s {folder}/schema.toml -m age,affair -m religious,affair \\\n"
        "    --rho 0.05 -o mine\n"
        f"  {command} schema YOUR_TABLE.csv -o schema.toml"
    )
