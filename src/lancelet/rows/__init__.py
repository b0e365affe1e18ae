"""Which rows: their addresses and ids, what is deleted, and true, false or null of each."""
