"""The tokenizer alone, and its tokens in the two indexes that hold them."""

import re
import sqlite3
import unicodedata
from collections.abc import Iterator
from typing import Literal, Protocol

import psycopg
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from memory_app.tokens import (
    INDEX_CHARS,
    QUERY_TOKENS,
    Phrase,
    fts5_query,
    index_text,
    query_runs,
    query_tokens,
    tsquery,
)

B046 = (
    "it's",
    "re-test",
    "km/h",
    "v3.11",
    '"open',
    "a AND OR b",
    "*",
    "title:x",
    "NEAR(",
    "^",
    "",
    "   ",
    "a " * 10_000,
    "50%",
    "a'b",
    "-a",
    "a & !b | (c",
    "a:*",
    "x\\",
    "\0",
    "_",
    "‘’“”",
)

# Characters that NFKC neither splits nor joins, so that a substring stays one.
HAN = st.characters(min_codepoint=0x4E00, max_codepoint=0x9FA5)
RARE_HAN = st.characters(min_codepoint=0x20000, max_codepoint=0x2A6DF)
KANA = st.sampled_from(
    "あいうえおかきくけこさしすせそたちつてとのはまやらわんアイウエオカラーャッ々"
)
HANGUL = st.characters(min_codepoint=0xAC00, max_codepoint=0xD7A3)
CJK_TEXT = st.text(st.one_of(HAN, KANA, HANGUL, RARE_HAN), min_size=1, max_size=24)
# Few characters, so that bigrams repeat and phrases have something to trip over.
POOR_CJK_TEXT = st.text(st.sampled_from("中文的ー한"), min_size=1, max_size=24)
ANY_TEXT = st.text(max_size=60)
AWKWARD_TEXT = st.text(
    st.sampled_from(
        "aZzuwE019._-/:'@&|!()*\\<>\"% \n"
        "中文字あーァ한국어éÉ\u0301\u0308ßИйЖعربไทย़क्ष\u200d\u200c\ufe0f"
        "\u20e3#👨👩👍\U0001f3fd🇩🇪🇫❤🔥𠀀\u3099\ufb01①㊗ﾊﾟ"
    ),
    max_size=60,
)
# The tests below ask a database that all examples share; it holds one row at a time.
on_index = settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


class Index(Protocol):
    def store(self, tokens: str) -> None:
        """Make `tokens` the only row."""

    def lexemes(self) -> list[str]:
        """Return what the indexer made of the row, in order."""

    def finds(self, phrases: list[Phrase], *, any_of: bool = False) -> bool: ...


class Fts5:
    """As memory_app.index declares it."""

    def __init__(self) -> None:
        self.db = sqlite3.connect(":memory:")
        self.db.execute(
            "CREATE VIRTUAL TABLE t USING fts5(tokens, tokenize='unicode61 remove_diacritics 0')"
        )
        self.db.execute("CREATE VIRTUAL TABLE v USING fts5vocab(t, 'instance')")

    def store(self, tokens: str) -> None:
        self.db.execute("DELETE FROM t")
        self.db.execute("INSERT INTO t VALUES (?)", [tokens])

    def lexemes(self) -> list[str]:
        return [term for (term,) in self.db.execute("SELECT term FROM v ORDER BY offset")]

    def finds(self, phrases: list[Phrase], *, any_of: bool = False) -> bool:
        match = fts5_query(phrases, any_of=any_of)
        return bool(
            match and self.db.execute("SELECT 1 FROM t WHERE t MATCH ?", [match]).fetchone()
        )


class PostgreSQL:
    def __init__(self, connection: psycopg.Connection) -> None:
        self.db = connection
        self.db.execute(
            "CREATE TEMPORARY TABLE t (tokens text, "
            "vector tsvector GENERATED ALWAYS AS (to_tsvector('simple', tokens)) STORED)"
        )

    def store(self, tokens: str) -> None:
        self.db.execute("DELETE FROM t")
        self.db.execute("INSERT INTO t VALUES (%s)", [tokens])

    def lexemes(self) -> list[str]:
        rows = self.db.execute(
            "SELECT lexeme FROM t, unnest(vector), unnest(positions) place ORDER BY place"
        )
        return [lexeme for (lexeme,) in rows]

    def finds(self, phrases: list[Phrase], *, any_of: bool = False) -> bool:
        rows = self.db.execute(
            "SELECT 1 FROM t WHERE vector @@ to_tsquery('simple', %s)",
            [tsquery(phrases, any_of=any_of)],
        )
        return rows.fetchone() is not None


