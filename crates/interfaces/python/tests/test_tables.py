"""Tables: what they hold, and who reads them."""

import clearway
import pytest

from conftest import SMALL

FILES = {"flows": "small", "series": "small", "operations": "scale_up", "iterations": "jobs"}


@pytest.mark.parametrize("name", FILES)
def test_tables_are_the_files_of_a_result(name, request, tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    result = request.getfixturevalue(FILES[name])
    file = parquet.read_table(f"{result.save(tmp_path / 'result')}/{name}.parquet")
    table = pyarrow.table(getattr(result, name))
    table.validate(full=True)
    assert table.num_rows > 0
    assert table.schema.equals(file.schema.remove_metadata())
    assert table.equals(file.replace_schema_metadata(None))


def test_plain_python_needs_nothing(small):
    flows = small.flows
    assert len(flows) == 32
    assert flows.column_names[:5] == ["flow", "label", "src", "dst", "bytes"]
    assert flows.columns[4].unit == "bytes"
    rows = flows.to_pylist()
    assert rows == list(flows)
    assert [row["flow"] for row in rows] == flows.to_pydict()["flow"] == list(range(32))
    assert rows[3] == flows.to_pylist(3, 4)[0] == flows.to_pylist(-29, -28)[0]
    assert flows.to_pylist(32) == []
    assert all(row["fct_ps"] == row["finish_ps"] - row["start_ps"] for row in rows)


def test_null_is_none():
    flows = clearway.run("quickstart", overrides={**SMALL, "stop.at-most": "5us"}).flows
    pyarrow = pytest.importorskip("pyarrow")
    assert pyarrow.table(flows).to_pylist() == flows.to_pylist()
    assert {row["finish_ps"] for row in flows} == {None}


def test_links_have_totals(small):
    links = small.links.to_pylist()
    assert {"link", "from", "to", "rate_bps", "bytes", "peak_queue_bytes"} <= set(links[0])
    from_hosts = [link for link in links if link["from"].startswith("host")]
    assert len(from_hosts) == 32
    assert all(link["bytes"] > 2_000_000 for link in from_hosts)
    assert small.summary.packets.dropped == sum(link["drops"] for link in links)


def test_tables_of_other_runs_are_empty(small, scale_up):
    assert len(small.operations) == len(small.iterations) == 0
    assert len(scale_up.flows) == 0
    pyarrow = pytest.importorskip("pyarrow")
    assert pyarrow.table(small.operations).num_rows == 0
    unseen = clearway.run("quickstart", overrides={**SMALL, "observe.series.every": "off"})
    assert len(unseen.links) == len(unseen.series) == 0
    assert unseen.digest == small.digest


def test_pandas_reads_them(small):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    frame = pandas.DataFrame.from_arrow(small.flows)
    assert frame["slowdown"].max() == pytest.approx(small.summary.slowdown.max)
    assert list(frame["section"]) == small.flows.to_pydict()["section"]


def test_polars_reads_them(small):
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame(small.flows)
    assert frame.height == 32
    assert frame["bytes"].sum() == 64_000_000
    assert frame["slowdown"].max() == pytest.approx(small.summary.slowdown.max)


def test_duckdb_reads_them(small):
    duckdb = pytest.importorskip("duckdb")
    flows, links = small.flows, small.links  # noqa: F841
    assert duckdb.sql("select count(*), sum(bytes) from flows").fetchall() == [(32, 64_000_000)]
    busiest = duckdb.sql("select max(bytes) from links").fetchall()
    assert busiest == [(max(small.links.to_pydict()["bytes"]),)]


def test_many_batches_are_one_table():
    pyarrow = pytest.importorskip("pyarrow")
    flows = [f"{number % 16}->{(number + 1) % 16} 64B" for number in range(70_000)]
    result = clearway.run({"topology": {"hosts": 16}, "workload": {"kind": "flows", "flows": flows}})
    reader = pyarrow.RecordBatchReader.from_stream(result.flows)
    assert [batch.num_rows for batch in reader] == [65_536, 70_000 - 65_536]
    assert pyarrow.table(result.flows)["flow"].to_pylist() == list(range(70_000))


def test_notebooks_show_them(small, scale_up, jobs):
    for result in (small, scale_up, jobs):
        html = result._repr_html_()
        assert result.digest in html and "<table" in html
        # Colours are those of the page around it.
        assert "#fff" not in html and "white" not in html
    html = small.flows._repr_html_()
    assert "and 22 more" in html
    assert html.count("<tr") == 11
    assert "<script" not in html
