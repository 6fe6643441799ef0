"""The search space as Optuna parameters: every proposal is a valid configuration within the budget.

The parameters form a tree: where to put edits, which form there, which tensor it writes, which it reads, how it is
composed. A leaf that could not be sized within the budget is not in the tree, so nothing is ever rejected.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from search_space.backbone_shape import BackboneShape
from search_space.budget import smallest_count, solve
from search_space.canonical import fingerprint
from search_space.configuration import Configuration
from search_space.counting import Counts, count, count_edits
from search_space.dimensions import Activation
from search_space.edit import Edit
from search_space.errors import BudgetError, InvalidEditError, SearchSpaceError
from search_space.form import Bottleneck, Constant
from search_space.gate import FixedScale
from search_space.options import Leaf, SpaceOptions, side_leaves
from search_space.published import published_method

__all__ = ["Candidate", "Choice", "FloatRange", "SearchSpace", "Trial"]

ATTENTION, FFN = "attention", "ffn"


class Trial(Protocol):
    """What proposes values; an ``optuna.Trial`` is one."""

    def suggest_categorical(self, name: str, choices: Sequence[str]) -> str:
        """One of the choices."""
        ...

    def suggest_float(self, name: str, low: float, high: float, *, log: bool = False) -> float:
        """A number in [low, high]."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A categorical parameter.

    Attributes:
        choices: At least two.
    """

    choices: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FloatRange:
    """A real parameter.

    Attributes:
        low: Least value.
        high: Greatest value.
        log: Whether it is searched on a logarithmic scale.
    """

    low: float
    high: float
    log: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A proposal: what to train, with what learning rates, and where it came from.

    Attributes:
        configuration: Valid, and within the budget.
        attention_learning_rate: Peak rate at attention; None without edits there.
        ffn_learning_rate: Peak rate at the FFN; None without edits there.
        method: Name of the published method that was resized; None for points of the search.
        attention_share: Share of the stored parameters at attention, as solved.
        counts: Of the configuration.
        fingerprint: Of the configuration and its learning rates.
        parameters: The search parameters that were suggested, by name.
    """

    configuration: Configuration
    attention_learning_rate: float | None
    ffn_learning_rate: float | None
    method: str | None
    attention_share: float
    counts: Counts
    fingerprint: str
    parameters: Mapping[str, object] = field(default_factory=dict)


class _Recorder:
    """Passes suggestions on, asks nothing where there is one choice, and remembers what was said."""

    def __init__(self, trial: Trial, parameters: Mapping[str, Choice | FloatRange]) -> None:
        self._trial = trial
        self._parameters = parameters
        self.values: dict[str, object] = {}

    def choose(self, name: str, choices: Sequence[str]) -> str:
        if name not in self._parameters:
            return choices[0]
        value = self._trial.suggest_categorical(name, choices)
        self.values[name] = value
        return value

    def number(self, name: str) -> float:
        spread = self._parameters[name]
        if isinstance(spread, Choice):
            raise TypeError(name)
        value = self._trial.suggest_float(name, spread.low, spread.high, log=spread.log)
        self.values[name] = value
        return value