@pytest.fixture(scope="module", params=["fts5", "postgresql"])
def index(request: pytest.FixtureRequest) -> Iterator[Index]:
    if request.param == "fts5":
        yield Fts5()
        return
    try:
        connection = psycopg.connect(
            "host=127.0.0.1 user=postgres dbname=postgres connect_timeout=2"
        )
    except psycopg.OperationalError as error:
        pytest.skip(f"no PostgreSQL on loopback: {error}")
    with connection:
        yield PostgreSQL(connection)


def plain(token: str) -> str:
    """Undo the spelling of one token."""
    return token[1:] if token[0] == "w" else bytes.fromhex(token[1:]).decode("utf-16-be")


def plain_tokens(text: str) -> list[str]:
    return [plain(token) for token in index_text(text).split()]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It's a Re-Test", ["it", "s", "a", "re", "test"]),
        ("v3.11 km/h user_name", ["v3", "11", "km", "h", "user", "name"]),
        ("谁是卧底", ["谁是", "是卧", "卧底", "底"]),
        ("花", ["花"]),
        ("花火，祭", ["花火", "火", "祭"]),
        ("コーヒー", ["コー", "ーヒ", "ヒー", "ー"]),
        ("佐々木", ["佐々", "々木", "木"]),
        ("불꽃놀이", ["불꽃", "꽃놀", "놀이", "이"]),
        ("𠀀中", ["𠀀中", "中"]),
        ("把redis缓存", ["把", "redis", "缓存", "存"]),
        ("２０２４年 ﾊﾟﾝ ﬁ", ["2024", "年", "パン", "ン", "fi"]),
        ("ใช้redis", ["ใช้", "redis"]),
        ("Привет, МИР2", ["привет", "мир", "2"]),
        ("مَرحبا क्षेत्र", ["مَرحبا", "क्षेत्र"]),
        ("Straße", ["strasse"]),
        ("50% *^ — a@b", ["50", "a", "b"]),
    ],
)
def test_it_reads_words_and_cjk_runs(text: str, expected: list[str]):
    """Words fold case and width; CJK runs become bigrams and a last character; scripts are cut."""
    assert plain_tokens(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("👨‍👩‍👧", ["👨‍👩‍👧"]),
        ("👍🏽👍", ["👍🏽", "👍"]),
        ("❤\ufe0f ❤", ["❤", "❤"]),
        ("❤️‍🔥", ["❤‍🔥"]),
        ("🇩🇪🇫🇷", ["🇩🇪", "🇫🇷"]),
        ("1️⃣ 11️⃣ #️⃣", ["1⃣", "1", "1⃣", "#⃣"]),
        ("🏴󠁧󠁢󠁥󠁮󠁧󠁿", ["🏴󠁧󠁢󠁥󠁮󠁧󠁿"]),
        ("好😀ok", ["好", "😀", "ok"]),
    ],
)
def test_it_keeps_an_emoji_sequence_whole(text: str, expected: list[str]):
    """A keycap, flag, skin tone or family is one token; variation selectors do not matter."""
    assert plain_tokens(text) == expected


def test_it_lets_accents_count():
    """Composed and decomposed é are one word, e is another."""
    assert plain_tokens("café CAFE\u0301 cafe") == ["café", "café", "cafe"]


def test_it_reads_over_invisible_characters():
    """Soft hyphens, zero width spaces, direction marks and stray joiners or tags part nothing."""
    assert plain_tokens("re\u00addis 缓\u200b存 \u202eab\u200dc hid\U000e0041den") == [
        *("redis", "缓存", "存"),
        *("abc", "hidden"),
    ]


def test_it_gives_each_token_one_spelling():
    """An ASCII word that looks like a coded character is not taken for it."""
    assert index_text("中文 u4e2d6587") == "u4e2d6587 u6587 wu4e2d6587"


