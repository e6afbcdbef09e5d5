"""What a program remembers of places that it has read, and how it prints sums."""

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


def sum_as_printed(add):
    """The sum y of four places, whose names stand for their values."""
    p = Program()
    values = [p.read(name) for name in "abcd"]
    p.write("y", add(*values))
    text = p.finish()
    names = {line.split()[2]: line.split()[-1].rstrip(";") for line in text.split("\n") if line.startswith("const")}
    out = text.split("y = ")[1].rstrip(";")
    for name, place in names.items():
        out = out.replace(name, place)
    return out


def test_products_are_added_one_by_one():
    """Each is then one operation with its addition."""
    assert sum_as_printed(lambda a, b, c, d: a + (b * c - d * d)) == "((a + (b * c)) - (d * d))"
    assert sum_as_printed(lambda a, b, c, d: a - (b * c - d * d)) == "((a - (b * c)) + (d * d))"
    assert sum_as_printed(lambda a, b, c, d: (b * c - d * d) + a) == "((a + (b * c)) - (d * d))"
    assert sum_as_printed(lambda a, b, c, d: (a * b + c * d) - (b * c + d * d)) == "((((a * b) + (c * d)) - (b * c)) - (d * d))"


def test_other_sums_stay_as_they_are():
    """Differences of large numbers are not to be reordered."""
    assert sum_as_printed(lambda a, b, c, d: a + (b - c * d)) == "(a + (b - (c * d)))"
    assert sum_as_printed(lambda a, b, c, d: (a - b) + c * d) == "((a - b) + (c * d))"
