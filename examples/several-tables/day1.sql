CREATE NAMESPACE IF NOT EXISTS lake.shop;

CREATE TABLE lake.shop.orders (id BIGINT, day DATE, customer BIGINT, amount DECIMAL(9, 2)) USING iceberg;

CREATE TABLE lake.shop.customers (id BIGINT, name STRING, country STRING) USING iceberg;

CREATE TABLE lake.shop.orders_with_customers
  (id BIGINT, day DATE, amount DECIMAL(9, 2), name STRING, country STRING) USING iceberg;

INSERT INTO lake.shop.customers VALUES (1, 'Ada', 'at'), (2, 'Bea', 'de');
INSERT INTO lake.shop.orders VALUES
  (10, DATE'2026-11-01', 1, 9.90), (11, DATE'2026-11-01', 2, 5.00), (12, DATE'2026-11-02', 3, 7.50);
