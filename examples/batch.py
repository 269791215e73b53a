"""A function of a whole table: arrays in, an array of decisions out."""

import numpy as np

import themis


def decide(table):
    points = table["income"] / 1_000 + 5 * table["years"] - 20 * (table["debts"] > 10_000)
    points -= 4 * (table["race"] == "purple")
    return points >= np.where(table["age"] < 25, 90, 80)


schema = themis.Schema(
    race=["green", "purple", "blue"],
    age=themis.Integers(18, 90),
    income=themis.Integers(0, 150_000, step=50),
    years=themis.Integers(0, 40),
    debts=themis.Integers(0, 30_000, step=100),
)

if __name__ == "__main__":
    audit = themis.Audit(themis.batch(decide), schema, seed=1)
    score = audit.causal("race", error=0.001)
    print(f"causal score {score.score:.4f}, between {score.low:.4f} and {score.high:.4f}")
    print(f"{score.executions:,} executions")
    for harm in score.direction:
        change = f"{harm.change_from['race']} → {harm.change_to['race']}"
        print(f"{change}: {harm.lost:.2%} lose, {harm.gained:.2%} gain")
