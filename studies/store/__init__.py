"""The ledger: studies, confirmations, trials, attempts, readings, files and events in SQLite or PostgreSQL.

What enters and leaves are the values of `studies.records`.

::

    ledger.py       Ledger: every verb, one transaction each
    belonging.py    which files are a study's own
    amending.py     what is measured of a trial after it has ended
    holding.py      which launch runs a study
    places.py       how it is written where they lie
    invariants.py   violations: what must hold after any crash
    tables.py, migrations.py, revisions/  the tables and their versions
    keeping.py, leases.py, settling.py, looking.py   the verbs' statements
    copying.py, removing.py  studies that move to another database, get another name, or go
    address.py, engine.py, database.py, failures.py  URL, settings, transactions, messages
"""