@given(st.one_of(ANY_TEXT, AWKWARD_TEXT))
def test_it_spells_tokens_so_that_they_can_be_read_back(text: str):
    """Tokens are ASCII, begin with a letter, and tell exactly what they stand for."""
    for token in index_text(text).split():
        assert re.fullmatch(r"w[0-9a-z]+|u(?:[0-9a-f]{4})+", token)
        assert ("w" if plain(token).isascii() else "u") == token[0]


@pytest.mark.parametrize("form", ["NFC", "NFD", "NFKC", "NFKD"])
@given(text=st.one_of(ANY_TEXT, AWKWARD_TEXT))
def test_it_does_not_depend_on_the_normal_form(
    form: Literal["NFC", "NFD", "NFKC", "NFKD"], text: str
):
    """A phone that sends é, ガ or 한 in pieces says the same."""
    assert index_text(unicodedata.normalize(form, text)) == index_text(text)


def test_it_reads_a_lone_surrogate_as_nothing():
    """Half a character is dropped, not an error."""
    assert plain_tokens("a\ud83d中") == ["a", "中"]


def test_it_cuts_very_long_words():
    """No token is longer than any index takes, and the whole word is still found as a phrase."""
    word = "x" * 5_000
    cyrillic = "ж" * 5_000

    assert max(map(len, index_text(f"{word} {cyrillic}").split())) <= 600
    assert query_runs("y" * 100) == [Phrase(("w" + "y" * 64, "w" + "y" * 36))]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("谁是", [("u8c01662f",)]),
        ("redis 集群", [("wredis",), ("u96c67fa4",)]),
        ("v3.11", [("wv3", "w11")]),
        ("改到v2", [("u65395230", "u5230", "wv2")]),
        ("a, b;(c)", [("wa",), ("wb",), ("wc",)]),
        ("a a A", [("wa",)]),
    ],
)
def test_it_reads_a_query_as_phrases(query: str, expected: list[tuple[str, ...]]):
    """Each run is one phrase, each different phrase comes once."""
    assert query_runs(query) == [Phrase(tokens) for tokens in expected]


def test_it_leaves_a_single_cjk_character_open():
    """It may begin a bigram or end its run; a Latin word may do neither."""
    assert query_runs("v2花 b") == [Phrase(("wv2", "u82b1"), open_end=True), Phrase(("wb",))]


def test_it_gives_a_fallback_of_single_tokens():
    """Bigrams without the last character, which would match too much."""
    assert query_tokens("v3.1 谁是卧 花 v3") == [
        Phrase(("wv3",)),
        Phrase(("w1",)),
        Phrase(("u8c01662f",)),
        Phrase(("u662f5367",)),
        Phrase(("u82b1",), open_end=True),
    ]


def test_it_bounds_queries_and_texts():
    """However long the text, a query has at most QUERY_TOKENS tokens and an entry INDEX_CHARS."""
    words = " ".join(f"x{number}" for number in range(300_000))

    assert len(query_runs("a " * 10_000)) == 1
    assert len(query_runs(words)) == QUERY_TOKENS
    assert len(query_tokens(words)) == QUERY_TOKENS
    assert sum(len(phrase.tokens) for phrase in query_runs("中文" * 10_000)) == QUERY_TOKENS
    assert INDEX_CHARS - 10 < len(index_text(words)) <= INDEX_CHARS


@pytest.mark.parametrize("text", ['wa" OR "wb', "*", "", "wa wb", "中", "wa\n", "A"])
def test_it_takes_no_raw_text_for_a_token(text: str):
    """What is not a token cannot be put into a phrase, so no query text reaches a database."""
    with pytest.raises(ValueError, match="query_runs"):
        Phrase((text,))


def test_it_writes_both_query_languages():
    """Tokens are quoted for FTS5, joined by <-> for PostgreSQL; no phrase is no text."""
    phrases = query_runs("v3.11 花")

    assert fts5_query(phrases) == '"wv3" + "w11" AND "u82b1" *'
    assert fts5_query(phrases, any_of=True) == '"wv3" + "w11" OR "u82b1" *'
    assert tsquery(phrases) == "(wv3 <-> w11) & (u82b1:*)"
    assert tsquery(phrases, any_of=True) == "(wv3 <-> w11) | (u82b1:*)"
    assert fts5_query([]) == tsquery([]) == ""


