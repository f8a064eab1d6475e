"""The pods that `muster k8s` describes, played by hand: their commands, on hosts of their names."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import time

import yaml
from digits import write_digits
from hosts import needs_namespaces, two_hosts_joined
from places import BUILD, PACKAGES, ROOT

PROGRAM = BUILD / "apps/muster/muster"
PATIENCE_SECONDS = 60
ADDRESSES = ["10.77.0.1", "10.77.0.2"]
# A container has processes of its own; its host has a name, and knows those that the service would give.
CONTAINER = ["unshare", "--mount", "--uts", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c"]
ENTER = 'mount --bind "$1" /etc/hosts && hostname "$2" && shift 2 && exec "$@"'


def tell_to_end(container):
    """As Kubernetes does it: the first process in it gets SIGTERM."""
    with open(f"/proc/{container.pid}/task/{container.pid}/children") as children:
        os.kill(int(children.read()), signal.SIGTERM)


class Cluster:
    """What kubelets would do with an Indexed Job of two pods."""

    def __init__(self, hosts, folder, *arguments):
        self._hosts, self._folder = hosts, folder
        command = [str(PROGRAM), "k8s", "--name", "train", "--image", "train:1", "--nnodes", "2", *arguments]
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        for place in ("/etc/muster", "/var/log/muster", "/var/lib/muster"):  # what would be mounted there
            text = text.replace(place, str(folder / place[1:]))
        documents = list(yaml.safe_load_all(text))
        jobs = [one["spec"]["template"]["spec"] for one in documents if one["kind"] == "Job"]
        for secret in (one for one in documents if one["kind"] == "Secret"):
            self._mount(secret["stringData"])
        self.worker = jobs[-1]["containers"][0]
        self.has_own_job = len(jobs) == 2
        self.scheduler = (jobs[0]["containers"] if self.has_own_job else jobs[0]["initContainers"])[0]
        lines = [f"{ip} train-{i}.train train-{i}\n" for i, ip in enumerate(ADDRESSES)]
        lines += ["127.0.0.1 localhost\n", f"{ADDRESSES[0]} train-scheduler.train\n"]
        (folder / "hosts").write_text("".join(lines))
        self._processes = []

    def _mount(self, files):
        place = self._folder / "etc/muster/token"
        place.mkdir(parents=True)
        for name, text in files.items():
            (place / name).write_text(text)
            (place / name).chmod(0o400)

    def _prepare(self, index, container, command):
        told = ("MS_", "OMP_", "MUSTER_", "PYTHON", "CHAOS_")
        variables = {name: value for name, value in os.environ.items() if not name.startswith(told)}
        path = os.pathsep.join([os.path.dirname(sys.executable), str(PROGRAM.parent), os.environ["PATH"]])
        variables |= {"PYTHONPATH": str(PACKAGES), "PATH": path, "JOB_COMPLETION_INDEX": str(index)}
        if self.has_own_job and container is self.scheduler:
            del variables["JOB_COMPLETION_INDEX"]
        for variable in container["env"]:
            value = variable.get("value", ADDRESSES[index]).replace(
                "$$", "$"
            )  # from a field: the pod's address
            variables[variable["name"]] = value
        enter = [*CONTAINER, ENTER, "enter", str(self._folder / "hosts"), f"train-{index}"]
        words = [*self._hosts[index], *enter, *command]
        return {"args": words, "env": variables, "cwd": self._folder}

    def start(self, index, container):
        process = subprocess.Popen(
            **self._prepare(index, container, container["command"]),
            stdin=subprocess.DEVNULL,
            stdout=(self._folder / f"{container['name']}-{index}.log").open("ab"),
            stderr=subprocess.STDOUT,
        )
        self._processes.append(process)
        return process

    def probe(self, index, container, name):
        probe = self._prepare(index, container, container[name]["exec"]["command"])
        return subprocess.run(**probe, capture_output=True, timeout=PATIENCE_SECONDS).returncode == 0

    def start_pod(self, index):
        """The side container, and when it has started the workers."""
        sidecar = self.start(index, self.scheduler)
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not self.probe(index, self.scheduler, "startupProbe"):
            assert time.monotonic() < deadline and sidecar.poll() is None, self.output("scheduler", index)
        return sidecar, self.start(index, self.worker)

    def output(self, name, index):
        text = (self._folder / f"{name}-{index}.log").read_text()
        print(text)  # shown when the test fails
        return text

    def end(self):
        for process in self._processes:
            process.kill()
            process.wait()


@contextlib.contextmanager
def cluster(folder, *arguments):
    with two_hosts_joined() as hosts:
        played = Cluster(hosts, folder, *arguments)
        try:
            yield played
        finally:
            played.end()


SCRIPT = """
import muster
muster.init()
one = muster.Tensor([1.0], muster.float32)
print("sum", float(muster.ops.all_reduce(one).asnumpy()[0]), "price", PRICE)
"""


@needs_namespaces
def test_two_pods_train_with_certificates_and_the_side_containers_end_after_them(tmp_path):
    names = "train-0.train,train-0,train-1"
    secret = tmp_path / "etc/muster/tls"
    secret.parent.mkdir(parents=True)
    made = [str(PROGRAM), "certs", "new", "--hosts", names, "--out", str(secret)]
    subprocess.run(made, check=True, capture_output=True)
    (tmp_path / "train.py").write_text(SCRIPT.replace("PRICE", "__import__('os').environ['PRICE']"))
    arguments = ["-n", "2", "--tls-secret", "certificates", "--env", "PRICE=5 $(USD) $$", "train.py"]
    with cluster(tmp_path, *arguments) as played:
        pods = [played.start_pod(index) for index in (1, 0)]  # the first one comes late
        for _, worker in pods:
            assert worker.wait(PATIENCE_SECONDS) == 0, [played.output("worker", index) for index in (0, 1)]
        for sidecar, _ in pods:
            assert sidecar.poll() is None
            tell_to_end(sidecar)
            assert sidecar.wait(PATIENCE_SECONDS) == 0
        output = played.output("worker", 0) + played.output("worker", 1)
        assert sorted(
            re.findall(r"^\[(worker \d)\] sum 4.0 price 5 \$\(USD\) \$\$$", output, re.MULTILINE)
        ) == [f"worker {rank}" for rank in range(4)]
        assert "none of them runs on this host" in played.output("scheduler", 1)
        assert "is open to" not in played.output("scheduler", 0)


@needs_namespaces
def test_a_scheduler_with_a_job_of_its_own_completes_it_when_the_workers_have_ended(tmp_path):
    (tmp_path / "train.py").write_text(SCRIPT.replace("PRICE", "5"))
    with cluster(tmp_path, "--scheduler-job", "train.py") as played:
        scheduler, worker = played.start_pod(0)
        for process in (worker, played.start(1, played.worker), scheduler):
            assert process.wait(PATIENCE_SECONDS) == 0, [
                played.output(name, 0) for name in ("worker", "scheduler")
            ]
        assert "[worker 0] sum 2.0 price 5\n" in played.output("worker", 0)
        assert "is open to" not in played.output("scheduler", 0)


# The training of the chaos tests, with a callback that takes its pod away at the 70th step of the first time.
DIES = """
import pathlib, signal

