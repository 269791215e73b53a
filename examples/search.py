"""A search: which sets of characteristics decide, and why is each set in or out?"""

import numpy as np

import themis


def decide(table):
    singled_out = (table["race"] == "purple") & (table["sex"] == "female")  # neither shows it alone
    return table["income"] >= np.where(singled_out, 60_000, 40_000)


schema = themis.Schema(
    race=["green", "purple", "orange", "blue"],
    sex=["female", "male"],
    city=[f"city {number}" for number in range(20)],
    income=themis.Integers(0, 100_000, step=100),
)

if __name__ == "__main__":
    audit = themis.Audit(themis.batch(decide), schema, seed=42)
    found = audit.search(0.15, among=["race", "sex", "city"], error=0.03)
    for score in found.minimal_sets:
        print(f"{', '.join(score.against)}: between {score.low:.2f} and {score.high:.2f}")
    for tested in found.tested:
        print(f"  {', '.join(tested.against)}: {tested.decision}, {tested.reason}")
    print(f"{found.sets_tested} of {found.sets_total} sets tested, {found.executions:,} executions")
