"""`agent.tools.output`: the beginning and the end of any output, within a limit."""

from hypothesis import given
from hypothesis import strategies as st

from agent.tools.output import Retained, Retention, keep_head

PIECES = st.lists(st.binary(max_size=12), max_size=12)
LIMITS = st.integers(1, 20)


def collected(pieces: list[bytes], limit: int) -> Retained:
    output = Retention(limit).collector()
    for piece in pieces:
        output.add(piece)
    return output


@given(PIECES, LIMITS)
def test_what_fits_is_whole_and_what_does_not_is_cut_at_the_limit(pieces: list[bytes], limit: int) -> None:
    whole = b"".join(pieces)

    output = collected(pieces, limit)

    assert output.truncated == (len(whole) > limit)
    if not output.truncated:
        assert output.text() == whole.decode("utf-8", "replace")
    else:
        assert f"[output truncated: {len(whole) - limit} of {len(whole)} bytes left out here]" in output.text()


@given(st.text(max_size=60), LIMITS)
def test_no_character_is_cut_in_two(text: str, limit: int) -> None:
    assert "\ufffd" not in collected([text.replace("\ufffd", "").encode()], limit).text()
    assert "\ufffd" not in keep_head(text.replace("\ufffd", "").encode(), limit, len(text.encode()))


@given(PIECES, LIMITS)
def test_the_division_into_pieces_does_not_matter(pieces: list[bytes], limit: int) -> None:
    assert collected(pieces, limit).text() == collected([b"".join(pieces)], limit).text()
