"""The one tokenizer: stored text and queries, SQLite and PostgreSQL alike. Pure. Source: DESIGN 6.

Text is made comparable first: NFKC, casefold, invisible characters (soft hyphen, zero width space,
direction marks, variation selectors) dropped. Then it is read as

    word      a run of letters, digits and their marks; `v3.11`, `re-test`, `km/h`, `it's` and
              `user_name` are two words each, and Latin is cut from any other script
    CJK run   Han, kana (with ー), bopomofo, hangul: its bigrams, then its last character;
              谁是卧底 is 谁是 是卧 卧底 底
    emoji     one token for a whole sequence: keycap, flag, skin tone, ZWJ family

and nothing else is a token. Accents count: `café` is found by `CAFÉ` and by a decomposed é, not by
`cafe`; a combining mark stays with its base. Thai, Khmer and others that write words without
spaces are found by what stands between spaces.

A token is `w` and the word if that is ASCII (`wredis`, `w2024`), else `u` and four hex digits for
each UTF-16 unit (中文 is `u4e2d6587`, the word `u4e2d` is `wu4e2d`). So each token has one
spelling, no parser takes it for a number, host or operator, no collation or stemmer changes it,
and the spelling of a CJK token begins with that of its first character.
"""

import re
import unicodedata
from codecs import utf_16_be_encode
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

# Characters of the text that are read, and of tokens that come out: 60,000 Chinese characters or
# 90,000 words; what lies beyond is not indexed. PostgreSQL refuses a tsvector of more than 1 MiB,
# and the worst text, of different short tokens, needs 1.7 bytes of it for a character of ours.
INDEX_CHARS: Final = 600_000
# Characters of a query that are read, and tokens that are looked up; the rest of it is ignored.
QUERY_CHARS: Final = 10_000
QUERY_TOKENS: Final = 128

_WORD_CHARS = 64  # a longer word is cut into pieces, so that no database refuses or shortens it
_UNIT_CHARS = 4  # a CJK character and the marks on it
_ZWJ = "\u200d"
_TAGS = "\U000e0020-\U000e007f"
_SKIN = "[\U0001f3fb-\U0001f3ff]"
_REGIONAL = "\U0001f1e6-\U0001f1ff"
_PICTOGRAPH = (
    "\u00a9\u00ae\u2194-\u2199\u21a9\u21aa\u231a\u231b\u2328\u23cf\u23e9-\u23f3\u23f8-\u23fa"
    "\u25aa\u25ab\u25b6\u25c0\u25fb-\u25fe\u2600-\u27bf\u2934\u2935\u2b05-\u2b07\u2b1b\u2b1c\u2b50\u2b55"
    "\u3030\u303d\U0001f000-\U0001f1e5\U0001f200-\U0001faff"
)
# Planes 2 and 3 whole: the Han extensions, also those newer than Python's Unicode tables.
_CJK = (
    "\u1100-\u11ff\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3038-\u303c\u3041-\u3096\u309d-\u309f"
    "\u30a1-\u30fa\u30fc-\u30ff\u3105-\u312f\u3131-\u318e\u31a0-\u31bf\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97c\uac00-\ud7a3\ud7b0-\ud7fb\uf900-\ufaff"
    "\U0001aff0-\U0001affe\U0001b000-\U0001b16f\U00020000-\U0003fffd"
)
_LATIN = (
    "0-9a-z\u00aa\u00ba\u00df-\u02af\u1d00-\u1dbf"
    "\u1e00-\u1eff\u2c60-\u2c7f\ua720-\ua7ff\uab30-\uab6f"
)


def _marks(first: int, last: int) -> str:
    """Return the combining marks of a range as the inside of a character class."""
    enclosing_keycap = 0x20E3  # makes an emoji of a digit
    ranges: list[list[int]] = []
    for point in range(first, last + 1):
        if unicodedata.category(chr(point))[0] != "M" or point == enclosing_keycap:
            continue
        if ranges and ranges[-1][1] == point - 1:
            ranges[-1][1] = point
        else:
            ranges.append([point, point])
    return "".join(f"{chr(start)}-{chr(end)}" for start, end in ranges)


