"""Nikolov & Tang (2023, arXiv 2301.13850) as a checklist: its numbered statements, and the tests that check them.

A test that checks one says so in a mark, ``@pytest.mark.paper("Theorem 26", by="its reference")``. Marks are read from
the sources; nothing runs. ``python tests/paper.py > tests/PAPER.md`` writes the table anew.
"""

import ast
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent


class Statement(NamedTuple):
    """A numbered statement in our own words, and what of it no test checks, with the reason."""

    number: str
    says: str
    unchecked: str = ""


_TRADE_OFF = "in one dimension, two (ε, δ)-indistinguishable answers with different means cannot both vary little"
_RATE = "the rate in general form; our exact value, which lies within it, is what is checked"
_INSTANCE = (
    "an unbiased (ε, δ)-private mechanism has the error of Gaussian noise at each data set or at a neighbour of it"
)
_CONSTANTS = "its own constants, which are absolute but not explicit; our bound has explicit ones and implies it"
_NAMED = "our pages name it without its wording"

STATEMENTS = [
    Statement("Definition 2", "γ_p(K) is the least ‖sd(AA')‖_p of an ellipsoid v + AB₂ that contains K"),
    Statement("Theorem 4", _INSTANCE, _CONSTANTS),
    Statement(
        "Theorem 6",
        "with few records a biased mechanism, which projects, can have much less error than any unbiased one",
        "its rate, which our pages do not state",
    ),
    Statement("Theorem 7", "compares biased and unbiased mechanisms, beside Theorem 6", _NAMED),
    Statement("Theorem 15", "noise shaped by γ_p(K) is ρ-zCDP and unbiased, with error 2γ_p(K)/(n√(2ρ)) at most"),
    Statement(
        "Theorem 17",
        "rounding whitened records to the sphere and randomising them is unbiased and ε-locally private, with error of "
        "the order γ_p(K)/(ε√n) for ε ≤ 1",
    ),
    Statement("Lemma 19", "γ_p of a set is that of its closed convex hull"),
    Statement(
        "Theorem 20",
        "γ_p is monotone, homogeneous, translation invariant, subadditive under Minkowski sums, and ‖sd(AA')‖_p for "
        "an ellipsoid AB₂",
    ),
    Statement("Lemma 21", "if K = −K, the optimal ellipsoid can be centered at the origin"),
    Statement("Theorem 23", "for K = ±columns of A, γ_p(K) is the least ‖L‖_p ‖R‖ of a factorization A = LR"),
    Statement("Theorem 26", "γ_p(K) is the largest tr((W^{1/2} cov(P) W^{1/2})^{1/2}) over P on K and weights W"),
    Statement("Lemma 27", "every measure P on K and all weights W bound γ_p(K) from below in that way"),
    Statement("Lemma 28", "γ_p(K) is a convex program in the covariance M and the center v"),
    Statement(
        "Definition 29", "an α-approximate quadratic oracle brackets sup (x − c)'H(x − c) over K, with a witness"
    ),
    Statement("Lemma 31", "on quadratic oracles, between Definition 29 and Theorem 32", _NAMED),
    Statement(
        "Theorem 32",
        "with an α-approximate oracle an ellipsoid that contains K is found whose error is within √α of γ_p(K)",
        "polynomial running time",
    ),
    Statement("Lemma 33", "(E‖M(X) − μ(X)‖_p²)^{1/2} ≥ ‖sd‖_p of the covariance of an unbiased M(X)"),
    Statement("Lemma 39", "answers of ε-private mechanisms at neighbours have a χ² of 4 sinh²(ε/2) at most"),
    Statement(
        "Theorem 42",
        "unbiased ε-private mechanisms have error γ_p(K)/(2nχ) at least, χ = 2 sinh(ε/2), at all data",
        _CONSTANTS,
    ),
    Statement(
        "Theorem 43",
        "unbiased ρ-zCDP mechanisms have error γ_p(K)/(2nχ) at least, χ² = e^{2ρ} − 1, at all data",
        _CONSTANTS,
    ),
    *(Statement(f"Lemma {number}", _TRADE_OFF, "its own constants: ours is exact") for number in (46, 47, 48)),
    *(Statement(f"Theorem {number}", _INSTANCE, _CONSTANTS) for number in (51, 52)),
    Statement("Theorem 53", "an unbiased (0, δ)-private mechanism may have no error at one data set"),
    Statement("Lemma 54", "the variance of one ε-locally private message of given mean has a lower bound"),
    Statement(
        "Theorem 55",
        "unbiased non-interactive ε-local mechanisms have error γ_p(K)/(4 sinh(ε/2)√n) at least, at all data",
        _CONSTANTS,
    ),
    Statement(
        "Theorem 58",
        "resampling its data makes a mechanism that is unbiased for distributions unbiased for data, at a bounded "
        "cost in privacy",
        "Karwa & Vadhan's constants: ours are sharper",
    ),
    Statement(
        "Theorem 59", "hence lower bounds hold, at that cost, for mechanisms that are unbiased for distributions"
    ),
    Statement("Lemma 60", "orthogonal projections do not increase γ_2, projections on coordinates not γ_p"),
    Statement("Lemma 62", "γ_p(K × L)^α = γ_p(K)^α + γ_p(L)^α with 1/α = 1/2 + 1/p"),
    Statement("Lemma 63", "γ_p(K ⊗ L) = γ_p(K) γ_p(L) for symmetric K and L"),
    Statement("Theorem 64", "γ_p of the tensors x ⊗ … ⊗ x, ‖x‖₂ ≤ 1, up to constants that depend on the order", _RATE),
    Statement("Theorem 65", "γ_p of all k-way marginals of d bits, up to constants that depend on k", _RATE),
    Statement(
        "Appendix B", "the central-cut ellipsoid method on (M, v), with a separation oracle", "its bound on the steps"
    ),
]


