"""Chat templates run in a process of their own: each is a program of whoever made a tokenizer, and bounded as such."""

import json
import os
import subprocess
import sys
import threading
import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import IO, Any, cast

from trial_runner.errors import TaskError
from trial_runner.huggingface import bounded_line

RENDER_SECONDS, _SECONDS_EACH = 10.0, 0.1
"""Processor time that templates may take at first, and more for each text; of what is left so much is kept."""
_BYTES = 1 << 29
"""Memory that they may take."""
_MESSAGE_CHARACTERS = 200
"""Most that is kept of the message of a template that fails, on one line with control characters escaped."""
_CHARACTERS, _CHARACTERS_EACH = 100_000, 20
"""Most that is written, and more for each character that is asked with."""


class _Renderer:
    """The process that runs templates."""

    def __init__(self, seconds: float) -> None:
        """Start it; it ends with this one, for it reads what this one writes."""
        self._lock = threading.Lock()
        run = f"from trial_runner.chat_templates import render_requests as run; run({seconds}, {_BYTES})"
        self._process = subprocess.Popen(
            [sys.executable, "-c", run],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "OMP_NUM_THREADS": "1"},
            start_new_session=True,  # Ctrl-C is for this process
            text=True,
        )
        weakref.finalize(self, _end, self._process)

    def ask(self, question: Mapping[str, object]) -> dict[str, Any] | None:
        """Return its answer; None if the process has ended instead, or has no memory for one."""
        asked, answered = cast("IO[str]", self._process.stdin), cast("IO[str]", self._process.stdout)
        with self._lock:
            with suppress(BrokenPipeError):
                asked.write(f"{json.dumps(question)}\n")
                asked.flush()
            line = answered.readline()
        answer: dict[str, Any] | None = json.loads(line) if line else None
        return answer


def _end(process: subprocess.Popen[str]) -> None:
    process.kill()
    with suppress(OSError):  # what it was not sent
        process.communicate()


@lru_cache(maxsize=1)
def _renderer_of(_process: int, seconds: float) -> _Renderer:
    return _Renderer(seconds)


def written(
    template: str, chat: Sequence[Mapping[str, object]], variables: Mapping[str, object], **how: bool
) -> tuple[str, list[tuple[int, int]]]:
    """Render a dialogue by a template; return also the spans of answers that the template marks.

    Args:
        template: Jinja template.
        chat: Messages.
        variables: Variables of the template besides the dialogue.
        how: ``add_generation_prompt`` and ``return_assistant_tokens_mask``, as in transformers.

    Raises:
        TaskError: If the template refuses the dialogue, or exceeds its bounds; the text says how.
        TypeError: If a variable is not a JSON value.
    """
    question = {**variables, **how, "conversations": [list(chat)], "chat_template": template}
    answer = _renderer_of(os.getpid(), RENDER_SECONDS).ask(question)
    if answer is None:
        _renderer_of.cache_clear()
        raise TaskError(f"it must take at most {RENDER_SECONDS:.0f} s and {_BYTES >> 20} MB; it takes more")
    if "problem" in answer:
        raise TaskError(answer["problem"])
    return answer["text"], [(begin, end) for begin, end in answer["spans"]]


def render_requests(most_seconds: float, most_bytes: int) -> None:
    """Answer the questions of `_Renderer`, one a line, until there are no more."""
    import resource
    import signal

    from transformers.utils.chat_template_utils import render_jinja_template

    with suppress(OSError):  # where nobody tells how much there is already, nothing is bounded
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + most_bytes,) * 2)
    left = most_seconds
    for line in sys.stdin:
        signal.setitimer(signal.ITIMER_PROF, left)  # whoever takes longer is ended by it
        try:
            texts, spans = render_jinja_template(**json.loads(line))
            most = _CHARACTERS + _CHARACTERS_EACH * len(line)
            if len(texts[0]) > most:
                raise ValueError(f"it must write at most {most:,} characters; it writes {len(texts[0]):,}")
            answer: dict[str, object] | None = {"text": texts[0], "spans": spans[0] if spans else []}
        except MemoryError:
            answer = None
        except Exception as error:  # noqa: BLE001 - whatever a template does
            answer = {"problem": bounded_line(str(error), _MESSAGE_CHARACTERS) or type(error).__name__}
        left = min(most_seconds, signal.setitimer(signal.ITIMER_PROF, 0)[0] + _SECONDS_EACH)
        sys.stdout.write(f"{json.dumps(answer)}\n")
        sys.stdout.flush()
