"""What the papers found, as contrasts: the rules that a study's evidence is held against."""

from dataclasses import dataclass

from studies.queries.discover.contrasts import Contrast


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperRule:
    """A rule of a paper.

    Attributes:
        claim: In a few words.
        contrasts: What it says is better, at every side that it is of.
        source: Where it stands.
        published: Differences of published scores that it rests on, each with its setting.
    """

    claim: str
    contrasts: tuple[Contrast, ...]
    source: str
    published: tuple[tuple[str, float], ...]


PAPER_RULES: tuple[PaperRule, ...] = (
    PaperRule(
        claim="parallel beats sequential",
        contrasts=(
            Contrast("attention", "insertion", "parallel", "sequential"),
            Contrast("ffn", "insertion", "parallel", "sequential"),
        ),
        source="He et al. 2022, table 3",
        published=(
            ("XSum ROUGE-2, attention, 3.6%", 1.01),
            ("XSum ROUGE-2, FFN, 2.4%", 0.68),
            ("en-ro BLEU, attention, 3.6%", 0.3),
            ("en-ro BLEU, FFN, 2.4%", 0.8),
        ),
    ),
    PaperRule(
        claim="the FFN beats attention at a large budget",
        contrasts=(Contrast("sides", "edited", "ffn", "attention"),),
        source="He et al. 2022, tables 3 and 4",
        published=(
            ("XSum ROUGE-2, parallel adapters, 2.4% and 3.6%", 0.35),
            ("en-ro BLEU, parallel adapters, 2.4% and 3.6%", 0.8),
            ("en-ro BLEU, parallel adapters, 0.1%", -0.7),
        ),
    ),
    PaperRule(
        claim="heads beat one block at a small budget",
        contrasts=(Contrast("attention", "heads", "query_heads", "single"),),
        source="He et al. 2022, table 4",
        published=(("en-ro BLEU, 0.1%", 1.6), ("en-ro BLEU, 3.6%", 0.2)),
    ),
    PaperRule(
        claim="a scale beats plain addition",
        contrasts=(
            Contrast("attention", "gate", "scale", "add"),
            Contrast("ffn", "gate", "scale", "add"),
        ),
        source="He et al. 2022, table 5",
        published=(
            ("XSum ROUGE-2, parallel adapter at the FFN, 6.1%", 0.56),
            ("XSum ROUGE-2, LoRA at the FFN, 6.1%", 0.48),
        ),
    ),
    PaperRule(
        claim="prefix tuning's gate beats plain addition",
        contrasts=(Contrast("attention", "gate", "lse_convex", "add"),),
        source="He et al. 2022, table 4",
        published=(("en-ro BLEU, 0.1%", 0.3),),
    ),
)
"""Every difference is the first value's score less the other's."""