def marks() -> list[tuple[str, str, str]]:
    """(number, reference, test) of every mark on a test that runs, in order of files and lines."""
    found = []
    for path in sorted(HERE.rglob("test_*.py")):
        source = path.read_text(encoding="utf-8")
        for test in ast.parse(source).body if "pytest.mark.paper(" in source else []:
            if not isinstance(test, ast.FunctionDef) or not test.name.startswith("test_"):
                continue
            calls = [node for node in test.decorator_list if isinstance(node, ast.Call)]
            for call in calls:
                if ast.unparse(call.func) == "pytest.mark.paper":
                    (by,) = (ast.literal_eval(keyword.value) for keyword in call.keywords)
                    where = f"{path.relative_to(HERE).as_posix()}::{test.name}"
                    found += [(ast.literal_eval(number), by, where) for number in call.args]
    return found


def unchecked(tests: list[tuple[str, str, str]]) -> list[Statement]:
    """Statements without any test."""
    return [statement for statement in STATEMENTS if statement.number not in {number for number, _, _ in tests}]


def table() -> str:
    """PAPER.md."""
    tests = marks()
    left = len(unchecked(tests))
    lines = [
        "# The paper as a checklist",
        "",
        "Every numbered statement of Nikolov & Tang, *General Gaussian Noise Mechanisms and Their Optimality for "
        "Unbiased Mean Estimation* (2023, arXiv 2301.13850) that this project cites, in our words, with the tests that "
        "check our code against it and the reference each of them uses. Statements that no page or docstring of this "
        "project cites are not in the table. Statements that are cited together only share their words.",
        "",
        f"{len(STATEMENTS)} statements: {len(STATEMENTS) - left} checked, {left} not. Written by "
        "`python tests/paper.py > tests/PAPER.md`; paths are below `tests/`.",
        "",
        "| Statement | In our words | Checked by | Not checked |",
        "|---|---|---|---|",
    ]
    for number, says, gap in STATEMENTS:
        found = "<br>".join(f"{by}: `{test}`" for of, by, test in tests if of == number)
        lines.append(" | ".join((f"| {number}", says.replace("|", "\\|"), found or "–", f"{gap or '–'} |")))
    return "\n".join(lines) + "\n"


def main() -> None:
    """Print PAPER.md."""
    print(table(), end="")


if __name__ == "__main__":
    main()
