"""What this process may use of the machine: cores, memory, number formats."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path("/")
UNKNOWN = 4 * 2**30  # bytes of free memory to assume where nothing says how many there are
DTYPES = ("float32", "bfloat16")  # that a model may compute in
NATIVE = {"avx512_bf16", "amx_bf16", "bf16"}  # flags of processors that compute bfloat16


def usable_threads(root: Path = ROOT, affinity: Iterable[int] | None = None) -> int:
    """Physical performance cores that this process may run on, within its share of time.

    Two threads of one core compute no faster than one, and the slow cores of a hybrid processor
    make the fast ones wait.
    """
    allowed = set(affinity if affinity is not None else available_cpus())
    system = root / "sys/devices/system/cpu"
    fast = performance_cpus(root) & allowed or allowed
    cores = {min(siblings(system / f"cpu{cpu}") & fast or {cpu}) for cpu in fast}
    quota = min(cpu_quotas(root), default=float(len(cores)))
    return max(1, min(len(cores), int(quota + 0.5)))


def available_cpus() -> set[int]:
    """The processors that the system lets this process run on."""
    if hasattr(os, "sched_getaffinity"):
        return os.sched_getaffinity(0)
    return set(range(os.cpu_count() or 1))


def performance_cpus(root: Path) -> set[int]:
    """The fast cores of a hybrid processor, as far as it says; else none."""
    listed = read(root / "sys/devices/cpu_core/cpus")  # Intel: cpu_core and cpu_atom
    if listed:
        return cpu_list(listed)
    capacity = {
        int(path.parent.name[3:]): int(read(path) or 0)
        for path in (root / "sys/devices/system/cpu").glob("cpu[0-9]*/cpu_capacity")  # ARM
    }
    return {cpu for cpu, number in capacity.items() if number >= 0.8 * max(capacity.values())}


def siblings(cpu: Path) -> set[int]:
    """The processors of the same core."""
    return cpu_list(read(cpu / "topology/thread_siblings_list") or "")


def cpu_list(text: str) -> set[int]:
    """The numbers of a list as the kernel writes it.

    >>> sorted(cpu_list("0-2,5"))
    [0, 1, 2, 5]
    """
    pairs = [part.partition("-") for part in text.split(",") if part]
    return {cpu for low, _, high in pairs for cpu in range(int(low), int(high or low) + 1)}


def cpu_quotas(root: Path) -> Iterator[float]:
    """How many processors' time the control groups grant, each that is above this process."""
    for folder in control_groups(root, "cpu"):
        both = (read(folder / "cpu.max") or "").split()  # version 2: "quota period"
        if not both:
            both = [read(folder / f"cpu.cfs_{name}_us") or "" for name in ("quota", "period")]
        if len(both) == 2 and all(part.isdigit() for part in both) and int(both[1]):
            yield int(both[0]) / int(both[1])


def free_memory(root: Path = ROOT) -> int:
    """Bytes that this process may still take: of the machine and of its control groups."""
    found = [
        int(line.split()[1]) * 1024
        for line in (read(root / "proc/meminfo") or "").splitlines()
        if line.startswith("MemAvailable:")
    ]
    for folder in control_groups(root, "memory"):
        for limit, used in (
            ("memory.max", "memory.current"),
            ("memory.limit_in_bytes", "memory.usage_in_bytes"),
        ):
            most, taken = read(folder / limit) or "", read(folder / used) or "0"
            if most.isdigit() and taken.isdigit():
                found.append(max(0, int(most) - int(taken)))
    return min(found, default=UNKNOWN)


def control_groups(root: Path, controller: str) -> Iterator[Path]:
    """The folders of the control groups of this process, of both versions, outwards."""
    base = root / "sys/fs/cgroup"
    for line in (read(root / "proc/self/cgroup") or "").splitlines():
        number, controllers, path = line.split(":", 2)
        if number == "0" and not controllers:
            top = base
        elif controller in controllers.split(","):
            top = base / controller
        else:
            continue
        group = top / path.lstrip("/")
        yield from (place for place in (group, *group.parents) if place.is_relative_to(top))


def read(path: Path) -> str | None:
    """The text of a small file, if there is one."""
    try:
        return path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return None


def give_back_memory() -> None:
    """Hand freed memory back to the system, where the C library keeps it.

    Tensors of ever different sizes leave holes: without this a thousand calls took 600 MB.
    """
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (AttributeError, OSError, TypeError):
        return  # not glibc


def computes_bfloat16(root: Path = ROOT) -> bool:
    """Does the processor itself say that it computes bfloat16?"""
    return bool(NATIVE & set((read(root / "proc/cpuinfo") or "").split()))


ROWS = 32  # more rows at once bring nothing: the pass is bound by arithmetic by then
BUDGET = 400 * 2**20  # bytes for what all rows keep and compute
ASKED = 24  # logits of that many places are alive for each row


def default_batch_size(config: Any, tokens: int, free: int | None = None) -> int:
    """How many rows of so many tokens fit the memory."""
    text = config.get_text_config()
    heads = getattr(text, "num_key_value_heads", None) or text.num_attention_heads
    size = getattr(text, "head_dim", None) or text.hidden_size // text.num_attention_heads
    row = 4 * (2 * text.num_hidden_layers * heads * size * tokens + ASKED * text.vocab_size)
    budget = min(BUDGET, (free_memory() if free is None else free) // 2)
    return max(1, min(ROWS, budget // int(row)))
