"""Decode the default batch: seconds and forward passes a call, as one JSON line."""

from __future__ import annotations

import argparse
import json
import statistics
import time

from cmm.data import data_path
from cmm.runtime import Caller
from cmm.runtime.files import load_prompts


def main() -> None:
    """Measure the whole batch and the same prompts one by one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model")
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    prompts = load_prompts(data_path("input", "function_calling_tests.json"))
    started = time.perf_counter()
    caller = Caller(data_path("input", "functions_definition.json"), options.model)
    loaded = time.perf_counter() - started
    caller.call(prompts[0])  # the shared head is read here, once
    result = {"bench": "decode", "model": caller.model.name, "load_seconds": round(loaded, 2)}
    for name, groups in {"batch": [prompts], "alone": [[text] for text in prompts]}.items():
        before = caller.forwards
        seconds = []
        for _ in range(options.runs):
            started = time.perf_counter()
            for group in groups:
                list(caller.call_many(group))
            seconds.append((time.perf_counter() - started) / len(prompts))
        forwards = (caller.forwards - before) / options.runs / len(prompts)
        result[f"{name}_seconds_per_call"] = round(statistics.median(seconds), 3)
        result[f"{name}_forwards_per_call"] = round(forwards, 2)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
