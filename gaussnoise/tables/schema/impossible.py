"""Rules of a schema: combinations of categories that cannot occur together in a row."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from ...errors import SchemaError

if TYPE_CHECKING:
    from .schema import Attribute, Category

# pairs of an attribute name and some of its labels; these labels cannot occur together
Rule: TypeAlias = tuple[tuple[str, tuple["Category", ...]], ...]

EXPECTED = 'expected labels by attribute, like {"age": "[0, 16)", "married": ["yes", "widowed"]}'


def text_of(label: "Category") -> str:
    """Return the label of a cell as text; a truth value as "true" or "false"."""
    return str(label).lower() if isinstance(label, bool) else str(label)


def as_rules(given: object, attributes: Sequence["Attribute"]) -> tuple[Rule, ...]:
    """Return the rules on impossible combinations that ``given`` describes.

    Attributes and labels of a rule are in the schema's order.

    Raises:
        SchemaError: not a list of mappings from several attributes to some of their labels.
    """
    if isinstance(given, str | Mapping) or not isinstance(given, Iterable):
        raise SchemaError(f"impossible: expected a list of rules, got {type(given).__name__}")
    return tuple([_as_rule(rule, attributes) for rule in given])


def _as_rule(rule: Any, attributes: Sequence["Attribute"]) -> Rule:
    if isinstance(rule, tuple):  # a rule of an existing schema
        rule = dict(rule)
    if not isinstance(rule, Mapping):
        raise SchemaError(f"impossible: {EXPECTED}, got {type(rule).__name__}")
    names = [attribute.name for attribute in attributes]
    if unknown := [name for name in rule if name not in names]:
        raise SchemaError(f"impossible: expected attributes of the schema, got {unknown[0]!r:.80}")
    if len(rule) < 2:
        raise SchemaError(
            "impossible: expected two attributes or more in a rule; hint: leave a category that "
            "never occurs out of the attribute"
        )
    return tuple([(a.name, _labels(a, rule[a.name])) for a in attributes if a.name in rule])


def _labels(attribute: "Attribute", given: object) -> tuple["Category", ...]:
    """Return one label, or a list, as a tuple of the attribute's labels; SchemaError for others."""
    if attribute.is_summed:
        raise SchemaError(
            f"impossible: expected attributes with categories or edges, got {attribute.name!r}, "
            "a number that is summed"
        )
    several = given if isinstance(given, list | tuple) else [given]
    known = {text_of(label): label for label in attribute.labels}
    named = dict(zip(attribute.interval_texts, map(text_of, attribute.labels), strict=False))
    texts = [text_of(label) for label in several if isinstance(label, str | int)]
    wanted = {named.get(text, text) for text in texts}
    if not several or len(wanted) < len(several) or not wanted <= known.keys():
        raise SchemaError(
            f"impossible: expected distinct labels of {attribute.name!r}, like "
            f"{attribute.labels[0]!r}, got {given!r:.80}"
        )
    return tuple([label for text, label in known.items() if text in wanted])


def rule_text(rule: Rule) -> str:
    """Return a rule as text, like "age = [0, 16) with married = yes or widowed"."""
    return " with ".join(f"{name} = {' or '.join(map(text_of, labels))}" for name, labels in rule)
