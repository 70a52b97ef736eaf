"""Workloads of messages."""

import clearway
import pytest

HOSTS = {"topology": {"hosts": 16}}


def run(rows):
    return clearway.run({**HOSTS, "workload": clearway.messages(rows)}).flows.to_pylist()


def test_messages_wait_for_each_other():
    first, second, third, late = run([
        {"src": 0, "dst": 1, "bytes": "1MB", "tag": 7},
        {"src": 1, "dst": 2, "bytes": 1000, "after": 0, "tag": 8},
        {"src": 0, "dst": 2, "bytes": 1000, "after": [0], "tag": 9},
        {"src": 3, "dst": 4, "bytes": 1000, "start": "1ms", "tag": 10},
    ])
    assert [row["label"] for row in (first, second, third, late)] == [7, 8, 9, 10]
    # It has arrived before the acknowledgement is back.
    assert first["start_ps"] < second["start_ps"] < first["finish_ps"] == third["start_ps"]
    assert late["start_ps"] == 1_000_000_000


def test_a_barrier_waits_for_the_last():
    rows = [{"src": 1, "dst": 0, "bytes": 1000}, {"src": 2, "dst": 0, "bytes": 1_000_000}]
    rows.append({"src": 0, "dst": 3, "bytes": 1000, "after": [0, 1]})
    flows = run(rows)
    assert flows[2]["start_ps"] > flows[0]["finish_ps"]
    alone = run([*rows[:2], {**rows[2], "after": [1]}])
    assert alone[2]["start_ps"] == flows[2]["start_ps"]


def test_the_same_messages_from_tables():
    rows = [
        {"src": 0, "dst": 1, "bytes": 5000, "start": None, "after": None},
        {"src": 1, "dst": 0, "bytes": 5000, "start": None, "after": [0]},
        {"src": 2, "dst": 3, "bytes": 5000, "start": 10_000, "after": None},
    ]
    expected = clearway.messages(rows)
    assert expected["flows"] == ["0->1 5000B", "1->0 5000B after 1", "2->3 5000B at 10000ps"]
    pyarrow = pytest.importorskip("pyarrow")
    assert clearway.messages(pyarrow.Table.from_pylist(rows)) == expected
    polars = pytest.importorskip("polars")
    assert clearway.messages(polars.DataFrame(rows)) == expected
    texts = [{"src": 0, "dst": 1, "bytes": "5kB"}]
    assert clearway.messages(polars.DataFrame(texts)) == clearway.messages(pyarrow.Table.from_pylist(texts))
    pandas = pytest.importorskip("pandas")
    assert clearway.messages(pandas.DataFrame(texts)) == clearway.messages(texts)


def test_a_result_can_be_run_again():
    pyarrow = pytest.importorskip("pyarrow")
    rows = [{"src": number, "dst": (number + 3) % 8, "bytes": 10_000} for number in range(8)]
    table = pyarrow.table(clearway.run({**HOSTS, "workload": clearway.messages(rows)}).flows)
    assert clearway.messages(table.select(["src", "dst", "bytes"])) == clearway.messages(rows)


@pytest.mark.parametrize(
    ("rows", "what"),
    [
        ([], "there are no messages"),
        ([{"src": 0, "dst": 1}], "message 0: it has no `bytes`"),
        ([{"src": 0, "dst": 1, "bytes": 1, "size": 1}], "message 0: there is no `size`"),
        ([{"src": 0, "dst": 1.5, "bytes": 1}], "message 0: `dst` is 1.5, no whole number"),
        ([{"src": 0, "dst": -1, "bytes": 1}], "message 0: `dst` is -1"),
        ([{"src": 0, "dst": 1, "bytes": "1kB after 1"}], "message 0: `bytes`: `1kB after 1` is not a size"),
        ([{"src": 0, "dst": 1, "bytes": 1, "start": "5us after 1"}], "message 0: `start`: `5us after 1` is not a time"),
        ([{"src": 0, "dst": 1, "bytes": 1, "after": "0"}], "message 0: `after` is '0', no whole number"),
        ({"src": [0], "dst": [1], "bytes": [1]}, "message 0: 'src' is no dictionary"),
    ],
)
def test_faults_name_the_message(rows, what):
    with pytest.raises(clearway.ScenarioError) as caught:
        clearway.messages(rows)
    assert what in str(caught.value) and "fix: " in str(caught.value)


@pytest.mark.parametrize(
    ("rows", "what"),
    [
        ([{"src": 0, "dst": 1, "bytes": 1, "after": [1]}], "there is no item 2"),
        ([{"src": 0, "dst": 16, "bytes": 1}], "names host 16, but there are 16 hosts"),
        ([{"src": 0, "dst": 1, "bytes": 1, "after": [1]}, {"src": 1, "dst": 0, "bytes": 1, "after": [0]}], "never start"),
    ],
)
def test_faults_of_the_whole(rows, what):
    with pytest.raises(clearway.ScenarioError) as caught:
        run(rows)
    assert what in str(caught.value) and "fix: " in str(caught.value)


def test_tables_of_other_types_are_refused():
    pyarrow = pytest.importorskip("pyarrow")
    with pytest.raises(TypeError, match="column `bytes` is of type"):
        clearway.messages(pyarrow.table({"src": [0], "dst": [1], "bytes": [1.5]}))


def test_nulls_in_tables_are_nothing():
    pyarrow = pytest.importorskip("pyarrow")
    nothing = pyarrow.table({"src": [0], "dst": [1], "bytes": [5], "start": [None], "after": [None]})
    assert nothing.schema.field("start").type == pyarrow.null()
    assert clearway.messages(nothing) == clearway.messages([{"src": 0, "dst": 1, "bytes": 5}])
    lists = pyarrow.array([None, [None]], pyarrow.list_(pyarrow.int64()))
    with pytest.raises(clearway.ScenarioError, match="column `after` has a list with a null(.|\n)*fix: "):
        clearway.messages(pyarrow.table({"src": [3, 0], "dst": [1, 2], "bytes": [1, 1], "after": lists}))


def test_columns_that_come_twice_are_refused():
    pyarrow = pytest.importorskip("pyarrow")
    columns = [pyarrow.array([number]) for number in (0, 2, 1, 5)]
    table = pyarrow.Table.from_arrays(columns, names=["src", "src", "dst", "bytes"])
    with pytest.raises(clearway.ScenarioError, match="two columns `src`(.|\n)*fix: "):
        clearway.messages(table)


def test_arrays_name_messages():
    numpy = pytest.importorskip("numpy")
    rows = [{"src": 0, "dst": 1, "bytes": 5}, {"src": 1, "dst": 0, "bytes": 5}]
    expected = clearway.messages([*rows, {**rows[1], "after": [0]}])
    for after in (numpy.array([0]), numpy.array(0), numpy.int64(0)):
        assert clearway.messages([*rows, {**rows[1], "after": after}]) == expected
