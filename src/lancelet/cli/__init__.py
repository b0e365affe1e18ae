"""The command ``lancelet``: pipelines run, and tables looked at and tidied up, from a shell."""
