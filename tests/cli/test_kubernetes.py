"""muster k8s: manifests that the schemas of Kubernetes and of JobSet take; and muster sidecar."""

import json
import os
import re
import signal
import subprocess
from pathlib import Path

import kubernetes_validate
import pytest
import yaml
from kubeflow_trainer_api.models.jobset_v1alpha2_job_set import JobsetV1alpha2JobSet

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "build/apps/muster/muster"
VERSIONS = ["1.33", "1.37"]  # side containers and per-pod policies are stable from 1.33 on
JOB = ["k8s", "--name", "train", "--image", "registry/train:1"]
RICH = [
    *["--nnodes", "2", "-n", "4", "--servers", "1", "--limit", "cpu=4", "--limit", "memory=16Gi"],
    *["--limit", "nvidia.com/gpu=8", "--shm", "1Gi", "--namespace", "team", "--node-selector", "zone=a"],
    *["--service-account", "trainer", "--image-pull-secret", "pull", "--user", "1000", "--grace", "60"],
    *["--env", "SEED=7", "--volume", "digits:/data:ro", "--volume", "out:/out"],
    *["--max-restarts", "9", "--recovery-claim", "shared"],
]
CASES = {
    "small": [],
    "rich with certificates": [*RICH, "--tls-secret", "certificates"],
    "rich with a token": [*RICH, "--token-secret", "token"],
    "scheduler in a Job": [*RICH, "--scheduler-job"],
    "another preset": ["--preset", "pytorch", "--nnodes", "2", "--port", "29500"],
    "open": ["--open"],
}
SCRIPT = ["train.py", "--epochs", "3"]


def muster(*arguments):
    return subprocess.run([str(PROGRAM), *arguments], capture_output=True, text=True, timeout=60, check=False)


def manifests(*arguments):
    done = muster(*JOB, *arguments, *SCRIPT)
    assert done.returncode == 0, done.stderr
    return list(yaml.safe_load_all(done.stdout))


def only(kind, *arguments):
    (one,) = [document for document in manifests(*arguments) if document["kind"] == kind]
    return one


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("case", CASES)
def test_kubernetes_takes_the_manifests_strictly(case, version):
    documents = manifests(*CASES[case])
    assert "Service" in [document["kind"] for document in documents]
    for document in documents:
        kubernetes_validate.validate(document, version, strict=True)


def test_the_validator_would_see_a_misspelt_field():
    job = only("Job")
    job["spec"]["backofLimit"] = 3
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(job, VERSIONS[0], strict=True)


@pytest.mark.parametrize("more", [[], RICH, ["--preset", "tensorflow"]], ids=["small", "rich", "tensorflow"])
def test_jobset_and_kubernetes_take_the_jobset(more):
    job_set = only("JobSet", "--jobset", *more)
    # The model drops what it does not know, so a misspelt field would be missing.
    assert JobsetV1alpha2JobSet.from_dict(job_set).to_dict() == job_set
    for replicated in job_set["spec"]["replicatedJobs"]:
        job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "x"}, **replicated["template"]}
        for version in VERSIONS:
            kubernetes_validate.validate(job, version, strict=True)


def containers(job):
    spec = job["spec"]["template"]["spec"]
    return {one["name"]: one for one in [*spec.get("initContainers", []), *spec["containers"]]}


def test_secrets_are_files_and_appear_in_no_command_line():
    job = only("Job", "--tls-secret", "certificates")
    for container in containers(job).values():
        assert {"name": "tls", "mountPath": "/etc/muster/tls", "readOnly": True} in container["volumeMounts"]
        assert not any("password" in word or "/etc/muster" in word for word in container["command"])


def test_the_pods_of_service_and_jobs_have_the_labels_that_it_selects():
    documents = manifests("--scheduler-job")
    service, scheduler, workers = (one for one in documents if one["kind"] in ("Service", "Job"))
    for job in (scheduler, workers):
        assert service["spec"]["selector"].items() <= job["spec"]["template"]["metadata"]["labels"].items()
        assert job["spec"]["template"]["spec"]["subdomain"] == service["metadata"]["name"]


