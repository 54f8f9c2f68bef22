"""Fixtures: quick pictures, which are the slowest part of a release; tables in engines; Spark."""

import os
import shutil

import duckdb
import pandas as pd
import polars as pl
import pyarrow.csv
import pyarrow.parquet
import pytest


@pytest.fixture(scope="module", autouse=True)
def _quick_pictures(quick_pictures):
    return quick_pictures


def _csv(table, folder):
    pyarrow.csv.write_csv(table, folder / "t.csv")
    return folder / "t.csv"


def _parquet(table, folder):
    pyarrow.parquet.write_table(table, folder / "t.parquet")
    return folder / "t.parquet"


def _dask(table, _):
    dask = pytest.importorskip("dask.dataframe", reason="dask is missing")
    return dask.from_pandas(table.to_pandas(), npartitions=3, sort=False)


@pytest.fixture(scope="session")
def engines():
    """Functions from a table of arrow and a folder to a table of each engine, or its file."""
    return {
        "pandas": lambda table, _: table.to_pandas(),
        "pandas on arrow": lambda table, _: table.to_pandas(types_mapper=pd.ArrowDtype),
        "polars": lambda table, _: pl.DataFrame(table),
        "polars lazy": lambda table, _: pl.DataFrame(table).lazy(),
        "pyarrow": lambda table, _: table,
        "duckdb": lambda table, _: duckdb.from_arrow(table),
        "dask": _dask,
        "csv": _csv,
        "parquet": _parquet,
    }


@pytest.fixture(scope="session")
def spark():
    """A session of Spark in one process, which takes seconds to start: one for all files."""
    if shutil.which("java") is None and not os.environ.get("JAVA_HOME"):
        pytest.skip("Java is missing: Spark is not tested")
    sql = pytest.importorskip("pyspark.sql", reason="pyspark is missing: Spark is not tested")
    builder = sql.SparkSession.builder.master("local[1]")
    for key, value in {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        # small tables: compiling code for them takes longer than running it
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.codegen.wholeStage": "false",
    }.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()
