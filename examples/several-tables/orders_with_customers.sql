SELECT o.id, o.day, o.amount, c.name, c.country
FROM lake.shop.orders o
LEFT JOIN lake.shop.customers c ON c.id = o.customer
