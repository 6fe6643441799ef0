"""The keeper of a study: the one who leases, records and decides."""
