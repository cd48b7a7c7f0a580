# muster.jax.initialize() joins the ranks to one program of JAX; where there is no JAX, a stand-in is told the right numbers.
# ranks: 2
import os
import sys
import types

import check
import muster.jax

rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
told = {}
try:
    import jax
except ImportError:
    jax = None


def stand_in():
    """Takes the place of jax."""
    module = types.ModuleType("jax")
    module.distributed = types.SimpleNamespace(initialize=lambda **arguments: told.update(arguments))
    sys.modules["jax"] = module
    told.clear()


def test_ranks_are_told():
    stand_in()
    muster.jax.initialize(initialization_timeout=30)
    assert told == {
        "coordinator_address": os.environ["JAX_COORDINATOR_ADDRESS"], "num_processes": size, "process_id": rank, "initialization_timeout": 30,
    }, told  # fmt: skip


def test_what_is_given_goes_before():
    stand_in()
    muster.jax.initialize(coordinator_address="localhost:1", process_id=7)
    assert told == {"coordinator_address": "localhost:1", "num_processes": size, "process_id": 7}, told


def test_elsewhere_jax_finds_out():
    stand_in()
    own = os.environ.pop("MUSTER_RANK")
    try:
        muster.jax.initialize()
        assert told == {}, told
    finally:
        os.environ["MUSTER_RANK"] = own


def test_one_program():
    if jax is None:
        return
    sys.modules["jax"] = jax
    muster.jax.initialize()
    assert (jax.process_index(), jax.process_count()) == (rank, size)


check.run(globals())
