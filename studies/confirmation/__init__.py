"""Confirmation: the winners of a study and their baselines, trained again and measured on the test split.

::

    request.py        request of a confirmation or an ablation
    execution.py      confirm: creates or continues a confirmation and runs its trials
    contenders.py     configurations to train: the best ones and the baselines
    ablation.py       the same for an ablation: steps from a published method to a trial
    results.py        results: spreads, comparisons, optimism, and the outcome in sentences
    ablation_path.py  results of an ablation
    verdicts.py       winner minus baseline, with a verdict
    statistics.py     spread, paired bootstrap, permutation tests, Holm
"""
