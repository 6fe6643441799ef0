"""Puts an export on the hub: a copy of it that names no path of this machine."""

import json
import shutil
import tempfile
from collections.abc import Collection
from pathlib import Path

from studies.errors import StudiesError, WishError, said_line
from studies.exports.card_usage import BESIDE

_OWN_FACTS = "delta.json"
_BASE = "base_model_name_or_path"
_PLACES = frozenset({_BASE, "_name_or_path", "name_or_path"})
"""Keys under which files of transformers and peft name a place."""

_OTHER_FACTS = ("adapter_config.json", "config.json", "tokenizer_config.json", "generation_config.json")


def check_pushable(name: str) -> None:
    """See, before anything is written, that something could be put on the hub under a name.

    Raises:
        StudiesError: If the name is none of the hub, or nobody is logged in.
    """
    from huggingface_hub import get_token
    from huggingface_hub.errors import HFValidationError
    from huggingface_hub.utils import validate_repo_id  # type: ignore[attr-defined]

    try:
        validate_repo_id(name)
    except HFValidationError as error:
        raise WishError(f"a repository of the hub is named like user/name; got {name!r}: {error}") from None
    if get_token() is None:
        raise StudiesError(
            "a push needs a token of the hub that may write; none was found. Run 'hf auth login', or set HF_TOKEN."
        )


def push_folder(folder: Path, name: str, *, private: bool = False) -> str:
    """Upload an export as one commit, in a repository that is made where there is none; its URL.

    Args:
        name: ``user/name``, or a name below the user who is logged in.
        private: Of a new repository; one that is there stays as it is.

    Raises:
        StudiesError: If it cannot be; the export stays where it is.
    """
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HTTPError  # type: ignore[attr-defined]

    check_pushable(name)
    with tempfile.TemporaryDirectory(prefix="deltaspace-push-") as place:
        copy = Path(place) / "export"
        public_copy(folder, copy)
        hub = HfApi(library_name="deltaspace")
        try:
            repository = hub.create_repo(name, private=private or None, exist_ok=True)
            hub.upload_folder(repo_id=repository.repo_id, folder_path=copy, commit_message=f"Upload {folder.name}")
        except (HTTPError, OSError, RuntimeError, ValueError) as error:
            cause = error.__cause__ or error
            said = said_line(cause, type(cause).__name__)
            raise StudiesError(
                f"the hub must take {name}; it did not: {said}. The export stays in {folder}."
            ) from error
    return str(repository)


def public_copy(folder: Path, copy: Path) -> None:
    """Copy an export; of every path of this machine in it the last part stays, and names of the hub stay whole."""
    shutil.copytree(folder, copy)
    backbone = BESIDE if (copy / BESIDE).is_dir() else None
    for name in (_OWN_FACTS, *_OTHER_FACTS):
        file = copy / name
        if file.is_file():
            facts = json.loads(file.read_text(encoding="utf-8"))
            public = _public(facts, "", None if name == _OWN_FACTS else _PLACES, backbone)
            if public != facts:
                file.write_text(json.dumps(public, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _public(value: object, key: str, places: Collection[str] | None, backbone: str | None) -> object:
    """A value of a JSON file without paths of this machine.

    Args:
        key: Under which it stands.
        places: Keys of paths; None for any key.
        backbone: The folder of the export that has the backbone; None without one.
    """
    if isinstance(value, dict):
        return {name: _public(each, name, places, backbone) for name, each in value.items()}
    if isinstance(value, list):
        return [_public(each, key, places, backbone) for each in value]
    is_place = isinstance(value, str) and (places is None or key in places)
    if not is_place or not Path(str(value)).expanduser().is_absolute():
        return value
    return backbone if backbone and key == _BASE else Path(str(value)).name
