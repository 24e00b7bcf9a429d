"""Texts made to do harm: each ends with our own refusal or a workflow, in a process that must live through all."""

from __future__ import annotations

import subprocess
import sys

import pytest

BOMB = "a0: &a0 [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 30)
)
STEPS = "".join(f"    - job: {{id: s{n}, type: NoOp}}\n" for n in range(3000))
RING = ", ".join(f"s{n}: s{(n + 1) % 3000}" for n in range(3000))

CORPUS = {
    "deep lists": "[" * 100_000,
    "deep mappings": '{"a":' * 100_000,
    "deep flow": "{a: " * 100_000,
    "deep blocks": "".join(f"{' ' * n}a:\n" for n in range(1200)),
    "deep dashes": "- " * 100_000,
    "closed and deep": "[" * 5000 + "]" * 5000,
    "large": "a: " + "x" * 10_000_000,
    "large integer": "Workflow: {id: w, x: " + "9" * 100_000 + ", jobs: [{job: {id: a, type: NoOp}}]}",
    "large integer in JSON": '{"workflow": ' + "9" * 100_000 + "}",
    "large float": '{"workflow": {"id": 1e999999}}',
    "billion laughs": BOMB,
    "endless alias": "a: &a [*a]",
    "keys twice": "a: 1\n" * 50_000,
    "tabs": "\t\t\tWorkflow:\t\n",
    "zeros": "\0" * 1000,
    "marks": "\ufeff" * 1000,
    "python": "!!python/object/apply:os.system ['true']",
    "python key": "? !!python/name:os.system\n: x",
    "yaml 1.1": "yes: on\nno: off\n012: 12:30:45\n",
    "steps in a ring": f"Workflow:\n  id: w\n  jobs:\n{STEPS}  dag: {{{RING}}}\n",
    "everything follows everything": "Workflow:\n  id: w\n  jobs:\n"
    + STEPS
    + "  dag: "
    + " -> ".join([", ".join(f"s{n}" for n in range(300))] * 2),
    "a workflow that calls itself": "Workflow: {id: w, jobs: [{subworkflow: {id: w}}]}",
    "a long condition": "Workflow: {id: w, jobs: [{job: {id: a, type: NoOp, transition: ['IF "
    + "a:" * 100_000
    + "']}}]}",
    "a condition of colons": "Workflow: {id: w, jobs: [{job: {id: a, type: NoOp, transition: ['IF "
    + "a: " * 3900
    + "!']}}]}",
    "a chain of commas": "Workflow: {id: w, jobs: [{job: {id: a, type: NoOp}}], dag: ['" + "a," * 5000 + "']}",
    "a chain of arrows": "Workflow: {id: w, jobs: [{job: {id: a, type: NoOp}}], dag: ['" + "a ->" * 3000 + "']}",
    "a deep expression": "Workflow: {id: w, '!x': '" + "(" * 9000 + "', jobs: [{job: {id: a, type: NoOp}}]}",
    "a strange key": "Workflow: {id: w, '" + "<" * 50_000 + "': 1, jobs: [{job: {id: a, type: NoOp}}]}",
    "brackets in a key": "Workflow: {id: w, '" + "a(" * 50_000 + "': 1, jobs: [{job: {id: a, type: NoOp}}]}",
    "a strange schedule": "Trigger: {cron: '" + "*/1," * 50_000 + " * * * *'}\nWorkflow: {id: w, jobs: []}",
    "a strange zone": "Trigger: {cron: '@daily', timezone: '../../../etc/passwd'}\nWorkflow: {id: w, jobs: []}",
    "a strange duration": "Workflow: {id: w, timeout: '" + "1d " * 50_000 + "x', jobs: []}",
    "many unknown steps": "Workflow:\n  id: w\n  jobs:\n"
    + STEPS
    + f"  dag: {{{', '.join(f't{n}: t' for n in range(20_000))}}}\n",
    "many unknown names": "Workflow: {id: w, "
    + ", ".join(f"prefix{n}: '${{prefixes{n}}}'" for n in range(10_000))
    + ", jobs: [{job: {id: a, type: NoOp}}]}",
    "many unknown fields": "id: w\nsteps:\n- step: {id: a, type: NoOp, "
    + ", ".join(f"typ{n}: 1" for n in range(20_000))
    + "}",
    "surrogates": '{"a": "\\ud800\\udc00\\ud800"}',
    "half a document": '{"workflow": {"steps": [{"step": {"id": "a"',
    "wrapped and never closed": "a:\n" + "  IF x\n" * 20_000,
    "null everywhere": "Workflow: {id: null, jobs: [null, {job: null}, {}], dag: [null], params: null}",
    "wrong kinds": "Workflow: {id: [], jobs: {a: 1}, dag: 5, tags: 7, timeout: {}, run_strategy: [], params: x}",
    "many anchors": "".join(f"a{n}: &a{n} x\n" for n in range(20_000)),
}

CHILD = """
import sys
from dalsegno.errors import InvalidWorkflow
from dalsegno.spec.workflows import read
text = sys.stdin.buffer.read()
try:
    read(text)
except InvalidWorkflow as error:
    assert error.problems
    assert all(each.line >= 1 and each.column >= 1 for each in error.problems), error.problems
    print("refused")
else:
    print("read")
"""


@pytest.mark.parametrize("name", CORPUS)
def test_a_child_lives_through_it(name: str) -> None:
    data = CORPUS[name].encode("utf-8", "surrogatepass")
    done = subprocess.run([sys.executable, "-c", CHILD], input=data, capture_output=True, timeout=30, check=False)
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    assert done.stdout.strip() in {b"refused", b"read"}