class Dies(train.Callback):
    def on_train_step_end(self, run_context):
        if muster.get_rank() == 1 and run_context.original_args().cur_step_num == 70:
            if not pathlib.Path("died").exists():
                pathlib.Path("died").touch()
                os.kill(os.getppid(), signal.SIGKILL)


def digits("""


@needs_namespaces
def test_a_pod_that_is_replaced_goes_on_where_the_lost_one_was(tmp_path):
    write_digits(tmp_path, rows=640)
    script = (ROOT / "tests/chaos/train.py").read_text().replace("def digits(", DIES, 1)
    script = script.replace("epochs, data, [train.", "epochs, data, [Dies(), train.", 1)
    (tmp_path / "train.py").write_text(script)
    chaos = ["--env", "CHAOS_MODE=model", "--env", f"CHAOS_DATA={tmp_path}", "--env", "CHAOS_EPOCHS=5"]
    with cluster(tmp_path, "--max-restarts", "3", "--recovery-claim", "shared", *chaos, "train.py") as played:
        sidecar, first = played.start_pod(0)
        _, lost = played.start_pod(1)
        assert lost.wait(PATIENCE_SECONDS) != 0
        replacement = played.start(1, played.worker)
        for worker in (first, replacement):
            assert worker.wait(PATIENCE_SECONDS) == 0, [played.output("worker", index) for index in (0, 1)]
        tell_to_end(sidecar)
        assert sidecar.wait(PATIENCE_SECONDS) == 0
        states = re.findall(r"state (\w+)", played.output("worker", 0) + played.output("worker", 1))
        assert len(states) == 2 and len(set(states)) == 1
        assert "[worker 1] resuming job" in played.output("worker", 1)
