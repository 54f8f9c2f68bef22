"""The content of a column, collected batch by batch in bounded memory."""

import datetime
import decimal
import math
import re
from collections import Counter
from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from ..reading.frames import Arrow, Column
from ..reading.values import INEXACT, Form, double_of_text, moment_of, number_of
from ..schema.date_format import LIKE_DATES
from .suspects import CODES, NO_ANSWER, suspects

if TYPE_CHECKING:
    import pyarrow as pa

MOST_CATEGORIES = 100
NEARLY_ALL = 0.99  # share of numbers that an upper end for sums and means leaves as they are
_MOST_NAMES = 2**16  # most persons, or values of an identifier, that are remembered
_FEW_TEXTS = 5  # most distinct texts among numbers or dates
# largest share of rows with texts that do not usually stand for a missing value
_RARE = 0.1
_MANY = 1000  # if a batch has more distinct texts, arrow parses the plain numbers among them
_NOTHING = {
    *("", "-", "--", ".", "..", "*", "na", "nan", "nil", "none"),
    *("missing", "unknown", "not applicable", *NO_ANSWER),
}
_PLAIN = "^-?(0|[1-9][0-9]{0,14})([.][0-9]+)?$"
# numbers with marks of thousands, or a comma as the decimal mark
_SEPARATED = (
    r"^\s*[-+]?([0-9]+,[0-9]+|[0-9]{1,3}("
    r"(,[0-9]{3})+[.][0-9]+|(,[0-9]{3}){2,}|([.][0-9]{3})+,[0-9]+|([.][0-9]{3}){2,}|"
    "([ '’\u00a0\u202f][0-9]{3})+([.,][0-9]+)?))\\s*$"
)
_LIKE = re.compile(_SEPARATED)
_LIKE_DATE = re.compile(LIKE_DATES)
_MOST_DATES = 1000  # most texts resembling dates that are kept
_CODE = re.compile(r"\s*[+-]?0[0-9]")

Kind = Literal["truths", "numbers", "dates", "texts"]
_READ: tuple[Kind, ...] = ("truths", "numbers", "dates")


Value = TypeVar("Value", bound=Hashable)


class Few(Generic[Value]):
    """The distinct values that were added, and the number of rows of each, in ``rows``.

    With more than ``most`` values, nothing is kept, and ``many`` is True.
    """

    def __init__(self, most: int) -> None:
        self.rows: dict[Value, int] = {}
        self.most, self.many = most, False

    def add(self, value: Value, rows: int = 1) -> None:
        if not self.many:
            self.rows[value] = self.rows.get(value, 0) + rows
            if len(self.rows) > self.most:
                self.forget()

    def forget(self) -> None:
        self.rows, self.many = {}, True

    def __len__(self) -> int:
        """Return the number of distinct values; ``most + 1`` if there were more than ``most``."""
        return self.most + 1 if self.many else len(self.rows)


