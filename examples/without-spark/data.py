"""The data of a day: ``python data.py 1`` makes the tables and the first days, 2 and 3 come with late rows."""

import sys
from datetime import date

import pyarrow as pa
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import DateType, LongType, NestedField, StringType

from dalsegno import Lake

PLAYBACK = Schema(
    NestedField(1, "event_day", DateType()),
    NestedField(2, "title", StringType()),
    NestedField(3, "member", LongType()),
)
TITLES = Schema(
    NestedField(1, "event_day", DateType()),
    NestedField(2, "title", StringType()),
    NestedField(3, "plays", LongType()),
    NestedField(4, "members", LongType()),
)
BY_DAY = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "event_day"))
DAYS = {
    1: [(1, "Ran", 1), (1, "Ran", 2), (1, "Mirror", 1), (2, "Ran", 1), (2, "Solaris", 3)],
    # A new day; a day late, a member who is known and one who is not.
    2: [(3, "Ran", 1), (3, "Ran", 1), (2, "Ran", 1), (2, "Ran", 4)],
    # Two days late, a title that nobody has watched on that day.
    3: [(4, "Solaris", 1), (2, "Mirror", 2)],
}

number = int(sys.argv[1])
with Lake.open() as lake:
    catalog = lake.catalog("lake").pyiceberg
    if number == 1:
        catalog.create_namespace("media")
        catalog.create_table("media.playback", PLAYBACK, partition_spec=BY_DAY)
        catalog.create_table("media.titles_by_day", TITLES, partition_spec=BY_DAY)
    rows = [{"event_day": date(2026, 11, day), "title": title, "member": member} for day, title, member in DAYS[number]]
    catalog.load_table("media.playback").append(pa.Table.from_pylist(rows, schema=PLAYBACK.as_arrow()))
    print(len(rows), "rows")
