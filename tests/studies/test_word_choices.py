"""Words that a caller in Python may choose from: one that is none of them is refused with the nearest."""

from collections.abc import Callable
from pathlib import Path

import pytest
from support.planted_ledger import Planted

from studies.errors import InvalidRequestError
from studies.study import Study


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    planted = Planted(f"sqlite:///{tmp_path_factory.mktemp('words') / 'ledger.db'}", 4)
    return Study.open("planted", planted.ledger.url)


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda study: study.trial("bset"), "a trial must be a number or 'best'; got 'bset'. Did you mean 'best'?"),
        (lambda study: study.ablate("last"), "a trial must be a number or 'best'; got 'last'."),
        (lambda study: study.export("away", "worst"), "a trial must be a number or 'best'; got 'worst'."),
        (
            lambda study: study.export("away", kind="pefft"),
            "kind must be one of deltaspace, peft, merged; got 'pefft'. Did you mean 'peft'?",
        ),
        (
            lambda study: study.trial(0).export("away", kind="anything"),
            "kind must be one of deltaspace, peft, merged; got 'anything'.",
        ),
    ],
)
def test_unknown_word_is_refused_with_the_nearest(
    study: Study, ask: Callable[[Study], object], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidRequestError) as caught:
        ask(study)
    assert str(caught.value) == message
    assert list(tmp_path.iterdir()) == []
