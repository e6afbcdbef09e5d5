"""What a program remembers of places that it has read."""

from sharnir.emit.program import Program


def printed(fence):
    p = Program()
    first = p.read("x")
    if fence:
        p.forget("fence;")
    p.write("y", first + p.read("x"))
    return p.finish()


def test_a_place_is_read_once_and_again_after_all_is_forgotten():
    assert printed(False).count("= x;") == 1
    text = printed(True)
    assert text.count("= x;") == 2
    assert text.index("fence;") > text.index("= x;")


def test_what_was_computed_before_is_still_known_after_all_is_forgotten():
    p = Program()
    twice = p.read("x") * 2.0
    p.write("y", twice + twice * twice)
    p.forget("fence;")
    p.write("z", twice * 3.0)
    before, after = p.finish().split("fence;")
    assert "real(2.0)" in before
    assert "real(2.0)" not in after
