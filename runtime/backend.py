"""Another program's model in the place of ours: three methods are enough.

What it cannot say (which tokens are control tokens, what bytes half a character has) is taken on
the safe side: a token that looks like control is one, and one that is no whole text is never said.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from cmm.compiler.utf8 import control_token
from cmm.compiler.vocabulary import make_vocabulary
from cmm.grammar.errors import CmmError
from cmm.runtime.choose import Choice, Logits, StateId, Table, TokenId
from cmm.runtime.model import Model
from cmm.runtime.observe import Decision, Observer
from cmm.runtime.plain_text import PlainEncoder
from cmm.runtime.slow import decode_by

if TYPE_CHECKING:
    from cmm.runtime.engine import Request

LOOKS_LIKE_CONTROL = re.compile(r"<[^<>\s]{2,40}>")  # <|im_end|>, <tool_call>, <start_of_turn>
CHATML = ("<|im_start|>", "<|im_end|>")
CONTEXT = 4096  # tokens; a backend does not say how many it can read


class Backend(Protocol):
    """A causal language model with its tokenizer.

    `encode` may give a list, or an array or tensor of one row.
    """

    def get_logits_from_input_ids(self, input_ids: list[int]) -> list[float]: ...
    def encode(self, text: str) -> Any: ...
    def decode(self, ids: list[int]) -> str: ...


class BackendModel(Model):
    """A model of which only a backend is known; `network` is that."""

    @property
    def context(self) -> int:
        """The most tokens of prompt and answer together, as far as known."""
        return CONTEXT

    @property
    def dtype(self) -> str:
        """Whatever the backend computes in."""
        return "unknown"

    def next_logits(self, ids: Sequence[TokenId]) -> Logits:
        """The logits after a sequence; as many as there are tokens."""
        numbers = np.asarray(self.network.get_logits_from_input_ids(list(ids)), np.float32)
        if numbers.ndim != 1 or len(numbers) < self.vocabulary.size:
            raise CmmError(
                f"the backend gave logits of the shape {numbers.shape} for "
                f"{self.vocabulary.size} tokens"
            )
        return numbers


class BackendEncoder(PlainEncoder):
    """Encodes with a backend; control tokens written in a text are cut, so that they stay text."""

    def __init__(self, backend: Backend, controls: dict[str, int]) -> None:
        self._know(controls)
        self._backend = backend
        self._added = id_list(backend.encode(""))  # a mark of the beginning, perhaps

    def encode_text(self, text: str) -> list[int]:
        """The ids of a text as text."""
        ids, end = [], 0
        for found in self._control.finditer(text):
            ids += self._encode(text[end : found.start() + 1])
            end = found.start() + 1
        return [*ids, *self._encode(text[end:])]

    def _encode(self, text: str) -> list[int]:
        ids = id_list(self._backend.encode(text)) if text else []
        added = len(self._added)
        return ids[added:] if added and ids[:added] == self._added else ids


class BackendTemplate:
    """ChatML where the backend has its two control tokens, else names of roles."""

    def __init__(self, controls: dict[str, int]) -> None:
        self._is_chatml = all(text in controls for text in CHATML)

    def apply_chat_template(self, conversation: list[dict[str, Any]], **arguments: Any) -> str:
        """The text of a conversation, up to where the answer begins."""
        begin, end = CHATML if self._is_chatml else ("", "")
        turns = [f"{begin}{m['role']}\n{m['content']}{end}\n" for m in conversation]
        return "".join(turns) + f"{begin}assistant\n"


def id_list(ids: Any) -> list[int]:
    """Token ids as a list, whatever they came in.

    >>> id_list([[1, 2]]), id_list(np.array([3])), id_list([])
    ([1, 2], [3], [])
    """
    return [int(number) for number in np.asarray(ids).reshape(-1)]


def backend_model(backend: Backend) -> BackendModel:
    """What can be known of a backend: its tokens are decoded one by one, once."""
    size = len(backend.get_logits_from_input_ids(id_list(backend.encode("a"))))
    texts = [backend.decode([token]) for token in range(size)]
    controls = {text: i for i, text in enumerate(texts) if LOOKS_LIKE_CONTROL.fullmatch(text)}
    tokens = [
        control_token(text) if text in controls else b"" if "\ufffd" in text else text.encode()
        for text in texts
    ]
    return BackendModel(
        name=type(backend).__name__,
        network=backend,
        template=BackendTemplate(controls),
        encoder=BackendEncoder(backend, controls),
        vocabulary=make_vocabulary(tokens),
    )


class BackendEngine:
    """One request after the other, the whole sequence for each decision."""

    def __init__(self, model: BackendModel, table: Table, head: Sequence[TokenId]) -> None:
        self._model, self._table, self._head = model, table, list(head)
        self._observers: list[Observer] = []
        self.forwards = 0

    def watch(self, observer: Observer) -> None:
        """Tell an observer from now on what is decided and written."""
        self._observers.append(observer)

    def decode(
        self, requests: Iterable[Request], max_tokens: int
    ) -> Iterator[tuple[int, list[TokenId]]]:
        """(index, answer) for each request."""
        for number, request in enumerate(requests):
            yield number, self._answer(number, [*self._head, *request.tokens], max_tokens)

    def _answer(self, number: int, prompt: list[TokenId], max_tokens: int) -> list[TokenId]:
        free: TokenId | None = None

        def numbers_of(answer: Sequence[TokenId], state: StateId) -> Logits:
            nonlocal free
            allowed = self._table.allowed(state)
            if len(allowed) == 1:
                return np.zeros(1, np.float32)
            self.forwards += 1
            numbers = self._model.next_logits([*prompt, *answer])
            free = int(np.argmax(numbers))
            return numbers[allowed]

        def decided(answer: Sequence[TokenId], state: StateId, choice: Choice) -> None:
            count = len(self._table.allowed(state))
            made = Decision(len(answer), choice.token, state, count, choice.margin, False, free)
            for observer in self._observers:
                if count > 1:
                    observer.decided(number, made)
                observer.wrote(number, [*answer, choice.token])
                observer.passed()

        return decode_by(numbers_of, self._table, max_tokens, decided)
