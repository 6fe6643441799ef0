"""Where a backbone comes from: the commit of the hub that is cached, and the licence of its weights."""

from pathlib import Path

import yaml

from trial_runner.backbones import EMBEDDED
from trial_runner.backbones.locate import source_of

_EMBEDDED_LICENCE = "CC BY-SA 4.0"


def revision_of(name: str) -> str | None:
    """Commit of the cached files of a hub backbone; None for a folder, or where nothing is cached."""
    file = _cached(name, "config.json")
    is_commit = file is not None and file.parent.parent.name == "snapshots"
    return file.parent.name if file is not None and is_commit else None


def licence_of(name: str) -> str | None:
    """Licence of a backbone's weights, as its model card says in its first lines; None where it does not."""
    if name == EMBEDDED:
        return _EMBEDDED_LICENCE
    card = _cached(name, "README.md")
    try:
        text = "" if card is None else card.read_text(encoding="utf-8")
        entries = yaml.safe_load(text.split("---")[1]) if text.startswith("---") else None
    except (OSError, ValueError, IndexError, yaml.YAMLError):
        return None
    stated = entries.get("license") if isinstance(entries, dict) else None
    return None if stated is None else str(stated)


def public_name(name: str) -> str:
    """A name as it can be said elsewhere: of a path the last part."""
    return Path(name).name if Path(name).expanduser().exists() or Path(name).is_absolute() else name


def licence_line(name: str) -> str:
    """One line on what may be done with an export."""
    licence = licence_of(name)
    stated = f"are under {licence}" if licence else "have a licence of their own (see its model card)"
    return f"The weights of the backbone {public_name(name)} {stated}; what was trained on them is bound by it as well."


def _cached(name: str, file: str) -> Path | None:
    """A file of a backbone that is on this machine."""
    source = source_of(name)
    if Path(source).is_dir():
        path = Path(source) / file
        return path if path.is_file() else None
    from huggingface_hub import try_to_load_from_cache

    found = try_to_load_from_cache(source, file)
    return Path(found) if isinstance(found, str) else None
