"""Requests in, typed calls out: the runtime for programmers."""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict

from cmm.compiler import CanonicalTable, TokenTable, compile_calls
from cmm.compiler.artifact import arrays_of
from cmm.compiler.utf8 import written_as
from cmm.grammar.call_format import CallFormat
from cmm.grammar.errors import CmmError, InvalidInput
from cmm.grammar.functions import FunctionSchema, load_functions
from cmm.runtime.backend import Backend, BackendEngine, BackendModel, backend_model
from cmm.runtime.choose import TokenId
from cmm.runtime.draft import Drafter, rank_functions, read_clues
from cmm.runtime.engine import Engine, Request
from cmm.runtime.machine import default_batch_size
from cmm.runtime.model import Model, load_model
from cmm.runtime.observe import Observer
from cmm.runtime.prefix import PrefixFile
from cmm.runtime.prompt_config import PromptConfig, chosen_format, config_for
from cmm.runtime.prompts import build_frame
from cmm.runtime.resolve import find_model

LONG = 4096  # tokens of a prompt: seconds on a laptop


class FunctionCall(BaseModel):
    """One call: the request it answers, the function's name, typed arguments.

    >>> print(FunctionCall(prompt="2 and 3?", name="fn_add_numbers", parameters={"a": 2.0}))
    fn_add_numbers(a=2.0)
    """

    model_config = ConfigDict(frozen=True)

    prompt: str
    name: str
    parameters: dict[str, Any]

    def __str__(self) -> str:
        arguments = ", ".join(f"{key}={value!r}" for key, value in self.parameters.items())
        return f"{self.name}({arguments})"


class PromptTooLong(CmmError):
    """A prompt that the model cannot read as a whole, with its answer."""


Refuse = Callable[[int, PromptTooLong], None]


