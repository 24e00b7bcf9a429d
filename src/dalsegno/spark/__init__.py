"""Spark on this machine: a Java that can run it, the jars that fit it, a session that has both.

Nothing of dalsegno imports this package until Spark is wanted: capture, planning and the store need no JVM,
and `import dalsegno` stays quick where PySpark is not installed.

- `java` finds a Java 17 or 21, or makes the one of the `java` extra fit.
- `jars` holds the table of supported pairs of Spark and Iceberg, and fetches jars by coordinates.
- `session` starts the session.
- `cache` is the folder where all that is fetched or written for reuse lives.
"""
