-- Bea moves, and has no new order; the customer of order 12 comes late; order 10 is cancelled; a late order comes in.
MERGE INTO lake.shop.customers t USING (
  SELECT * FROM VALUES (2, 'Bea', 'fr'), (3, 'Cem', 'tr') AS news(id, name, country)
) s
ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *;
DELETE FROM lake.shop.orders WHERE id = 10;
INSERT INTO lake.shop.orders VALUES (13, DATE'2026-10-01', 1, 3.30);
