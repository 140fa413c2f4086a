"""Seconds and forward passes a call, ours and those of others, on one model and one machine.

    (a) xgrammar      a plain transformers loop with an xgrammar mask, one prompt after the other
    (b) table         the same loop with our table
    (c) alone         ours, one prompt after the other
    (d) batch         ours, all prompts together
    (e) llama.cpp     the same model's GGUF file with a JSON-schema grammar, through node

Each run measures all of them in turn; what is printed are medians, and ratios of medians, as one
JSON line. What is not installed is left out with a message.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import AutoTokenizer

from cmm.data import data_path
from cmm.grammar.functions import load_functions
from cmm.runtime import Caller
from cmm.runtime.caller import FunctionCall
from cmm.runtime.model import Model, load_model
from cmm.runtime.prompt_file import load_prompts
from cmm.runtime.resolve import find_model

HERE = Path(__file__).parent
NODE = HERE.parent / "build" / "node"
PACKAGE = NODE / "node_modules" / "node-llama-cpp"

Mask = Callable[[np.ndarray], np.ndarray]  # logits (rows,) -> the same, with -inf where not allowed
Steps = tuple[Mask, Callable[[int], bool]]  # and: take a token, is the call complete?


def schema_of(functions: Sequence[Any]) -> dict[str, Any]:
    """The calls of the functions as a JSON Schema, for the others."""
    return {
        "oneOf": [
            {
                "type": "object",
                "properties": {
                    "name": {"const": function.name},
                    "arguments": {**function.parameters, "additionalProperties": False},
                },
                "required": ["name", "arguments"],
                "additionalProperties": False,
            }
            for function in functions
        ]
    }


def plain_loop(model: Model, prompt: Sequence[int], steps: Steps) -> list[int]:
    """One token a pass, with the cache of transformers and nothing else."""
    from transformers import DynamicCache

    mask, take = steps
    cache, answer, tokens = DynamicCache(), [], list(prompt)
    with torch.inference_mode():
        while len(answer) < 256:
            output = model.network(
                torch.tensor([tokens]), past_key_values=cache, use_cache=True, logits_to_keep=1
            )
            token = int(mask(output.logits[0, -1].float().numpy()).argmax())
            answer.append(token)
            tokens = [token]
            if take(token):
                break
    return answer


def table_steps(caller: Caller) -> Steps:
    """The mask of our table."""
    table = caller.table
    state = [table.start]

    def mask(logits: np.ndarray) -> np.ndarray:
        masked = np.full_like(logits, -np.inf)
        allowed = table.allowed(state[0])
        masked[allowed] = logits[allowed]
        return masked

    def take(token: int) -> bool:
        state[0] = table.next(state[0], token)
        return not len(table.allowed(state[0]))

    return mask, take


def xgrammar_steps(caller: Caller, tokenizer: Any) -> Callable[[], Steps] | None:
    """The mask of xgrammar, compiled once."""
    try:
        import xgrammar
    except ImportError:
        return skip("xgrammar is not installed")
    rows = caller.model.network.get_output_embeddings().weight.shape[0]
    info = xgrammar.TokenizerInfo.from_huggingface(tokenizer, vocab_size=rows)
    schema = json.dumps(schema_of(caller.functions))
    compiled = xgrammar.GrammarCompiler(info).compile_json_schema(schema, any_whitespace=False)

    def steps() -> Steps:
        matcher = xgrammar.GrammarMatcher(compiled, terminate_without_stop_token=True)
        bits = xgrammar.allocate_token_bitmask(1, rows)

        def mask(logits: np.ndarray) -> np.ndarray:
            matcher.fill_next_token_bitmask(bits)
            tensor = torch.from_numpy(logits)[None]
            xgrammar.apply_token_bitmask_inplace(tensor, bits)
            return tensor[0].numpy()

        def take(token: int) -> bool:
            return not matcher.accept_token(token) or matcher.is_terminated()

        return mask, take

    return steps


def skip(reason: str) -> None:
    """Say on stderr why something is left out."""
    print(f"left out: {reason}", file=sys.stderr)


def llama(caller: Caller, texts: Sequence[str], gguf: Path | None) -> list[float] | None:
    """Seconds of each call by llama.cpp in a process of its own."""
    if gguf is None or not gguf.exists():
        return skip("llama.cpp needs --gguf FILE")
    if not shutil.which("node") or not shutil.which("npm"):
        return skip("llama.cpp needs node and npm")
    if not PACKAGE.exists():
        NODE.mkdir(parents=True, exist_ok=True)
        command = ["npm", "install", "--ignore-scripts", "--prefix", str(NODE), "node-llama-cpp"]
        if subprocess.run(command, stdout=sys.stderr, check=False).returncode:
            return skip("node-llama-cpp cannot be installed")
    task = json.dumps({"prompts": texts, "schema": schema_of(caller.functions)})
    command = ["node", str(HERE / "llama.mjs"), str(PACKAGE), str(gguf)]
    command.append(str(torch.get_num_threads()))
    done = subprocess.run(command, input=task, capture_output=True, text=True, check=False)
    if done.returncode:
        return skip(f"llama.cpp failed: {done.stderr.strip().splitlines()[-1:]}")
    seconds: list[float] = json.loads(done.stdout)["seconds"]
    return seconds


def same(calls: Sequence[FunctionCall], other: Sequence[FunctionCall]) -> bool:
    """Were the same calls made?"""
    return list(calls) == list(other)


def run_once(
    make: Callable[[], Caller], tokenizer: Any, prompts: Sequence[str], gguf: Path | None
) -> dict[str, float]:
    """Seconds a call of each; forward passes a call of ours."""
    caller, found = make(), {}
    ids = [caller._frame.prompt_ids(text) for text in prompts]
    others = {"xgrammar": xgrammar_steps(caller, tokenizer), "table": lambda: table_steps(caller)}
    for name, steps in others.items():
        if steps:
            began = time.perf_counter()
            for prompt in ids:
                plain_loop(caller.model, prompt, steps())
            found[name] = (time.perf_counter() - began) / len(prompts)
    alone, batch = make(), make()
    began = time.perf_counter()
    calls = [alone.call(text) for text in prompts]
    found["alone"] = (time.perf_counter() - began) / len(prompts)
    began = time.perf_counter()
    together = list(batch.call_many(prompts))
    found["batch"] = (time.perf_counter() - began) / len(prompts)
    found |= {"alone_passes": alone.forwards / len(prompts), "same_calls": same(calls, together)}
    found["batch_passes"] = batch.forwards / len(prompts)
    texts = [tokenizer.decode(prompt) for prompt in ids]
    if seconds := llama(caller, texts, gguf):
        found["llama.cpp"] = statistics.mean(seconds)
    return found


def main() -> None:
    """Measure, and print one JSON line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model")
    parser.add_argument("--gguf", type=Path, help="the same model for llama.cpp")
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    prompts = load_prompts(data_path("input", "function_calling_tests.json"))
    functions = load_functions(data_path("input", "functions_definition.json"))
    place = find_model(options.model)
    model, tokenizer = load_model(place), AutoTokenizer.from_pretrained(str(place.folder))
    Caller(functions, model).call(prompts[0])  # the head goes to disk, once
    runs = [
        run_once(lambda: Caller(functions, model), tokenizer, prompts, options.gguf)
        for _ in range(options.runs)
    ]
    medians = {name: statistics.median(run[name] for run in runs) for name in runs[0]}
    result: dict[str, Any] = {
        "bench": "decode",
        "model": model.name,
        "dtype": str(model.network.dtype),
    }
    result |= {name: round(float(value), 3) for name, value in medians.items()}
    for ours in ("alone", "batch"):
        for other in ("xgrammar", "table", "llama.cpp"):
            if other in medians:
                result[f"{other}/{ours}"] = round(medians[other] / medians[ours], 1)
    result["peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(json.dumps(result))


if __name__ == "__main__":
    main()
