-- Only one of the tables changes.
UPDATE lake.shop.orders SET amount = 5.50 WHERE id = 11;
