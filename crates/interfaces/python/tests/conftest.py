"""Runs that several tests look at."""

import signal

import clearway
import pytest

# A shell that starts the tests in the background makes them ignore Ctrl-C, and tests of interrupts would never end.
signal.signal(signal.SIGINT, signal.default_int_handler)

SMALL = {"topology.hosts": 32}


@pytest.fixture(scope="session")
def small() -> clearway.Result:
    """A short run of packets."""
    return clearway.run("quickstart", overrides=SMALL)


@pytest.fixture(scope="session")
def scale_up() -> clearway.Result:
    """A short run of a scale-up fabric."""
    return clearway.run("nvlink-64", overrides={"workload.transactions": 16})


@pytest.fixture(scope="session")
def jobs() -> clearway.Result:
    """A run with jobs."""
    return clearway.run({"topology": {"hosts": 16}, "workload": {"kind": "ring-all-reduce", "size": "1MB", "iterations": 3}})
