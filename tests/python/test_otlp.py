"""Numbers of a job at a collector of OpenTelemetry: OTLP over HTTP, as JSON, to a real server."""

import contextlib
import http.server
import json
import queue
import threading

import pytest
from job import PATIENCE, Process, clean_environment, free_port
from pages import MUSTER, TRAINS
from places import SEARCH_PATH


@contextlib.contextmanager
def collector(port=0, status=200):
    """Its port, and what comes: path, headers and body."""
    came = queue.Queue()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            came.put((self.path, dict(self.headers), json.loads(body)))
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_port, came
    finally:
        server.shutdown()
        server.server_close()


@contextlib.contextmanager
def job(folder, *options, **variables):
    (folder / "train.py").write_text(TRAINS)
    command = [MUSTER, "run", "-n", "2", "--log-dir", "logs", *options, "train.py"]
    environment = {
        **clean_environment(),
        "PATH": SEARCH_PATH,
        "OTEL_METRIC_EXPORT_INTERVAL": "200",
        **variables,
    }
    process = Process("run", ["env", "-C", str(folder), *command], environment)
    try:
        yield process
    finally:
        (folder / "end").touch()
        if process._popen.poll() is None:
            process.wait()


def numbers_in(body):
    """{(name, rank or ""): value}."""
    found = {}
    for metric in body["resourceMetrics"][0]["scopeMetrics"][0]["metrics"]:
        for point in metric["gauge"]["dataPoints"]:
            attributes = {each["key"]: each["value"]["stringValue"] for each in point["attributes"]}
            found[metric["name"], attributes.get("rank", "")] = point["asDouble"]
    return found


def wait_for_losses(came):
    while True:
        path, headers, body = came.get(timeout=PATIENCE)
        numbers = numbers_in(body)
        if ("muster_process_loss", "0") in numbers and ("muster_process_loss", "1") in numbers:
            return path, headers, body, numbers


def test_a_collector_gets_the_numbers_of_all_ranks(tmp_path):
    with (
        collector() as (port, came),
        job(
            tmp_path,
            OTEL_EXPORTER_OTLP_ENDPOINT=f"http://127.0.0.1:{port}",
            OTEL_EXPORTER_OTLP_HEADERS="x-key=secret",
            OTEL_SERVICE_NAME="digits",
        ),
    ):
        path, headers, body, numbers = wait_for_losses(came)
        assert path == "/v1/metrics"
        assert headers["Content-Type"] == "application/json"
        assert headers["x-key"] == "secret"
        attributes = body["resourceMetrics"][0]["resource"]["attributes"]
        assert {"key": "service.name", "value": {"stringValue": "digits"}} in attributes
        assert numbers["muster_up", ""] == 1
        assert numbers["muster_process_step", "0"] > 0
        assert numbers["muster_process_memory_bytes", "1"] > 1 << 20


def test_the_page_exports_as_well(tmp_path):
    with (
        collector() as (port, came),
        job(tmp_path, "--dashboard", OTEL_EXPORTER_OTLP_METRICS_ENDPOINT=f"http://127.0.0.1:{port}/here"),
    ):
        assert wait_for_losses(came)[0] == "/here"


def test_a_collector_that_is_not_there_is_told_of_once_and_found_later(tmp_path):
    port = free_port()
    with job(tmp_path, OTEL_EXPORTER_OTLP_ENDPOINT=f"http://127.0.0.1:{port}") as process:
        process.wait_for_line(
            rf"numbers of this job do not reach http://127.0.0.1:{port}/v1/metrics: .*refused"
        )
        with collector(port) as (_, came):
            wait_for_losses(came)
        (tmp_path / "end").touch()
        assert process.wait() == 0
        assert process.output().count("do not reach") <= 2  # once before the collector, once behind it


def test_a_collector_that_refuses_is_told_of_with_its_answer(tmp_path):
    with (
        collector(status=403) as (port, _),
        job(tmp_path, OTEL_EXPORTER_OTLP_ENDPOINT=f"http://127.0.0.1:{port}") as process,
    ):
        process.wait_for_line("do not reach .*: it answers 'HTTP/1.0 403 Forbidden'")


@pytest.mark.parametrize(
    ("variables", "told"),
    [
        (
            {"OTEL_EXPORTER_OTLP_ENDPOINT": "https://collector:4318"},
            "OTEL_EXPORTER_OTLP_ENDPOINT=https://collector:4318: only http://",
        ),
        (
            {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4317", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"},
            "OTEL_EXPORTER_OTLP_PROTOCOL=grpc: metrics go over HTTP as JSON",
        ),
    ],
)
def test_a_variable_of_the_platform_that_cannot_be_followed_is_named_and_the_job_runs(
    tmp_path, variables, told
):
    (tmp_path / "end").touch()
    with job(tmp_path, **variables) as process:
        assert process.wait() == 0
        assert f"muster warning: no numbers are sent by OpenTelemetry: {told}" in process.output()
