"""Two models of the same biased history: one sees the sex, the other does not."""

import numpy as np
from sklearn.linear_model import LogisticRegression

import themis


def history(people=20_000):
    """Past decisions that asked more of women; their jobs differ, too."""
    rng = np.random.default_rng(0)
    sex = rng.integers(0, 2, people)  # 1: female
    part_time = (rng.random(people) < np.where(sex == 1, 0.5, 0.1)).astype(int)
    income = rng.integers(0, 100, people)
    return np.column_stack([sex, part_time, income]), income > 40 + 15 * sex


if __name__ == "__main__":
    people, approved = history()
    schema = themis.Schema(sex=range(2), part_time=range(2), income=range(100))
    told = LogisticRegression(max_iter=1_000).fit(people, approved)
    print(f"told the sex:     causal {themis.Audit(told, schema).causal('sex').score:.2f}")

    blind = LogisticRegression(max_iter=1_000).fit(people[:, 1:], approved)
    without = themis.Schema(part_time=range(2), income=range(100))
    score = themis.Audit(blind, without).causal("part_time").score
    print(f"not told the sex: causal {score:.2f} against part_time, which stands in for it")
