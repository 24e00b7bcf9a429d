-- An order changes with its own row, or with its customer's. All of it is read as of one cut through both tables.
-- What the target has of a changed order is deleted, and what is true now inserted, in one commit: ids may be NULL, come
-- more than once, or be gone.
MERGE INTO lake.shop.orders_with_customers t
USING (
  WITH orders AS (SELECT * FROM lake.shop.orders VERSION AS OF ${capture.upto_snapshot_orders}),
    customers AS (SELECT * FROM lake.shop.customers VERSION AS OF ${capture.upto_snapshot_customers}),
    changed AS (
      SELECT id FROM ${capture.changes_view_orders}
      UNION
      SELECT id FROM orders WHERE customer IN (SELECT id FROM ${capture.changes_view_customers})
    )
  SELECT id, NULL AS day, NULL AS amount, NULL AS name, NULL AS country, true AS is_old FROM changed
  UNION ALL
  SELECT o.id, o.day, o.amount, c.name, c.country, false
  FROM orders o LEFT SEMI JOIN changed ON changed.id <=> o.id LEFT JOIN customers c ON c.id = o.customer
) s
ON t.id <=> s.id AND s.is_old
WHEN MATCHED THEN DELETE
WHEN NOT MATCHED AND NOT s.is_old THEN INSERT *
