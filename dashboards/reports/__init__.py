"""A study as one file, for a paper's appendix: text, figures and tables, nothing of it from a network.

::

    report.py       what a report holds
    page.py         it as one HTML file
    files.py        its figures and its tables as files of their own
"""
