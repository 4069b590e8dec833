"""Tokens that tell nothing about what somebody looks for. Pure.

Where any token of a question will do, `what`, `is`, 什么 and です would find everything. They count in phrases like all others.
"""

from collections.abc import Sequence
from itertools import product
from typing import Final

from memory_app.tokens import Phrase, index_text

_WORDS = """
a about after all also am an and any are as at be because been before but by can could did do does for from get had has have he her
him his how i if in into is it its just let like many may me might more most much must my no not now of on one only or our out over
please said say she should so some such tell than that the their them then there these they this those to too up us very was we
were what when where which while who whom whose why will with would you your yours
d ll m re s t ve don doesn didn isn aren wasn weren won wouldn shouldn couldn hasn haven hadn
der die das und oder ist sind war ich du er sie wir ihr ein eine nicht mit von zu auf für
"""
# A pair of two of these is grammar: 什么 怎么 我的 你们 是不 有没 可以
_HAN = "的了是在我你您他她它们有没和就不也都这那哪吗呢吧啊呀什么怎样谁个很要会能可以还跟对把被让给到说想请问些"
_KANA = (
    "です ます まし した でし から って には のは では とは ので ない たい して いる ある こと もの てい るの か？"
    " すか です。 ませ せん ださ くだ さい なに どこ いつ だれ どう"
)


def _tokens() -> frozenset[str]:
    pairs = (index_text(a + b).split()[0] for a, b in product(_HAN, repeat=2))
    kana = (index_text(pair).split()[0] for pair in _KANA.split())
    singles = (index_text(char) for char in _HAN)
    return frozenset((*index_text(_WORDS).split(), *pairs, *kana, *singles))


_SAY_NOTHING: Final = _tokens()


def telling(tokens: Sequence[Phrase]) -> list[Phrase]:
    """Return the tokens of a query that say what it is about; all of them if none does."""
    return [token for token in tokens if token.tokens[0] not in _SAY_NOTHING] or list(tokens)
