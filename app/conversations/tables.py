"""The tables of the newest version, and the changes that lead to it from each older one."""

from collections.abc import Callable

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    Connection,
    Dialect,
    Double,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    TypeDecorator,
    text,
    types,
)


def _index_digests(connection: Connection) -> None:
    connection.execute(text("CREATE INDEX questions_by_digest ON questions (digest)"))


def _with_new_tables(connection: Connection) -> None:
    """Make the tables and the column that version 1 lacks."""
    metadata.create_all(connection)
    connection.execute(text("ALTER TABLE questions ADD COLUMN ms INTEGER DEFAULT 0 NOT NULL"))


CHANGES: tuple[Callable[[Connection], None], ...] = (_index_digests, _with_new_tables)
"""What makes the tables of version 2 of those of 1, those of 3 of those of 2, and so on. A change that was released stays as it is."""

metadata = MetaData()


class Text(TypeDecorator[str]):
    """A text without what no database takes: NUL and lone surrogates, which some clients and models send."""

    impl: type[types.String] = types.Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:  # noqa: ARG002  # the library's method
        """The text as it is stored, or looked for."""
        if value and not value.isascii():
            value = value.encode("utf-8", "replace").decode()
        return value and value.replace("\0", "\ufffd")


class String(Text):
    """The same with a greatest length."""

    impl = types.String
    cache_ok = True


conversations = Table(
    "conversations",
    metadata,
    Column("id", String(80), primary_key=True),
    Column("owner", String(200), nullable=False),
    Column("created", Double, nullable=False),
    Index("conversations_by_owner", "owner", "created", "id"),
    Index("conversations_by_time", "created"),
)
answers = Table(
    "answers",
    metadata,
    Column("number", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True),
    Column("id", String(200), nullable=False, unique=True),
    Column("owner", String(200), nullable=False),
    Column("conversation", String(80), ForeignKey("conversations.id", ondelete="CASCADE")),
    Column("previous", String(200)),
    Column("question", Text, nullable=False),
    Column("answer", Text, nullable=False),
    Column("sources", JSON, nullable=False),
    Column("assistant", String(200), nullable=False),
    Column("language", String(20), nullable=False),
    Column("outcome", String(20), nullable=False),
    Column("generation", BigInteger),
    Column("reader", Text, nullable=False),
    Column("created", Double, nullable=False),
    Column("unsupported", JSON, nullable=False, server_default="[]"),
    Column("verbatim", JSON(none_as_null=True)),
    Index("answers_by_conversation", "conversation", "number"),
    Index("answers_by_time", "created"),
)
feedback = Table(
    "feedback",
    metadata,
    Column("answer", String(200), ForeignKey("answers.id", ondelete="CASCADE"), primary_key=True),
    Column("rating", String(4), nullable=False),
    Column("comment", Text, nullable=False),
    Column("created", Double, nullable=False),
    Index("feedback_by_time", "created"),
)
TEXT_WORDS = "to_tsvector('simple', regexp_replace(text, '[^[:alnum:]]+', ' ', 'g'))"
"""The words of a logged question, which PostgreSQL has an index of."""
questions = Table(
    "questions",
    metadata,
    Column("number", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True),
    Column("id", String(200), nullable=False, unique=True),
    Column("created", Double, nullable=False),
    Column("assistant", String(200), nullable=False),
    Column("language", String(20), nullable=False),
    Column("text", Text, nullable=False),
    Column("digest", String(32), nullable=False),
    Column("outcome", String(20), nullable=False),
    Column("evidence", Double),
    Column("needed", Double, nullable=False),
    Column("nearest", JSON, nullable=False),
    Column("used", JSON, nullable=False),
    Column("vector", LargeBinary, nullable=False),
    Column("embedder", String(200), nullable=False),
    Column("rating", String(4), nullable=False),
    Column("key", String(80), nullable=False, server_default=""),
    Column("tokens", BigInteger, nullable=False, server_default="0"),
    Column("ms", Integer, nullable=False, server_default="0"),
    # all that lists and figures choose by or add up, so that they read no row that they don't show
    Index(
        "questions_listed",
        "created",
        "number",
        "outcome",
        "rating",
        "language",
        "assistant",
        "key",
        "tokens",
    ),
    Index("questions_by_digest", "digest"),
    Index("questions_by_word", text(TEXT_WORDS), postgresql_using="gin").ddl_if(dialect="postgresql"),
)
"""The question log. Feedback is written here too, so that a report reads one table."""
verdicts = Table(
    "verdicts",
    metadata,
    Column("id", String(200), primary_key=True),
    Column("verdict", String(5), nullable=False),
    Column("reason", Text, nullable=False),
    Column("pages", JSON, nullable=False),
    Column("answerable", Boolean, nullable=False),
    Column("by", String(200), nullable=False),
    Column("created", Double, nullable=False),
    Column("asked", Double, nullable=False),
    Column("digest", String(32), nullable=False),
    Column("question", Text, nullable=False),
    Column("answer", Text, nullable=False),
    Column("earlier", JSON, nullable=False),
    Column("language", String(20), nullable=False),
    Column("assistant", String(200), nullable=False),
    Column("outcome", String(20), nullable=False),
    Column("used", JSON, nullable=False),
    Column("generation", BigInteger),
    Column("statements", Integer, nullable=False),
    Column("unproved", Integer, nullable=False),
    Index("verdicts_by_time", "created"),
)
"""Verdicts of editors with their questions, which outlive the question log: they are cases of a question set."""
evaluations = Table(
    "evaluations",
    metadata,
    Column("number", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True),
    Column("created", Double, nullable=False),
    Column("kind", String(40), nullable=False),
    Column("question_set", String(200), nullable=False),
    Column("assistant", String(200), nullable=False),
    Column("generation", BigInteger),
    Column("model", String(200), nullable=False),
    Column("n", Integer, nullable=False),
    Column("figures", JSON, nullable=False),
    Column("cases", JSON, nullable=False),
    Index("evaluations_by_kind", "kind", "number"),
)
"""Results of evaluations, without a text of a question."""
question_key = Table("question_key", metadata, Column("key", LargeBinary, primary_key=True))
"""One row: the key of the digests."""
version = Table("version", metadata, Column("number", Integer, primary_key=True))
"""One row: the version of the tables, which is 1 and one for each of `CHANGES`."""