class Seen:
    """The facts about one column that a draft needs, collected batch by batch.

    Attributes:
        form: the form of its values, known in advance.
        missing: whether there are nulls, NaN or infinite numbers, or objects of other kinds.
        rows: the number of rows with any other value.
        numbers: the finite numbers, as integers if they are whole.
        whole: whether all finite numbers are integers that floats hold exactly.
        low: least finite number.
        high: largest finite number.
        suspects: numbers that may be codes for no answer, since all others are far away.
        texts: the texts that are neither numbers, dates nor truth values.
        words: all values, as text.
        coded: whether some number is written like a code, such as 007.
        months: the months of dates, counted from the year 0.
        like_dates: some of the texts that resemble dates.
        names: the values, if they may be names of persons or an identifier; otherwise None.
        repeated: whether a value of ``names`` was seen twice.
        declared: the categories of the column's type in its own order; empty if it has no order.
    """

    def __init__(self, dtype: nw.dtypes.DType, form: Form, *, named: bool) -> None:
        self.form, self._dtype, self._named = form, dtype, named
        self._closed = dtype in (nw.Categorical, nw.Enum) and form is Form.UNTYPED
        self.declared: tuple[str, ...] = dtype.categories if isinstance(dtype, nw.Enum) else ()
        self._nulls, self._boundless = False, False
        self.coded, self.whole, self.repeated = False, True, False
        self.low, self.high = math.inf, -math.inf
        self._plain = math.inf, -math.inf  # least and largest number that is never a code
        self._codes: set[float] = set()  # the numbers that may be codes
        self.numbers: Few[int | float] = Few(MOST_CATEGORIES)
        self.texts: Few[str] = Few(MOST_CATEGORIES)
        self.words: Few[str] = Few(MOST_CATEGORIES)
        self.names: Few[Hashable] | None = Few(_MOST_NAMES)
        self.months: set[int] = set()
        self._held: Counter[Kind] = Counter()
        self._separated = 0  # rows of numbers with marks of thousands or a decimal comma
        self.like_dates: set[str] = set()
        self._dated = 0  # rows of texts that resemble dates
        self._sizes: Counter[int] = Counter()  # rows of numbers, by _leading bits
        self._labels: dict[tuple[Kind, Hashable], str] = {}
        self._measured: list[tuple[float, int]] = []  # numbers and their rows, not yet in _sizes

    @property
    def rows(self) -> int:
        return sum(self._held.values())

    @property
    def missing(self) -> bool:
        return self._nulls or (self._boundless and self.kind != "texts")

    @property
    def kind(self) -> Kind | None:
        """The kind of the column's values: truths, numbers, dates or texts; None without values."""
        held: list[Kind] = [kind for kind in _READ if self._held[kind]]
        if len(held) == 1 and not self.coded:
            if not self._held["texts"]:
                return held[0] if not self._closed or self.is_integer else "texts"
            if held[0] != "truths" and not self._closed and self._few_texts(held[0]):
                return held[0]
        return "texts" if self.rows else None

    @property
    def odd_rows(self) -> int:
        """The number of rows with text, if nearly all rows hold numbers; otherwise 0."""
        odd = self._held["texts"]
        return odd if odd + self._held["numbers"] == self.rows and odd <= _RARE * self.rows else 0

    @property
    def is_separated(self) -> bool:
        """Whether most texts are numbers with thousands separators or a decimal comma."""
        return self.kind == "texts" and 2 * self._separated > self._held["texts"]

    @property
    def is_like_dates(self) -> bool:
        """Whether most texts resemble dates, in any format."""
        return self.kind == "texts" and 2 * self._dated > self._held["texts"]

    @property
    def is_distinct(self) -> bool:
        """Whether the column has texts or integers, and no value occurs twice."""
        return self.names is not None and not self.repeated and self._may_name

    @property
    def is_integer(self) -> bool:
        """Whether all numbers are whole, and the type is integer or the column has nulls."""
        declared = not self._dtype.is_float() and not self._dtype.is_decimal()
        return self.whole and (declared or self._nulls)

    @property
    def is_mixed(self) -> bool:
        """Whether the column has values of several kinds, such as numbers and texts."""
        return len(+self._held) > 1

    def mostly_below(self, threshold: float) -> bool:
        """Return whether the median of the non-negative numbers is below ``threshold``.

        The comparison has a relative error of 1/16.
        """
        bound = int(_leading(np.array([threshold]))[0]) if threshold > 0 else 0
        below = sum(rows for size, rows in self._sizes.items() if size < bound)
        return below > sum(self._sizes.values()) / 2

    @property
    def nearly_most(self) -> float | None:
        """A number that 99 % of the numbers above 0 do not exceed, with relative error 1/16.

        Codes for no answer are not counted. It is None if no number is above 0, or some number is
        below.
        """
        low, high = self.ends
        if not 0 <= low <= high or high == 0:
            return None
        last = int(_leading(np.array([high]))[0])
        sizes = sorted((size, rows) for size, rows in self._sizes.items() if 0 < size <= last)
        below = np.cumsum([rows for _, rows in sizes])
        if not sizes:
            return high
        size, _ = sizes[int(np.searchsorted(below, NEARLY_ALL * below[-1]))]
        end = np.array([size + 1], dtype=np.uint64) << np.uint64(48)
        return min(high, float(end.view(np.float64)[0]))

    @property
    def suspects(self) -> list[int]:
        return suspects(self._codes, *self._plain)

    @property
    def ends(self) -> tuple[float, float]:
        """The least and the largest number, without ``suspects`` (codes for no answer)."""
        others = self._codes.difference(self.suspects)
        return min([self._plain[0], *others]), max([self._plain[1], *others])

    @property
    def _is_free_text(self) -> bool:
        """Whether the column is certainly free text, independent of the values that follow."""
        return self.words.many and len(self.texts) > _FEW_TEXTS and not self._is_naming

    def _few_texts(self, kind: Kind) -> bool:
        if len(self.texts) > _FEW_TEXTS:
            return False
        odd = [n for text, n in self.texts.rows.items() if text.strip().casefold() not in _NOTHING]
        more = len(self.numbers) > len(odd) if kind == "numbers" else True
        return not odd or (more and sum(odd) <= _RARE * self.rows)

    def add(self, column: Column) -> None:
        """Add the next batch of the column's values."""
        if self.form is Form.UNTYPED and self._dtype in _OF_OBJECTS:
            # read by category: a null among values would turn integer bounds into floats
            if self._closed:
                native = column.to_native()
                used, rows = np.unique(native.cat.codes.to_numpy(), return_counts=True)
                self._add_nulls(bool((used < 0).any()))
                values = native.cat.categories[used[used >= 0]].to_list()
                return self._add_objects(zip(values, rows[used >= 0].tolist(), strict=True))
            return self._add_objects((value, 1) for value in column.to_list())
        if self._dtype in (nw.Categorical, nw.Enum):
            column = column.cast(nw.String)
        values = column.to_arrow()
        if self._dtype == nw.String or self._dtype in (nw.Categorical, nw.Enum):
            return self._add_texts(values)
        self._add_nulls(values.null_count > 0)
        values = values.drop_null()
        if self._dtype == nw.Boolean:
            for value, rows in _counted(values):
                self._add("truths", "true" if value else "false", value, rows)
        elif self._dtype.is_numeric():
            self._add_numbers(values)
        else:
            self._add_dates(values)
        return None

    def _add_nulls(self, any_null: bool) -> None:
        self._nulls = self._nulls or any_null

    def _add(self, kind: Kind, text: str, value: Any, rows: int) -> None:
        """Add a value of this kind that occurs in ``rows`` rows, and has this text."""
        self._held[kind] += rows
        if self.form is not Form.UNTYPED:
            self.words.add(text, rows)
        elif kind == "numbers" and not abs(value) < INEXACT:
            self._nulls = True  # it cannot be a category, since a float may have rounded it
        elif not self.words.many:  # equal values share one label
            own = "numbers" if kind == "truths" else kind  # True equals 1 in pandas
            self.words.add(self._labels.setdefault((own, value), text), rows)
        if kind == "texts":
            self.texts.add(text, rows)
        self._name(value, rows)

    @property
    def _is_naming(self) -> bool:
        return self._may_name and self.names is not None and not self.names.many

    @property
    def _may_name(self) -> bool:
        """Whether values may identify persons: the column is named so, or holds whole numbers."""
        return self._named or (self.whole and not self.months)

    def _name(self, value: Hashable, rows: int) -> None:
        if self.names is not None and self._is_naming:
            self.repeated = self.repeated or rows > 1 or value in self.names.rows
            self.names.add(value, rows)
            if self.repeated and not self._named:
                self.names = None

    def _add_texts(self, values: Arrow) -> None:
        """Add an arrow array of texts, which may also be numbers, dates or truth values."""
        import pyarrow as pa
        import pyarrow.compute as pc

        call = pc.call_function
        self._add_nulls(values.null_count > 0)
        values = values.drop_null()
        # texts that other programs write for nulls; they would otherwise need a catch-all
        if self.form is Form.TEXT:
            words = pc.SetLookupOptions(pa.array(["", "NA"], values.type))
            nothing = call("is_in", [values], words)
            present = values.filter(call("invert", [nothing]))
            self._add_nulls(len(present) < len(values))
            values = present
        like = call("match_substring_regex", [values], pc.MatchSubstringOptions(_SEPARATED))
        self._separated += call("sum", [like]).as_py() or 0  # the sum of no values is null
        options = pc.MatchSubstringOptions(LIKE_DATES)
        dated = values.filter(call("match_substring_regex", [values], options))
        self._add_like_dates(dated[:_MOST_DATES].to_pylist(), len(dated))
        if self._is_free_text:
            self._held["texts"] += len(values)
            return
        counted = values.value_counts()
        if len(counted) > _MANY:
            self.words.forget()
            if self.form is not Form.TYPED:
                options = pc.MatchSubstringOptions(_PLAIN)
                plain = call("match_substring_regex", [values], options)
                self._add_numbers(values.filter(plain).cast(pa.float64()))
                counted = values.filter(call("invert", [plain])).value_counts()
        for text, rows in _pairs(counted):
            if self.form is Form.TYPED:
                self._add("texts", text, text, rows)
            else:
                self._read(text, rows)
        self._measure_all()

    def _add_like_dates(self, texts: list[str], rows: int) -> None:
        self._dated += rows
        self.like_dates.update(texts[: _MOST_DATES - len(self.like_dates)])

    def _read(self, text: str, rows: int = 1) -> None:
        """Add a text in ``rows`` rows as the number, date or truth value it states, or as text."""
        # text that is not valid UTF-8 counts as missing
        if not text.isascii() and text.encode(errors="replace").decode() != text:
            self._nulls = True
            return
        number = double_of_text(text)
        if number is not None and math.isfinite(number):
            self.coded = self.coded or _CODE.match(text) is not None
            if number.is_integer() and abs(number) < INEXACT:
                number = int(number)
            elif self.form is Form.TEXT and abs(number) < 2.0**63 and text.strip("+-").isdigit():
                number = int(text)
            self._add_number(number, text, rows)
        elif number is not None:
            if self.form is Form.TEXT:
                self._boundless = True
                self.words.add(text, rows)
            else:  # NaN is a missing value in TEXT
                self._nulls = True
        elif text.lower() in ("true", "false"):
            self._add("truths", text, text.lower() == "true", rows)
        elif moment_of(text) is not None:
            self.months.add(int(text[:4]) * 12 + int(text[5:7]) - 1)
            self._add("dates", text, text.replace("T", " ").removesuffix(" 00:00:00"), rows)
        else:
            self._add("texts", text, text, rows)

    def _add_number(self, number: int | float, text: str, rows: int) -> None:
        """Add a finite number, with its text, that occurs in ``rows`` rows."""
        self._add("numbers", text, number, rows)
        self.numbers.add(number, rows)
        self._measured.append((float(number), rows))
        if isinstance(number, float):
            self.whole = False

    def _add_objects(self, values: Iterable[tuple[object, int]]) -> None:
        """Add Python objects of any types, each with its number of rows."""
        texts: Counter[str] = Counter()
        for value, rows in values:
            if isinstance(value, str):
                texts[str.__str__(value)] += rows
            elif isinstance(value, bool | np.bool_):
                self._add("truths", str(bool(value)).lower(), bool(value), rows)
            elif isinstance(value, int | float | np.integer | np.floating | decimal.Decimal):
                number = number_of(value, Form.UNTYPED)
                if number is not None and math.isfinite(number):
                    whole = number == int(number) and abs(number) < INEXACT
                    exact = int(number) if whole else None
                    own = number if exact is None else exact
                    self._add_number(own, str(own), rows)
                else:
                    self._nulls = True
            elif isinstance(value, datetime.date | np.datetime64):
                self._add_day(value, rows)
            elif type(value).__name__ in ("Interval", "Period"):  # classes of pandas
                self._add("texts", str(value), str(value), rows)
            else:
                self._nulls = True
        for text, rows in texts.items():
            self._separated += rows * bool(_LIKE.match(text))
            if _LIKE_DATE.match(text):
                self._add_like_dates([text], rows)
            if self._is_free_text:
                self._held["texts"] += rows
            else:
                self._read(text, rows)
        self._measure_all()

    def _add_day(self, value: datetime.date | np.datetime64, rows: int) -> None:
        """Add a date or a timestamp; one with a time zone counts as missing."""
        day = value.astype("datetime64[us]").item() if isinstance(value, np.datetime64) else value
        zoned = getattr(day, "tzinfo", None) is not None
        if not isinstance(day, datetime.date) or zoned or day != day:  # pandas' NaT is a datetime
            self._nulls = True
            return
        self.months.add(day.year * 12 + day.month - 1)
        text = str(day).removesuffix(" 00:00:00")
        self._add("dates", text, text, rows)

    def _add_numbers(self, values: Arrow) -> None:
        """Add an arrow array of numbers without nulls."""
        import pyarrow as pa

        doubles = values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        finite = np.isfinite(doubles)
        self._add_nulls(not finite.all())
        doubles = doubles[finite]
        self._held["numbers"] += len(doubles)
        self._measure(doubles)
        exact = self.form is Form.TYPED and self._dtype.is_integer()
        whole = exact or bool(((doubles == np.rint(doubles)) & (abs(doubles) < INEXACT)).all())
        self.whole = self.whole and whole
        if self.numbers.many and not self._is_naming:
            return
        for value, rows in _counted(values if self._dtype.is_integer() else pa.array(doubles)):
            number = int(value) if whole else value
            self.numbers.add(number, rows)
            self._name(number, rows)
            if self.numbers.many and not self._is_naming:
                return

    def _measure_all(self) -> None:
        """Call :meth:`_measure` for the numbers that were added one by one."""
        if self._measured:
            doubles, rows = zip(*self._measured, strict=True)
            self._measure(np.array(doubles), np.array(rows))
            self._measured.clear()

    def _measure(self, doubles: NDArray[np.float64], rows: NDArray[Any] | None = None) -> None:
        """Update the least and the largest number, and numbers of rows by order of magnitude."""
        if not len(doubles):
            return
        self.low = min(self.low, float(doubles.min()))
        self.high = max(self.high, float(doubles.max()))
        codes = np.isin(doubles, CODES)
        self._codes.update(np.unique(doubles[codes]).tolist())
        if len(plain := doubles[~codes]):
            low, high = self._plain
            self._plain = min(low, float(plain.min())), max(high, float(plain.max()))
        positive = doubles >= 0
        if self._plain[0] >= 0 and positive.any():
            sizes, index = np.unique(_leading(doubles[positive]), return_inverse=True)
            counts = np.bincount(index, None if rows is None else rows[positive])
            self._sizes.update(dict(zip(sizes.tolist(), map(int, counts), strict=True)))

    def _add_dates(self, values: Arrow) -> None:
        """Add an arrow array of dates or timestamps without nulls."""
        moments = values.to_numpy(zero_copy_only=False)
        months = moments.astype("datetime64[M]").astype(np.int64) + 1970 * 12
        usual = (months >= 12) & (months < 10_000 * 12)
        self._add_nulls(not usual.all())
        self._held["dates"] += int(usual.sum())
        self.months.update(np.unique(months[usual]).tolist())


_OF_OBJECTS = (nw.Object, nw.Unknown, nw.String, nw.Categorical, nw.Enum)


def _leading(doubles: NDArray[np.float64]) -> NDArray[np.uint64]:
    """Return the leading bits of each number's absolute value, which keep the order of sizes."""
    # the exponent and four bits of the mantissa, so that the relative error is 1/16
    return np.abs(doubles).view(np.uint64) >> np.uint64(48)


def _counted(values: Arrow) -> Iterable[tuple[Any, int]]:
    return _pairs(values.value_counts())


def _pairs(counted: "pa.StructArray") -> Iterable[tuple[Any, int]]:
    """Return pairs (value, number of rows) from the result of arrow's value_counts."""
    return zip(*(counted.field(k).to_pylist() for k in (0, 1)), strict=True)
