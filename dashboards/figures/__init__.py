"""Plotly figures of studies, as values for JSON.

::

    figure.py         elements of figures, and their light and dark templates
    cards.py          figures of a card of `discover`
    boards.py         the leaderboard, and the curves of trials
    confirmations.py  scores of contenders by seed, and effects of the steps of an ablation
"""
