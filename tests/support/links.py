"""Links in the folder of a study, out of it and within it."""

from pathlib import Path

WEIGHTS = "trial-*/attempt-*/step-16.json"


def plant_links(folder: Path, outside: Path) -> dict[Path, Path | None]:
    """Link out of a study's folder, within it, to nothing and in a circle.

    The weights of the first trial become a link to a file beside them, by its absolute path.

    Args:
        folder: Folder of the study.
        outside: Empty folder, in which a file is written.

    Returns:
        The links, relative to the folder; of the weights with the path of the moved file, else with None.
    """
    (outside / "file").write_text("kept")
    weights, other = sorted(folder.glob(WEIGHTS))[:2]
    moved = weights.rename(weights.with_name("moved.json"))
    targets = {"file": outside / "file", "folder": outside, "nothing": outside / "nothing", "circle": folder}
    links = {weights: moved, **{other.with_name(name): target for name, target in targets.items()}}
    links[other.with_name("itself")] = other.with_name("itself")
    for link, target in links.items():
        link.symlink_to(target)
    named = {link.relative_to(folder): None for link in links}
    return {**named, weights.relative_to(folder): moved.relative_to(folder)}
