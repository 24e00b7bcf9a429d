"""What a SQL statement will do, by its text: sqlglot's grammar of Spark, checked against the words themselves.

``form_of(statement)`` gives a ``Form``. In any doubt its effect is UNKNOWN, and it says why. Nothing that sqlglot
writes is executed. Importing this takes a third of a second, so callers import it when they need it.

Whether the target is an Iceberg table, the text does not say. For those, these are the facts of Spark 4.1 with Iceberg
1.12, which ``tests/spark/test_forms_on_spark.py`` keeps true for tables of version 1, 2 (copy-on-write and
merge-on-read) and 3. A *stamp* is a property that the session sets as ``spark.sql.iceberg.snapshot-property.…``:

=====================================================  =================  ==========================
statement                                              makes a snapshot   that carries the stamp
=====================================================  =================  ==========================
INSERT INTO, INSERT OVERWRITE, REPLACE WHERE           always             always
the same with no rows                                  always             always
INSERT OVERWRITE, dynamic, with no rows                never
UPDATE, MERGE                                          always             always
the same where no row matches                          always             always
DELETE … WHERE column [NOT] IN (SELECT …)              always             always
DELETE … WHERE [NOT] EXISTS (… of the deleted row …)   always             always
DELETE that takes some rows of a file                  always             always
DELETE that takes whole files, or nothing              always             never
DELETE … WHERE false                                   never
TRUNCATE TABLE, also of an empty table                 always             never
CREATE TABLE … AS, REPLACE TABLE … AS, also empty      always             always
CREATE TABLE IF NOT EXISTS … AS of one that exists     never
CREATE TABLE, REPLACE TABLE, ALTER TABLE               never
ALTER TABLE … CREATE BRANCH of an empty table          always             never
CALL rewrite_data_files, rewrite_manifests             if they find work  never
=====================================================  =================  ==========================

On a branch (``t.branch_b``) and with ``spark.wap.branch``, the same goes into the branch; the tests check INSERT,
UPDATE, DELETE and TRUNCATE there, on version 2. With ``spark.wap.id`` the snapshot is staged, but that of TRUNCATE and
of a DELETE of whole files is not: it becomes main's at once, without ``wap.id``. Snapshots without a stamp have
``spark.app.id`` and ``app-id``, as the others do. Options of the statement (``INSERT INTO t WITH (…)``) can replace the
stamp or choose a branch, and RESET takes the stamp away.
"""

from dalsegno.spark.forms.form import Effect, Form
from dalsegno.spark.forms.understanding import form_of

__all__ = ["Effect", "Form", "form_of"]
