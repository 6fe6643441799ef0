"""What is printed: a line for each arm, and the aims."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from pack_arms.rounds import Round

_MIB, _GIB = 2**20, 2**30


@dataclass(frozen=True, slots=True, kw_only=True)
class Aims:
    """What packs should reach.

    Attributes:
        to_alone: The best pack over arm (a).
        to_single: The best pack over arm (b); None where nothing is aimed at.
        never_below: Every pack over arm (b).
        efficiency: Every mixed pack over equal adapters with the same rows; None where nothing is aimed at.
    """

    to_alone: float
    to_single: float | None = None
    never_below: float = 0.95
    efficiency: float | None = None


def size_text(size: float) -> str:
    """Bytes as people read them."""
    return f"{size / _MIB:.1f} MiB" if size < _GIB else f"{size / _GIB:.2f} GiB"


def aim(what: str, value: float, least: float) -> str:
    """A value beside what it should be."""
    return f"{what:<58}{value:>7.2f}   ≥ {least:g}{'' if value >= least else '  MISSED'}"


def arm_lines(rounds: Sequence[Round]) -> Iterator[str]:
    """The table: medians over the rounds; memory and counts of the first."""
    first, largest = rounds[0], max(rounds[0].plan.packs)
    yield (
        f"{'':<16}{'trial-steps/s':>14}{'steps only':>12}{'vs (a)':>8}{'vs (b)':>8}{'peak':>11}{'growth':>11}"
        f"{'GFLOP/s':>10}{'launches':>10}{'vs equal':>10}{'vs wide':>9}"
    )
    peak = size_text(max(one.answer["peak_bytes"] for one in first.alone.values()))
    whole = _median(rounds, lambda one: one.alone_rate(largest, with_all=True))
    steps = _median(rounds, lambda one: one.alone_rate(largest, with_all=False))
    yield f"{'(a) alone':<16}{whole:>14.1f}{steps:>12.1f}{'':>16}{peak:>11}"
    peak = size_text(max(timing["peak_bytes"] for timing in first.single.values()))
    whole = _median(rounds, lambda one: one.single_rate(largest, with_all=True))
    steps = _median(rounds, lambda one: one.single_rate(largest, with_all=False))
    ratio = _median(
        rounds, lambda one: one.single_rate(largest, with_all=True) / one.alone_rate(largest, with_all=True)
    )
    launches = first.singles[0].answer["counts"]["launches"]
    yield f"{'(b) own loop':<16}{whole:>14.1f}{steps:>12.1f}{ratio:>8.2f}{'':>8}{peak:>11}{'':>21}{launches:>10.0f}"
    for size in first.plan.packs:
        yield _pack_line(rounds, size)


def _pack_line(rounds: Sequence[Round], size: int) -> str:
    first = rounds[0].packs[size][0].answer
    timing, counts = first["timings"][0], first["counts"]
    flops = _median(rounds, lambda one: one.passes_per_second(size)) * counts["flops"]
    return (
        f"{f'(c) pack of {size}':<16}"
        f"{_median(rounds, lambda one: one.pack_rate(size, with_all=True)):>14.1f}"
        f"{_median(rounds, lambda one: one.pack_rate(size, with_all=False)):>12.1f}"
        f"{_median(rounds, lambda one: one.to_alone(size)):>8.2f}"
        f"{_median(rounds, lambda one: one.to_single(size)):>8.2f}"
        f"{size_text(timing['peak_bytes']):>11}{size_text(timing['peak_bytes'] - first['held_bytes']):>11}"
        f"{flops / 1e9:>10.1f}{counts['launches']:>10.0f}"
        f"{_median(rounds, lambda one: one.efficiency(size, beside_wide=False)):>10.2f}"
        f"{_median(rounds, lambda one: one.efficiency(size, beside_wide=True)):>9.2f}"
    )


def aim_lines(rounds: Sequence[Round], aims: Aims) -> Iterator[str]:
    """What should hold, beside what does."""
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
        equal = _median(rounds, lambda one, k=size: one.efficiency(k, beside_wide=False))
        yield aim(f"heterogeneity efficiency of a pack of {size}", equal, aims.efficiency)


def _median(rounds: Sequence[Round], value: Callable[[Round], float]) -> float:
    return median(value(one) for one in rounds)
