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
"""
