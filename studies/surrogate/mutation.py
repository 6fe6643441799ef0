"""How new configurations are made of good ones: joined, edited, at another rate, share or side."""

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from search_space.space.points import ATTENTION, FFN
from studies.surrogate.encoded_configuration import EncodedConfiguration, EncodedSide, reflected
from studies.surrogate.encoding import Encoding
from studies.surrogate.random_candidates import RandomCandidates


@dataclass(frozen=True, slots=True, kw_only=True)
class Moves:
    """How often each move is made.

    Attributes:
        join: Attention of one parent with the FFN of another.
        edit: One dimension of one edit of a side to a legal neighbour.
        rate: A step of a side's rate.
        size: A step of the share, of the split of a side with two edits, or of the size where sizes are searched.
        sized: The same where sizes are searched.
        side: A side less, or one more; or an edit of a side that may have two.
        fresh: A draw that has no parent.
        again: Probability of a second move.
    """

    join: float = 0.25
    edit: float = 0.30
    rate: float = 0.20
    size: float = 0.08
    sized: float = 0.25
    side: float = 0.07
    fresh: float = 0.10
    again: float = 0.3


RATE_STEP = 0.25
SHARE_STEP = 0.15
SIZE_STEP = 1.0
"""Of the base-2 logarithm of the size."""

SIZED = 0.75
"""Share of the steps of sizes that are of the whole, and not of how it is shared."""

_PATIENCE = 20


class Parents:
    """Genes to make moves on, the best first."""

    def __init__(self, ranked: Sequence[EncodedConfiguration], decay: float) -> None:
        """Sort them by their sides.

        Args:
            ranked: The best first; at least one.
            decay: Of the ranks: the probability falls by a factor of e over so many.
        """
        self._ranked = list(ranked)
        self._with_attention = [genes for genes in ranked if genes.attention is not None]
        self._with_ffn = [genes for genes in ranked if genes.ffn is not None]
        self._decay = decay

    def any(self, draw: random.Random) -> EncodedConfiguration:
        """One of them."""
        return self._ranked[self._rank(draw, len(self._ranked))]

    def pair(self, draw: random.Random) -> tuple[EncodedConfiguration, EncodedConfiguration] | None:
        """One with attention and one with the FFN; None if there are none."""
        if not self._with_attention or not self._with_ffn:
            return None
        one = self._with_attention[self._rank(draw, len(self._with_attention))]
        return one, self._with_ffn[self._rank(draw, len(self._with_ffn))]

    def _rank(self, draw: random.Random, number: int) -> int:
        return int(draw.expovariate(1 / self._decay)) % number


