"""Figures of studies for Plotly, as what JSON knows: one function a question, from its answer to its figures.

::

    figure.py       what a figure is; colours and templates, light and dark
    intervals.py    rows with a value and an interval: V8, and what has no figure of its own
    importance.py   V1: total and first-order shares
    path.py         V2: the greedy path as a waterfall
    cells.py        V3: heat maps
    sizes.py        V4: score against parameters
    pruning.py      V5: curves, cuts and forecasts
    curves.py       V6 and V7: along the share of attention, and along learning rates
    boards.py       the leaderboard, and the curves of trials
    ablations.py    what the steps of an ablation are worth
    confirmations.py  what contenders score, seed by seed
    views.py        which figures an answer has
"""
