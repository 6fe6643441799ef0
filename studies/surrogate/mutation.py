"""Mutation and recombination of good configurations."""

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from search_space.space.points import ATTENTION, FFN
from studies.surrogate.encoded_configuration import EncodedConfiguration, EncodedSide, reflect
from studies.surrogate.encoding import Encoding
from studies.surrogate.random_candidates import RandomCandidates


@dataclass(frozen=True, slots=True, kw_only=True)
class Moves:
    """Relative frequencies of the moves.

    Attributes:
        recombine: Attention of one parent with the FFN of another.
        edit: One dimension of one edit of a side, to a legal neighbour.
        rate: Step of a side's learning rate.
        size: Step of the share, or of the split of a side with two edits.
        size_if_searched: The same, or a step of the size, where sizes are searched.
        side: Removal or addition of a side, or of an edit of a side that may have two.
        random: Probability of a random configuration without a parent.
        second_move: Probability of a second move.
    """

    recombine: float = 0.25
    edit: float = 0.30
    rate: float = 0.20
    size: float = 0.08
    size_if_searched: float = 0.25
    side: float = 0.07
    random: float = 0.10
    second_move: float = 0.3


RATE_STEP = 0.25
SHARE_STEP = 0.15
SIZE_STEP = 1.0
"""Standard deviation of a step of the base-2 logarithm of the size."""

WHOLE_SIZE_FRACTION = 0.75
"""Share of size steps that change the whole size; the others change how it is shared."""

_PATIENCE = 20


class Parents:
    """Encoded configurations for moves, the best first."""

    def __init__(self, ranked: Sequence[EncodedConfiguration], decay: float) -> None:
        """Group the configurations by their sides.

        Args:
            ranked: Configurations, the best first; at least one.
            decay: Number of ranks over which the probability falls by a factor of e.
        """
        self._ranked = list(ranked)
        self._with_attention = [encoded for encoded in ranked if encoded.attention is not None]
        self._with_ffn = [encoded for encoded in ranked if encoded.ffn is not None]
        self._decay = decay

    def any(self, draw: random.Random) -> EncodedConfiguration:
        """Return a random parent."""
        return self._drawn(draw, self._ranked)

    def pair(self, draw: random.Random) -> tuple[EncodedConfiguration, EncodedConfiguration] | None:
        """Return a random parent with attention and one with the FFN; None if there are none."""
        if not self._with_attention or not self._with_ffn:
            return None
        return self._drawn(draw, self._with_attention), self._drawn(draw, self._with_ffn)

    def _drawn(self, draw: random.Random, some: Sequence[EncodedConfiguration]) -> EncodedConfiguration:
        return some[int(draw.expovariate(1 / self._decay)) % len(some)]


