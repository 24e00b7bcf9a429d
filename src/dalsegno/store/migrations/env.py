"""What Alembic runs for us, on the connection and in the transaction it is given."""

from alembic import context

from dalsegno.store.tables import schema_version

context.configure(connection=context.config.attributes["connection"], version_table=schema_version.name)
context.run_migrations()
