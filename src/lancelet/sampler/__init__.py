"""Samplers: the batches of a dataset that a process trains on, drawn, dealt out and shuffled."""

from lancelet.sampler.drawing import PrioritizedItem, maybe_sample, reservoir_sampling
from lancelet.sampler.fragments import FragmentSampler, FullScanSampler, ShardedFragmentSampler
from lancelet.sampler.sampler import Sampler
from lancelet.sampler.sharded import ShardedBatchSampler, ShardedFixedBatchSampler
from lancelet.sampler.shuffled import ShuffledSampler

__all__ = [
    "FragmentSampler",
    "FullScanSampler",
    "PrioritizedItem",
    "Sampler",
    "ShardedBatchSampler",
    "ShardedFixedBatchSampler",
    "ShardedFragmentSampler",
    "ShuffledSampler",
    "maybe_sample",
    "reservoir_sampling",
]
