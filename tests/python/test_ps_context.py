"""set_ps_context and its kin: what a script chooses about encryption before init()."""

import subprocess
import sys

import pytest
from job import Job, clean_environment


def run(script, module="muster", **variables):
    """What the last line of a script's error says, or its output."""
    done = subprocess.run(
        [sys.executable, "-c", f"import {module} as ms\n{script}"],
        env={**clean_environment(), **variables},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.stdout.strip() or done.stderr.strip().splitlines()[-1]


@pytest.mark.parametrize("module", ["muster", "mindspore"])
def test_what_is_set_can_be_read_back_but_for_passwords(module):
    script = """
ms.set_ps_context(config_file_path="a/config.json", enable_ssl=True, client_password="x", server_password="y")
ms.set_ps_context(enable_ps=True, staleness=4)
print(ms.get_ps_context("enable_ssl"), ms.get_ps_context("config_file_path"))
print(ms.get_ps_context("enable_ps"), ms.get_ps_context("staleness"))
ms.reset_ps_context()
print(ms.get_ps_context("enable_ssl"), repr(ms.get_ps_context("config_file_path")))
print(ms.get_ps_context("enable_ps"), ms.get_ps_context("staleness"))
"""
    assert run(script, module) == "True a/config.json\nTrue 4\nFalse ''\nFalse 0"
    told = run('ms.set_ps_context(client_password="x"); ms.get_ps_context("client_password")', module)
    assert told == "ValueError: get_ps_context('client_password'): passwords are not told"
    assert "choose enable_ps, staleness, enable_ssl or config_file_path" in run(
        'ms.get_ps_context("port")', module
    )


def test_older_keys_of_mindspore_are_what_the_environment_says():
    told = run(
        """
ms.set_ps_context(enable_ps=True, worker_num=3, server_num=2, scheduler_port=1, scheduler_manage_port=7)
keys = "worker_num", "server_num", "scheduler_ip", "scheduler_port", "scheduler_manage_port", "ms_role"
print([ms.get_ps_context(key) for key in keys])
ms.reset_ps_context()
print([ms.get_ps_context(key) for key in keys])
""",
        "mindspore",
        MS_WORKER_NUM="4",
        MS_SCHED_HOST="10.0.0.1",
        MS_SCHED_PORT="8118",
    )
    assert told == "[3, 2, '10.0.0.1', 1, 7, '']\n[4, 0, '10.0.0.1', 8118, 11202, '']"
    script = "import sys; sys.stderr = sys.stdout\n"
    told = run(script + "ms.set_ps_context(worker_num=3)", "mindspore", MS_WORKER_NUM="4")
    assert told.endswith(
        "note: set_ps_context(worker_num=3) has no effect: the job has that from MS_WORKER_NUM, which is 4"
    )
    equal = script + "ms.set_ps_context(worker_num=4); print('no note')"
    assert run(equal, "mindspore", MS_WORKER_NUM="4") == "no note"
    told = run("ms.set_ps_context(worker_nums=4)", "mindspore")
    assert told.startswith("ValueError: set_ps_context: the keys are enable_ps") and "'worker_nums'" in told


def join_as_worker(script, **variables):
    common = {"MS_ROLE": "MS_WORKER", "MS_SCHED_HOST": "127.0.0.1", "MS_SCHED_PORT": "8118"}
    return run(script, MS_WORKER_NUM="1", **common, **variables)


def test_init_says_what_of_the_choice_cannot_be_used():
    told = join_as_worker("ms.set_ps_context(enable_ssl=True); ms.init()")
    assert told.startswith("ValueError: enable_ssl=True needs a configuration")
    told = join_as_worker("ms.set_ps_context(enable_ssl=True, config_file_path='absent.json'); ms.init()")
    assert told.startswith("ValueError: config_file_path='absent.json' cannot be used: cannot open")
    told = join_as_worker("ms.init()", MUSTER_TLS_CONFIG="absent.json")
    assert told.startswith("ValueError: MUSTER_TLS_CONFIG='absent.json' cannot be used: cannot open")
    told = join_as_worker("ms.init()", MUSTER_TLS_CONFIG="a", MUSTER_TOKEN_FILE="b")
    assert all(part in told for part in ("MUSTER_TOKEN_FILE='b'", "TLS", "certificates"))


def test_parameters_are_marked_only_where_servers_are_on():
    told = run("ms.nn.Dense(1, 1).set_param_ps()")
    assert told.startswith("RuntimeError: set_param_ps") and "enable_ps=True" in told
    told = run(
        "ms.set_ps_context(enable_ps=True); ms.nn.Dense(1, 1).weight.set_param_ps(init_in_server=True)"
    )
    assert told.startswith("RuntimeError: set_param_ps: init_in_server") and "embedding_table" in told
    told = run("ms.set_ps_context(staleness=-1)")
    assert told.startswith("ValueError: set_ps_context: staleness is -1")


def test_a_job_without_servers_says_so_where_a_parameter_is_marked():
    script = """
import muster as ms
ms.set_ps_context(enable_ps=True)
ms.init()
ms.nn.Dense(1, 1).set_param_ps()
"""
    with Job(script, 1) as job:
        output = job.workers[0].output()
    assert "MS_SERVER_NUM is 0" in output and "ValueError" in output


@pytest.mark.parametrize("role", ["worker", "pserver", "sched"])
def test_scripts_ask_for_their_role_by_mindspores_names(role):
    script = f"""
from mindspore.parallel import _ps_context as of
before = of._is_role_{role}(), of._is_ps_mode()
ms.set_ps_context(enable_ps=True)
print(before, [of._is_role_worker(), of._is_role_pserver(), of._is_role_sched(), of._is_ps_mode()])
"""
    roles = [role == each for each in ("worker", "pserver", "sched")]
    assert run(script, "mindspore", MS_ROLE=f"MS_{role.upper()}").splitlines()[-1] == (
        f"(False, False) {[*roles, True]}"
    )


# Marks a layer and makes one step of OPTIMIZER_.
STEP = """
import os
import numpy as np
import mindspore as ms
from mindspore import nn
from mindspore.experimental import optim

ms.set_ps_context(enable_ps=True)
if "MS_ROLE" in os.environ:
    ms.communication.init()
net = nn.Dense(2, 1)
assert not net.weight.is_param_ps
net.set_param_ps()
assert net.weight.is_param_ps and net.bias.is_param_ps
parameters = net.trainable_params()
optimizer = OPTIMIZER_
loss = nn.WithLossCell(net, nn.MSELoss())
of_loss = ms.value_and_grad(loss, None, parameters)
_, gradients = of_loss(ms.Tensor(np.ones((1, 2), np.float32)), ms.Tensor(np.ones((1, 1), np.float32)))
optimizer(gradients)
print("done")
"""


@pytest.mark.parametrize(
    "optimizer", ["nn.AdaMax(parameters)", "nn.Rprop(parameters)", "optim.Adam(parameters)"]
)
def test_an_optimizer_that_servers_have_no_rule_for_names_its_parameter(optimizer):
    script = STEP.replace("OPTIMIZER_", optimizer)
    with Job(script, 1, MS_SERVER_NUM="1") as job:
        server = job.start("server 0", MS_ROLE="MS_PSERVER")
        try:
            output = job.workers[0].output()
        finally:
            server.end()
    assert "NotImplementedError" in output and "'weight', which lives on parameter servers" in output
    assert run(script, "mindspore") == "done"


def test_a_staleness_that_is_no_number_of_steps_is_named():
    for staleness, told in [
        ("2**70", "ValueError: set_ps_context: staleness is a number below 2**63, or None"),
        ("-1", "ValueError: set_ps_context: staleness is -1; it must be at least 0, or None"),
        ("1.5", "TypeError: set_ps_context: staleness is a whole number of steps, or None"),
    ]:
        assert told in run(f"ms.set_ps_context(enable_ps=True, staleness={staleness})")
