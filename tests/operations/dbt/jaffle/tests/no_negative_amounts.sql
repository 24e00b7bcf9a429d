select * from {{ ref('customers') }} where amount < 0
