"""How a table is captured: the added files, or both ends of the range."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision: str | None = "0001"


def upgrade() -> None:
    op.add_column("capture_tables", sa.Column("manner", sa.JSON(), nullable=False, server_default="{}"))
