"""The same from Airflow 3, in two ways: three tasks around a job of your own, or one task that runs a workflow.

Put it into the folder of your DAGs; dalsegno's commands must be on the workers' path.
"""

from datetime import UTC, datetime, timedelta

from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import DAG

FOLDER = "/srv/lake"
#: A capture that is repeated hands out the same range, and a commit that is repeated changes nothing.
SAFE_TO_REPEAT = {"retries": 5, "retry_delay": timedelta(minutes=2), "cwd": FOLDER}
# The last line that a task prints is handed to the next one. With nothing new it ends with 99: skip what follows.
CAPTURE = """
set -o pipefail
dalsegno capture media.playback --consumer nightly --changes before_after --key id --json |
    python -c 'import json, sys; print(json.load(sys.stdin)["capture"] or sys.exit(99))'
"""
PROCESS = """
dalsegno query "$CAPTURE" --engine duckdb > "changes-$CAPTURE.sql" && python process.py "changes-$CAPTURE.sql"
"""

# One run at a time: two would be given the same capture, and both would process it.
with DAG(
    "playback_tasks", schedule="@daily", start_date=datetime(2026, 1, 1, tzinfo=UTC), catchup=False, max_active_runs=1
):
    capture = BashOperator(task_id="capture", bash_command=CAPTURE, skip_on_exit_code=99, **SAFE_TO_REPEAT)
    named = {"env": {"CAPTURE": "{{ ti.xcom_pull(task_ids='capture') }}"}, "append_env": True}
    process = BashOperator(task_id="process", bash_command=PROCESS, cwd=FOLDER, **named)
    commit = BashOperator(task_id="commit", bash_command='dalsegno commit "$CAPTURE"', **named, **SAFE_TO_REPEAT)
    capture >> process >> commit

# The run's own key: if Airflow repeats the task, it is the same run of the workflow, not another one.
with DAG(
    "playback_workflow",
    schedule="@daily",
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
):
    BashOperator(
        task_id="seconds_by_day",
        bash_command='dalsegno run seconds.yaml --key "$RUN"',
        env={"RUN": "{{ run_id }}"},
        append_env=True,
        **SAFE_TO_REPEAT,
    )
