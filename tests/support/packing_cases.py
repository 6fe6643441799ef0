"""Trials of every structure for packs of tiny backbones, and the tasks that they learn."""

import random
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from support.covers import legal

from search_space.backbones.shape import BackboneShape
from search_space.configuration import Configuration
from search_space.dimensions import Heads, Insertion, Port, Site
from search_space.edit import Edit
from search_space.errors import InvalidEditError
from search_space.forms import Bottleneck, LowRank, Phm, SoftmaxMemory
from search_space.gates import ConvexGate
from search_space.layers import AllLayers, LayerRange
from search_space.space.options import SEARCHED_FORMS
from search_space.space.product import Point
from search_space.validity import check_on
from trial_runner.attachment.attention import ATTENTION, register_attention
from trial_runner.backbones import BackboneSource, load_backbone
from trial_runner.port_discovery.examples import FORM_EXAMPLES
from trial_runner.requests import TrainingPlan, TrialRequest
from trial_runner.runner import TorchRunner
from trial_runner.tasks import PreparedTask, Split

BATCH = 4
WAITING = frozenset({"_local_scalar_dense", "nonzero", "is_nonzero", "equal", "masked_select", "item", "unique"})
"""Operations that wait for the device."""
_LABELS = ("high", "low", "middle")


def _split(seed: int, size: int, *, longest: int) -> Split:
    """Random tokens, 3 to ``longest`` of them; the label is in which third of the vocabulary the second one is."""
    draw = np.random.default_rng(seed)
    lengths = draw.integers(min(3, longest), longest + 1, size) if longest > 4 else np.full(size, longest)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    input_ids = draw.integers(5, 200, offsets[-1]).astype(np.int32)
    labels = (input_ids[offsets[:-1] + 1] - 5) * len(_LABELS) // 195
    return Split(input_ids=input_ids, offsets=offsets, labels=labels.astype(np.int64))


def _task(name: str, *, longest: int) -> PreparedTask:
    sizes = {"train": 30, "validation": 25, "test": 10}
    splits = {each: _split(seed, size, longest=longest) for seed, (each, size) in enumerate(sizes.items())}
    return PreparedTask(name=name, labels=_LABELS, metric="accuracy", splits=splits, notes=(), fingerprint=name)


TASK = _task("thirds", longest=6)
LONG_TASK = _task("long-thirds", longest=40)
EVEN_TASK = _task("even-thirds", longest=4)
"""All its examples are of one length: who else is in a pack does not change how long the rows are."""


def runner_of(folder: Path, *, precision: str = "fp64", task: PreparedTask = TASK, **held: Any) -> TorchRunner:
    """Return a runner over a tiny backbone, whose packs compute on one thread."""
    torch.set_num_threads(1)
    register_attention()
    weights: Any = "float64" if precision == "fp64" else "float32"
    source = BackboneSource(name=str(folder), **held)
    backbone = load_backbone(source, precision=weights, attn_implementation=ATTENTION)
    return TorchRunner(backbone, task, precision=precision)


Way = tuple[str, Insertion, str]
"""Form, insertion and gate (as in a study file) of an edit of a sublayer."""


def way_of(one: Point) -> Way:
    """Return the combination that a point covers."""
    (edit,) = one.edits
    return (edit.form.name, edit.insertion, dict(one.path)["gate"])


def _cover(site: Site, shape: BackboneShape) -> list[Edit]:
    """Return edits that cover every combination and every value of every dimension of every form."""
    by_way: dict[Way, list[Point]] = {}
    for one in legal(site, shape):
        by_way.setdefault(way_of(one), []).append(one)
    draw = random.Random(0)
    covered: set[tuple[str, str, str]] = set()
    edits: dict[Edit, None] = {}
    for candidates in by_way.values():
        best = max(draw.sample(candidates, min(60, len(candidates))), key=lambda one: len(_values(one) - covered))
        covered |= _values(best)
        edits[best.edits[0]] = None
    for one in (one for candidates in by_way.values() for one in candidates):
        if _values(one) - covered:
            covered |= _values(one)
            edits[one.edits[0]] = None
    return list(edits)


def _values(one: Point) -> set[tuple[str, str, str]]:
    return {(one.edits[0].form.name, name, text) for name, text in one.path}