@given(text=st.one_of(ANY_TEXT, AWKWARD_TEXT))
@on_index
def test_it_survives_both_indexers_unchanged(index: Index, text: str):
    """The database holds exactly our tokens, in our order."""
    tokens = index_text(text)

    index.store(tokens)

    assert index.lexemes() == tokens.split()


@given(text=st.one_of(CJK_TEXT, POOR_CJK_TEXT), data=st.data())
@on_index
def test_it_finds_any_substring_of_a_cjk_text(index: Index, text: str, data: st.DataObject):
    """One to six characters from anywhere in a run, in Latin or not: always found."""
    start = data.draw(st.integers(0, len(text) - 1))
    query = text[start : start + data.draw(st.integers(1, 6))]

    index.store(index_text(f"看v2{text}redis 好"))

    assert index.finds(query_runs(query))
    assert index.finds(query_tokens(query), any_of=True)


@given(text=POOR_CJK_TEXT, query=st.text(st.sampled_from("中文的ー한"), min_size=1, max_size=6))
@on_index
def test_it_finds_nothing_but_substrings_of_a_cjk_text(index: Index, text: str, query: str):
    """A run is found where it stands as it is written, and only there."""
    index.store(index_text(text))

    assert index.finds(query_runs(query)) == (query in text)


@given(text=st.one_of(ANY_TEXT, AWKWARD_TEXT))
@on_index
def test_it_finds_a_text_by_itself(index: Index, text: str):
    """Whatever was stored is found by the same words."""
    assume(index_text(text))

    index.store(index_text(text))

    assert index.finds(query_runs(text))
    assert index.finds(query_tokens(text), any_of=True)


@pytest.mark.parametrize(
    ("text", "queries"),
    [
        ("昨晚跟室友玩了谁是卧底", ["谁是卧底", "卧", "底", "室友", "玩了"]),
        ("きのう友だちと花火を見た", ["花火", "花", "友だち", "見た"]),
        ("어제 불꽃놀이를 봤다", ["불꽃놀이", "불", "꽃놀"]),
        ("把redis缓存改到v2集群", ["redis", "v2", "redis 集群", "redis缓存", "到v2", "v2集"]),
        ("It’s v3.11, 90 km/h", ["it's", "V3.11", "km/h", "ｖ３"]),
    ],
)
def test_it_finds_what_people_ask_for(index: Index, text: str, queries: list[str]):
    """The reported Chinese, Japanese, Korean and glued queries find their item."""
    index.store(index_text(text))

    for query in queries:
        assert index.finds(query_runs(query)), query
        assert not index.finds(query_runs(query + " absent")), query


@pytest.mark.parametrize("query", B046)
def test_it_takes_a_query_as_data(index: Index, query: str):
    """Quotes, operators, NUL and length raise nothing; a text finds itself; empty finds nothing."""
    index.store(index_text(query))

    found = index.finds(query_runs(query))

    assert found == bool(index_text(query))
    assert index.finds(query_tokens(query), any_of=True) == found


@given(query=st.one_of(ANY_TEXT, AWKWARD_TEXT))
@on_index
def test_it_raises_for_no_query(index: Index, query: str):
    """Any text at all can be asked."""
    index.store("wx u4e2d")

    index.finds(query_runs(query))
    index.finds(query_tokens(query), any_of=True)


def test_it_makes_queries_of_any_length_that_databases_take(index: Index):
    """The longest query, all runs and any token, is within the depth both parsers allow."""
    words = " ".join(f"x{number}" for number in range(1_000))
    index.store(index_text(words))

    assert index.finds(query_runs(words))
    assert index.finds(query_tokens(words), any_of=True)
    assert index.finds(query_runs(words.replace(" ", "-")))


@pytest.mark.parametrize("width", [2, 3, 4, 5, 6])
def test_it_makes_entries_that_databases_take(index: Index, width: int):
    """The longest entry of different short words is below PostgreSQL's limit of a tsvector."""
    words = " ".join(f"{number:0{width}x}" for number in range(min(16**width, 300_000)))

    index.store(index_text(words))

    assert index.finds(query_runs("0" * width))
