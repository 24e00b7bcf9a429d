{{ config(tags=['daily']) }}
with totals as (
    select customer_id, count(*) as orders, sum(amount) as amount
    from {{ ref('paid_orders') }}
    group by customer_id
)

select
    c.customer_id,
    c.first_name || ' ' || c.last_name as name,
    coalesce(t.orders, 0) as orders,
    coalesce(t.amount, 0) as amount
from {{ ref('stg_customers') }} c
left join totals t on c.customer_id = t.customer_id
