"""Figures of studies for Plotly, as what JSON knows: one function a question, from its answer to its figures.

::

    figure.py       what a figure is; colours and templates, light and dark
    intervals.py    rows with a value and an interval: the answers to V1, V2, V6 to V8 and the leaderboard
    path.py         V2: the greedy path as a waterfall
    sizes.py        V4: score against parameters
    pruning.py      V5: curves, cuts and forecasts
    boards.py       the leaderboard, and the curves of trials
    views.py        which figures an answer has
"""
