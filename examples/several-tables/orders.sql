-- An order changes with its own row, or with its customer's. All of it is read as of one cut through both tables.
MERGE INTO lake.shop.orders_with_customers t
USING (
  WITH orders AS (SELECT * FROM lake.shop.orders VERSION AS OF ${capture.upto_snapshot_orders}),
    customers AS (SELECT * FROM lake.shop.customers VERSION AS OF ${capture.upto_snapshot_customers}),
    changed AS (
      SELECT id FROM ${capture.changes_view_orders}
      UNION
      SELECT id FROM orders WHERE customer IN (SELECT id FROM ${capture.changes_view_customers})
    )
  SELECT changed.id, orders.day, orders.amount, customers.name, customers.country
  FROM changed
  LEFT JOIN orders ON orders.id = changed.id
  LEFT JOIN customers ON customers.id = orders.customer
) s
ON t.id = s.id
WHEN MATCHED AND s.day IS NULL THEN DELETE
WHEN MATCHED THEN UPDATE SET *
WHEN NOT MATCHED AND s.day IS NOT NULL THEN INSERT *
