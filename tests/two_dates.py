"""Tables of two dates, for the tests of changes: their rows, numbers and means differ."""

import numpy as np
import pyarrow as pa

import gaussnoise as gn

SEX, AGE = gn.Attribute("sex", ["F", "M"]), gn.Attribute("age", edges=[0, 18, 65, 120])
PAY = gn.Attribute("pay", clip=[0, 5000])
SCHEMA = gn.Schema([SEX, AGE, PAY])


def people(seed, count):
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "sex": rng.choice(["F", "M"], count),
            "age": rng.uniform(0, 120, count),
            "pay": rng.uniform(0, 4000 + 500 * seed, count),
        }
    )
