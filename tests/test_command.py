"""External programs: how points go in, how numbers come out, and how a program may fail."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fewdim import CommandError, Journal, command, minimize

X = np.array([3.0, -4.0, 0.1])
PY = sys.executable


@pytest.mark.parametrize(
    ("point", "read"),
    [
        ("npy", "numpy.load(p).tolist()"),
        ("csv", "[float(line) for line in open(p)]"),
        ("json", "json.load(open(p))"),
    ],
)
def test_points_arrive_to_the_last_digit(point: Any, read: str) -> None:
    code = f"import json, numpy, sys; p = sys.argv[1]; x = {read}; print('noise'); print(repr(sum(v * v for v in x)))"
    assert command([PY, "-c", code, "{point}"], point=point)(X) == sum(v * v for v in X.tolist())


def test_a_template(tmp_path: Path) -> None:
    template = tmp_path / "deck.txt"
    template.write_text("a {x[2]} {keep} {x[0]}\n")
    code = "import sys; text = open(sys.argv[1]).read(); assert '{keep}' in text; print(text.split()[1])"
    assert command([PY, "-c", code, "{point}"], template=template)(X) == 0.1
    (tmp_path / "deck.txt").write_text("{x[3]}")
    with pytest.raises(CommandError, match=r"asks for x\[3\] of a point of 3"):
        command([PY, "-c", code, "{point}"], template=template)(X)


def test_where_the_number_is() -> None:
    write = "import sys; open(sys.argv[1], 'w').write('7.5\\n')"
    assert command([PY, "-c", write, "{value}"])(X) == 7.5
    assert command([PY, "-c", 'print(\'{"a": {"b": 2}}\')'], key="a.b")(X) == 2.0
    assert command([PY, "-c", "print('loss = 1e-3; loss = 2e-3 done')"], pattern=r"loss = (\S+)")(X) == 2e-3
    assert command(f'{PY} -c "print(4)"')(X) == 4.0


def test_files_beside_the_program(tmp_path: Path) -> None:
    (tmp_path / "data.txt").write_text("11")
    assert command([PY, "-c", "print(open('data.txt').read())"], files=[tmp_path / "data.txt"])(X) == 11


FAILURES: list[tuple[str, dict[str, Any], str]] = [
    ("import sys; print('why', file=sys.stderr); sys.exit(3)", {}, "exit code 3; stderr ends: why"),
    ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", {}, "exit code -9; nothing on stderr"),
    ("print('hello')", {}, "no number: could not convert string to float: 'hello'; output ends: hello"),
    ("pass", {}, "no number: "),
    ("print('{}')", {"key": "a"}, "no number: 'a'"),
    ("print('x')", {"pattern": "y(.)"}, "nothing matches 'y"),
    ("pass", {"value": "file"}, "wrote no file"),
    ("import sys; sys.stdout.buffer.write(bytes(range(256)))", {}, "no number"),
]


@pytest.mark.parametrize(("code", "arguments", "message"), FAILURES, ids=[item[0] for item in FAILURES])
def test_failures_say_why(code: str, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(CommandError) as caught:
        command([PY, "-c", code], **arguments)(X)
    assert message in str(caught.value)


@pytest.mark.skipif(os.name != "posix", reason="needs process groups")
def test_a_timeout_ends_the_program_and_its_children(tmp_path: Path) -> None:
    code = f"import subprocess; subprocess.run(['sh', '-c', 'echo $$ > {tmp_path}/pid; sleep 100'])"
    start = time.monotonic()
    with pytest.raises(CommandError, match=r"no end within timeout=1\.5 seconds"):
        command([PY, "-c", code], timeout=1.5)(X)
    assert time.monotonic() - start < 20
    pid = int((tmp_path / "pid").read_text())
    time.sleep(0.2)
    state = Path(f"/proc/{pid}/stat")
    assert not state.exists() or state.read_text().rsplit(")")[-1].split()[0] == "Z"


def test_nothing_is_pasted_into_a_shell(tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    assert command(["echo", f"$(touch {flag}); touch {flag}\n5"])(X) == 5.0
    assert not flag.exists()
    assert command("wc -l < $POINT", shell=True, point="csv")(X) == 3
    assert command("echo 2 > $VALUE", shell=True)(X) == 2
    with pytest.raises(ValueError, match=r"command\(shell=True\) takes one string and \$POINT"):
        command("cat {point}", shell=True)


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"program": []}, r"program=...\) must name a program; got \[\]"),
    ({"program": "a", "point": "xml"}, r"command\(point=...\) must be one of 'npy', 'csv', 'json'; got 'xml'"),
    ({"program": "a", "value": "tape"}, r"command\(value=...\) must be one of"),
    ({"program": "a", "timeout": 0}, r"command\(timeout=...\) must be a positive number; got 0"),
    ({"program": "a", "pattern": "a"}, r"command\(pattern=...\) must capture one group; got 'a'"),
    ({"program": "a", "pattern": "(a)", "key": "a"}, r"takes one of them"),
]


@pytest.mark.parametrize(("arguments", "message"), WRONG, ids=[str(item[0]) for item in WRONG])
def test_wrong_arguments(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        command(**arguments)


def test_failures_reach_the_journal(tmp_path: Path) -> None:
    code = (
        "import json, sys; x = json.load(open(sys.argv[1]))\n"
        "if int(abs(x[0]) * 1e6) % 5 == 1: sys.exit('the mesh is tangled')\n"
        "print(repr(sum((v - 1) ** 2 for v in x)))"
    )
    fun = command([PY, "-S", "-c", code, "{point}"], point="json")
    path = tmp_path / "run.db"
    result = minimize(fun, X, method="random-pursuit", rng=1, maxfev=25, journal=path)
    again = minimize(fun, X, method="random-pursuit", rng=1, maxfev=30, workers=2, journal=path)
    assert result.nfail > 0
    assert "exit code 1; stderr ends: the mesh is tangled" in Journal(path).failures[0].message
    assert again.nfev == 30
    assert Journal(path).description["problem"].startswith(PY)
