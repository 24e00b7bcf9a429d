"""Models of dbt projects, from the manifest that dbt compiles. dbt itself is not needed."""
