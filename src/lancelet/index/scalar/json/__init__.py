"""JSON: the values at one path of JSON documents, in an index of another type, whose files they are."""
