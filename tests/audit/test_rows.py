"""Stored rows have the fields of the dataclasses that they are made from."""

from dataclasses import fields

from uge_core.audit.base import Audit, Cell, CellRecord, Row, RowRecord


def test_records_have_the_fields_and_types_of_rows_and_cells() -> None:
    for record, cls in ((RowRecord, Row), (CellRecord, Cell)):
        shown = {"turned"} if record is RowRecord else set()
        assert record.__annotations__.keys() - shown == {f.name for f in fields(cls)}
    row = Row("dp", cells=(Cell("a", "b", 0.5, 12),))
    (stored,) = Audit((row,)).to_json()
    assert stored.keys() == {f.name for f in fields(Row)}
    assert stored["cells"][0].keys() == CellRecord.__annotations__.keys()
