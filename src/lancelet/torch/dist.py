"""Who of how many a process is: among those that train together, and among the workers of a loader."""

from __future__ import annotations

import torch.distributed
import torch.utils.data

__all__ = [
    "get_dist_rank",
    "get_dist_world_size",
    "get_global_rank",
    "get_global_world_size",
    "get_mp_rank",
    "get_mp_world_size",
]


def get_dist_world_size() -> int:
    """How many processes train together; 1 unless ``torch.distributed`` was set up."""
    return int(torch.distributed.get_world_size()) if torch.distributed.is_initialized() else 1


def get_dist_rank() -> int:
    """The number of this process among those that train together."""
    return int(torch.distributed.get_rank()) if torch.distributed.is_initialized() else 0


def get_mp_world_size() -> int:
    """How many workers the loader has whose worker this process is; 1 if it is none."""
    info = torch.utils.data.get_worker_info()
    return 1 if info is None else int(info.num_workers)


def get_mp_rank() -> int:
    """The number of this process among the workers of its loader."""
    info = torch.utils.data.get_worker_info()
    return 0 if info is None else int(info.id)


def get_global_world_size() -> int:
    """How many workers there are in all processes that train together.

    >>> get_global_rank(), get_global_world_size()
    (0, 1)
    """
    return get_dist_world_size() * get_mp_world_size()


def get_global_rank() -> int:
    """The number of this process among the workers of all processes that train together."""
    return get_dist_rank() * get_mp_world_size() + get_mp_rank()
