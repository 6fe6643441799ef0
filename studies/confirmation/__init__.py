"""Confirmation: the winners of a study and the methods they beat, trained afresh and measured on unseen data.

::

    request.py        what is asked for
    execution.py      confirm: creates or continues a confirmation and runs its trials to the end
    contenders.py     who is trained again: the best configurations and the baselines
    ablation.py       the same of an ablation: the steps from a published method to a trial
    results.py        what its trials say: spreads, comparisons, optimism, and the outcome as sentences
    ablation_path.py  what the trials of an ablation say
    verdicts.py       winner minus baseline, and whether that is a win
    statistics.py     spread, paired bootstrap, permutation tests, Holm
"""
