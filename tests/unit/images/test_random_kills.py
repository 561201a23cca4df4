"""A few random kills of what writes to stores, as `./dev store-kills` does five hundred of."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.images import needs_programs
from tests.unit.images.random_kills import Bench, bench

pytestmark = needs_programs


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    with bench(tmp_path_factory.mktemp("stores")) as made:
        yield made


@pytest.mark.parametrize("seed", range(15))
def test_after_a_random_kill_the_stores_are_whole_and_only_what_is_unused_is_freed(seed: int, stores: Bench) -> None:
    stores.do(seed)
