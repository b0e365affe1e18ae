"""BLOOMFILTER: a Bloom filter over the values of each zone of some thousand rows, in one file ``bloomfilter.lance``."""
