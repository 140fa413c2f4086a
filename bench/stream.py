"""Many requests through one caller: throughput against the batch of 11, and memory on the way."""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Iterator
from pathlib import Path

from cmm.data import data_path
from cmm.grammar.functions import load_functions
from cmm.runtime import Caller
from cmm.runtime.model import load_model
from cmm.runtime.prompt_file import load_prompts
from cmm.runtime.resolve import find_model

WORDS = [
    "amber",
    "birch",
    "cedar",
    "delta",
    "ember",
    "fjord",
    "grove",
    "harbor",
    "island",
    "juniper",
    "kettle",
    "lagoon",
]


def requests(count: int) -> Iterator[str]:
    """Requests like the default ones, all different."""
    dice = random.Random(0)
    for number in range(count):
        first, second, third = dice.sample(WORDS, 3)
        yield dice.choice(
            [
                f"What is the sum of {dice.randrange(1000)} and {number}?",
                f"Greet {first}{number}",
                f"Reverse the string '{first} {second} {number}'",
                f"Calculate the square root of {number}",
                f"Replace all digits in '{first} {number} {second}' with {third}",
                f"Substitute the word '{first}' with '{third}' in 'The {first} and {number}'",
            ]
        )


def resident() -> int:
    """Megabytes that the process holds in memory."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return next(int(s.split()[1]) for s in status.splitlines() if s.startswith("VmRSS")) // 1024


def main() -> None:
    """Measure, and print one JSON line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--batch_size", type=int)
    options = parser.parse_args()
    functions = load_functions(data_path("input", "functions_definition.json"))
    model = load_model(find_model(options.model))
    Caller(functions, model).call("Greet john")  # the head goes to disk, once
    prompts = load_prompts(data_path("input", "function_calling_tests.json"))
    caller = Caller(functions, model)
    began = time.perf_counter()
    list(caller.call_many(prompts))
    eleven = (time.perf_counter() - began) / len(prompts)
    caller = Caller(functions, model, batch_size=options.batch_size)
    began, memory = time.perf_counter(), []
    for done, _ in enumerate(caller.call_many(requests(options.count)), 1):
        if done % (options.count // 10) == 0:
            memory.append(resident())
    seconds = (time.perf_counter() - began) / options.count
    result = {
        "bench": "stream",
        "count": options.count,
        "seconds_per_call": round(seconds, 4),
        "passes_per_call": round(caller.forwards / options.count, 3),
        "batch_of_11_seconds_per_call": round(eleven, 4),
        "ratio": round(eleven / seconds, 2),
        "memory_mb": memory,
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
