"""Study as a single file, for a paper's appendix: text, figures and tables, without network access.

::

    report.py       content of a report
    page.py         report as one HTML file
    files.py        figures and tables as files of their own
"""