@cache
def every_structure(shape: BackboneShape) -> tuple[Configuration, ...]:
    """Return configurations that cover every combination at attention and the FFN, and every other form.

    Edits of one configuration are as many as two at either side where rules let them be together; bottlenecks are the
    smallest.
    """
    attention = _in_pairs(_cover(Site.ATTENTION, shape), shape)
    ffn = _in_pairs(_cover(Site.FFN, shape), shape)
    prompts: list[Edit] = []
    whole: list[Edit] = []
    for form, examples in FORM_EXAMPLES.items():
        if form not in SEARCHED_FORMS:
            for (write, read), example, gate in examples(shape):
                site = Site.EMBEDDING if write is Port.EMBEDDING else Site.GLOBAL
                edit = Edit(site=site, write=write, read=read, form=example, gate=gate)
                (prompts if site is Site.EMBEDDING else whole).append(edit)
    robust = SoftmaxMemory(width=2, heads=Heads.KEY_VALUE, robust=True)
    prefix = Edit(site=Site.ATTENTION, write=Port.HEAD, read=Port.Q, form=robust, gate=ConvexGate())
    stack = [one.edits[0] for one in legal(Site.STACK, shape)]
    sides = [
        (*attention[index % len(attention)], *ffn[index % len(ffn)], *prompts[index : index + 1])
        for index in range(max(len(attention), len(ffn), len(prompts)))
    ]
    outside = [(edit,) for edit in whole] + [(prefix, *stack), (prompts[0], *whole[-1:]), (prompts[0],)]
    return tuple(Configuration(edits=edits) for edits in sides + outside)


def _in_pairs(edits: Iterable[Edit], shape: BackboneShape) -> list[tuple[Edit, ...]]:
    """Pair edits where the rules allow it; neighbours first, so that forms mix as little as possible."""
    left = deque(edits)
    pairs: list[tuple[Edit, ...]] = []
    while left:
        first = left.popleft()
        second = next((other for other in left if _are_valid((first, other), shape)), None)
        if second is not None:
            left.remove(second)
        pairs.append((first,) if second is None else (first, second))
    return pairs


def _are_valid(edits: tuple[Edit, ...], shape: BackboneShape) -> bool:
    try:
        check_on(Configuration(edits=edits).edits, shape)
    except InvalidEditError:
        return False
    return True


def sized(configuration: Configuration, variant: int) -> Configuration:
    """Set bottlenecks and blocks of a variant: 0 narrow, 1 wider, 2 wide in one block."""
    return Configuration(edits=tuple(_sized(edit, variant) for edit in configuration.edits))


def _sized(edit: Edit, variant: int) -> Edit:
    form: Any = edit.form
    is_in_blocks = edit.site.is_attention or edit.site is Site.FFN
    if isinstance(form, Phm):
        form = replace(form, width=form.n * (1, 2, 3)[variant], widened=int(variant == 1))
    elif isinstance(form, SoftmaxMemory | Bottleneck | LowRank):
        is_reparameterized = getattr(form, "reparameterization", None) is not None
        form = replace(form, width=(2, 3, 5)[variant], widened=int(variant == 1 and not is_reparameterized))
    elif edit.sized_form is not None:
        form = replace(form, width=form.width + 2 * variant)
    layers = LayerRange(first=1, last=1) if variant == 2 and is_in_blocks else AllLayers()
    return replace(edit, form=form, layers=layers)


def twins(structures: Sequence[Configuration]) -> list[Configuration]:
    """Return each structure twice with other bottlenecks, so that stacked tensors need padding."""
    return [sized(each, variant) for index, each in enumerate(structures) for variant in (0, 1 + index % 2)]


def request_for(
    configuration: Configuration, trial: int, *, steps: int, rate: float = 1e-3, **changes: object
) -> TrialRequest:
    """Return a trial with learning rates, weight decay, clipping, betas and seed of its own.

    Args:
        configuration: Trained structure.
        trial: Number of the trial, on which the other values depend.
        steps: Number of steps; the trial is measured half way and at the end.
        rate: The learning rates are multiples of it, smaller ones where all weights are trained.
        changes: Other fields of the request.
    """
    is_whole = any(edit.site is Site.GLOBAL for edit in configuration.edits)
    peak = rate * (1 + 0.3 * (trial % 5)) * (0.1 if is_whole else 1)
    fields: dict[str, Any] = {
        "trial": trial,
        "attempt": 1,
        "configuration": configuration,
        "learning_rates": (
            peak if configuration.attention else 0.0,
            2 * peak if configuration.ffn else 0.0,
            5 * rate * (1 + 0.2 * (trial % 3)),
        ),
        "plan": TrainingPlan(
            steps=steps,
            batch_size=BATCH,
            evaluate_at_steps=(steps // 2, steps),
            weight_decay=(0.0, 0.01, 0.1)[trial % 3],
            clip_norm=(0.1, None, 1.0, 0.01)[trial % 4],
            betas=((0.9, 0.999), (0.8, 0.99))[trial % 2],
        ),
        "seed": trial + 100,
    }
    return TrialRequest(**(fields | changes))
