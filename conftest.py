"""One thread for linear algebra: pytest runs two processes, and matrices here are small, so that threads only wait.

The kernels of the notebooks, and the processes of pytest-xdist, take it over. Measured on two cores: with threads the
notebooks need four times as long.
"""

import os

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
