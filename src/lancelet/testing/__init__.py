"""Testing: what users of lancelet, and lancelet itself, test stores and pipelines with. Needs no test framework."""
