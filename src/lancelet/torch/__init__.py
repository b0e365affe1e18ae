"""PyTorch: datasets that are trained on, and sums over vectors on whatever device there is."""

from __future__ import annotations

import torch

__all__ = ["preferred_device"]


def preferred_device(device: str | torch.device | None = None) -> torch.device:
    """The device to compute on: the one that is named, or the fastest there is.

    >>> preferred_device("cpu")
    device(type='cpu')
    """
    if device is not None:
        return torch.device(device) if isinstance(device, str) else device
    if torch.cuda.is_available():
        return torch.device("cuda")
    if torch.backends.mps.is_available() and torch.backends.mps.is_built():
        return torch.device("mps")
    return torch.device("cpu")
