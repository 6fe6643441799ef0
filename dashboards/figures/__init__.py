"""Figures of studies for Plotly, as what JSON knows.

::

    figure.py         what a figure is; colours and templates, light and dark
    cards.py          the figures of a card of `discover`
    boards.py         the leaderboard, and the curves of trials
    confirmations.py  what contenders score, seed by seed, and what the steps of an ablation are worth
"""
