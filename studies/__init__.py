"""Studies: study files, launches, search, ledger, keeper and workers, analysis and exports."""
