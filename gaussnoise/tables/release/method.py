"""The method statement of a release: facts about it, under the headings of the SIMS standard."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from domains.tables.clipped import Clipped

from ...text import number_of, printable
from ..planning.facts import Facts, facts_of
from ..schema.about import About
from ..schema.bases import degrees_of
from ..schema.schema import Attribute
from .formats.format import CONTACT, PERIOD, SOURCE, Notes
from .marks import MARKS_TEXT
from .merged import MergedPlan
from .noisy import AbstractRelease
from .text import INTERVALS, disclaimers, dropped_text, numbers_text

if TYPE_CHECKING:
    from ..planning.plan import Plan

_MOST_SHOWN = 12  # most categories of an attribute in the text
_DDI = "ddi:codebook:2_5"
_NOT_XML = str.maketrans("\ufffe\uffff", "\ufffd\ufffd")  # not allowed in XML
_OPEN = "(the publisher's to fill in)"
# SIMS, the Single Integrated Metadata Structure 2.0 of the European Statistical System
DESCRIPTION, GUARANTEE = "3.1 Data description", "7.1 Confidentiality - policy"
CLASSES, UNIT, COMPILED = (
    "3.2 Classification system",
    "3.5 Statistical unit",
    "18.5 Data compilation",
)
MEASURE = "4 Unit of measure"
ACCURACY = "13.1 Accuracy - overall"
_HEADINGS = (
    *(CONTACT, "2 Metadata update", DESCRIPTION, CLASSES),
    *("3.4 Statistical concepts and definitions", UNIT),
    *("3.6 Statistical population", "3.7 Reference area", "3.8 Coverage - time"),
    *(MEASURE, PERIOD, "6 Institutional mandate"),
    *(GUARANTEE, "7.2 Confidentiality - data treatment"),
    *("8 Release policy", "9 Frequency of dissemination", "10 Accessibility and clarity"),
    *("11 Quality management", "12 Relevance", ACCURACY, "13.2 Sampling error"),
    *("13.3 Non-sampling error", "14 Timeliness and punctuality", "15.1 Comparability"),
    *("15.4 Coherence - internal", "16 Cost and burden", "17 Data revision", SOURCE),
    *(COMPILED, "19 Comment"),
)


def statement_of(release: AbstractRelease) -> Notes:
    """Return the method statement of a release: sentences under the headings that apply.

    The headings are those of SIMS, the Single Integrated Metadata Structure for statistics.
    """
    return statement(
        release.plan,
        facts_of(release.plan),
        release.plan.about,
        private=release.private,
        noun=release.noun,
        counted=dropped_text(release),
        unit=numbers_text(release),
        policy=disclaimers(release),
        times=[],
    )


def statement(
    plan: "Plan | MergedPlan",
    facts: Facts,
    said: About,
    *,
    private: bool,
    noun: str,
    counted: Sequence[str],
    unit: Sequence[str],
    policy: Sequence[str],
    times: Sequence[str],
    origin: Sequence[str] = (),
) -> Notes:
    """Return the method statement of tables: sentences under the headings that apply.

    The headings are those of SIMS, the Single Integrated Metadata Structure for statistics.

    Args:
        plan: the plan of the tables; for a stream, that of one tick.
        facts: the facts about the plan or the stream.
        said: the publisher's lines about the tables, such as a title.
        private: False for a simulation.
        noun: what the tables count, in the plural.
        counted: sentences about rows that are in no table.
        unit: sentences on sums and weights.
        policy: sentences on the guarantee, and on its limits.
        times: sentences on the ticks (releases of a stream) that tables are about.
        origin: sentences about the releases that were combined.
    """
    tables = number_of(len(plan.marginals), "table")
    used = attributes_of(plan)
    names = ", ".join(a.name if a.title is None else a.title for a in used)
    title = said.title or (f"Private tables of {names}" if names else "A private count")
    filled = {
        DESCRIPTION: [
            *([] if private else ["NOT PRIVATE: a simulation, not to be published."]),
            f"{tables} with {plan.tables.dim} cells, and an interval for each.",
            *origin,
        ],
        CLASSES: [class_text(a) for a in used],
        UNIT: [f"Counted: {facts.counted}."],
        "3.6 Statistical population": counted,
        "3.8 Coverage - time": times,
        MEASURE: [f"Number of {noun}." if plan.weight is None else "Sum of weights.", *unit],
        GUARANTEE: [
            f"Differential privacy: {facts.budget}.",
            f"Neighbouring data sets: {facts.relation}.",
            f"The budget protects {facts.unit}.",
            *policy,
        ],
        "7.2 Confidentiality - data treatment": [f"Noise: {facts.noise}.", *facts.exact],
        ACCURACY: [
            "Estimates are unbiased: they may be negative or fractional.",
            INTERVALS,
            MARKS_TEXT,
            *(f"{line[0].upper()}{line[1:].rstrip('.')}." for line in facts.verdict),
        ],
        "13.2 Sampling error": [
            "Intervals and marks are about the noise alone, not about errors of sampling."
        ],
        "15.4 Coherence - internal": ["Tables of one release agree on the margins they share."],
        COMPILED: [
            "Counts are exact integers. Noise is added to integer contrasts of them, and each is "
            "measured once; tables are linear functions of what was measured."
        ],
        "19 Comment": [
            "Written by gaussnoise; release.json has the whole record and the sha256 of every file."
        ],
    }
    return replace(stated(title, said, filled, used), unit=noun, units=_units(plan))


def _units(plan: "Plan | MergedPlan") -> dict[str, dict[str, str]]:
    """Return {attribute: {label of a query: unit}} of the sums and means in tables."""
    found: dict[str, dict[str, str]] = {}
    for i, base in (pair for term in plan.domain.terms for pair in term):
        attribute = plan.schema.attributes[i]
        degrees = degrees_of(base, attribute)
        if degrees and isinstance(base, Clipped):
            degrees |= {"mean": 1}
        for label, degree in degrees.items():
            if degree:
                unit = attribute.measured_in or f"unit of {attribute.name}"
                unit += f" to the power {degree}" * (degree > 1)
                found.setdefault(attribute.name, {})[label] = unit
    return found


def stated(
    title: str, said: About, filled: Mapping[str, Sequence[str]], used: Sequence[Attribute]
) -> Notes:
    """Return a method statement from {heading: sentences}, the most important headings first.

    ``said`` adds the publisher's lines, and ``used`` are the attributes of the tables.
    """
    every = {
        CONTACT: [text for text in (said.publisher, said.contact) if text],
        PERIOD: [said.period] if said.period else [],
        SOURCE: [said.source] if said.source else [],
        **filled,
    }
    order = [DESCRIPTION, GUARANTEE, ACCURACY, CONTACT, PERIOD, *_HEADINGS]
    return Notes(
        title,
        {heading: lines for heading in order if (lines := every.get(heading))},
        headings={a.name: a.heading for a in used if a.heading != a.name},
        measured_in={a.name: a.measured_in for a in used if a.measured_in is not None},
    )


def attributes_of(plan: "Plan | MergedPlan") -> list[Attribute]:
    """Return the attributes that occur in tables, in the schema's order."""
    positions = {i for S in plan.tables.subsets for i in S}
    return [plan.schema.attributes[i] for i in sorted(positions)]


