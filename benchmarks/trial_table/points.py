"""What is in the table: a grid over named edits, all of it; and draws from the whole space, as many as there is time.

The grid is done in rounds, each of which is a whole of its own: first every pair of edits once, at the middle rates
and an even share, then all rates, then all shares, then all seeds. Within a round the order is pseudo-random and the
same on every machine: whoever stops early has an even sample of it.
"""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product

from search_space.edit import Edit
from search_space.space.asking import FloatRange
from search_space.space.points import ATTENTION, FFN
from search_space.space.product import Point
from search_space.space.random_draw import GivenTrial, RandomTrial
from search_space.space.space import Candidate, SearchSpace
from search_space.space.structure_draws import StructureDraws
from trial_table.setting import Setting

EXHAUSTIVE, DRAWN = "exhaustive", "drawn"
NONE = "none"

_Edit = tuple[str, ...]

ATTENTION_EDITS: Mapping[str, _Edit] = {
    "prefix": ("softmax_memory", "head", "q", "lse_convex"),
    "prefix_added": ("softmax_memory", "head", "q", "add"),
    "memory_o": ("softmax_memory", "o", "x_attn", "scale_learned"),
    "lora_qv": ("lowrank", "q+v", "x_attn+ctx", "scale", "2.0"),
    "lora_qkvo": ("lowrank", "q+k+v+o", "x_attn+ctx+ctx+concat", "scale", "2.0"),
    "lora_o_learned": ("lowrank", "o", "x_attn", "scale_learned"),
    "inducer": ("bottleneck", "head", "q", "inducer", "relu"),
    "adapter_heads": ("bottleneck", "head", "x_attn", "add", "relu"),
    "adapter_sequential": ("bottleneck", "o", "o", "add", "relu"),
    "adapter_parallel": ("bottleneck", "o", "x_attn", "add", "relu"),
    "adapter_scaled": ("bottleneck", "o", "x_attn", "scale", "relu", "2.0"),
    "adapter_learned": ("bottleneck", "o", "x_attn", "scale_learned", "silu"),
    "ia3": ("diag", "k+v", "k+v", "mul"),
    "diagonal_v": ("diag", "v", "ctx", "scale_learned"),
    "bias": ("const", "q+v", "none+none", "add"),
}
"""By name: form, what is written and read, gate, and an activation and a fixed scale where there is one."""

FFN_EDITS: Mapping[str, _Edit] = {
    "adapter_sequential": ("bottleneck", "f", "f", "add", "relu"),
    "adapter_after_norm": ("bottleneck", "sum", "sum", "add", "relu"),
    "adapter_parallel": ("bottleneck", "f", "x_ffn", "add", "relu"),
    "adapter_scaled": ("bottleneck", "f", "x_ffn", "scale", "relu", "2.0"),
    "adapter_learned": ("bottleneck", "f", "x_ffn", "scale_learned", "silu"),
    "lora": ("lowrank", "u+f", "x_ffn+m", "scale", "2.0"),
    "lora_learned": ("lowrank", "f", "x_ffn", "scale_learned"),
    "memory": ("softmax_memory", "f", "x_ffn", "add"),
    "ia3": ("diag", "m", "m", "mul"),
    "diagonal_f": ("diag", "f", "x_ffn", "scale_learned"),
    "bias": ("const", "u+f", "none+none", "add"),
}
"""As `ATTENTION_EDITS`."""

RATES: Mapping[str, tuple[float, ...]] = {
    "softmax_memory": (4.5e-3, 1.2e-2, 3e-2),
    "bottleneck": (1.5e-3, 3.2e-3, 6.8e-3),
    "lowrank": (1.5e-3, 3.5e-3, 8e-3),
    "diag": (4.5e-3, 1.2e-2, 3e-2),
    "const": (1.5e-3, 3.2e-3, 6.8e-3),
}
"""Peak learning rates by form; edits of one form on both sides have the same, as the space has one rate a form."""

SHARES = (0.25, 0.5, 0.75)
"""Of the budget, for attention, where both sides have something to size."""

SEEDS = (0, 1, 2)
"""The same for every point, so that points are compared on the same data order."""

ROUNDS = ("every pair, at the middle rates and an even share", "all rates", "all shares", "all seeds")
"""What is there after each round of the grid."""

_MIDDLE = 1
"""Which of the rates and of the shares the first round has."""

_AT_ONCE = 8
"""One point in so many gets all its seeds in its own round, so that the noise is known from the beginning."""

_DRAWS_SEED = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedTrial:
    """A row that is or will be.

    Attributes:
        key: See `trial_table.setting.Setting.key`.
        part: `EXHAUSTIVE` or `DRAWN`.
        attention: Name of the grid's edit at attention; None for draws.
        ffn: The same at the FFN.
        candidate: What is trained.
        seed: Of the training.
        round: Of the grid, a place in `ROUNDS`; 0 for draws.
    """

    key: str
    part: str
    attention: str | None
    ffn: str | None
    candidate: Candidate
    seed: int
    round: int


