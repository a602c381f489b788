"""Results of evaluations that are kept, so that the next one has its base and operators see them. Functions get a connection in a transaction."""

from collections.abc import Sequence
from dataclasses import asdict, fields

from sqlalchemy import Connection, delete, insert, select

from app.conversations.records import Evaluation
from app.conversations.tables import evaluations

FIELDS = [field.name for field in fields(Evaluation)]


def keep_evaluation(connection: Connection, one: Evaluation, most: int = 100) -> None:
    """Add an evaluation; of its kind, the newest stay, up to `most`."""
    connection.execute(insert(evaluations).values(**{**asdict(one), "cases": list(one.cases)}))
    number = evaluations.c.number
    newest = select(number).where(evaluations.c.kind == one.kind).order_by(number.desc()).limit(most)
    connection.execute(delete(evaluations).where(evaluations.c.kind == one.kind, number.not_in(newest)))


def last_evaluations(
    connection: Connection, kind: str = "", assistant: str = "", limit: int = 100
) -> Sequence[Evaluation]:
    """The last evaluations, the newest first: of this kind, of this assistant, or of all."""
    query = select(evaluations).order_by(evaluations.c.number.desc()).limit(limit)
    chosen = {evaluations.c.kind: kind, evaluations.c.assistant: assistant}
    query = query.where(*(column == value for column, value in chosen.items() if value))
    return [
        Evaluation(**{name: row._mapping[name] for name in FIELDS})  # noqa: SLF001  # its public name
        for row in connection.execute(query)
    ]
