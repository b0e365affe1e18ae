"""NGRAM: for each three letters or digits in a row the set of texts that have them, in one file ``ngram_postings``."""
