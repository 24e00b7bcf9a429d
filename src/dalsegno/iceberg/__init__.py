"""What the tables say.

Everything here works on Iceberg's metadata alone: a table's metadata file, the manifest lists its snapshots name, and
the manifests those name. No data file is ever opened.

    catalogs     one definition of a catalog → PyIceberg properties and Spark configuration; load, register, swap
    files        read, write, copy, list and delete: local_files, object_files (S3) or PyIceberg's own FileIOs
    s3_access    properties, environment and profiles → the client of a bucket
    metadata_cache  manifest lists and manifests of object stores, which never change, on local disk
    avro         manifest lists and manifests, with the schema embedded in each file
    history      metadata file → model.History
    schemas      whether files that were written with one schema can be read with another
    values       stored values as people write them
    manifests    which manifests hold what a range of snapshots added, filtered where others are mixed in
    differences  which files differ between two states of a table, whatever happened in between
    swaps        what compaction only swapped, so that it is left out
    deleted_keys the keys that equality deletes name, as a table of the delete files
    manifest_copies  the manifests of a change table: copied, filtered, or many small ones merged
    change_table a cloned metadata file + copied manifests + one register call
    views        one metadata file and one entry of the catalog, for Spark
    entries      files, partitions and bounds inside manifests, for ranges, partitions and reports
    predicates   touched partitions and ranges as conditions of SQL
    pins         the branch that keeps unprocessed history from expiring
    stamps       what snapshots of targets say about the ranges they were written for
"""
