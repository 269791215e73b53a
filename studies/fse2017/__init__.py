"""The evaluation of the 2017 fairness-testing paper, done again: `python -m studies.fse2017`."""

import os

# One thread, so that sums are made in the same order everywhere; processes share out the work.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