class Caller:
    """Turns requests into calls of the given functions.

    `functions` are function schemas or the path of a file of them; `model` is what `--model`
    takes (None: the default) or a loaded model. The table comes from the cache or is compiled.
    `batch_size` is how many requests are decoded at once (None: what memory allows, up to 32).
    Neither it nor `drafts` nor `prefix_cache` changes an answer. `canonical` restricts answers to
    the tokenizer's own spelling (None: where that is known). `table` is one that was compiled
    before, of these functions and in the format that it names. `call_format` is a format or its
    name (None: what the model's configuration says). `any_order`: the model chooses the order of
    the arguments, where they are few. `backend` is another program's model in the place of `model`:
    the same calls, slower.
    """

    def __init__(
        self,
        functions: Sequence[FunctionSchema] | str | Path,
        model: str | Model | None = None,
        *,
        config: PromptConfig | None = None,
        max_tokens: int | None = None,
        call_format: CallFormat | str | None = None,
        batch_size: int | None = None,
        drafts: bool = True,
        prefix_cache: bool = True,
        canonical: bool | None = None,
        table: TokenTable | None = None,
        any_order: bool = False,
        backend: Backend | None = None,
    ) -> None:
        if isinstance(functions, str | Path):
            functions = load_functions(functions)
        self.functions = tuple(functions)
        if not self.functions:
            raise InvalidInput("there is no function to call")
        if backend is not None:
            model = backend_model(backend)
        self.model = model if isinstance(model, Model) else load_model(find_model(model))
        if table is not None:
            call_format = table.about.get("call_format", call_format)
        self._format = chosen_format(call_format, config, self.model.name)
        self.config = config or config_for(self.model.name, self._format.name)
        self.max_tokens = max_tokens or self.config.limits.max_tokens
        vocabulary = self.model.vocabulary
        if table is None:
            table = compile_calls(
                self.functions, vocabulary, self._format, any_order=any_order
            ).table
        restricted = vocabulary.bpe is not None if canonical is None else canonical
        self.table = CanonicalTable(table) if restricted else table
        self._frame = build_frame(
            self.functions, self.model.template, self.model.encoder, self.config, self._format
        )
        self._about = [(function.name, about(function)) for function in self.functions]
        self._longest = vocabulary.tokens.longest
        self._observers: list[Observer] = []
        self._engine = self._make_engine(batch_size, drafts, prefix_cache)

    def _make_engine(
        self, batch_size: int | None, drafts: bool, prefix_cache: bool
    ) -> Engine | BackendEngine:
        model, head, table = self.model, self._frame.head, self.table
        if isinstance(model, BackendModel):
            return BackendEngine(model, table, head)
        longest = len(head) + self.max_tokens
        return Engine(
            model.network,
            table,
            head,
            rows=batch_size or default_batch_size(model.network.config, longest),
            drafter=Drafter(table, model.vocabulary.tokens, model.encoder.encode_text)
            if drafts
            else None,
            prefix=PrefixFile(model.digest, model.network.dtype, head)
            if prefix_cache and model.digest
            else None,
        )

    def watch(self, observer: Observer) -> None:
        """Tell an observer from now on what is asked, decided and written."""
        observer.tokens = self.model.vocabulary.tokens
        observer.read = self._format.reader(self.functions)
        self._observers.append(observer)
        self._engine.watch(observer)

    @property
    def identity(self) -> dict[str, Any]:
        """All that an answer depends on besides its prompt, as JSON values."""
        canonical = isinstance(self.table, CanonicalTable)
        table = self.table.table if isinstance(self.table, CanonicalTable) else self.table
        language = hashlib.sha256()
        for name, array in sorted(arrays_of("", table.automaton).items()):
            language.update(name.encode() + np.ascontiguousarray(array).data)
        return {
            "functions": [function.model_dump() for function in self.functions],
            "model": [self.model.name, self.model.digest, self.model.dtype],
            "configuration": [
                self.config.model_dump(mode="json"), self.max_tokens, self._format.name, canonical,
                language.hexdigest(),
            ],
        }  # fmt: skip

    @property
    def forwards(self) -> int:
        """Forward passes of the model so far."""
        return self._engine.forwards

    def call(self, prompt: str) -> FunctionCall:
        """The call that answers one request."""
        return next(self.call_many([prompt]))

    def call_many(self, prompts: Iterable[str]) -> Iterator[FunctionCall]:
        """The calls that answer some requests, in their order, each as soon as it can be given."""
        ahead: dict[int, FunctionCall] = {}
        given = 0
        for index, call in self.stream(prompts):
            ahead[index] = call
            while given in ahead:
                yield ahead.pop(given)
                given += 1

    def stream(
        self, prompts: Iterable[str], refuse: Refuse | None = None
    ) -> Iterator[tuple[int, FunctionCall]]:
        """(index, call) as soon as each is finished; prompts are read as rows become free.

        A prompt that is too long is given to `refuse`, and the others are answered; without it,
        it is an error.
        """
        asked: dict[int, tuple[int, str]] = {}  # the requests that are not answered yet
        for number, answer in self._decode(self._requests(prompts, asked, refuse)):
            index, text = asked.pop(number)
            call = self._read(text, answer)
            for observer in self._observers:
                observer.answered(number, call, answer)
            yield index, call

    def _requests(
        self, prompts: Iterable[str], asked: dict[int, tuple[int, str]], refuse: Refuse | None
    ) -> Iterator[Request]:
        """The requests one by one; their places and texts are noted under their numbers."""
        number = 0
        for index, text in enumerate(prompts):
            try:
                request = self._request(text)
            except PromptTooLong as error:
                if refuse is None:
                    raise error.located(below=f"prompt {index + 1}") from None
                refuse(index, error)
                continue
            asked[number] = index, text
            for observer in self._observers:
                observer.asked(number, text)
            number += 1
            yield request

    def _request(self, text: str) -> Request:
        """What follows the shared head, if the prompt fits the model's context."""
        room = self.model.context - len(self._frame.head) - self.max_tokens
        # Text that is longer than that many of the longest tokens is not even encoded.
        ids = [] if len(text) > room * self._longest else self._frame.request_ids(text)
        if not ids or len(ids) > room:
            raise PromptTooLong(
                f"{shortened(text)} is {len(ids) or 'many'} tokens long, and the model "
                f'"{self.model.name}" has room for {max(room, 0)}',
                advice="shorten the prompt, or name fewer functions",
            )
        if len(ids) > LONG:
            note = f"{shortened(text)} is {len(ids)} tokens long: reading it takes a while"
            warnings.warn(note, stacklevel=2)
        return Request(ids, read_clues(text, rank_functions(text, self._about)))

    def _decode(self, requests: Iterable[Request]) -> Iterator[tuple[int, list[TokenId]]]:
        """Answers from the engine; its errors name the model."""
        try:
            yield from self._engine.decode(requests, self.max_tokens)
        except CmmError as error:
            if error.place or error.file:  # one of the requests', which are read on the way
                raise
            raise CmmError(
                f'{error.problem} (model "{self.model.name}")', advice=error.advice
            ) from error

    def _read(self, prompt: str, answer: Sequence[TokenId]) -> FunctionCall:
        """The call that the tokens spell."""
        tokens = self.model.vocabulary.tokens
        text = written_as(tokens[token] for token in answer).decode("utf-8")
        try:
            name, parameters = self._format.parse(text, self.functions)
        except RecursionError:
            raise CmmError(
                "the arguments are nested too deeply to be read", advice="lower --max-tokens"
            ) from None
        return FunctionCall(prompt=prompt, name=name, parameters=parameters)


def about(function: FunctionSchema) -> str:
    """The words that describe a function: its description and its parameters' names."""
    return " ".join([function.description, *function.parameters.get("properties", {})])


def shortened(text: str, most: int = 40) -> str:
    """The beginning of a text, quoted, for a message.

    >>> shortened("What is the sum of 2 and 3?", most=11)
    '"What is the…"'
    """
    return json.dumps(text if len(text) <= most else text[:most] + "…", ensure_ascii=False)