# One set for both planes costs 1 µs a character: `re` has a bitmap for the first plane only.
_MARK = f"[{_marks(0x300, 0xFFFF)}]"
_FAR_MARK = f"(?=[\U00010000-\U0001efff])[{_marks(0x10000, 0x1EFFF)}]"
_LETTER = f"[^\\W_{_CJK}{_PICTOGRAPH}{_REGIONAL}]"
_LEXEME = re.compile(
    "(?P<emoji>[0-9#*]\u20e3"
    f"|[{_REGIONAL}]{{1,2}}"
    f"|[{_PICTOGRAPH}]{_SKIN}?[{_TAGS}]{{0,16}}(?:{_ZWJ}[{_PICTOGRAPH}]{_SKIN}?){{0,9}})"
    f"|(?P<cjk>[{_CJK}]+(?:{_MARK}+[{_CJK}]*)*)"
    f"|(?P<word>{_LETTER}+(?:(?:{_MARK}|{_FAR_MARK})+{_LETTER}*)*(?!\u20e3))"
)
_UNIT = re.compile(f"[{_CJK}]{_MARK}*")
_SCRIPT = re.compile(f"[{_LATIN}]+(?:{_MARK}+[{_LATIN}]*)*|[^{_LATIN}]+")
# Default ignorable in Unicode, without the joiner and the tags, which mean something in an emoji.
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200c\u200e\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U000e0000-\U000e001f\U000e0080-\U000e0fff]+"
)
_JOINING = re.compile(f"[{_ZWJ}{_TAGS}]")
_STRAY = re.compile(
    f"(?<![{_PICTOGRAPH}{_TAGS}]){_ZWJ}+|{_ZWJ}+(?![{_ZWJ}{_PICTOGRAPH}])|(?<![\U0001f3f4{_TAGS}])[{_TAGS}]+"
)
# What parts two things asked for; any other punctuation (`.`, `-`, `/`, `:`, `'`) joins one thing.
_BREAK = re.compile(r"""[\s,;!?、。()\[\]{}<>"“”«»「」『』【】《》〈〉]+""")
_TOKEN = re.compile(r"[a-z][0-9a-z]*")


@dataclass(frozen=True, slots=True)
class Phrase:
    """Tokens that follow one another; with `open_end` the last one is only the beginning of one."""

    tokens: tuple[str, ...]
    open_end: bool = False

    def __post_init__(self) -> None:
        if not self.tokens:
            raise ValueError("a phrase has at least one token")
        for token in self.tokens:
            if not _TOKEN.fullmatch(token):
                raise ValueError(f"{token!r} is no token: phrases are made by query_runs()")


def index_text(text: str) -> str:
    """Return the tokens of `text` in order, with repetitions, joined by spaces.

    At most `INDEX_CHARS` characters. PostgreSQL keeps the order of the first 16,383 tokens and 256
    places of each; beyond that single tokens are still found, phrases are not.
    """
    tokens: list[str] = []
    room = INDEX_CHARS + 1
    for _, lexeme in _lexemes(_folded(text[:INDEX_CHARS])):
        for token in lexeme:
            room -= len(token) + 1
            if room < 0:
                return " ".join(tokens)
            tokens.append(token)
    return " ".join(tokens)


def query_runs(text: str) -> list[Phrase]:
    """Return each different run of a query as a phrase, in order; all of them are to be found.

    Space, brackets, quotes and clause marks end a run: `v3.11` or `redis缓存` is one phrase. A CJK
    run at its end may go on in the text: of two characters or more, its bigrams are the phrase; a
    single one is open-ended, for it begins a bigram or is the last of its run. So a query matches
    any substring of a CJK run. At most `QUERY_TOKENS` tokens of the first `QUERY_CHARS` characters.
    """
    phrases: dict[Phrase, None] = {}
    room = QUERY_TOKENS
    for run in _BREAK.split(_folded(text[:QUERY_CHARS])):
        phrase = _phrase(run, room=room)
        if phrase is None or phrase in phrases:
            continue
        phrases[phrase] = None
        room -= len(phrase.tokens)
        if room == 0:
            break
    return list(phrases)


