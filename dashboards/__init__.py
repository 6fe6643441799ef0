"""Display of studies: terminal, reports and browser. The database is only read; torch is not imported."""