class Mutation:
    """Makes moves in a space."""

    def __init__(self, genome: Encoding, drawer: RandomCandidates, moves: Moves) -> None:
        """Weigh the moves."""
        self._genome = genome
        self._drawer = drawer
        self._moves = moves
        self._has_layers = sum(map(len, genome.layers.values())) > 1
        low, high = genome.space.options.budget_fractions
        self._has_sizes = low < high
        kinds: dict[Callable[[random.Random, EncodedConfiguration, Parents], EncodedConfiguration | None], float] = {
            self._join: moves.join,
            lambda draw, genes, _: self._at_a_side(draw, genes, self._edited): moves.edit,
            lambda draw, genes, _: self._at_a_side(draw, genes, self._rated): moves.rate,
            lambda draw, genes, _: self._resized(draw, genes): moves.sized if self._has_sizes else moves.size,
            lambda draw, genes, _: self._change_side(draw, genes): moves.side,
        }
        self._kinds = list(kinds)
        self._weights = list(kinds.values())

    def child(self, draw: random.Random, parents: Parents) -> EncodedConfiguration:
        """A new configuration."""
        if draw.random() < self._moves.fresh:
            return self._drawer.fresh(draw)
        for _ in range(_PATIENCE):
            genes = self._moved(draw, parents.any(draw), parents)
            if genes is not None and draw.random() < self._moves.again:
                genes = self._moved(draw, genes, parents)
            if genes is not None:
                return genes
        return self._drawer.fresh(draw)

    def _moved(self, draw: random.Random, genes: EncodedConfiguration, parents: Parents) -> EncodedConfiguration | None:
        move = draw.choices(self._kinds, self._weights)[0]
        moved = move(draw, genes, parents)
        if moved is None or not moved.sides or not self._genome.is_placed(moved):
            return None
        return self._genome.settled(moved) if self._genome.is_filling(moved) else None

    def _join(self, draw: random.Random, genes: EncodedConfiguration, parents: Parents) -> EncodedConfiguration | None:
        pair = parents.pair(draw)
        if pair is None:
            return None
        one, two = pair
        shares = [other.attention_share for other in pair if len(other.sides) > 1]
        share = draw.choice(shares) if shares else draw.uniform(0.2, 0.8)
        return EncodedConfiguration(
            one.attention, two.ffn, share, draw.choice(pair).budget_fraction if self._has_sizes else one.budget_fraction
        )

    def _rated(self, draw: random.Random, side: EncodedSide) -> EncodedSide:
        return replace(side, unit_lr=reflected(side.unit_lr + draw.gauss(0, RATE_STEP), -1, 1))

    def _resized(self, draw: random.Random, genes: EncodedConfiguration) -> EncodedConfiguration | None:
        if self._has_sizes and draw.random() < SIZED:
            low, high = (math.log2(one) for one in self._genome.space.options.budget_fractions)
            stepped = reflected(math.log2(genes.budget_fraction) + draw.gauss(0, SIZE_STEP), low, high)
            return replace(genes, budget_fraction=2.0**stepped)
        split = [side for side in genes.sides if self._genome.facts(side).is_split]
        if split and (draw.random() < 0.5 or not self._genome.is_shared(genes)):
            side = draw.choice(split)
            low, high = self._genome.space.options.split
            changed = replace(side, split=reflected(side.split + draw.gauss(0, SHARE_STEP), low, high))
            return genes.with_side(ATTENTION if side is genes.attention else FFN, changed)
        if not self._genome.is_shared(genes):
            return None
        low, high = self._genome.space.options.attention_share
        return replace(genes, attention_share=reflected(genes.attention_share + draw.gauss(0, SHARE_STEP), low, high))

    def _change_side(self, draw: random.Random, genes: EncodedConfiguration) -> EncodedConfiguration | None:
        if self._genome.space.pairs and draw.random() < 0.5:
            return self._at_a_side(draw, genes, self._change_number)
        name = draw.choice((ATTENTION, FFN))
        if genes.side(name) is not None:
            return genes.with_side(name, None)
        new = self._drawer.side(draw, name, genes.side(FFN if name == ATTENTION else ATTENTION))
        return None if new is None else genes.with_side(name, new)

    def _at_a_side(
        self,
        draw: random.Random,
        genes: EncodedConfiguration,
        change: Callable[[random.Random, EncodedSide], EncodedSide | None],
    ) -> EncodedConfiguration | None:
        is_attention = draw.random() < 0.5 if len(genes.sides) > 1 else genes.attention is not None
        name = ATTENTION if is_attention else FFN
        side = genes.side(name)
        changed = None if side is None else change(draw, side)
        return None if changed is None else genes.with_side(name, changed)

    def _change_number(self, draw: random.Random, side: EncodedSide) -> EncodedSide | None:
        """One of two edits of a part less, or a second one more."""
        parts = side.parts
        part, _ = draw.choice(parts)
        places = [place for place, (name, _) in enumerate(parts) if name == part]
        if len(places) == 1:
            return self._drawer.with_second(draw, side, part) if part in self._genome.space.pairs else None
        left_out = draw.choice(places)
        return replace(side, parts=(*parts[:left_out], *parts[left_out + 1 :]))

    def _edited(self, draw: random.Random, side: EncodedSide) -> EncodedSide | None:
        """Another value of one of the dimensions of one part, or of the layers; each that has another one as often."""
        parts = side.parts
        place = draw.randrange(len(parts))
        part, number = parts[place]
        structures = self._genome.parts[part]
        choices = [near for one in range(len(structures.dimensions)) if (near := structures.neighbours(number, one))]
        chosen = draw.randrange(len(choices) + self._has_layers) if choices or self._has_layers else None
        if chosen is None:
            return None
        if chosen == len(choices):
            return replace(side, layers=self._drawer.layers(draw))
        changed = (part, draw.choice(draw.choice(choices[chosen])))
        return self._genome.with_parts(side, (*parts[:place], changed, *parts[place + 1 :]))
