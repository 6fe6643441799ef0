"""Command lines of valid and invalid words."""

import contextlib
import io
import random
from pathlib import Path

from support.fixed_ledger import fixed_ledger

from deltaspace.commands.main import COMMANDS, cli, main
from fuzz_arms.mutations import NASTY

_SERVING = ("dashboard",)
_TRAINING = ("launch", "train", "confirm", "ablate")
_WORDS = (
    "finished", "middle", "finished-confirm", "nobody", "7", "0", "-1", "best", "lora_qv", "mam_adapter", "lora_qv:r=4",
    "select 1", "select * from trials", "drop table trials", "with recursive a(n) as (select 1) select * from a", "",
)  # fmt: skip


class RandomCommands:
    """Run of a random command line that neither trains nor serves."""

    def __init__(self, folder: Path) -> None:
        self.url = f"sqlite:///{folder / 'whole.db'}"
        fixed_ledger(self.url, folder)
        self.options = {name: _options(name) for name in COMMANDS}

    def __call__(self, draw: random.Random) -> None:
        name = draw.choice([each for each in COMMANDS if each not in _SERVING])
        words = [name]
        for _ in range(draw.randint(0, 5)):
            if draw.random() < 0.5:
                words.append(draw.choice(self.options[name] or ["--help"]))
            words.append(draw.choice(NASTY if draw.random() < 0.4 else _WORDS).replace("\0", ""))
        if name in _TRAINING:  # no such study: other problems must be reported as well
            words[1:2] = ["nobody.yaml"]
        if draw.random() < 0.7:
            words += ["--storage", self.url]
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as errors:
            try:
                code = main(words)
            except SystemExit as error:
                code = error.code
        assert code in (0, 1, 2, 130, None), f"{words} ended with {code}"
        assert "Traceback" not in errors.getvalue(), errors.getvalue()


def _options(name: str) -> list[str]:
    command = cli.get_command(None, name)
    options = [option for parameter in command.params for option in parameter.opts]
    return [option for option in options if option.startswith("--") and option != "--output"]
