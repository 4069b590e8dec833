"""Tables, which Telegram has not: in columns of equal width if these fit on a phone, else row by row. Pure."""

import re
import unicodedata
from collections.abc import Iterator, Sequence

from channels_app.markdown.formulas import shown_in_cell
from channels_app.markdown.marked import BLOCK_OF_CODE, Marked, Span
from channels_app.markdown.signs import IMAGE, LINK, protected, typed
from channels_app.splitting import is_blank

WIDTH = 38  # narrow characters, of which a wide one takes two
_WIDE_SPACE = "\u3000"
_RULE = re.compile("-*(-\\+-+)*")
_LINE_BREAK = re.compile(protected("<") + r"br\s*/?>", re.IGNORECASE)

Row = Sequence[str]


def laid_out(table: str) -> Marked:
    """Lay a table out anew that the library has put into columns. Signs may stand in it."""
    rows = _cells(table)
    if len(rows) < 2:
        return _block(typed(table))
    if any(sign in table for sign in (LINK, IMAGE)) or _LINE_BREAK.search(table):
        return _row_by_row(rows)
    plain = [[typed(cell) for cell in row] for row in rows]
    columns = [_Column(cells) for cells in zip(*plain, strict=True)]
    width = sum(column.width for column in columns) + len(" | ") * (len(columns) - 1)
    return _in_columns(plain, columns) if width <= WIDTH else _row_by_row(rows)


def _in_columns(rows: Sequence[Row], columns: Sequence["_Column"]) -> Marked:
    head, *body = (
        " | ".join(column.padded(cell) for column, cell in zip(columns, row, strict=True)).rstrip()
        for row in rows
    )
    rule = sum(column.rule for column in columns) + len(" | ") * (len(columns) - 1)
    return _block("\n".join([head, "-" * rule, *body]))


class _Column:
    """Wide spaces fill up wide characters: these are not just twice as wide as the others in every font."""

    def __init__(self, cells: Sequence[str]) -> None:
        self._wide = max(map(_wide, cells))
        self._narrow = max(map(_narrow, cells))

    @property
    def width(self) -> int:
        return 2 * self._wide + self._narrow

    @property
    def rule(self) -> int:
        """How many dashes are at most as long."""
        return self._wide * 5 // 3 + self._narrow

    def padded(self, cell: str) -> str:
        wide, narrow = self._wide - _wide(cell), self._narrow - _narrow(cell)
        return cell + _WIDE_SPACE * wide + " " * narrow


def _wide(text: str) -> int:
    return sum(unicodedata.east_asian_width(character) in "WF" for character in text)


def _narrow(text: str) -> int:
    return sum(
        unicodedata.east_asian_width(character) not in "WF"
        and unicodedata.category(character) not in ("Mn", "Me", "Cf")
        for character in text
    )


def _cells(table: str) -> list[list[str]]:
    """Read a table as the library writes it: cells, filled up with spaces, between " | "."""
    head, *others = table.split("\n")
    if not others or not _RULE.fullmatch(others[0]):
        return []
    ends = [match.start() - 1 for match in re.finditer(r"\+", others[0])] + [len(others[0])]
    starts = [0] + [end + len(" | ") for end in ends[:-1]]
    return [
        [shown_in_cell(line[start:end]).strip() for start, end in zip(starts, ends, strict=True)]
        for line in (head, *others[1:])
    ]


def _block(text: str) -> Marked:
    return Marked(text, (Span(0, len(text), BLOCK_OF_CODE),))


def _row_by_row(rows: Sequence[Row]) -> Marked:
    """Show each row under its first cell, with the names of the columns."""
    names, *others = rows
    table = Marked("")
    for row in others:
        if lines := list(_named_cells(names, row)):
            gap = Marked("\n\n" if table.text else "")
            table = table + gap + _record(*lines)
    return table


def _record(title: str, *others: str) -> Marked:
    bold = Marked(title, (Span(0, len(title), "bold"),))
    return bold + Marked("".join(f"\n• {line}" for line in others))


def _named_cells(names: Row, row: Row) -> Iterator[str]:
    for name, cell in zip(names, row, strict=True):
        if not is_blank(typed(cell)):
            yield _LINE_BREAK.sub("; ", f"{name}{_colon(typed(name))}{cell}")


def _colon(name: str) -> str:
    if is_blank(name):
        return ""
    return "：" if _wide(name[-1]) else ": "
