"""Runs the code cells of a notebook: each in the namespace of the one before, its last expression shown.

Usage: notebooks.py NOTEBOOK
"""

import ast
import json
import sys
from pathlib import Path
from typing import Any


def code_cells(notebook: Path) -> list[dict[str, Any]]:
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    return [cell for cell in cells if cell["cell_type"] == "code"]


def shown(value: object) -> str:
    """Return the text of a value in a notebook; check that its HTML begins with an element."""
    to_html = getattr(value, "_repr_html_", None)
    if to_html is not None and not to_html().lstrip().startswith("<"):
        raise ValueError(f"HTML must begin with an element; got {to_html()[:40]!r}.")
    return repr(value)


def run(notebook: Path) -> None:
    namespace: dict[str, object] = {"__name__": "__main__"}
    for place, cell in enumerate(code_cells(notebook)):
        name = f"<cell {place}>"
        tree = ast.parse("".join(cell["source"]), name)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, name, "exec"), namespace)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), name, "eval"), namespace)
            if value is not None:
                sys.stdout.write(f"[{place}]\n{shown(value)}\n")


if __name__ == "__main__":
    run(Path(sys.argv[1]))