def texts_of(attributes: Sequence[Attribute], notes: Notes, said: About) -> Mapping[str, str]:
    """Return {name: content} of ``method.txt`` and ``ddi.xml``, which describe the tables."""
    return {"method.txt": _method_text(notes), "ddi.xml": _ddi(attributes, notes, said)}


def _method_text(notes: Notes) -> str:
    """Return the method statement as text; headings without facts are left to the publisher."""
    lines = [
        notes.title,
        "Method statement, by the headings of the Single Integrated Metadata Structure (SIMS)",
    ]
    for heading in _HEADINGS:
        lines += ["", heading, *(f"    {said}" for said in notes.sections.get(heading, [_OPEN]))]
    return printable("\n".join(lines)) + "\n"


def class_text(attribute: Attribute) -> str:
    """Return the categories of an attribute as text."""
    labels = [str(label) for label in attribute.labels]
    if attribute.names is not None:
        intervals = (f" {text}" for text in attribute.interval_texts)
        pairs = itertools.zip_longest(labels, intervals, fillvalue="")  # a catch-all has none
        labels = [label + interval for label, interval in pairs]
    more = len(labels) - _MOST_SHOWN
    shown = "; ".join(labels[:_MOST_SHOWN]) + (f"; and {more} more" if more > 0 else "")
    codes = ", ".join(map(str, attribute.missing))
    spelt = "; ".join(f"{', '.join(own)} as {name}" for name, own in attribute.spellings)
    own = attribute.name
    said = own if attribute.heading == own else f"{attribute.heading}, in the column {own}"
    notes = [f" (codes for no answer: {codes})"] if codes else []
    notes += [f" (counted as one: {spelt})"] if spelt else []
    return "".join([f"{said}: {shown}", *notes])


