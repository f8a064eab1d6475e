"""`muster ranktable`: tables are made, put together and checked."""

import json
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "build/apps/muster/muster"
HCCN_CONF = "address_0=192.168.1.8\nnetmask_0=255.255.255.0\naddress_1=192.168.1.9\n"


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def ranktable(*arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [str(PROGRAM), "ranktable", *arguments], capture_output=True, text=True, timeout=60, check=False
    )


def ranks(table: dict) -> list[tuple[str, str, str, str | None]]:
    return [
        (device["rank_id"], server["server_id"], device["device_id"], device.get("device_ip"))
        for server in table["server_list"]
        for device in server["device"]
    ]


def test_make_prints_a_table_of_this_server(folder):
    done = ranktable("make", "--server", "a", "--devices", "0-2", "--hccn-conf", "/dev/null")
    assert done.returncode == 0, done.stderr
    table = json.loads(done.stdout)
    assert {name: table[name] for name in ("version", "status", "server_count")} == {
        **{"version": "1.0", "status": "completed", "server_count": "1"},
    }
    assert ranks(table) == [("0", "a", "0", None), ("1", "a", "1", None), ("2", "a", "2", None)]


def test_make_takes_cards_and_their_addresses_from_the_servers_configuration(folder):
    (folder / "hccn.conf").write_text(HCCN_CONF)
    done = ranktable("make", "--server", "a", "--hccn-conf", "hccn.conf")
    assert ranks(json.loads(done.stdout)) == [("0", "a", "0", "192.168.1.8"), ("1", "a", "1", "192.168.1.9")]
    one = ranktable("make", "--server", "a", "--hccn-conf", "hccn.conf", "--devices", "1")
    assert ranks(json.loads(one.stdout)) == [("0", "a", "1", "192.168.1.9")]


def test_tables_of_single_servers_are_merged_with_ranks_that_count_on(folder):
    for index in range(2):
        (folder / "hccn.conf").write_text(HCCN_CONF.replace(".1.", f".{index}."))
        made = ranktable(
            "make", "--server", f"s{index}", "--hccn-conf", "hccn.conf", "--out", f"{index}.json"
        )
        assert made.stdout == f"{index}.json: servers: 1, devices: 2\n"
    merged = ranktable("merge", "1.json", "0.json", "--out", "both.json")
    assert merged.stdout == "both.json: servers: 2, devices: 4\n"
    assert ranktable("check", "both.json").stdout.splitlines() == [
        "both.json: servers: 2, devices: 4",
        "server 0: s1",
        "  rank 0     card 0    192.168.1.8",
        "  rank 1     card 1    192.168.1.9",
        "server 1: s0",
        "  rank 2     card 0    192.168.0.8",
        "  rank 3     card 1    192.168.0.9",
    ]


def test_make_writes_a_table_of_several_servers_whose_addresses_are_known(folder):
    done = ranktable("make", "--server", "a=10.1.0.1,10.1.0.2", "--server", "b=10.1.1.1,10.1.1.2")
    assert ranks(json.loads(done.stdout)) == [
        ("0", "a", "0", "10.1.0.1"),
        ("1", "a", "1", "10.1.0.2"),
        ("2", "b", "0", "10.1.1.1"),
        ("3", "b", "1", "10.1.1.2"),
    ]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (
            ["make", "--hccn-conf", "/dev/null"],
            "muster ranktable make: /dev/null names no cards: say which there are, for example --devices 0-7",
        ),
        (
            ["make", "--hccn-conf", "absent", "--devices", "0"],
            "muster ranktable make: cannot open 'absent': No such file or directory",
        ),
        (
            ["make", "--hccn-conf", "hccn.conf", "--devices", "0-2"],
            "muster ranktable make: --devices 0-2: hccn.conf has no address of card 2",
        ),
        (
            ["make", "--devices", "seven"],
            "muster ranktable make: 'seven': cards are numbers from 0 to 4095, such as 0-7 or 0,2,4-5",
        ),
        (
            ["make", "--server", "a", "--server", "b"],
            "muster ranktable make: --server a: with several servers each names its cards' addresses, for "
            "example a=192.168.1.8,192.168.1.9",
        ),
        (
            ["make", "--server", "a="],
            "muster ranktable make: --server a=: the address of a card is missing: each card has one, for "
            "example a=192.168.1.8,192.168.1.9",
        ),
        (
            ["make", "--server", "a=here"],
            "muster ranktable make: this table: server_list[0].device[0]: 'device_ip' is 'here', and no IP "
            "address",
        ),
        (
            ["merge", "good.json", "good.json"],
            "muster ranktable merge: this table: server_list[0] and server_list[1] have the same server_id "
            "'a'",
        ),
        (["check", "absent"], "muster ranktable check: cannot open 'absent': No such file or directory"),
        (
            ["check", "bad.json"],
            'muster ranktable check: bad.json: \'status\' is missing, for example "status": "completed"',
        ),
    ],
)
def test_what_is_wrong_is_named(folder, arguments, complaint):
    (folder / "hccn.conf").write_text(HCCN_CONF)
    (folder / "bad.json").write_text('{"version": "1.0"}')
    made = ranktable("make", "--server", "a=10.0.0.1", "--out", "good.json")
    assert made.returncode == 0, made.stderr
    refused = ranktable(*arguments)
    assert (refused.returncode, refused.stderr, refused.stdout) == (2, complaint + "\n", "")
