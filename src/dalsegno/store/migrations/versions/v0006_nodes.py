"""Signs of life that are counted, and which older dalsegno works with a newer database."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision: str | None = "0005"


def upgrade() -> None:
    op.add_column("nodes", sa.Column("beat", sa.BigInteger(), nullable=False, server_default="0"))

    op.create_table(
        "dalsegno_compatibility",
        sa.Column("version", sa.Text(), nullable=False),
        sa.Column("oldest", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("version", name="pk_dalsegno_compatibility"),
    )
