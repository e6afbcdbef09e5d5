"""The same study on Ray: one machine, a cluster of two nodes, one that is not there."""

import os
import signal
import time

import numpy as np
import pytest
from test_study import DOOR, door, same

import sharnir as sh

ray = pytest.importorskip("ray", reason="ray is not installed: pip install ray")
pytestmark = pytest.mark.slow


@pytest.fixture
def cluster():
    """Two nodes of one core on this machine."""
    from ray.cluster_utils import Cluster

    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    made.add_node(num_cpus=1)
    yield made
    ray.shutdown()
    made.shutdown()


def nodes(x):
    """Where a chunk runs."""
    import ray

    time.sleep(0.5)
    return {"node": np.full(len(x), float(int(ray.get_runtime_context().get_node_id()[:8], 16)))}


def test_one_machine_and_two_nodes_give_the_bits_of_one_process(cluster):
    given = {"measure": ["joint/hinge.q", "max(joint/hinge.qd)"], "duration": 0.3, "dt": 0.01, "chunk": 3}
    one = sh.run_study(door(), DOOR, **given, workers=1)
    two = sh.run_study(door(), DOOR, **given, executor="ray", address=cluster.address)
    assert same(one, two) and not one.failed
    where = sh.run_study(nodes, {"x": (0.0, 1.0, 40)}, chunk=4, executor="ray", address=cluster.address)
    print(f"chunks ran on {len(set(where['node']))} nodes")
    assert len(set(where["node"])) == 2


def dies_once(x, seed):
    """Each chunk ends its worker the first time that it is run."""
    mark = os.path.join(os.environ["SHARNIR_TEST_MARKS"], str(int(x[0])))
    if not os.path.exists(mark):
        open(mark, "w").close()
        os.kill(os.getpid(), signal.SIGKILL)
    return {"square": x * x}


@pytest.mark.parametrize("executor", ["local", "ray"])
def test_ten_workers_killed_lose_nothing(executor, tmp_path, monkeypatch):
    monkeypatch.setenv("SHARNIR_TEST_MARKS", str(tmp_path))
    found = sh.run_study(dies_once, {"x": np.arange(40.0)}, chunk=4, executor=executor, workers=2)
    print(f"{executor}: {len(list(tmp_path.iterdir()))} workers killed, {len(found)} rows")
    assert len(list(tmp_path.iterdir())) == 10 and not found.failed
    assert found["run"].tolist() == list(range(40)) and (found["square"] == np.arange(40.0) ** 2).all()


def test_a_cluster_that_is_not_there():
    with pytest.raises(sh.SimulationError, match=r"no Ray cluster answers at address='127.0.0.1:1'"):
        sh.run_study(nodes, {"x": [1.0, 2.0]}, executor="ray", address="127.0.0.1:1")
