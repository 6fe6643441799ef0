"""Cache of the studies of a storage, updated where they changed.

Every read is a short transaction on a read-only connection, so no launch waits for a reader.
"""
