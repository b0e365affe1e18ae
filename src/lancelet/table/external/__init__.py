"""External manifest stores: a database says who was first where an object store cannot."""