def planned(setting: Setting, part: str, draws: int = 0) -> list[PlannedTrial]:
    """The rows of a part in the order in which they are trained, each once.

    Args:
        setting: Of the table.
        part: `EXHAUSTIVE` or `DRAWN`.
        draws: How many structures are drawn.
    """
    found = _grid(setting.space) if part == EXHAUSTIVE else _draws(setting.space, draws)
    trials: dict[str, PlannedTrial] = {}
    for (attention, ffn, candidate, round_), seed in product(found, SEEDS if part == EXHAUSTIVE else SEEDS[:1]):
        rates = candidate.attention_learning_rate, candidate.ffn_learning_rate
        key = setting.key(candidate.fingerprint, rates, seed)
        is_at_once = seed == SEEDS[0] or _place(candidate) % _AT_ONCE == 0
        row = PlannedTrial(
            key=key,
            part=part,
            attention=attention,
            ffn=ffn,
            candidate=candidate,
            seed=seed,
            round=round_ if is_at_once else len(ROUNDS) - 1,
        )
        trials.setdefault(key, row)
    return sorted(trials.values(), key=_turn) if part == EXHAUSTIVE else list(trials.values())


def share_of(trials: list[PlannedTrial], part: int, parts: int) -> list[PlannedTrial]:
    """The rows that one of several machines does, part 1 to ``parts``."""
    return trials[part - 1 :: parts]


def _turn(trial: PlannedTrial) -> tuple[int, int, int]:
    """Where a row stands: the seeds of a point stand together where they are at once."""
    return trial.round, _place(trial.candidate), trial.seed


def _place(candidate: Candidate) -> int:
    return int.from_bytes(hashlib.sha256(candidate.fingerprint.encode()).digest()[:8], "big")


_Found = Iterator[tuple[str | None, str | None, Candidate, int]]
"""Names of both edits, what is trained, and its round."""


def _grid(space: SearchSpace) -> _Found:
    sides = {ATTENTION: _points(space, ATTENTION, ATTENTION_EDITS), FFN: _points(space, FFN, FFN_EDITS)}
    yield NONE, NONE, space.suggest_published("head_only", GivenTrial({})), 0
    for attention, ffn in product((NONE, *ATTENTION_EDITS), (NONE, *FFN_EDITS)):
        named = {ATTENTION: attention, FFN: ffn}
        points = {side: sides[side][name] for side, name in named.items() if name != NONE}
        shares = SHARES if len(points) > 1 and all(map(_is_sized, points.values())) else (SHARES[_MIDDLE],)
        for rates, share in product(_rates(points), shares) if points else ():
            answers = space.answers(points, rates=rates, share=share)
            assert answers is not None, f"{attention} with {ffn} must be in the space at {rates} and {share}"
            yield attention, ffn, space.suggest(GivenTrial(answers)), _round(points, rates, share)


def _round(points: Mapping[str, Point], rates: Mapping[str, float], share: float) -> int:
    if share != SHARES[_MIDDLE]:
        return 2
    return 0 if all(rates[side] == RATES[_form(point.edits)][_MIDDLE] for side, point in points.items()) else 1


def _points(space: SearchSpace, side: str, edits: Mapping[str, _Edit]) -> dict[str, Point]:
    """The structures of some edits, by name."""
    known = {_words(point): point for point in space.structures[side]}
    return {name: known[words] for name, words in edits.items()}


def _words(point: Point) -> _Edit:
    path = dict(point.path)
    fields = ("form", "write", "read", "gate", "activation", "scale")
    return tuple(path[name] for name in fields if name in path)


def _rates(points: Mapping[str, Point]) -> list[dict[str, float]]:
    forms = {side: _form(point.edits) for side, point in points.items()}
    chosen = (dict(zip(forms, rates, strict=True)) for rates in product(*(RATES[form] for form in forms.values())))
    return [rates for rates in chosen if len(set(forms.values())) == len(forms) or len(set(rates.values())) == 1]


def _form(edits: tuple[Edit, ...]) -> str:
    return edits[0].form.name


def _is_sized(point: Point) -> bool:
    return any(edit.sized_form is not None for edit in point.edits)


def _draws(space: SearchSpace, count: int) -> _Found:
    structures = StructureDraws(space, _DRAWS_SEED)
    for number in range(count):
        numbers = RandomTrial(number)
        values: dict[str, str | float] = {
            name: numbers.suggest_float(name, one.low, one.high, log=one.log)
            for name, one in space.parameters().items()
            if isinstance(one, FloatRange)
        }
        yield None, None, space.suggest(GivenTrial(values | structures.draw(number))), 0
