"""LABEL_LIST: for each item that occurs in any list the set of rows whose lists hold it, stored as BITMAP does."""
