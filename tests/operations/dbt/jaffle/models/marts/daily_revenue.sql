{{ config(materialized='incremental', unique_key='order_date', partition_by='order_date') }}
select order_date, count(*) as orders, sum(amount) as amount
from {{ ref('paid_orders') }}
{% if is_incremental() %}
where order_date >= (select max(order_date) from {{ this }})
{% endif %}
group by order_date
