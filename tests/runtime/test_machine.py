"""What may be used of a machine, on made-up /proc and /sys trees."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from cmm.runtime.machine import (
    computes_bfloat16,
    default_batch_size,
    free_memory,
    usable_threads,
)

SIBLINGS = "sys/devices/system/cpu/cpu{}/topology/thread_siblings_list"
TWO_BY_TWO = {SIBLINGS.format(i): f"{i % 2},{i % 2 + 2}" for i in range(4)}  # two cores, 4 threads
FOUR = {SIBLINGS.format(i): str(i) for i in range(4)}
HYBRID = {**FOUR, "sys/devices/cpu_core/cpus": "0-1", "sys/devices/cpu_atom/cpus": "2-3"}
ARM = {f"sys/devices/system/cpu/cpu{i}/cpu_capacity": "1024" if i > 1 else "400" for i in range(4)}
V2 = {"proc/self/cgroup": "0::/box/job"}
V1 = {"proc/self/cgroup": "4:memory:/job\n3:cpu,cpuacct:/job\n0::/"}


def tree(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")
    return folder


@pytest.mark.parametrize(
    ("files", "affinity", "threads"),
    [
        ({}, [0, 1, 2], 3),  # nothing is known: all that we may use
        (TWO_BY_TWO, [0, 1, 2, 3], 2),
        (TWO_BY_TWO, [0, 2], 1),
        (TWO_BY_TWO, [2, 3], 2),  # the second threads of both cores
        (HYBRID, [0, 1, 2, 3], 2),
        (HYBRID, [1, 2, 3], 1),
        (HYBRID, [2, 3], 2),  # slow cores alone
        ({**FOUR, **ARM}, [0, 1, 2, 3], 2),
        ({**FOUR, **V2, "sys/fs/cgroup/box/job/cpu.max": "max 100000"}, [0, 1, 2, 3], 4),
        ({**FOUR, **V2, "sys/fs/cgroup/box/job/cpu.max": "250000 100000"}, [0, 1, 2, 3], 3),
        ({**FOUR, **V2, "sys/fs/cgroup/box/cpu.max": "100000 100000"}, [0, 1, 2, 3], 1),
        ({**FOUR, **V2, "sys/fs/cgroup/cpu.max": "10000 100000"}, [0, 1, 2, 3], 1),
        (
            {
                **FOUR,
                **V1,
                "sys/fs/cgroup/cpu/job/cpu.cfs_quota_us": "200000",
                "sys/fs/cgroup/cpu/job/cpu.cfs_period_us": "100000",
            },
            [0, 1, 2, 3],
            2,
        ),
        (
            {
                **FOUR,
                **V1,
                "sys/fs/cgroup/cpu/job/cpu.cfs_quota_us": "-1",
                "sys/fs/cgroup/cpu/job/cpu.cfs_period_us": "100000",
            },
            [0, 1, 2, 3],
            4,
        ),
    ],
)
def test_threads(files: dict[str, str], affinity: list[int], threads: int, tmp_path: Path) -> None:
    assert usable_threads(tree(tmp_path, files), affinity) == threads


MEMINFO = {"proc/meminfo": "MemTotal: 9000 kB\nMemAvailable: 8000 kB"}


@pytest.mark.parametrize(
    ("files", "free"),
    [
        ({}, 4 * 2**30),
        (MEMINFO, 8000 * 1024),
        ({**MEMINFO, **V2, "sys/fs/cgroup/box/job/memory.max": "max"}, 8000 * 1024),
        (
            {
                **MEMINFO,
                **V2,
                "sys/fs/cgroup/box/memory.max": "5000",
                "sys/fs/cgroup/box/memory.current": "2000",
            },
            3000,
        ),
        (
            {
                **MEMINFO,
                **V1,
                "sys/fs/cgroup/memory/job/memory.limit_in_bytes": "7000",
                "sys/fs/cgroup/memory/job/memory.usage_in_bytes": "6000",
            },
            1000,
        ),
    ],
)
def test_free_memory(files: dict[str, str], free: int, tmp_path: Path) -> None:
    assert free_memory(tree(tmp_path, files)) == free


@pytest.mark.parametrize(
    ("flags", "native"),
    [("fpu avx512f avx512_bf16", True), ("fp asimd bf16", True), ("fpu avx2", False), ("", False)],
)
def test_bfloat16(flags: str, native: bool, tmp_path: Path) -> None:
    assert computes_bfloat16(tree(tmp_path, {"proc/cpuinfo": f"flags : {flags}"})) is native


def test_batch_size_follows_memory() -> None:
    sizes = SimpleNamespace(
        num_attention_heads=14,
        num_key_value_heads=2,
        hidden_size=896,
        num_hidden_layers=24,
        vocab_size=151936,
    )
    config = SimpleNamespace(get_text_config=lambda: sizes)
    found = [default_batch_size(config, 800, free) for free in (0, 2**26, 2**28, 2**34)]
    assert found[0] == 1
    assert found == sorted(found)
    assert 2 < found[-1] <= 32
