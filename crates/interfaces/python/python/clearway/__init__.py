"""A packet-level simulator for the networks of AI clusters.

>>> import clearway
>>> result = clearway.run("quickstart")
>>> result.summary.slowdown.p99
>>> pandas.DataFrame.from_arrow(result.flows)

Scenarios are names of built-in ones, paths, TOML texts or dictionaries; their keys are those of the command line
(``clearway.explain("topology")``). Tables are handed over as Arrow streams, which pyarrow, polars, pandas and DuckDB take.
"""

from . import collective
from ._clearway import REVISION as __revision__
from ._clearway import VERSION as __version__
from ._clearway import Ack, Loss, Network
from ._compare import Comparison, compare
from ._controller import Controller
from ._errors import CollectiveError, Defect, Interrupted, ResultError, ScenarioError
from ._messages import messages
from ._plan import Plan, plan
from ._result import NetworkMap, Result, Summary
from ._run import check, resolve, run
from ._simulation import Message, Simulation
from ._sweep import Sweep, sweep
from ._table import Column, Table
from ._explain import Explanation, Parameter, explain, list, show

__all__ = [
    "Ack",
    "CollectiveError",
    "Column",
    "Comparison",
    "Controller",
    "Defect",
    "Explanation",
    "Interrupted",
    "Loss",
    "Message",
    "Network",
    "NetworkMap",
    "Parameter",
    "Plan",
    "Result",
    "ResultError",
    "ScenarioError",
    "Simulation",
    "Summary",
    "Sweep",
    "Table",
    "__revision__",
    "__version__",
    "check",
    "collective",
    "compare",
    "explain",
    "list",
    "messages",
    "plan",
    "resolve",
    "run",
    "show",
    "sweep",
]