@pytest.mark.parametrize("shape", [[], ["--scheduler-job"], ["--jobset"], ["--preset", "mpi"]], ids=str)
def test_each_job_has_a_token_of_its_own_in_a_secret_that_its_pods_mount(shape):
    first, second = only("Secret", *shape), only("Secret", *shape)
    tokens = {one["stringData"]["token"] for one in (first, second)}
    assert len(tokens) == 2 and all(re.fullmatch("[0-9a-f]{64}", token) for token in tokens)
    assert first["immutable"], "pods that are started again find what the others have"
    documents = manifests(*shape)
    text = json.dumps([one for one in documents if one["kind"] != "Secret"])
    (secret,) = (one for one in documents if one["kind"] == "Secret")
    assert secret["stringData"]["token"] not in text
    name = secret["metadata"]["name"]
    assert text.count(f'"secretName": "{name}"') == text.count('"volumes": ')
    assert text.count('{"name": "MUSTER_TOKEN_FILE"') == text.count(
        '"command": ["muster", "run"'
    ) + text.count('"command": ["muster", "sidecar"')


@pytest.mark.parametrize("shape", [[], ["--scheduler-job"], ["--jobset"], ["--tls-secret", "t"]], ids=str)
def test_only_pods_of_the_job_reach_its_pods(shape):
    policy = only("NetworkPolicy", *shape)["spec"]
    assert policy["policyTypes"] == ["Ingress"], "names and data are found outside"
    (rule,) = policy["ingress"]
    assert rule == {"from": [{"podSelector": policy["podSelector"]}]}
    selected = policy["podSelector"]["matchLabels"]
    assert selected["app.kubernetes.io/instance"] == "train"
    templates = re.findall(r'"template": \{"metadata": \{"labels": (\{.*?\})', json.dumps(manifests(*shape)))
    assert templates and all(selected.items() <= json.loads(labels).items() for labels in templates)


def test_an_open_job_has_neither(tmp_path):
    kinds = [document["kind"] for document in manifests("--open")]
    assert kinds == ["Service", "Job"]
    (tmp_path / "job.toml").write_text('script = "train.py"\nopen = true\n')
    done = muster(*JOB, "--job", str(tmp_path / "job.toml"))
    assert done.stdout.count("kind:") == 2 and done.stdout.count("- --open") == 2


STRANGE = [
    *[
        "",
        "yes",
        "No",
        "null",
        "~",
        "1e3",
        "0x1f",
        "1_000",
        "12:30:45",
        "2001-01-01",
        ".5",
        "-1",
        "- a",
        "-",
        "--",
        "---",
    ],
    *[
        "a: b",
        "a #b",
        "#",
        "&a",
        "*a",
        "!a",
        "{a}",
        "[a]",
        "a,b",
        "%a",
        "@a",
        "`a",
        "'a'",
        '"a"',
        "a\\ud83db",
        "\\",
    ],
    *[
        " a",
        "a ",
        "a\nb",
        "a\tb",
        "a\u0085b\u2028c\ufeffd\x7fe",
        "火",
        "🚀 and 🜁",
        "a:",
        "--flag",
        "-x",
        "=",
        "<<",
    ],
]


def test_yaml_says_the_same_as_json_whatever_the_arguments():
    yaml_text = muster(*JOB, "--token-secret", "token", "run", *STRANGE).stdout
    json_text = muster(*JOB, "--token-secret", "token", "--json", "run", *STRANGE).stdout
    as_json = json.loads(json_text)["items"]
    assert list(yaml.safe_load_all(yaml_text)) == as_json
    assert containers(as_json[-1])["worker"]["command"][-len(STRANGE) :] == STRANGE


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--env", "A"], "--env 'A': say it like NAME=VALUE"),
        (["--env", "A=1", "--env", "A=2"], "--env 'A=2': A is given twice"),
        (["--volume", "data"], "--volume 'data': say it like claim:/data or claim:/data:ro"),
        (["--volume", "data::ro"], "--volume 'data::ro': say it like claim:/data or claim:/data:ro"),
        (
            ["--jobset", "--scheduler-job"],
            "--jobset and --scheduler-job: in a JobSet the scheduler has a Job",
        ),
        (["--nodes", "2"], "there is no option '--nodes'"),
        (["-n", "0"], "-n 0: a whole number from 1 to 16384 is allowed"),
    ],
)
def test_a_command_line_that_cannot_be_used_says_what_to_do(arguments, message):
    done = muster(*JOB, *arguments, *SCRIPT)
    assert done.returncode == 2
    assert done.stderr.startswith(f"muster k8s: {message}")


