"""What was read is a copy: an element written into it is refused with words, anything computed from it may be written."""

import pickle

import numpy as np
import pytest

import sharnir as sh


@pytest.fixture(params=[1, 3])
def sim(request):
    scene = sh.Scene()
    scene.add_body("ball", sh.Sphere(0.1), mass=1.0, position=(0, 0, 1))
    scene.add_body("cup", sh.Sphere(0.1), mass=1.0, position=(1, 0, 1))
    scene.add_joint("socket", sh.Universal(), scene.world, "cup", position=(1, 0, 1))
    return sh.Simulation(scene, 0.001, worlds=request.param)


def test_an_element_is_not_written_into_a_copy(sim):
    for read in (
        lambda: sim.body("ball").position,
        lambda: sim.body("ball").velocity,
        lambda: sim.body("ball").rotation,
        lambda: sim.joint("socket").velocity,
        lambda: sim.body("ball").position[..., 1:],
    ):
        with pytest.raises(ValueError, match=r"a copy.*body\.position = \(x, y, z\)"):
            read()[..., 0] = 5.0
        with pytest.raises(ValueError, match="a copy"):
            read()[..., 0] += 5.0


def test_what_is_computed_may_be_written(sim):
    place = sim.body("ball").position
    computed = place + 0.0, (place + 0.0)[..., :2], np.cross(place, place), place @ np.eye(3)
    assert all(type(array) is np.ndarray for array in computed)
    for own in (*computed, place.copy(), np.array(place), place.astype(np.float32)):
        own[..., 0] = 7.0
        assert own[..., 0].max() == 7.0
    assert place.max() == 1.0
    assert type(pickle.loads(pickle.dumps(place))) is type(place)


def test_adding_to_a_property_sets_it(sim):
    sim.body("ball").position += (0, 0, 2)
    np.testing.assert_allclose(np.atleast_2d(sim.body("ball").position)[:, 2], 3.0)