class Mutation:
    """Moves in the space of encoded configurations."""

    def __init__(self, encoding: Encoding, random_candidates: RandomCandidates, moves: Moves) -> None:
        """Store the moves with their frequencies."""
        self._encoding = encoding
        self._random_candidates = random_candidates
        self._moves = moves
        self._has_layers = sum(map(len, encoding.layers.values())) > 1
        low, high = encoding.space.options.budget_fractions
        self._has_sizes = low < high
        kinds: dict[Callable[[random.Random, EncodedConfiguration, Parents], EncodedConfiguration | None], float] = {
            self._recombine: moves.recombine,
            lambda draw, encoded, _: self._on_one_side(draw, encoded, self._with_other_value): moves.edit,
            lambda draw, encoded, _: self._on_one_side(draw, encoded, self._with_rate_step): moves.rate,
            lambda draw, encoded, _: self._with_size_step(draw, encoded): moves.size_if_searched
            if self._has_sizes
            else moves.size,
            lambda draw, encoded, _: self._toggle_side(draw, encoded): moves.side,
        }
        self._kinds = list(kinds)
        self._weights = list(kinds.values())

    def child(self, draw: random.Random, parents: Parents) -> EncodedConfiguration:
        """Return a new configuration."""
        if draw.random() < self._moves.random:
            return self._random_candidates.draw(draw)
        for _ in range(_PATIENCE):
            encoded = self._move(draw, parents.any(draw), parents)
            if encoded is not None and draw.random() < self._moves.second_move:
                encoded = self._move(draw, encoded, parents)
            if encoded is not None:
                return encoded
        return self._random_candidates.draw(draw)

    def _move(
        self, draw: random.Random, encoded: EncodedConfiguration, parents: Parents
    ) -> EncodedConfiguration | None:
        move = draw.choices(self._kinds, self._weights)[0]
        moved = move(draw, encoded, parents)
        if moved is None or not moved.sides or not self._encoding.is_legal(moved):
            return None
        return self._encoding.normalized(moved) if self._encoding.uses_budget(moved) else None

    def _recombine(
        self, draw: random.Random, encoded: EncodedConfiguration, parents: Parents
    ) -> EncodedConfiguration | None:
        pair = parents.pair(draw)
        if pair is None:
            return None
        one, two = pair
        shares = [other.attention_share for other in pair if len(other.sides) > 1]
        share = draw.choice(shares) if shares else draw.uniform(0.2, 0.8)
        return EncodedConfiguration(
            one.attention, two.ffn, share, draw.choice(pair).budget_fraction if self._has_sizes else one.budget_fraction
        )

    def _with_rate_step(self, draw: random.Random, side: EncodedSide) -> EncodedSide:
        return replace(side, unit_lr=reflect(side.unit_lr + draw.gauss(0, RATE_STEP), -1, 1))

    def _with_size_step(self, draw: random.Random, encoded: EncodedConfiguration) -> EncodedConfiguration | None:
        if self._has_sizes and draw.random() < WHOLE_SIZE_FRACTION:
            low, high = (math.log2(one) for one in self._encoding.space.options.budget_fractions)
            stepped = reflect(math.log2(encoded.budget_fraction) + draw.gauss(0, SIZE_STEP), low, high)
            return replace(encoded, budget_fraction=2.0**stepped)
        split = [side for side in encoded.sides if self._encoding.facts(side).is_split]
        if split and (draw.random() < 0.5 or not self._encoding.shares_budget(encoded)):
            side = draw.choice(split)
            low, high = self._encoding.space.options.split
            changed = replace(side, split=reflect(side.split + draw.gauss(0, SHARE_STEP), low, high))
            return encoded.with_side(ATTENTION if side is encoded.attention else FFN, changed)
        if not self._encoding.shares_budget(encoded):
            return None
        low, high = self._encoding.space.options.attention_share
        return replace(encoded, attention_share=reflect(encoded.attention_share + draw.gauss(0, SHARE_STEP), low, high))

    def _toggle_side(self, draw: random.Random, encoded: EncodedConfiguration) -> EncodedConfiguration | None:
        if self._encoding.space.pairs and draw.random() < 0.5:
            return self._on_one_side(draw, encoded, self._toggle_second_edit)
        name = draw.choice((ATTENTION, FFN))
        if encoded.side(name) is not None:
            return encoded.with_side(name, None)
        new = self._random_candidates.side(draw, name, encoded.side(FFN if name == ATTENTION else ATTENTION))
        return None if new is None else encoded.with_side(name, new)

    def _on_one_side(
        self,
        draw: random.Random,
        encoded: EncodedConfiguration,
        change: Callable[[random.Random, EncodedSide], EncodedSide | None],
    ) -> EncodedConfiguration | None:
        is_attention = draw.random() < 0.5 if len(encoded.sides) > 1 else encoded.attention is not None
        name = ATTENTION if is_attention else FFN
        side = encoded.side(name)
        changed = None if side is None else change(draw, side)
        return None if changed is None else encoded.with_side(name, changed)

    def _toggle_second_edit(self, draw: random.Random, side: EncodedSide) -> EncodedSide | None:
        """Return the side without one of two edits of a part, or with a second one; None if that is impossible."""
        parts = side.parts
        part, _ = draw.choice(parts)
        places = [place for place, (name, _) in enumerate(parts) if name == part]
        if len(places) == 1:
            return self._random_candidates.with_second(draw, side, part) if part in self._encoding.space.pairs else None
        left_out = draw.choice(places)
        return replace(side, parts=(*parts[:left_out], *parts[left_out + 1 :]))

    def _with_other_value(self, draw: random.Random, side: EncodedSide) -> EncodedSide | None:
        """Return the side with another value of a random dimension of a part, or with other layers."""
        parts = side.parts
        place = draw.randrange(len(parts))
        part, number = parts[place]
        structures = self._encoding.parts[part]
        choices = [near for one in range(len(structures.dimensions)) if (near := structures.neighbours(number, one))]
        chosen = draw.randrange(len(choices) + self._has_layers) if choices or self._has_layers else None
        if chosen is None:
            return None
        if chosen == len(choices):
            return replace(side, layers=self._random_candidates.layers(draw))
        changed = (part, draw.choice(draw.choice(choices[chosen])))
        return self._encoding.with_parts(side, (*parts[:place], changed, *parts[place + 1 :]))
