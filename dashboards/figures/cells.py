"""V3: the best of every pair of forms, and of every form and insertion, as heat maps."""

from dashboards.figures.figure import Figure, axis, plain
from studies.queries.table import Table

_ROW_PIXELS = 46
_TITLES = {
    "attention": ("insertion at attention", "form at attention"),
    "ffn": ("insertion at the FFN", "form at the FFN"),
}


def cells_figures(table: Table, metric: str) -> tuple[Figure, ...]:
    """One heat map a table; cells without a trial are forecasts, and say so."""
    entries = table.to_dicts()
    kinds = dict.fromkeys(str(entry["table"]) for entry in entries)
    return tuple(
        _heat_map(kind, place, [entry for entry in entries if entry["table"] == kind], metric)
        for place, kind in enumerate(kinds)
    )


def _heat_map(kind: str, place: int, entries: list[dict[str, object]], metric: str) -> Figure:
    across, down = _TITLES.get(kind, ("form at the FFN", "form at attention"))
    columns = list(dict.fromkeys(str(entry["column"]) for entry in entries))
    rows = list(dict.fromkeys(str(entry["row"]) for entry in entries))[::-1]
    by_cell = {(str(entry["row"]), str(entry["column"])): entry for entry in entries}
    found = [[by_cell.get((row, column)) for column in columns] for row in rows]
    return Figure(
        name=f"kinds-{place}",
        title=f"{table_title(kind)}: best {metric} of each cell; (n) trials, – none",
        says=f"A heat map of {len(entries)} cells; the best is {entries[0]['row']} and {entries[0]['column']}.",
        data=[
            {
                "type": "heatmap",
                "x": [plain(column) for column in columns],
                "y": [plain(row) for row in rows],
                "z": [[None if cell is None else cell["value"] for cell in some] for some in found],
                "text": [[_text(cell) for cell in some] for some in found],
                "texttemplate": "%{text}",
                "hovertemplate": "%{y} × %{x}: %{z:.4f}<extra></extra>",
                "colorscale": "Cividis",
                "showscale": False,  # the numbers are in the cells, and a phone has no room for both
                "xgap": 2,
                "ygap": 2,
            }
        ],
        layout={
            "xaxis": axis(across, type="category", showgrid=False, tickangle=-40),
            "yaxis": axis(down, type="category", showgrid=False),
            "height": 190 + _ROW_PIXELS * len(rows),
        },
    )


def table_title(kind: str) -> str:
    """What a heat map is of."""
    return {"attention": "Form × insertion at attention", "ffn": "Form × insertion at the FFN"}.get(
        kind, "Form at attention × form at the FFN"
    )


def _text(cell: dict[str, object] | None) -> str:
    if cell is None:
        return ""
    return f"{float(str(cell['value'])):.3f}<br>{'–' if cell['is_empty'] else '(' + str(cell['n']) + ')'}"
