"""Fixtures that make pictures, the slowest part of a release, quick; and a small Spark."""

import os
import shutil

import pytest


@pytest.fixture(scope="module", autouse=True)
def _quick_pictures(quick_pictures):
    return quick_pictures


@pytest.fixture(scope="module")
def spark():
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
