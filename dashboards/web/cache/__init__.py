"""What is known of the studies of a storage, read anew only where it changed.

Every read is a short transaction of a connection that cannot write, so that no launch waits for a reader.
"""
