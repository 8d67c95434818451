"""Tables of a report as frames, CSV and Parquet."""

from __future__ import annotations

import csv
import io
import json

import msgspec
import numpy as np
import pandas as pd
import pytest

from reportgen.delivery import frame as frame_of
from reportgen.document import Column, ReportDocument, Table
from reportgen.errors import UsageError
from reportgen.exporters.tables import export_tables, frame
from tests.compare.test_pairs import report
from tests.renderers.documents import realistic

MIXED = Table(
    title="Mixed",
    columns=(
        Column(name="name", display="code"),
        Column(name="count", unit="count"),
        Column(name="time", unit="seconds"),
        Column(name="known", display="flag"),
        Column(name="absent", unit="bytes"),
        Column(name="either"),
    ),
    rows=(("a", 3, 1.5, True, None, "x"), ("b", 4, None, False, None, 7), ("c", 5, 2, True, None, None)),
    row_ids=("r-a", "r-b", "r-c"),
)


def with_table(table: Table) -> ReportDocument:
    return msgspec.structs.replace(realistic(), tables={"mixed": table})


def test_a_frame_keeps_values_and_what_is_missing() -> None:
    found = frame(MIXED)
    assert list(found.index) == ["r-a", "r-b", "r-c"]
    assert found["count"].dtype == np.int64
    assert found["time"].tolist()[::2] == [1.5, 2.0]
    assert np.isnan(found["time"].iloc[1])
    assert found["known"].dtype == bool
    assert found["absent"].isna().all()
    assert found["absent"].dtype == np.float64
    assert found["either"].tolist() == ["x", "7", None]
    assert frame_of(with_table(MIXED), "mixed").equals(found)


def test_large_and_odd_numbers() -> None:
    table = Table(title="", columns=(Column(name="n"),), rows=((1 << 70,), (-5,)))
    assert frame(table)["n"].tolist() == [float(1 << 70), -5.0]
    assert frame(Table(title="", columns=(Column(name="n", unit="count"),), rows=())).shape == (0, 1)


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_every_table_of_a_real_report_goes_out_and_comes_back(form: str) -> None:
    document = report("tpu")
    files = export_tables(document, form)
    assert set(files) == {f"tables/{name}.{form}" for name in document.tables} | {"tables/tables.json"}
    content = io.BytesIO(files[f"tables/hlo_ops.{form}"])
    again = pd.read_csv(content, index_col="row_id") if form == "csv" else pd.read_parquet(content)
    original = frame(document.tables["hlo_ops"])
    assert again["self_ps"].tolist() == original["self_ps"].tolist()
    assert list(again.index) == list(original.index)
    assert list(again.columns) == list(original.columns)


def test_the_index_tells_units_and_what_was_cut() -> None:
    cut = msgspec.structs.replace(MIXED, total_rows=99)
    index = json.loads(export_tables(with_table(cut), "csv")["tables/tables.json"])
    assert index["mixed"]["total_rows"] == 99
    assert index["mixed"]["rows"] == 3
    assert index["mixed"]["columns"][2]["unit"] == "seconds"


def test_csv_is_no_formula_for_a_spreadsheet() -> None:
    rows = (
        ("=cmd|'/c calc'!A1", 1, 1.0, True, None, ""),
        ("@x", 1, -1.0, True, None, '"a",\nb'),
        ("+1-1", 1, 1.0, True, None, ""),
    )
    table = msgspec.structs.replace(MIXED, rows=rows, row_ids=("=r", "b", "c"))
    text = export_tables(with_table(table), "csv")["tables/mixed.csv"].decode()
    read = list(csv.reader(io.StringIO(text)))
    assert [row[1] for row in read[1:]] == ["'=cmd|'/c calc'!A1", "'@x", "'+1-1"]
    assert read[1][0] == "'=r"
    assert read[2][3] == "-1.0"  # a number is no formula
    assert read[2][6] == '"a",\nb'


def test_only_some_tables_and_wrong_names() -> None:
    assert set(export_tables(with_table(MIXED), "csv", ["mixed"])) == {"tables/mixed.csv", "tables/tables.json"}
    with pytest.raises(UsageError, match="no table 'other'"):
        export_tables(with_table(MIXED), "csv", ["other"])
    with pytest.raises(UsageError, match="not as 'xlsx'"):
        export_tables(with_table(MIXED), "xlsx")
    with pytest.raises(UsageError, match="no table 'other'"):
        frame_of(with_table(MIXED), "other")


def test_names_of_tables_make_no_paths() -> None:
    document = msgspec.structs.replace(realistic(), tables={"../../etc/x y": MIXED})
    assert set(export_tables(document, "csv")) == {"tables/..-..-etc-x-y.csv", "tables/tables.json"}
