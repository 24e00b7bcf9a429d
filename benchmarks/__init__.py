"""Measurements, each a program of its own: ``python -m benchmarks.capture``.

capture     what is measured and in which order
ours        dalsegno
one_by_one  the same through PyIceberg, file by file
listing     the same as the talk's listing does it, with Iceberg's Java library (java/Listing.java)
fresh       what needs a process of its own: peak memory, and the start of the command line
report      the table, the targets and the last line
tables      tables with any number of data files, of which only the metadata is made
manifests   their manifests
avro        Avro files of records that differ only in some bytes, a thousand times faster than one by one

changes     how long it takes to get the rows that a MERGE changed

engine            what the engine adds to the steps it runs: what is measured, the targets and the last line
engine_workflows  workflows that do next to nothing
engine_memory     whether a run needs more memory the more of its steps have ended
beside_dagster    Dagster, in an environment of its own
dagster_chain     what runs there

params      what the parameters of a step cost
"""
