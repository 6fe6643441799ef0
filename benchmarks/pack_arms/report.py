"""Printed lines of the benchmark: a line for each arm, and the aims."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from pack_arms.rounds import Round

_MIB, _GIB = 2**20, 2**30


@dataclass(frozen=True, slots=True, kw_only=True)
class Aims:
    """Smallest ratios of throughput that packs should reach.

    Attributes:
        to_alone: Ratio of the best pack to arm (a).
        to_single: Ratio of the best pack to arm (b); None without an aim.
        never_below: Ratio of every pack to arm (b).
        efficiency: Ratio of every mixed pack to equal adapters with the same rows; None without an aim.
    """

    to_alone: float
    to_single: float | None = None
    never_below: float = 0.95
    efficiency: float | None = None


def size_text(size: float) -> str:
    """Format a number of bytes."""
    return f"{size / _MIB:.1f} MiB" if size < _GIB else f"{size / _GIB:.2f} GiB"


def aim(title: str, value: float, least: float) -> str:
    """Format a value with its aim."""
    return f"{title:<58}{value:>7.2f}   ≥ {least:g}{'' if value >= least else '  MISSED'}"


def arm_lines(rounds: Sequence[Round]) -> Iterator[str]:
    """Yield the lines of the table: medians over the rounds, memory of the first round."""
    first, largest = rounds[0], max(rounds[0].plan.packs)
    heads = ("trial-steps/s", "steps only", "vs (a)", "vs (b)", "peak", "growth", "vs equal")
    yield _line("", *heads)
    alone = _median(rounds, lambda one: one.alone_rate(largest, with_all=True))
    steps = _median(rounds, lambda one: one.alone_rate(largest, with_all=False))
    peak = max(one.answer["peak_bytes"] for one in first.alone.values())
    yield _line("(a) alone", f"{alone:.1f}", f"{steps:.1f}", "", "", size_text(peak))
    single = _median(rounds, lambda one: one.single_rate(largest, with_all=True))
    steps = _median(rounds, lambda one: one.single_rate(largest, with_all=False))
    ratio = _median(
        rounds, lambda one: one.single_rate(largest, with_all=True) / one.alone_rate(largest, with_all=True)
    )
    peak = max(timing["peak_bytes"] for timing in first.single.values())
    yield _line("(b) own loop", f"{single:.1f}", f"{steps:.1f}", f"{ratio:.2f}", "", size_text(peak))
    for size in first.plan.packs:
        answer = first.packs[size][0].answer
        peak = answer["timings"][0]["peak_bytes"]
        yield _line(
            f"(c) pack of {size}",
            f"{_median(rounds, lambda one, k=size: one.pack_rate(k, with_all=True)):.1f}",
            f"{_median(rounds, lambda one, k=size: one.pack_rate(k, with_all=False)):.1f}",
            f"{_median(rounds, lambda one, k=size: one.to_alone(k)):.2f}",
            f"{_median(rounds, lambda one, k=size: one.to_single(k)):.2f}",
            size_text(peak),
            size_text(peak - answer["held_bytes"]),
            f"{_median(rounds, lambda one, k=size: one.efficiency(k)):.2f}",
        )


def _line(name: str, *cells: str) -> str:
    return f"{name:<16}" + "".join(f"{cell:>14}" for cell in cells)


def aim_lines(rounds: Sequence[Round], aims: Aims) -> Iterator[str]:
    """Yield a line for each aim."""
    sizes = rounds[0].plan.packs
    to_alone = {size: _median(rounds, lambda one, k=size: one.to_alone(k)) for size in sizes}
    to_single = {size: _median(rounds, lambda one, k=size: one.to_single(k)) for size in sizes}
    best = max(to_alone, key=to_alone.__getitem__)
    yield aim(f"pack of {best} over trials alone (a)", to_alone[best], aims.to_alone)
    if aims.to_single is not None:
        best = max(to_single, key=to_single.__getitem__)
        yield aim(f"pack of {best} over our loop (b)", to_single[best], aims.to_single)
    for size in sizes:
        yield aim(f"pack of {size} over our loop (b), never below", to_single[size], aims.never_below)
    for size in sizes if aims.efficiency is not None else ():
        equal = _median(rounds, lambda one, k=size: one.efficiency(k))
        yield aim(f"heterogeneity efficiency of a pack of {size}", equal, aims.efficiency)


def _median(rounds: Sequence[Round], value: Callable[[Round], float]) -> float:
    return median(value(one) for one in rounds)
