"""Random histories of a table: everything that writers, maintenance and people do to one, through real Spark.

A history is made by its seed alone, so one that failed is told again by its number.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from tests.iceberg.row_deltas import row_delta
from tests.iceberg.support import COPY_ON_WRITE, MERGE_MANIFESTS, MERGE_ON_READ, NAMESPACE, Place, Source
from tests.iceberg.told_values import KINDS, ODD_NAMES, extreme, readable

_COLUMNS = "id bigint, day string, v int, f float, d decimal(5, 2)"
_SPECS = ["", "day", "bucket(2, id)", "day, bucket(2, id)", "d", "f", "truncate(10, v)"]
_PER_PARTITION = MERGE_ON_READ | {"write.delete.granularity": "partition"}
_KINDS = [(1, COPY_ON_WRITE), (2, COPY_ON_WRITE), (2, MERGE_ON_READ), (2, _PER_PARTITION)]
_KINDS += [(3, COPY_ON_WRITE), (3, MERGE_ON_READ)]

#: What Spark calls a type that Iceberg calls otherwise.
_SPARK_NAMES = {"long": "bigint", "timestamp": "timestamp_ntz", "timestamptz": "timestamp"}

#: A row by the ids of its columns, which stay when a column is renamed or widened.
FieldRow = tuple[tuple[int, Any], ...]


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


@dataclass
class Told:
    """A table whose history is being made."""

    source: Source
    chance: random.Random
    steps: list[str] = field(default_factory=list)
    #: Snapshots from before the table was replaced by one that cannot read them, and whether a capture must refuse.
    behind: set[int] = field(default_factory=set)
    is_retyped: bool = False
    _states: dict[tuple[int | None, int], Counter[FieldRow]] = field(default_factory=dict)
    _names: int = 0

    @classmethod
    def begun(cls, place: Place, seed: int) -> Told:
        chance = random.Random(seed)
        version, modes = _KINDS[seed % len(_KINDS)]
        merging = MERGE_MANIFESTS if chance.random() < 0.5 else {}
        more = [f", e{number} {chance.choice(KINDS)}" for number in range(chance.randint(0, 3))]
        source = place.table(
            _COLUMNS + "".join(more),
            partitioned=chance.choice(_SPECS),
            version=version,
            properties=dict(modes) | merging,
        )
        told = cls(source, chance)
        append(told)
        return told

    # What the table is like.

    @property
    def fields(self) -> list[dict[str, Any]]:
        metadata = self.source.metadata
        schemas = {raw["schema-id"]: raw for raw in metadata["schemas"]}
        found: list[dict[str, Any]] = schemas[metadata["current-schema-id"]]["fields"]
        return found

    def state(self) -> tuple[Counter[FieldRow], list[int]]:
        """The rows of the table as they are now, read by Spark, and the ids of its columns."""
        metadata = self.source.metadata
        ids = [raw["id"] for raw in self.fields]
        key = (metadata.get("current-snapshot-id"), metadata["current-schema-id"])
        if key not in self._states:
            shown = ", ".join(readable(raw["name"], raw["type"]) for raw in self.fields)
            found = self.source.rows(f"select {shown} from {{t}}")
            self._states[key] = Counter({tuple(zip(ids, row, strict=True)): times for row, times in found.items()})
        return self._states[key], ids

    def column(self, field_id: int) -> str:
        return str(next(raw["name"] for raw in self.fields if raw["id"] == field_id))

    @property
    def snapshots(self) -> list[int]:
        """Those that the table can still be set to."""
        return [id_ for raw in self.source.metadata["snapshots"] if (id_ := raw["snapshot-id"]) not in self.behind]

    @property
    def line(self) -> list[int]:
        """The snapshots that lead to the head, newest first."""
        metadata = self.source.metadata
        parents = {raw["snapshot-id"]: raw.get("parent-snapshot-id") for raw in metadata["snapshots"]}
        found: list[int] = []
        at = metadata.get("current-snapshot-id")
        while at is not None and at in parents:
            found.append(at)
            at = parents[at]
        return found

    # What is done to it.

    def fresh_name(self) -> str:
        self._names += 1
        return f"c{self._names}"

    def odd_name(self) -> str:
        """One that needs quotes, which it has; or an ordinary one."""
        name = self.fresh_name()
        return quoted(self.chance.choice(ODD_NAMES).format(name)) if self.chance.random() < 0.3 else name

    def sql(self, statement: str) -> None:
        self.source.sql(statement)

    def go_on(self) -> None:
        """One more step; one that Iceberg refuses in this state of the table is no step."""
        name = self.chance.choices(list(_STEPS), [weight for weight, _ in _STEPS.values()])[0]
        self.steps.append(name)
        try:
            _STEPS[name][1](self)
        except (PySparkException, Py4JJavaError) as error:
            self.steps[-1] += f" (refused: {str(error).splitlines()[0][:80]})"

    def literal(self, raw: dict[str, Any]) -> str:
        kind, number = raw["type"], self.chance.randint(0, 30)
        if not raw["required"] and raw["id"] > 2 and self.chance.random() < (0.3 if raw["id"] > 5 else 0.1):
            return "null"
        if not isinstance(kind, str):
            return f"array({number % 3}, null)" if kind["type"] == "list" else f"struct({number % 3} as a, 'x' as b)"
        is_extreme = raw["id"] > 2 and self.chance.random() < 0.3
        found = {
            "string": f"d{number % 4}",
            "int": str(number),
            "long": str(number),
            "float": self.chance.choice(["1.5", "2.5", "nan"]),
            "double": self.chance.choice(["1.5", "2.5", "nan"]),
        }.get(kind, f"{number % 3}.25" if kind.startswith("decimal") else None)
        literal = extreme(kind, self.chance) if is_extreme or found is None else f"'{found}'"
        return f"cast({literal} as {_SPARK_NAMES.get(kind, kind)})"

    def values(self, rows: int) -> str:
        fields = self.fields
        return ", ".join(f"({', '.join(map(self.literal, fields))})" for _ in range(rows))


def append(told: Told) -> None:
    told.sql(f"insert into {{t}} values {told.values(told.chance.randint(1, 8))}")


def update(told: Told) -> None:
    changed = told.chance.choice([raw for raw in told.fields if raw["id"] != 1])
    divisor = told.chance.choice([2, 5, 7])
    told.sql(
        f"update {{t}} set {quoted(changed['name'])} = {told.literal(changed)} where {told.column(1)} % {divisor} = 1"
    )


def delete(told: Told) -> None:
    told.sql(f"delete from {{t}} where {told.column(1)} % 7 = {told.chance.randint(0, 6)}")


def delete_a_day(told: Told) -> None:
    told.sql(f"delete from {{t}} where {told.column(2)} = 'd{told.chance.randint(0, 3)}'")


def merge(told: Told) -> None:
    names = [quoted(raw["name"]) for raw in told.fields]
    key, moved = names[0], f"`{told.column(2)}`"
    source = f"(select * from values {told.values(4)} as s({', '.join(names)}))"
    # Of several rows with one key, one is taken: MERGE refuses more.
    numbered = f"select *, row_number() over (partition by {key} order by {moved}) as n from {source}"
    first = f"(select * from ({numbered}) where n = 1)"
    told.sql(
        f"merge into {{t}} t using {first} s on t.{key} = s.{key} when matched and t.{key} % 3 = 0 then delete "
        f"when matched then update set {', '.join(f't.{name} = s.{name}' for name in names[1:])} "
        f"when not matched then insert ({', '.join(names)}) values ({', '.join(f's.{name}' for name in names)})"
    )


def overwrite(told: Told) -> None:
    mode = told.chance.choice(["static", "dynamic", "dynamic"])
    told.source.place.spark.conf.set("spark.sql.sources.partitionOverwriteMode", mode)
    told.sql(f"insert overwrite {{t}} values {told.values(3)}")
    told.source.place.spark.conf.unset("spark.sql.sources.partitionOverwriteMode")


def upsert(told: Told) -> None:
    """As Flink does: delete by key, and insert again in the same commit."""
    metadata = told.source.metadata
    specs = {spec["spec-id"]: spec["fields"] for spec in metadata["partition-specs"]}
    global_ones = [spec_id for spec_id, fields in specs.items() if not fields]
    by_day = [
        id_ for id_, fields in specs.items() if [(f["source-id"], f["transform"]) for f in fields] == [(2, "identity")]
    ]
    if metadata["format-version"] == 1 or not (global_ones or by_day) or any(raw["required"] for raw in told.fields):
        return
    spec_id = told.chance.choice(global_ones + by_day)
    day = f"d{told.chance.randint(0, 3)}"
    partition = "" if spec_id in global_ones else f"{specs[spec_id][0]['name']}={day}"
    keys = told.chance.sample(range(31), k=5)
    kept = tuple(key for key in keys if told.chance.random() < 0.5)
    filled = {1: 0, 2: day}
    inserts = [tuple({**filled, 1: key}.get(raw["id"]) for raw in told.fields) for key in kept]
    # A data file of an older spec is as good as any.
    row_delta(
        told.source,
        deletes=[(key,) for key in keys],
        by=[told.column(1)],
        inserts=inserts,
        partition=partition,
        spec_id=spec_id,
    )


def compact(told: Told) -> None:
    told.source.place.call(f"rewrite_data_files(table => '{told.source.name}', options => map('rewrite-all', 'true'))")


def compact_what_needs_it(told: Told) -> None:
    """Only some files: those that delete files reach."""
    told.source.place.call(
        f"rewrite_data_files(table => '{told.source.name}', options => map('delete-file-threshold', '1', "
        "'min-input-files', '2'))"
    )


def rewrite_manifests(told: Told) -> None:
    told.source.place.call(f"rewrite_manifests('{told.source.name}')")


def rewrite_deletes(told: Told) -> None:
    told.source.place.call(
        f"rewrite_position_delete_files(table => '{told.source.name}', options => map('rewrite-all', 'true'))"
    )


def add_column(told: Told) -> None:
    kind = told.chance.choice(KINDS)
    told.sql(f"alter table {{t}} add column {told.odd_name()} {kind}")


def drop_column(told: Told) -> None:
    droppable = [raw for raw in told.fields if raw["id"] > 5]
    if droppable:
        told.sql(f"alter table {{t}} drop column {quoted(told.chance.choice(droppable)['name'])}")


def drop_and_add_again(told: Told) -> None:
    """The same name, but another column: values of the old one must not come back."""
    droppable = [raw for raw in told.fields if raw["id"] > 5 and raw["type"] == "int"]
    if droppable:
        name = told.chance.choice(droppable)["name"]
        told.sql(f"alter table {{t}} drop column {quoted(name)}")
        told.sql(f"alter table {{t}} add column {quoted(name)} int")


def rename_column(told: Told) -> None:
    chosen = told.chance.choice(told.fields)
    # Those that the other steps name are given plain names.
    name = told.fresh_name() if chosen["id"] <= 2 else told.odd_name()
    told.sql(f"alter table {{t}} rename column {quoted(chosen['name'])} to {name}")


def widen_column(told: Told) -> None:
    wider = {"int": "bigint", "float": "double", "decimal(5, 2)": "decimal(12, 2)", "decimal(4, 2)": "decimal(20, 2)"}
    narrow = [raw for raw in told.fields if isinstance(raw["type"], str) and raw["type"] in wider]
    if narrow:
        chosen = told.chance.choice(narrow)
        told.sql(f"alter table {{t}} alter column {quoted(chosen['name'])} type {wider[chosen['type']]}")


def change_spec(told: Told) -> None:
    metadata = told.source.metadata
    current = next(s for s in metadata["partition-specs"] if s["spec-id"] == metadata["default-spec-id"])["fields"]
    kept = [each for each in current if each["transform"] != "void"]
    if kept and told.chance.random() < 0.5:
        told.sql(f"alter table {{t}} drop partition field `{told.chance.choice(kept)['name']}`")
        return
    transforms = [
        f"bucket({told.chance.randint(2, 4)}, {told.column(1)})",
        told.column(2),
        f"truncate(2, {told.column(2)})",
    ]
    told.sql(f"alter table {{t}} add partition field {told.chance.choice(transforms)} as {told.fresh_name()}")


def upgrade(told: Told) -> None:
    version = told.source.metadata["format-version"]
    if version < 3:
        told.sql(f"alter table {{t}} set tblproperties ('format-version' = '{version + 1}')")


def roll_back(told: Told) -> None:
    if told.line:
        told.source.place.call(f"rollback_to_snapshot('{told.source.name}', {told.chance.choice(told.line[:4])})")


def set_current(told: Told) -> None:
    if told.snapshots:
        told.source.place.call(f"set_current_snapshot('{told.source.name}', {told.chance.choice(told.snapshots)})")


def cherry_pick(told: Told) -> None:
    line = told.line
    aside = [snapshot_id for snapshot_id in told.snapshots if snapshot_id not in line]
    if aside:
        told.source.place.call(f"cherrypick_snapshot('{told.source.name}', {told.chance.choice(aside)})")


def replace_table(told: Told) -> None:
    told.sql(
        f"create or replace table {{t}} using iceberg partitioned by (`{told.column(2)}`) "
        f"{_kept_properties(told)} as select * from {{t}} where {told.column(1)} % 4 > 0"
    )


def _kept_properties(told: Told) -> str:
    metadata = told.source.metadata
    kept = {key: value for key, value in metadata["properties"].items() if key.startswith(("write.", "commit."))}
    kept["format-version"] = str(metadata["format-version"])
    listed = ", ".join(f"'{key}' = '{value}'" for key, value in kept.items())
    return f"tblproperties ({listed})"


def _replace_by_empty(told: Told, changed: dict[int, str]) -> None:
    """The same columns, some of them of another type or with a promise more."""
    types = {row[0]: row[1] for row in told.source.place.sql(f"describe table {told.source.full}") if row[0]}
    columns = [f"{quoted(raw['name'])} {changed.get(raw['id'], types[raw['name']])}" for raw in told.fields]
    before = {raw["snapshot-id"] for raw in told.source.metadata["snapshots"]}
    told.sql(
        f"create or replace table {{t}} ({', '.join(columns)}) using iceberg partitioned by (`{told.column(2)}`) "
        f"{_kept_properties(told)}"
    )
    told.behind |= before if changed else set()


def replace_by_empty(told: Told) -> None:
    _replace_by_empty(told, {})
    if told.chance.random() < 0.5:
        append(told)


def replace_with_requirements(told: Told) -> None:
    """What may be null in the old files must not be in new ones."""
    kinds = {"int": "int", "long": "bigint", "float": "float", "double": "double", "string": "string"}
    plain = [raw for raw in told.fields if isinstance(raw["type"], str) and raw["type"] in kinds and raw["id"] != 2]
    chosen = told.chance.sample(plain, k=min(len(plain), 2))
    _replace_by_empty(told, {raw["id"]: f"{kinds[raw['type']]} not null" for raw in chosen})
    append(told)


def replace_with_types(told: Told) -> None:
    """The same names, but what is in the old files cannot be read as that."""
    others = {"int": "string", "long": "int", "float": "int", "double": "string", "string": "int", "date": "int"}
    plain = [raw for raw in told.fields if isinstance(raw["type"], str) and raw["type"] in others and raw["id"] > 2]
    if plain:
        chosen = told.chance.choice(plain)
        _replace_by_empty(told, {chosen["id"]: others[chosen["type"]]})
        told.is_retyped = True
        append(told)


def rename_table(told: Told) -> None:
    name = f"{NAMESPACE}.{told.fresh_name()}_{told.source.name.partition('.')[2]}"
    told.sql(f"alter table {{t}} rename to {name}")
    told.source = Source(told.source.place, name)


def add_a_file_again(told: Told) -> None:
    """As ``add_files`` does without its check. In version 3 the ids of rows would not be unique after a rewrite."""
    session: Any = told.source.place.spark
    jvm = session._jvm
    table = jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(session._jsparkSession, told.source.full)
    if told.source.metadata["format-version"] == 3:
        return
    planned, tasks = table.newScan().planFiles().iterator(), []
    while planned.hasNext():
        tasks.append(planned.next())
    # One that delete files reach would come back without them, as it was: that is a row more, too.
    if tasks:
        table.newAppend().appendFile(told.chance.choice(tasks).file()).commit()


def expire(told: Told) -> None:
    told.source.place.call(
        f"expire_snapshots(table => '{told.source.name}', older_than => timestamp '2100-01-01', retain_last => 1)"
    )


_STEPS: dict[str, tuple[int, Callable[[Told], None]]] = {
    "append": (5, append),
    "update": (4, update),
    "delete": (3, delete),
    "delete a day": (2, delete_a_day),
    "merge": (4, merge),
    "overwrite": (2, overwrite),
    "upsert": (5, upsert),
    "compact": (3, compact),
    "compact what needs it": (2, compact_what_needs_it),
    "rewrite manifests": (2, rewrite_manifests),
    "rewrite deletes": (2, rewrite_deletes),
    "add a column": (2, add_column),
    "drop a column": (1, drop_column),
    "drop a column and add it again": (1, drop_and_add_again),
    "rename a column": (1, rename_column),
    "widen a column": (2, widen_column),
    "change the spec": (2, change_spec),
    "upgrade": (1, upgrade),
    "roll back": (1, roll_back),
    "set current": (1, set_current),
    "cherry-pick": (1, cherry_pick),
    "replace the table": (1, replace_table),
    "replace it by an empty one": (1, replace_by_empty),
    "replace it by one with requirements": (1, replace_with_requirements),
    "replace it by one of other types": (1, replace_with_types),
    "rename the table": (2, rename_table),
    "add a file again": (2, add_a_file_again),
    "expire": (1, expire),
}
