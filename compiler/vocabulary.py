"""The tokens of a model as bytes, whatever way its tokenizer writes them."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from cmm.compiler.automaton import TEXT_BODY, ByteAutomaton, build_automaton
from cmm.compiler.boughs import Boughs, make_boughs
from cmm.compiler.bpe import Bpe, merges_of_document
from cmm.compiler.distance import TextDistances, measure_text
from cmm.compiler.exits import ExitTrie, exits_of
from cmm.compiler.lift import lift
from cmm.compiler.rows import Rows
from cmm.compiler.trie import Trie, build_trie
from cmm.compiler.utf8 import CONTROL, control_token
from cmm.grammar.errors import InvalidInput, Unsupported
from cmm.grammar.files import parse_json
from cmm.grammar.nodes import Grammar, Text

TokenId = int
MOST_TOKENS = 1 << 24  # sixty times the largest vocabulary in use: a larger number is damage


@dataclass(frozen=True, eq=False, repr=False)
class PackedTokens(Sequence[bytes]):
    """The bytes of all tokens in one piece, cut when asked for.

    >>> PackedTokens.of([b"a", b"", b"ab"])[2]
    b'ab'
    """

    data: npt.NDArray[np.uint8]
    ends: npt.NDArray[np.int32]  # (tokens,) where each token ends, and the next begins

    @classmethod
    def of(cls, tokens: Sequence[bytes]) -> PackedTokens:
        """The tokens packed."""
        ends = np.cumsum([len(token) for token in tokens], dtype=np.int32)
        return cls(np.frombuffer(b"".join(tokens), np.uint8), ends)

    def __len__(self) -> int:
        return len(self.ends)

    def __getitem__(self, token: TokenId) -> bytes:  # type: ignore[override]
        if not 0 <= token < len(self.ends):
            raise IndexError(token)
        low = int(self.ends[token - 1]) if token else 0
        return self.data[low : int(self.ends[token])].tobytes()

    @property
    def longest(self) -> int:
        """The most bytes that one token has."""
        return int(np.diff(self.ends, prepend=0).max(initial=0))

    def digest(self) -> str:
        """SHA-256 of all tokens: equal for equal vocabularies, wherever they came from."""
        return hashlib.sha256(self.ends.tobytes() + self.data.tobytes()).hexdigest()


@dataclass(frozen=True, eq=False, repr=False)
class Vocabulary:
    """The bytes of every token, and all that is worked out from them alone.

    Control tokens have bytes that no text has (`control_token`), so that only a grammar that names
    one can allow it; what is no token at all has none. `text_rows` are the token rows of the states
    inside a JSON string, which are the same in every automaton.

    >>> vocabulary = make_vocabulary([b"a", b"", b"ab"])
    >>> vocabulary.size, vocabulary.tokens[2]
    (3, b'ab')
    """

    tokens: PackedTokens
    trie: Trie
    text_rows: Rows
    boughs: Boughs
    digest: str
    bpe: Bpe | None = None  # None where the tokenizer's own way to encode a text is not known

    @cached_property
    def controls(self) -> frozenset[str]:
        """The texts of the control tokens.

        >>> make_vocabulary([b"a", control_token("<escape>")]).controls
        frozenset({'<escape>'})
        """
        found = self.trie.below(self.trie.child(0, CONTROL[0])).tolist()
        return frozenset(self.tokens[i][1:].decode("utf-8", "surrogatepass") for i in found)

    @cached_property
    def _quotes(self) -> npt.NDArray[np.int32]:
        """How many double quotes each token has."""
        until = np.concatenate([[0], np.cumsum(self.tokens.data == 0x22)])
        ends = np.concatenate([[0], self.tokens.ends])
        counts: npt.NDArray[np.int32] = np.diff(until[ends]).astype(np.int32)
        return counts

    @cached_property
    def quoting(self) -> dict[int, npt.NDArray[np.int32]]:
        """The tokens with at least two, and with at least three double quotes."""
        return {n: np.flatnonzero(self._quotes >= n).astype(np.int32) for n in (2, 3)}

    @cached_property
    def body_exits(self) -> ExitTrie:
        """The tokens that leave a string from its body."""
        return exits_of(self.text_rows.exits, TEXT_BODY, self.tokens)

    @cached_property
    def text_distances(self) -> TextDistances:
        """The fewest tokens from each state of a string to its body and to its end."""
        return measure_text(text_automaton(), self.text_rows)

    @property
    def size(self) -> int:
        """How many ids there are, control tokens included."""
        return len(self.tokens)


def make_vocabulary(tokens: Sequence[bytes], bpe: Bpe | None = None) -> Vocabulary:
    """The vocabulary of the given tokens; an empty one is never used."""
    packed, trie = PackedTokens.of(tokens), build_trie(tokens)
    automaton = text_automaton()
    text_rows, _ = lift(automaton, trie, 0, automaton.text_states)
    boughs = make_boughs(automaton, trie, TEXT_BODY)
    return Vocabulary(packed, trie, text_rows, boughs, packed.digest(), bpe)


@cache
def text_automaton() -> ByteAutomaton:
    """The automaton of any JSON string, whose states are the first ones in all others."""
    return build_automaton(Grammar(Text()))


def read_tokens(source: bytes, name: str) -> tuple[bytes, ...]:
    """The tokens in the text of a `tokenizer.json`, or of a `.tiktoken` file of ranks.

    >>> read_tokens(b"YQ== 0\\nYWI= 1\\n", "ranks.tiktoken")
    (b'a', b'ab')
    """
    try:
        if name.endswith(".tiktoken"):
            return _tiktoken(source)
        document = parse_json(source)
        if not isinstance(document, dict) or not isinstance(document.get("model"), dict):
            raise InvalidInput("is no tokenizer.json", advice='it has no "model"')
        return _tokenizer_json(document)
    except (AttributeError, LookupError, TypeError, ValueError):
        raise InvalidInput("its tokens are not listed with their numbers") from None


def read_bpe(source: bytes, name: str, tokens: Sequence[bytes]) -> Bpe | None:
    """How a tokenizer encodes, from the same text; None where that is not supported.

    A `.tiktoken` file does not say how texts are cut beforehand.
    """
    if name.endswith(".tiktoken"):
        return None
    try:
        document = parse_json(source)
        return merges_of_document(document, tokens) if _is_byte_level(document) else None
    except Unsupported:
        return None
    except (AttributeError, LookupError, TypeError, ValueError):
        raise InvalidInput("its merges are not pairs of its tokens") from None


def tokenizer_source(tokenizer: Any) -> tuple[bytes, str]:
    """The text that defines a tokenizer, and a name for it.

    Takes a folder with a `tokenizer.json`, the path of one or of a `.tiktoken` file, a
    `tokenizers.Tokenizer`, or a fast tokenizer of transformers.
    """
    if isinstance(tokenizer, str | Path):
        path = Path(tokenizer)
        path = path / "tokenizer.json" if path.is_dir() else path
        try:
            return path.read_bytes(), str(path)
        except OSError as error:
            raise InvalidInput(f"cannot be read: {error.strerror}", file=str(path),
                               advice="name a folder with a tokenizer.json") from None  # fmt: skip
    backend = getattr(tokenizer, "backend_tokenizer", tokenizer)
    if not hasattr(backend, "to_str"):
        raise Unsupported(f"no tokenizer that can be read: {type(tokenizer).__name__}")
    return backend.to_str().encode(), "tokenizer.json"


def _tiktoken(source: bytes) -> tuple[bytes, ...]:
    ranks = {int(rank): base64.b64decode(token)
             for token, rank in (line.split() for line in source.splitlines() if line)}  # fmt: skip
    return _by_id(ranks)


def _tokenizer_json(document: Mapping[str, Any]) -> tuple[bytes, ...]:
    vocabulary = document["model"].get("vocab")
    if isinstance(vocabulary, list):  # Unigram: pairs of token and score
        vocabulary = {token: i for i, (token, _) in enumerate(vocabulary)}
    if not isinstance(vocabulary, dict):
        raise Unsupported(f"a tokenizer of type {document['model'].get('type')!r}")
    to_bytes = _byte_level if _is_byte_level(document) else _sentencepiece
    if to_bytes is _sentencepiece and not any(token.startswith("▁") for token in vocabulary):
        raise Unsupported("the tokenizer is neither byte-level BPE nor SentencePiece")
    tokens = {i: _of_text(to_bytes(text)) for text, i in vocabulary.items()}
    added = document.get("added_tokens", ())
    return _by_id(tokens | {each["id"]: control_token(each["content"]) for each in added})


def _of_text(data: bytes) -> bytes:
    """The bytes of an ordinary token; none where no text has them."""
    return b"" if CONTROL in data else data


def _by_id(tokens: Mapping[TokenId, bytes]) -> tuple[bytes, ...]:
    size = max(tokens, default=-1) + 1
    if size > MOST_TOKENS:
        raise InvalidInput(f"a token has the number {size - 1}")
    return tuple(tokens.get(i, b"") for i in range(size))


def _is_byte_level(document: Mapping[str, Any]) -> bool:
    return '"ByteLevel"' in json.dumps([document.get("decoder"), document.get("pre_tokenizer")])


@cache
def byte_of_char() -> Mapping[str, int]:
    """GPT-2's writing of bytes: printable characters stand for themselves, others from U+0100 up.

    >>> byte_of_char()["Ġ"], byte_of_char()["a"]
    (32, 97)
    """
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(b): b for b in printable} | {chr(0x100 + i): b for i, b in enumerate(others)}


def _byte_level(token: str) -> bytes:
    table = byte_of_char()
    try:
        return bytes([table[char] for char in token])
    except KeyError:
        return b""  # no text has this token: some vocabularies list their control tokens here


def _sentencepiece(token: str) -> bytes:
    if len(token) == 6 and token.startswith("<0x") and token.endswith(">"):
        return bytes([int(token[3:5], 16)])
    return token.replace("▁", " ").encode("utf-8", "surrogatepass")
