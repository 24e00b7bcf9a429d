WITH expected AS (
  SELECT o.id, day, amount, name, country FROM lake.shop.orders o LEFT JOIN lake.shop.customers c ON c.id = o.customer
), found AS (SELECT * FROM lake.shop.orders_with_customers)
SELECT assert_true(count(*) = 0, concat(count(*), ' rows are not as a full computation gives them'))
FROM ((SELECT * FROM expected EXCEPT ALL SELECT * FROM found)
  UNION ALL (SELECT * FROM found EXCEPT ALL SELECT * FROM expected))
