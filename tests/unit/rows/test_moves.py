"""Rows that moved are found where following them one by one finds them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lancelet.errors import Corrupt
from lancelet.rows.bitmaps import BitMap
from lancelet.rows.deletions import DeletionVector
from lancelet.rows.moves import Move, Moves, Source, parse_survivors, write_survivors
from lancelet.rows.row_sets import RowSet


@st.composite
def histories(draw):
    """Rewrites of some fragments after each other, as moves and as where each address ends; None for deleted rows."""
    rows = {number: draw(st.integers(1, 6)) for number in range(draw(st.integers(1, 4)))}
    following = len(rows)
    ends = {(number, at): (number, at) for number, count in rows.items() for at in range(count)}
    moves = []
    for _ in range(draw(st.integers(0, 3))):
        chosen = sorted(draw(st.sets(st.sampled_from(sorted(rows)), min_size=1))) if rows else []
        sources, survivors = [], []
        for number in chosen:
            deleted = draw(st.sets(st.integers(0, rows[number] - 1))) if rows[number] else set()
            sources.append(Source(number, rows[number], DeletionVector(sorted(deleted))))
            survivors += [(number, at) for at in range(rows[number]) if at not in deleted]
        targets, placed = [], {}
        while len(placed) < len(survivors):
            count = draw(st.integers(1, len(survivors) - len(placed)))
            for at in range(count):
                placed[survivors[len(placed)]] = (following, at)
            targets.append((following, count))
            following += 1
        moves.append(Move(tuple(sources), tuple(targets)))
        ends = {first: (placed.get(now) if now and now[0] in chosen else now) for first, now in ends.items()}
        rows = {number: count for number, count in rows.items() if number not in chosen} | dict(targets)
    return moves, ends


def address(place):
    return (place[0] << 32) + place[1]


@settings(max_examples=200, deadline=None)
@given(histories(), st.randoms(use_true_random=False))
def test_every_row_is_followed_to_where_it_is(history, random):
    moves, ends = history
    random.shuffle(moves)
    followed = Moves(moves)
    asked = list(ends)
    random.shuffle(asked)
    names, kept = followed.remap(np.array([address(place) for place in asked], np.uint64))
    assert kept.tolist() == [ends[place] is not None for place in asked]
    assert names[kept].tolist() == [address(ends[place]) for place in asked if ends[place] is not None]
    some = asked[: len(asked) // 2]
    found = followed.of_rows(RowSet.of([address(place) for place in some]))
    assert found.to_values().tolist() == sorted(address(ends[place]) for place in some if ends[place])


def _whole(number):
    return Source(number, 1, DeletionVector())


def test_a_fragment_waits_for_another_that_comes_by_more_moves():
    moves = [Move((_whole(0),), ((2, 1),)), Move((_whole(2),), ((3, 1),)), Move((_whole(1), _whole(3)), ((4, 2),))]
    for order in (moves, moves[::-1]):
        assert list(Moves(order).of_fragments(BitMap([0, 1]))) == [4]
        assert not Moves(order).of_fragments(BitMap([0]))


@settings(max_examples=100, deadline=None)
@given(histories())
def test_whole_fragments_go_where_all_their_rows_are(history):
    moves, ends = history
    followed = Moves(moves)
    first = {number for number, _ in ends}
    last = {place[0] for place in ends.values() if place is not None}
    gone = {number for move in moves for number in (source.fragment for source in move.sources)}
    assert set(followed.of_fragments(BitMap(first))) - gone >= last
    every = followed.of_rows(RowSet.of_fragments(first))
    assert all(number in every.fragments for number in last)


def test_a_fragment_with_rows_of_others_is_not_covered():
    both = Move((Source(0, 1, DeletionVector()), Source(1, 1, DeletionVector())), ((2, 2),))
    assert Moves([both]).of_fragments(BitMap([0])) == BitMap()
    assert Moves([both]).of_fragments(BitMap([0, 1, 9])) == BitMap([2, 9])


def test_moves_that_lead_in_a_circle_are_corrupt():
    there = Move((Source(0, 1, DeletionVector()),), ((1, 1),))
    back = Move((Source(1, 1, DeletionVector()),), ((0, 1),))
    with pytest.raises(Corrupt, match="come back"):
        Moves([there, back])
    with pytest.raises(Corrupt, match="twice"):
        Moves([there, there])
    with pytest.raises(Corrupt, match="arrived"):
        Move((Source(0, 2, DeletionVector()),), ((1, 1),))


@given(st.dictionaries(st.integers(0, 5), st.tuples(st.integers(0, 50), st.sets(st.integers(0, 49))), max_size=4))
def test_stored_survivors_are_read_again(fragments):
    sources = tuple(
        Source(number, rows, DeletionVector(sorted(item for item in gone if item < rows)))
        for number, (rows, gone) in fragments.items()
    )
    told = [(item.fragment, item.rows, len(item.deleted)) for item in sources]
    assert parse_survivors(write_survivors(sources), told) == sources


@pytest.mark.parametrize("data", [b"", b"\x01", b"\xff" * 40, bytes.fromhex("0100000000000000000000003b3000")])
def test_bytes_that_are_no_set_of_rows_are_corrupt(data):
    with pytest.raises(Corrupt):
        parse_survivors(data, [(0, 5, 0)])


def test_a_set_that_disagrees_with_the_counts_is_corrupt():
    stored = write_survivors([Source(0, 5, DeletionVector([1]))])
    for told in ([(0, 5, 0)], [(0, 4, 1)], [(1, 5, 1)], [], [(0, 5, 1), (2, 3, 0)], [(-1, 5, 1)], [(0, 2, 3)]):
        with pytest.raises(Corrupt):
            parse_survivors(stored, told)
