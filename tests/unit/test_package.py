"""The package itself, which is a module of a class of its own."""

from __future__ import annotations

import pickle

import lancelet


def test_the_package_travels_by_its_name() -> None:
    from pyspark import cloudpickle

    def names_the_package() -> object:
        return lancelet.dataset

    assert pickle.loads(pickle.dumps(lancelet)) is lancelet
    assert pickle.loads(cloudpickle.dumps(names_the_package))() is lancelet.dataset