JOB_FILE = """
preset = "pytorch"
script = "train.py"
arguments = ["--epochs", "3"]
hosts = ["a:4", "b:4"]
style = "env"
preload = ["torch", "torch._dynamo"]
port = 29500

[environment]
SEED = "7"
MODE = "file"
"""


def test_a_job_file_says_what_flags_do_not(tmp_path):
    (tmp_path / "job.toml").write_text(JOB_FILE)
    done = muster(*JOB, "--job", str(tmp_path / "job.toml"), "--env", "MODE=flag", "--port", "29501")
    assert done.returncode == 0, done.stderr
    *_, job = yaml.safe_load_all(done.stdout)
    assert job["spec"]["completions"] == 2
    worker = containers(job)["worker"]
    assert worker["command"] == [
        *["muster", "run", "--preset", "pytorch", "--style", "env", "--preload", "torch,torch._dynamo"],
        *["--nnodes", "2", "-n", "4"],
        *["--scheduler", "train-0.train:29501", "--log-dir", "/var/log/muster", "train.py", "--epochs", "3"],
    ]
    values = {variable["name"]: variable["value"] for variable in worker["env"]}
    assert (values["SEED"], values["MODE"]) == ("7", "flag")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('hosts = ["a:4", "b:2"]', r"with 4.*2 slots.*alike.*-n"),
        (
            'scheduler = "a:8118"',
            r"'scheduler'.*pods.*--port",
        ),
        ('token_file = "token"', r"'token_file'.*--token-secret.*holds"),
        ("slotz = 4", "slotz"),
    ],
)
def test_a_job_file_that_pods_cannot_follow_says_why(tmp_path, text, message):
    (tmp_path / "job.toml").write_text(text + "\n")
    done = muster(*JOB, "--job", str(tmp_path / "job.toml"), *SCRIPT)
    assert done.returncode == 2
    assert re.search(message, done.stderr)


# ---- muster sidecar --------------------------------------------------------------------------------------


@pytest.fixture
def sidecar(tmp_path):
    """A side container whose command says that it runs, and ends with the code that a pipe brings."""
    os.mkfifo(tmp_path / "end")
    script = f'echo runs; read code <"{tmp_path}/end"; echo ends; exit "$code"'
    process = subprocess.Popen(
        [str(PROGRAM), "sidecar", "sh", "-c", script],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "runs\n"
    yield process, lambda code: (tmp_path / "end").write_text(f"{code}\n")
    process.kill()
    process.communicate()


def test_a_sidecar_that_is_told_to_end_lets_its_command_finish(sidecar):
    process, end = sidecar
    process.send_signal(signal.SIGTERM)
    end(0)  # nobody would read this, were the command gone
    assert process.stdout.readline() == "ends\n"
    assert process.wait(timeout=30) == 0


def test_a_sidecar_whose_command_has_ended_well_stays_until_it_is_told(sidecar):
    process, end = sidecar
    end(0)
    assert process.stdout.readline() == "ends\n"
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(timeout=0.5)
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=30) == 0


def test_a_sidecar_whose_command_failed_ends_with_its_code_so_that_it_is_started_again(sidecar):
    process, end = sidecar
    end(69)
    assert process.wait(timeout=30) == 69


def test_a_sidecar_says_what_cannot_be_started():
    done = muster("sidecar", "./none")
    assert done.returncode == 127
    assert done.stderr == "muster sidecar: cannot start './none': No such file or directory\n"


def test_status_for_a_probe_is_well_in_the_pods_of_other_indexes(monkeypatch):
    monkeypatch.setenv("JOB_COMPLETION_INDEX", "1")
    assert muster("status", "--scheduler", "127.0.0.1:1", "--only-index", "0").returncode == 0
    monkeypatch.setenv("JOB_COMPLETION_INDEX", "0")
    assert muster("status", "--scheduler", "127.0.0.1:1", "--only-index", "0").returncode == 1
