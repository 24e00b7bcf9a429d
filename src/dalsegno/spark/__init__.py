"""Spark: one on this machine, with a Java that can run it and the jars that fit it, and sessions of any.

Nothing of dalsegno imports this package until Spark is wanted: capture, planning and the store need no JVM,
and `import dalsegno` stays quick where PySpark is not installed.

- `java` finds a Java 17 or 21, or makes the one of the `java` extra fit.
- `jars` holds the table of supported pairs of Spark and Iceberg, and fetches jars by coordinates.
- `session` starts a session in this process.
- `server` finds or starts a Spark Connect server that all processes share; `keeper` is the process that looks after it.
- `connect` opens sessions of a Spark Connect server, and interrupts them; `operations` are what is executed there, for
  any process to find again; `endings` ends sessions after a while; `failures` tells what went wrong there.
- `statements` says where a SQL statement ends.
- `submit` is the command line of `spark-submit`; `submitted_sql` is the driver of SQL that is submitted; `yarn` finds
  applications there and ends them; `submission_failures` says why a cluster refused one.
- `cache` is the folder where all that is fetched or written for reuse lives.
"""