def query_tokens(text: str) -> list[Phrase]:
    """Return each different token of a query as a phrase of one, for a search for any of them.

    Limits as in `query_runs`.
    """
    phrases: dict[Phrase, None] = {}
    for is_cjk, lexeme in _lexemes(_folded(text[:QUERY_CHARS])):
        single = is_cjk and len(lexeme) == 1
        for token in lexeme[:-1] if is_cjk and not single else lexeme:
            phrases[Phrase((token,), open_end=single)] = None
            if len(phrases) == QUERY_TOKENS:
                return list(phrases)
    return list(phrases)


def fts5_query(phrases: list[Phrase], *, any_of: bool = False) -> str:
    """Return the right side of an FTS5 MATCH for all (or any) of `phrases`; "" for none.

    FTS5 refuses an empty MATCH: a caller with "" has nothing to ask.
    """
    return (" OR " if any_of else " AND ").join(
        " + ".join(f'"{token}"' for token in phrase.tokens) + (" *" if phrase.open_end else "")
        for phrase in phrases
    )


def tsquery(phrases: list[Phrase], *, any_of: bool = False) -> str:
    """Return the text for `to_tsquery('simple', %s)` for all (or any) of `phrases`; "" for none."""
    return (" | " if any_of else " & ").join(
        "(" + " <-> ".join(phrase.tokens) + (":*" if phrase.open_end else "") + ")"
        for phrase in phrases
    )


def _folded(text: str) -> str:
    if text.isascii():
        return text.lower()
    text = unicodedata.normalize("NFKC", text).casefold()
    text = _INVISIBLE.sub("", text)
    if _JOINING.search(text):
        text = _STRAY.sub("", text)
    return unicodedata.normalize("NFKC", text)


def _lexemes(text: str) -> Iterator[tuple[bool, list[str]]]:
    """Yield each word, emoji and CJK run of folded text: whether it is CJK, and its tokens."""
    for match in _LEXEME.finditer(text):
        found = match.group()
        if match.lastgroup == "cjk":
            units = [_code_units(unit[:_UNIT_CHARS]) for unit in _UNIT.findall(found)]
            yield True, [*(f"u{a}{b}" for a, b in pairwise(units)), f"u{units[-1]}"]
        elif match.lastgroup == "emoji":
            yield False, [f"u{_code_units(found)}"]
        else:
            yield False, _word_tokens(found)


def _word_tokens(word: str) -> list[str]:
    if word.isascii() and len(word) <= _WORD_CHARS:
        return [f"w{word}"]
    pieces = [
        part[start : start + _WORD_CHARS]
        for part in _SCRIPT.findall(word)
        for start in range(0, len(part), _WORD_CHARS)
    ]
    return [f"w{piece}" if piece.isascii() else f"u{_code_units(piece)}" for piece in pieces]


def _code_units(text: str) -> str:
    # `str.encode` looks this codec up by name each time: 3 µs.
    return utf_16_be_encode(text)[0].hex()


def _phrase(run: str, *, room: int) -> Phrase | None:
    tokens: list[str] = []
    open_end = ends_in_pair = False
    for is_cjk, lexeme in _lexemes(run):
        tokens += lexeme
        open_end = is_cjk and len(lexeme) == 1
        ends_in_pair = is_cjk and not open_end
        if len(tokens) > room:
            return Phrase(tuple(tokens[:room]))
    if not tokens:
        return None
    return Phrase(tuple(tokens[:-1] if ends_in_pair else tokens), open_end=open_end)
