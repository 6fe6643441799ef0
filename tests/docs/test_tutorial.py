"""The tutorial, from its table to predictions where this project is not installed, which are those made here."""

import pytest
from support.export_commands import card_lines
from support.fresh_python import run_afresh
from support.pages import ROOT, PageRun, blocks_of

import deltaspace

PAGE = ROOT / "docs" / "tutorial.md"
ROUNDING = 1e-3
"""Of probabilities, of which a float32 sum of some thousand products keeps six digits whatever the machine."""
MOST_TIES = 2
"""Most texts with two labels that are equally probable but for rounding."""


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.is_gradient_checkpointing. is deprecated:FutureWarning")
@pytest.mark.filterwarnings("ignore:.* texts are cut to 40 tokens, as in training")
def test_a_table_becomes_predictions_of_stock_transformers_and_peft(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DELTASPACE_STORAGE", raising=False)
    monkeypatch.setenv("DELTASPACE_AUTO_PRECISION", "fp32")  # as stock transformers computes; bf16 is 4e-3 off
    PageRun(capsys).run_page(PAGE)
    lines = (tmp_path / "reviews.csv").read_text().splitlines()[1:41]
    texts = [line.rpartition(",")[0].strip('"') * (1 + number % 3) for number, line in enumerate(lines)]
    (alone,) = (block.text for block in blocks_of(PAGE) if block.file)
    programs = [
        (tmp_path, f"texts = {texts!r}\n{alone}\nscores = [one['score'] for one in scored]", ("answers", "scores"))
    ]
    for folder in ("merged", "adapter"):
        scores = "\nscores = logits.softmax(dim=-1).amax(dim=-1)"
        programs.append((tmp_path / folder, card_lines(tmp_path / folder, texts) + scores, ("answers", "scores")))
    by_pipeline, by_card, by_peft = run_afresh(programs, tmp_path)
    winner, merged, adapter = (deltaspace.predict(name, texts) for name in ("winner", "merged", "adapter"))
    for ours, theirs in ((winner, by_pipeline), (winner, by_card), (merged, by_card), (adapter, by_peft)):
        probabilities = ours["probability"]
        assert theirs["scores"] == pytest.approx(probabilities, abs=ROUNDING)
        differing = sum(label != other for label, other in zip(ours["prediction"], theirs["answers"], strict=True))
        assert differing <= MOST_TIES
        assert len(set(probabilities)) > len(texts) // 2
