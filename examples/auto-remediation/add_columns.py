"""Give the target the columns that only the source has."""

from dalsegno import Lake

with Lake.open() as lake:
    catalog = lake.catalog("lake").pyiceberg
    source, target = (catalog.load_table(f"media.{name}") for name in ("playback", "playback_copy"))
    with target.update_schema() as update:
        update.union_by_name(source.schema())
    print("The columns are now:", ", ".join(target.schema().column_names))
