{% snapshot orders_snapshot %}
{{ config(target_schema='shop', unique_key='id', strategy='check', check_cols=['status']) }}
select * from {{ source('raw', 'orders') }}
{% endsnapshot %}