class SearchSpace:
    """All four design dimensions, the share of attention and the learning rates, under a budget.

    Args:
        shape: The backbone.
        budget: Most stored parameters.
        options: What is searched.

    Raises:
        BudgetError: If the budget is too small for any configuration; the error says the smallest that fits.
        SearchSpaceError: If the options leave nothing to search.
    """

    def __init__(self, *, shape: BackboneShape, budget: int, options: SpaceOptions | None = None) -> None:
        """Build the tree of what fits."""
        self.shape = shape
        self.budget = budget
        self.options = options or SpaceOptions()
        everything = {
            ATTENTION: side_leaves(ATTENTION, self.options.attention_forms, shape),
            FFN: side_leaves(FFN, self.options.ffn_forms, shape),
        }
        self._leaves, self._places = self._that_fit(everything)
        self._parameters = self._table()

    def _that_fit(self, leaves: dict[str, tuple[Leaf, ...]]) -> tuple[dict[str, tuple[Leaf, ...]], tuple[str, ...]]:
        costs = {leaf: self._least_cost(leaf) for side in leaves.values() for leaf in side}
        if not costs:
            raise SearchSpaceError(
                "the study must leave something to search; got no form at attention or FFN that is valid on "
                f"{self.shape.family}. Allow more forms."
            )
        halves = {
            side: tuple(leaf for leaf in some if costs[leaf] <= self.budget // 2) for side, some in leaves.items()
        }
        if halves[ATTENTION] and halves[FFN]:
            return halves, ("both", ATTENTION, FFN)
        wholes = {side: tuple(leaf for leaf in some if costs[leaf] <= self.budget) for side, some in leaves.items()}
        places = tuple(side for side, some in wholes.items() if some)
        if not places:
            raise BudgetError(
                f"the budget must allow at least one configuration; got {self.budget:,} parameters, and the smallest "
                f"that fits the study has {min(costs.values()):,}. Raise the budget."
            )
        return wholes, places

    def _least_cost(self, leaf: Leaf) -> int:
        edits = leaf.edits(activation=Activation.RELU, gate=leaf.widest_gate(self.options.gates), scale=1.0)
        return smallest_count(Configuration(edits=edits), self.shape)

    def _table(self) -> dict[str, Choice | FloatRange]:
        table: dict[str, Choice | FloatRange] = {}

        def add(name: str, choices: Sequence[str]) -> None:
            if len(choices) > 1:
                table[name] = Choice(choices=tuple(choices))

        add("placement", self._places)
        for side in (ATTENTION, FFN):
            forms = self._forms(side)
            add(f"{side}.form", forms)
            for form in forms:
                writes = self._writes(side, form)
                add(f"{side}.{form}.write", writes)
                for write in writes:
                    add(f"{side}.{form}.{write}.read", self._reads(side, form, write))
            for leaf in self._leaves[side]:
                gates = leaf.gates(self.options.gates)
                add(self._gate_name(side, leaf.form, gates), gates)
            if Bottleneck.name in forms:
                add(f"{side}.activation", [str(activation) for activation in self.options.activations])
            if any(FixedScale.name in leaf.gates(self.options.gates) for leaf in self._leaves[side]):
                add(f"{side}.scale", [str(scale) for scale in self.options.scales])
        if self._places[0] == "both" and all(set(self._forms(side)) - {Constant.name} for side in (ATTENTION, FFN)):
            low, high = self.options.attention_share
            table["attention_share"] = FloatRange(low=low, high=high)
        rates = self.options.learning_rates.items()
        return table | {
            f"learning_rate.{form}": FloatRange(low=low, high=high, log=True) for form, (low, high) in rates
        }

    def _gate_name(self, side: str, form: str, gates: Sequence[str]) -> str:
        # a prefix can also be gated by the log-sum-exp; that choice set needs a name of its own
        return f"{side}.{form}.{'prefix_gate' if 'lse_convex' in gates else 'gate'}"

    def _forms(self, side: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys(leaf.form for leaf in self._leaves[side]))

    def _writes(self, side: str, form: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys(leaf.write for leaf in self._leaves[side] if leaf.form == form))

    def _reads(self, side: str, form: str, write: str) -> tuple[str, ...]:
        return tuple(leaf.read for leaf in self._leaves[side] if (leaf.form, leaf.write) == (form, write))

    def _leaf(self, side: str, form: str, write: str, read: str) -> Leaf:
        key = (form, write, read)
        return next(leaf for leaf in self._leaves[side] if (leaf.form, leaf.write, leaf.read) == key)

    def parameters(self) -> dict[str, Choice | FloatRange]:
        """Every parameter that a proposal may use, by name. The same for every proposal of the space."""
        return dict(self._parameters)

    def suggest(self, trial: Trial) -> Candidate:
        """A valid configuration within the budget, with its learning rates."""
        recorder = _Recorder(trial, self._parameters)
        place = recorder.choose("placement", self._places)
        edits: list[Edit] = []
        for side in (ATTENTION, FFN):
            if place in ("both", side):
                edits.extend(self._suggest_side(side, recorder))
        structure = Configuration(edits=tuple(edits))
        share = self._suggest_share(structure, recorder)
        solved = solve(structure, self.shape, attention_share=share, parameters=self.budget)
        return self._candidate(solved, recorder, method=None)

    def suggest_published(self, name: str, trial: Trial) -> Candidate:
        """A published method resized to the budget; only its learning rates are suggested.

        Raises:
            UnknownMethodError: If there is no such method.
            BudgetError: If it does not fit.
            InvalidEditError: If it is not valid on the backbone.
        """
        method = published_method(name)
        has_scale = any(parameter.name == "scale" for parameter in method.hyperparameters)
        settings = {"scale": self.options.published_scale} if has_scale else {}
        structure = method.configuration(self.shape, settings)
        solved = solve(structure, self.shape, attention_share=method.attention_share, parameters=self.budget)
        return self._candidate(solved, _Recorder(trial, self._parameters), method=name)

    def published_that_fit(self) -> tuple[str, ...]:
        """The published methods of the options that are valid on the backbone and fit the budget."""
        fitting = []
        for name in self.options.published:
            try:
                structure = published_method(name).configuration(self.shape)
                solve(structure, self.shape, attention_share=0.5, parameters=self.budget)
            except (BudgetError, InvalidEditError):
                continue
            fitting.append(name)
        return tuple(fitting)

    def _suggest_side(self, side: str, recorder: _Recorder) -> tuple[Edit, ...]:
        form = recorder.choose(f"{side}.form", self._forms(side))
        write = recorder.choose(f"{side}.{form}.write", self._writes(side, form))
        read = recorder.choose(f"{side}.{form}.{write}.read", self._reads(side, form, write))
        leaf = self._leaf(side, form, write, read)
        gates = leaf.gates(self.options.gates)
        gate = recorder.choose(self._gate_name(side, form, gates), gates)
        activation = Activation.RELU
        if form == Bottleneck.name:
            names = [str(activation) for activation in self.options.activations]
            activation = Activation(recorder.choose(f"{side}.activation", names))
        scale = 1.0
        if gate == FixedScale.name:
            scale = float(recorder.choose(f"{side}.scale", [str(scale) for scale in self.options.scales]))
        return leaf.edits(activation=activation, gate=gate, scale=scale)

    def _candidate(self, configuration: Configuration, recorder: _Recorder, *, method: str | None) -> Candidate:
        rates = {
            ATTENTION: self._learning_rate(configuration.attention, recorder),
            FFN: self._learning_rate(configuration.ffn, recorder),
        }
        counts = count(configuration, self.shape)
        attention = count_edits(configuration.attention, self.shape).stored
        return Candidate(
            configuration=configuration,
            attention_learning_rate=rates[ATTENTION],
            ffn_learning_rate=rates[FFN],
            method=method,
            attention_share=attention / max(1, counts.stored),
            counts=counts,
            fingerprint=fingerprint(
                configuration,
                self.shape,
                learning_rates={side: _rounded(rate) for side, rate in rates.items()},
            ),
            parameters=recorder.values,
        )

    def _suggest_share(self, structure: Configuration, recorder: _Recorder) -> float:
        """The share of attention: searched where both sides have a bottleneck to size, else all or nothing."""
        sized = [any(edit.sized_form for edit in edits) for edits in (structure.attention, structure.ffn)]
        return recorder.number("attention_share") if all(sized) else float(sized[0])

    def _learning_rate(self, edits: tuple[Edit, ...], recorder: _Recorder) -> float | None:
        if not edits:
            return None
        name = f"learning_rate.{edits[0].form.name}"
        if name in recorder.values:
            return float(str(recorder.values[name]))
        return recorder.number(name)


def _rounded(rate: float | None) -> str | None:
    """Two significant digits: rates closer than that are the same trial."""
    return None if rate is None else f"{rate:.1e}"
