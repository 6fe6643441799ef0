"""Command ``version``."""

import os
import platform
from importlib.metadata import PackageNotFoundError, version

import click

from deltaspace.commands.options import answer_options, command, reading, say
from deltaspace.commands.output import echo_json

_PACKAGES = ("torch", "transformers", "datasets", "accelerate", "optuna", "ray", "sqlalchemy")


@command("version", "deltaspace version", "deltaspace version --verbose")
@click.option("--verbose", "-v", is_flag=True, help="Also Python, packages, processor, GPUs and storage.")
@answer_options
def show_version(verbose: bool, storage: str, as_json: bool) -> None:
    """Print the version; with --verbose the facts for a bug report.

    A password in the URL of the storage is hidden; its host, its user and the path of a file are not.
    """
    facts = {"deltaspace": version("deltaspace")}
    if verbose:
        facts |= _software() | _machine() | _storage(storage)
    if as_json:
        echo_json(facts)
        return
    width = max(map(len, facts))
    for name, fact in facts.items():
        say(f"{name:<{width}}  {fact}" if verbose else f"{name} {fact}")


def _software() -> dict[str, str]:
    return {
        "python": f"{platform.python_version()} ({platform.python_implementation()})",
        "platform": platform.platform(),
        **{name: _installed(name) for name in _PACKAGES},
    }


def _installed(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _machine() -> dict[str, str]:
    """Return the processor and the GPUs that torch finds; torch is imported here."""
    import torch

    from studies.resource_estimates.machine import gpus

    features = torch.backends.cpu.get_cpu_capability()
    return {
        "cpu": f"{platform.machine()}, {features}, {len(os.sched_getaffinity(0))} cores, "
        f"{torch.get_num_threads()} threads of torch",
        "gpus": "; ".join(f"{name}, {size / 2**30:.0f} GiB, CUDA {torch.version.cuda}" for name, size in gpus())
        or "none",
    }


def _storage(url: str) -> dict[str, str]:
    """Return the schema version, the place of the storage, and whether it can be read."""
    from studies.errors import StudiesError
    from studies.ledger.migrations import NEWEST

    try:
        with reading(url) as ledger:
            count = len(ledger.studies())
            found = f"{ledger.url}, {count:,} {'study' if count == 1 else 'studies'}"
    except StudiesError as error:
        found = str(error)  # without a password, too
    return {"schema": f"version {NEWEST}", "storage": found}
