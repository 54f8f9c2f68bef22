"""The fields that describe a column: first those of its kind of values, and then all others."""

import contextlib
import functools
from collections.abc import Callable, Sequence

from nicegui import ui

from ..errors import GaussNoiseError, SchemaError
from ..tables import Attribute
from ..tables.schema.dates import is_dated
from .columns import (
    HELP,
    KINDS,
    NUMBERS,
    age_names,
    ages_in,
    attribute_of,
    birth_dates,
    clip_help,
    join,
    kind_of,
    proposed_names,
    title_and_unit,
    typed,
    typed_names,
)
from .described import described
from .parts import handled, more
from .reasons import codes_in, ends_in, texts_in

_SUMS, _GROUPS = "Means and sums", "Groups"
_PURPOSE = "Means (averages) of it, or groups?"
_WHAT = {"edges": "These groups are", "clip": "These limits are", "unit": "This step is"}
_MORE = "group for the rest, codes for no answer, title, kind"  # less used fields


def public(kind: str | None) -> str:
    """Return the words with which a person confirms values of a kind as public knowledge.

    >>> public("clip"), public("texts")
    ('These limits are public', 'This list is public')
    """
    return f"{_WHAT.get(kind or '', 'This list is')} public"


class ColumnForm:
    """The fields that describe a column, which are checked while the user types."""

    def __init__(
        self,
        attribute: Attribute | None = None,
        reason: str = "",
        days: Callable[[str], str] = str,
    ) -> None:
        """Draw the fields.

        Args:
            attribute: the attribute that the fields show first; None for a new column.
            reason: the comment of a drafted attribute, which may have proposals; "" for no comment.
            days: how the dates in a text are written.
        """
        self._attribute, self._reason, self._days = attribute, reason, days
        self._kind_now = "texts" if attribute is None else kind_of(attribute)
        self._start = self._kind_now
        self._is_dated = attribute is not None and is_dated(attribute.edges)
        self._typed: dict[str, str] = {}  # the last text of each kind
        self._first_names = ""
        self._open_codes = ""  # possible codes for no answer that the user has not judged
        self._purposes: dict[str, ui.button] = {}  # means and sums, or groups
        if attribute is None:
            self._draw_kind()
        if self._is_dated:
            self._draw_ages()
        elif self._start in NUMBERS:
            self._draw_purposes()
        self.fields = ui.column().classes("w-full")
        # a draft with proposals for both purposes does not choose one of them
        self.fields.set_visibility(self._start != "edges" or not ends_in(reason))
        with self.fields:
            self._draw_fields(attribute, reason)
        self._listen()

    @property
    def kind(self) -> ui.select:
        """The choice of the kind of values."""
        return self._kind

    def _draw_fields(self, attribute: Attribute | None, reason: str) -> None:
        """Draw the fields that follow the choice of a purpose."""
        if not self._is_dated:
            self._draw_values()
        self._names = ui.textarea("Names of the intervals, for readers").props("autogrow")
        self._show_in_order((attribute and attribute.names) or ())
        if not self._is_dated:
            self._draw_named()
        self._measured = ui.input("Unit of the number")
        self._measured.value = (attribute and attribute.measured_in) or ""
        self._measured.props('hint="for readers of its means and sums, like EUR or days"')
        self._has_unit = bool(self._measured.value)
        self._texts = ui.label()  # on texts among numbers or dates
        codes = ui.row()  # for a button that fills fields which come later
        rest = more(f"More: {'ends, ' * self._is_dated}{_MORE}")
        # it is open if the column's line does not show all ends, which are to be confirmed
        rest.value = self._is_dated and attribute is not None and not described(attribute)[1]
        with rest:
            if attribute is not None:
                self._draw_kind()
            if self._is_dated:
                self._draw_values()
                self._draw_named()
            self._title = ui.input("Title for readers, if another")
            self._title.value = (attribute and attribute.title) or ""
            self._other = ui.input("Group for the rest (catch-all)")
            self._other.value = (attribute and attribute.other) or ""
            self._missing = ui.input("Codes for no answer").props(
                'hint="with commas: 999, refused"'
            )
            self._missing.value = ", ".join(map(str, attribute.missing)) if attribute else ""
        with codes:
            self._draw_codes()
        for field in (self._names, self._measured, self._title, self._other, self._missing):
            field.classes("w-full")

    def read(self, name: str) -> Attribute:
        """Return the described attribute of the column ``name``.

        Raises:
            SchemaError: the fields describe no attribute.
        """
        unit = self._measured.value if self._measured.visible else ""
        fields = self._text, self._other, self._missing
        values, rest, codes = (field.value or "" for field in fields)
        named = (self._names.value or "").strip().split("\n")
        named = typed_names(named[::-1] if self._youngest_first else named)
        said = unit or "", named, self._title.value or ""
        return attribute_of(name, self._kind.value, values, rest, codes, self._attribute, *said)

    def confirmed(self, name: str) -> Attribute:
        """Return the described attribute, after a person has said that its values are public.

        Raises:
            SchemaError: the fields describe no attribute, or a possible code has no answer yet.
        """
        if not self.fields.visible:
            raise SchemaError(f"Say first: {_PURPOSE}")
        if self._open_codes:
            raise SchemaError(f"Say first whether {self._open_codes} is a number, or no answer.")
        return self.read(name)

    def _draw_kind(self) -> None:
        self._kind = ui.select(KINDS, value=self._start, label="The column holds").classes("w-full")

    def _draw_values(self) -> None:
        text = "" if self._attribute is None else typed(self._attribute, self._days)
        self._text = ui.textarea("Values", value=text)
        self._text.classes("w-full").props(f"rows={_rows(text)}")
        with ui.row().classes("items-center") as self._near:
            self._pairs = ui.label()
            ui.button("Join them", on_click=handled(self._join)).props("outline")

    def _draw_named(self) -> None:
        """Draw a button that names the intervals."""

        def name() -> None:
            self._show_in_order(self._first_names.split("\n"))

        self._propose = ui.button(on_click=handled(name)).props("outline no-caps")

    def _draw_ages(self) -> None:
        """Draw the fields for intervals of birth dates, by age."""
        with ui.row().classes("items-center"):
            ages = ui.input("Groups from the ages", value="0, 18, 30, 45, 65, 80")
            ages.props('hint="the last group has no end"')
            day = ui.input("on the day", placeholder="31.12.2025")

            def by_age() -> None:
                born = birth_dates(ages.value or "", day.value or "")
                self._kind.value, self._text.value = "edges", self._days(born)
                self._show_in_order(age_names(ages.value or "").split("\n"))
                self._title.value = f"age on {(day.value or '').strip()}"

            ui.button("Make these age groups", on_click=handled(by_age)).props("outline")

    def _draw_purposes(self) -> None:
        """Draw the two purposes of a number, of which each chooses a kind."""
        groups = "edges" if self._start in ("clip", "unit") else self._start
        with ui.row().classes("items-center"):
            ui.label(_PURPOSE)
            for name, kind in {_SUMS: "clip", _GROUPS: groups}.items():

                def choose(kind: str = kind) -> None:
                    self.fields.set_visibility(True)
                    self._kind.value = kind
                    self._show()

                self._purposes[name] = ui.button(name, on_click=handled(choose)).props("no-caps")

    def _draw_codes(self) -> None:
        """Ask whether codes in the draft, like 999, mean no answer, unless this is known."""
        codes, rest = codes_in(self._reason)
        if not codes or {*codes.split(", ")} <= {*(self._missing.value or "").split(", ")}:
            return
        self._open_codes = codes

        def answered(said: str) -> None:
            self._open_codes = ""
            buttons.set_visibility(False)
            answer.text = said

        def take() -> None:
            self._missing.value = ", ".join(filter(None, [self._missing.value, codes]))
            self._other.value = self._other.value or rest
            answered(f"{codes} counts as no answer.")

        def leave() -> None:
            answered(f"{codes} is a number.")

        answer = ui.label(
            f"Some rows have {codes}: is it a code, as where there is no answer?"
        ).props('role="status"')
        with ui.row() as buttons:
            for said, choose in {
                f"Count {codes} as no answer": take,
                f"{codes} is a number": leave,
            }.items():
                ui.button(said, on_click=handled(choose)).props("outline")

    def _listen(self) -> None:
        """Make fields react to changes of one another, and show hints for their first values."""
        self._text.validation = functools.partial(self._problem, False)
        self._names.validation = functools.partial(self._problem, True)
        self._kind.on_value_change(self._change_kind)
        for field in (self._other, self._missing, self._measured):
            field.on_value_change(self._check)
        for field in (self._text, self._names):
            field.on_value_change(self._show)
        self._text.on_value_change(lambda: self._names.validate())
        self._show()

    def _change_kind(self) -> None:
        """Show the first text that fits the new kind: the last, the proposed or the shown one."""
        before, now = self._kind_now, self._kind.value
        self._typed[before] = self._text.value or ""
        self._kind_now = now
        proposed = ends_in(self._reason) if now == "clip" else ""
        texts = self._typed.get(now), proposed, self._text.value
        self._text.value = next((text for text in texts if text and _fits(now, text)), "")
        if now == "clip" and self._attribute and not (self._measured.value or self._title.value):
            self._title.value, self._measured.value = title_and_unit(self._attribute.name)
        self._show()
        self._check()

    def _check(self) -> None:
        self._text.validate()
        self._names.validate()

    def _problem(self, about_names: bool, _: object) -> str | None:
        """Return the error in the names if ``about_names``, else that in other fields; or None."""
        if not (self._text.value or "").strip():
            return None
        try:
            self.read(self._attribute.name if self._attribute else "column")
        except GaussNoiseError as error:
            said = str(error).partition(": ")[2] or str(error)
            is_here = said.startswith("names: ") == about_names
            return said.removeprefix("names: ") if is_here else None
        return None

    def _join(self) -> None:
        if found := join("column", self._text.value or "", self._attribute):
            self._text.value = found[0]

    def _show(self) -> None:
        """Show the hint, unit, names and spellings that belong to the kind and the text."""
        kind, text = self._kind.value, self._text.value or ""
        hint = clip_help(text) if kind == "clip" else HELP[kind or self._start]
        if self._text.props.get("hint") != hint:
            self._text.props["hint"] = hint
            self._text.update()
        sums = kind in ("clip", "unit")
        for name, button in self._purposes.items():
            is_chosen = (name == _SUMS) == sums and self.fields.visible
            button.props(f"aria-pressed={str(is_chosen).lower()}")
            button.props(remove="outline") if is_chosen else button.props("outline")
        if texts := texts_in(self._reason):
            where = "no mean" if sums else "the group for the rest"
            self._texts.text = f"Rows with {texts} count in {where}."
        self._texts.set_visibility(bool(texts))
        self._measured.set_visibility(sums or (self._has_unit and kind in NUMBERS))
        found = None
        if kind == "texts":
            with contextlib.suppress(GaussNoiseError):  # shown beside the text
                found = join("column", text, self._attribute)
        self._near.set_visibility(found is not None)
        if found is not None:
            self._pairs.text = f"These differ in case or blanks only: {found[1]}."
        is_edges = kind == "edges"
        self._show_names(is_edges, self._days(proposed_names(text)) if is_edges else "")

    def _show_in_order(self, names: Sequence[str]) -> None:
        """Show names in the order of their intervals; names of ages begin with the youngest."""
        self._youngest_first = bool(ages_in(names))
        self._has_names = bool(names) or not self._is_dated  # dates are first made groups of ages
        order = "in their order: under 18, then 18 to 39"
        order = "the youngest first" if self._youngest_first else order
        self._names.props(f'hint="one a line, {order}"')
        self._names.value = typed_names(names[::-1] if self._youngest_first else names)

    def _show_names(self, is_shown: bool, found: str) -> None:
        """Show the names of intervals; those that the user did not type follow the ends."""
        before = self._first_names
        self._first_names = found or before  # text that is half typed has no proposal
        if found and self._names.value and self._names.value == before:
            self._names.value = found
        first = "; ".join(found.split("\n")[:2])
        self._propose.text = f"Names for whole numbers or days: {first} …"
        self._names.set_visibility(is_shown and self._has_names)
        self._propose.set_visibility(is_shown and bool(found) and self._names.value != found)


def _fits(kind: str, text: str) -> bool:
    """Return whether a text describes values of a kind."""
    with contextlib.suppress(GaussNoiseError):
        return bool(attribute_of("column", kind, text))
    return False


def _rows(text: str) -> int:
    """Return the height of a text field in lines: as many as the text has, between 2 and 12."""
    return min(max(text.count("\n") + 1, 2), 12)
