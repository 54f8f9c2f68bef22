"""The method statement of a release: what its record says, under the headings of SIMS."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from ...text import number_of, printable
from ..planning.facts import Facts, facts_of, unit_of
from ..schema.schema import Attribute
from .formats.format import Notes
from .marks import MARKS_TEXT
from .noisy import AbstractRelease
from .text import INTERVALS, disclaimers, dropped_text, numbers_text

if TYPE_CHECKING:
    from ..planning.plan import Plan

_MOST_SHOWN = 12  # categories of an attribute
_DDI = "ddi:codebook:2_5"
_NOT_XML = str.maketrans("\ufffe\uffff", "\ufffd\ufffd")  # besides characters for terminals
_OPEN = "(the publisher's to fill in)"
# The Single Integrated Metadata Structure 2.0 of the European Statistical System
_GUARANTEE = "7.1 Confidentiality - policy"
_CONTACT, _PERIOD, _SOURCE = "1 Contact", "5 Reference period", "18.1 Source data"
_ACCURACY = "13.1 Accuracy - overall"
_HEADINGS = (
    *(_CONTACT, "2 Metadata update", "3.1 Data description", "3.2 Classification system"),
    *("3.4 Statistical concepts and definitions", "3.5 Statistical unit"),
    *("3.6 Statistical population", "3.7 Reference area", "3.8 Coverage - time"),
    *("4 Unit of measure", _PERIOD, "6 Institutional mandate"),
    *(_GUARANTEE, "7.2 Confidentiality - data treatment"),
    *("8 Release policy", "9 Frequency of dissemination", "10 Accessibility and clarity"),
    *("11 Quality management", "12 Relevance", _ACCURACY, "13.2 Sampling error"),
    *("13.3 Non-sampling error", "14 Timeliness and punctuality", "15.1 Comparability"),
    *("15.4 Coherence - internal", "16 Cost and burden", "17 Data revision", _SOURCE),
    *("18.5 Data compilation", "19 Comment"),
)


def statement_of(release: AbstractRelease) -> Notes:
    """Return sentences about a release, by the headings of SIMS that it fills."""
    return statement(
        release.plan,
        facts_of(release.plan),
        private=release.private,
        counted=dropped_text(release),
        unit=numbers_text(release),
        policy=disclaimers(release),
        times=[],
    )


def statement(
    plan: "Plan",
    facts: Facts,
    *,
    private: bool,
    counted: Sequence[str],
    unit: Sequence[str],
    policy: Sequence[str],
    times: Sequence[str],
) -> Notes:
    """Return sentences about tables, by the headings of SIMS that it fills.

    Args:
        plan: the plan of the tables, of one tick for those of a stream.
        facts: what the plan or the stream has to say.
        private: False for a simulation.
        counted: sentences on the rows that are in no table.
        unit: sentences on sums and weights.
        policy: sentences on the guarantee, and on its limits.
        times: sentences on the ticks that tables are about.
    """
    tables = number_of(len(plan.marginals), "table")
    names = ", ".join(a.name for a in _used(plan))
    said = plan.asked.about
    title = said.title or (f"Private tables of {names}" if names else "A private count")
    filled = {
        _CONTACT: _given(said.publisher, said.contact),
        _PERIOD: _given(said.period),
        "3.1 Data description": [
            *([] if private else ["NOT PRIVATE: a simulation, not to be published."]),
            f"{tables} with {plan.tables.dim} cells, and an interval for each.",
        ],
        "3.2 Classification system": [_classes(a) for a in _used(plan)],
        "3.5 Statistical unit": [f"Counted: {facts.counted}."],
        "3.6 Statistical population": counted,
        "3.8 Coverage - time": times,
        "4 Unit of measure": [
            f"Number of {unit_of(plan)}." if plan.weight is None else "Sum of weights.",
            *unit,
        ],
        _GUARANTEE: [
            f"Differential privacy: {facts.budget}.",
            f"Neighbouring data sets: {facts.relation}.",
            f"The budget protects {facts.unit}.",
            *policy,
        ],
        "7.2 Confidentiality - data treatment": [f"Noise: {facts.noise}.", *facts.exact],
        _ACCURACY: [
            "Estimates are unbiased: they may be negative or fractional.",
            INTERVALS,
            MARKS_TEXT,
            *(f"{line[0].upper()}{line[1:].rstrip('.')}." for line in facts.verdict),
        ],
        "13.2 Sampling error": [
            "Intervals and marks are about the noise alone, not about errors of sampling."
        ],
        "15.4 Coherence - internal": ["Tables of one release agree on the margins they share."],
        _SOURCE: _given(said.source),
        "18.5 Data compilation": [
            "Counts are exact integers. Noise is added to integer contrasts of them, and each is "
            "measured once; tables are linear functions of what was measured."
        ],
        "19 Comment": [
            "Written by gaussnoise; release.json has the whole record and the sha256 of every file."
        ],
    }
    order = ["3.1 Data description", _GUARANTEE, _ACCURACY, *filled]
    return Notes(title, {heading: lines for heading in order if (lines := filled[heading])})


def _given(*said: str | None) -> list[str]:
    """Return the texts that are not None."""
    return [text for text in said if text is not None]


def _used(plan: "Plan") -> list[Attribute]:
    """Return the attributes that are in some table."""
    positions = {i for S in plan.tables.subsets for i in S}
    return [plan.schema.attributes[i] for i in sorted(positions)]


def texts_of(plan: "Plan", notes: Notes) -> Mapping[str, str]:
    """Return the files that describe tables for their community, by name."""
    return {"method.txt": _method_text(notes), "ddi.xml": _ddi(plan, notes)}


def _method_text(notes: Notes) -> str:
    """Return the method statement as text; headings that no record can fill are left open."""
    lines = [
        notes.title,
        "Method statement, by the headings of the Single Integrated Metadata Structure (SIMS)",
    ]
    for heading in _HEADINGS:
        lines += ["", heading, *(f"    {said}" for said in notes.sections.get(heading, [_OPEN]))]
    return printable("\n".join(lines)) + "\n"


def _classes(attribute: Attribute) -> str:
    """Return the categories of an attribute."""
    labels = [str(label) for label in attribute.labels]
    more = len(labels) - _MOST_SHOWN
    shown = "; ".join(labels[:_MOST_SHOWN]) + (f"; and {more} more" if more > 0 else "")
    return f"{attribute.name}: {shown}"


def _ddi(plan: "Plan", notes: Notes) -> str:
    """Return the parts of a DDI codebook that a plan fills.

    Source: DDI Codebook 2.5, https://ddialliance.org/Specification/DDI-Codebook/2.5/
    """

    def said(*headings: str) -> str:
        return "\n".join(text for heading in headings for text in notes.sections.get(heading, ()))

    root = ElementTree.Element("codeBook", {"xmlns": _DDI, "version": "2.5"})
    study = {
        "citation/titlStmt/titl": notes.title,
        "citation/prodStmt/producer": plan.asked.about.publisher or "",
        "citation/prodStmt/software": "gaussnoise",
        "citation/distStmt/contact": plan.asked.about.contact or "",
        "stdyInfo/abstract": said("3.1 Data description", "15.4 Coherence - internal"),
        "stdyInfo/sumDscr/timePrd": said(_PERIOD),
        "stdyInfo/sumDscr/anlyUnit": said("3.5 Statistical unit"),
        "stdyInfo/sumDscr/universe": said("3.6 Statistical population"),
        "stdyInfo/sumDscr/dataKind": "aggregate data: counts with noise",
        "method/dataColl/sources/dataSrc": said(_SOURCE),
        "method/notes": said("7.2 Confidentiality - data treatment", "18.5 Data compilation"),
        "method/anlyInfo/EstSmpErr": said("13.1 Accuracy - overall", "13.2 Sampling error"),
        "dataAccs/useStmt/confDec": said("7.1 Confidentiality - policy"),
    }
    described = ElementTree.SubElement(root, "stdyDscr")
    for path, text in study.items():
        if text:
            _below(described, path).text = _xml_text(text)
    variables = ElementTree.SubElement(root, "dataDscr")
    for k, attribute in enumerate(_used(plan), 1):
        of = {"ID": f"V{k}", "name": _xml_text(attribute.name), "intrvl": "discrete"}
        variable = ElementTree.SubElement(variables, "var", of)
        ElementTree.SubElement(variable, "labl").text = of["name"]
        for label in attribute.labels:
            category = ElementTree.SubElement(variable, "catgry")
            ElementTree.SubElement(category, "catValu").text = _xml_text(str(label))
    ElementTree.indent(root)
    text = ElementTree.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'


def _xml_text(text: str) -> str:
    """Return text of characters that XML has."""
    return printable(text).translate(_NOT_XML)


def _below(element: ElementTree.Element, path: str) -> ElementTree.Element:
    """Return the element of a path, made where it is missing."""
    for name in path.split("/"):
        found = element.find(name)
        element = ElementTree.SubElement(element, name) if found is None else found
    return element
