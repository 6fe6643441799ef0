"""Confirmation: the winners of a study and the methods they beat, trained afresh and measured on unseen data.

::

    running.py      confirm: creates or continues a confirmation and runs its trials to the end
    contenders.py   who is trained again: the best configurations and the baselines
    results.py      what its trials say: spreads, comparisons, optimism, and the outcome as sentences
    verdicts.py     winner minus baseline, and whether that is a win
    statistics.py   spread, paired bootstrap, permutation tests, Holm
"""
