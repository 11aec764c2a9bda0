"""Ids of rows without a name."""

from longtail.data import row_id


def test_the_id_of_a_text_is_the_beginning_of_its_sha256():
    # sha256sum of the UTF-8 bytes
    assert row_id("a red apple") == "c0c74b7a9019def6defa7d500b52ec76"
    assert row_id("Äpfel") != row_id("Apfel")


def test_half_of_a_surrogate_pair_has_an_id_too():
    assert len(row_id("\ud800")) == 32