def _ddi(attributes: Sequence[Attribute], notes: Notes, said_of: About) -> str:
    """Return a DDI codebook (XML) that describes the tables, with the elements that are known."""

    def said(*headings: str) -> str:
        return "\n".join(text for heading in headings for text in notes.sections.get(heading, ()))

    # DDI Codebook 2.5, https://ddialliance.org/Specification/DDI-Codebook/2.5/
    root = ElementTree.Element("codeBook", {"xmlns": _DDI, "version": "2.5"})
    study = {
        "citation/titlStmt/titl": notes.title,
        "citation/prodStmt/producer": said_of.publisher or "",
        "citation/prodStmt/software": "gaussnoise",
        "citation/distStmt/contact": said_of.contact or "",
        "stdyInfo/abstract": said(DESCRIPTION, "15.4 Coherence - internal"),
        "stdyInfo/sumDscr/timePrd": said(PERIOD),
        "stdyInfo/sumDscr/anlyUnit": said(UNIT),
        "stdyInfo/sumDscr/universe": said("3.6 Statistical population"),
        "stdyInfo/sumDscr/dataKind": "aggregate data: counts with noise",
        "method/dataColl/sources/dataSrc": said(SOURCE),
        "method/notes": said("7.2 Confidentiality - data treatment", COMPILED),
        "method/anlyInfo/EstSmpErr": said(ACCURACY, "13.2 Sampling error"),
        "dataAccs/useStmt/confDec": said(GUARANTEE),
    }
    described = ElementTree.SubElement(root, "stdyDscr")
    for path, text in study.items():
        if text:
            _element_at(described, path).text = _xml_text(text)
    variables = ElementTree.SubElement(root, "dataDscr")
    for k, attribute in enumerate(attributes, 1):
        of = {"ID": f"V{k}", "name": _xml_text(attribute.name), "intrvl": "discrete"}
        of |= {} if (unit := attribute.measured_in) is None else {"measUnit": _xml_text(unit)}
        variable = ElementTree.SubElement(variables, "var", of)
        ElementTree.SubElement(variable, "labl").text = _xml_text(attribute.title or attribute.name)
        for k, label in enumerate(attribute.labels):
            category = ElementTree.SubElement(variable, "catgry")
            ElementTree.SubElement(category, "catValu").text = _xml_text(str(label))
            if attribute.names is not None and k < len(attribute.names):
                ElementTree.SubElement(category, "labl").text = attribute.interval_texts[k]
    ElementTree.indent(root)
    text = ElementTree.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'


def _xml_text(text: str) -> str:
    """Return the text with a replacement for each character that XML does not allow."""
    return printable(text).translate(_NOT_XML)


def _element_at(element: ElementTree.Element, path: str) -> ElementTree.Element:
    """Return the element at ``path`` below ``element``; missing elements are created."""
    for name in path.split("/"):
        found = element.find(name)
        element = ElementTree.SubElement(element, name) if found is None else found
    return element
