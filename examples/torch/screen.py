"""A PyTorch module that screens applicants, trained on people made up with a seed."""

import numpy as np
import pandas as pd
import torch

COLUMNS = ["sex", "age", "hours", "income"]


class Screen(torch.nn.Module):
    """Sex (0 or 1), age, hours a week and income in; the chance of an invitation out."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(4, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1), torch.nn.Sigmoid()
        )

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        scale = torch.tensor([1.0, 50.0, 40.0, 50_000.0])
        return self.layers(inputs / scale)


def applicants(count: int = 2_000) -> tuple[pd.DataFrame, np.ndarray]:
    """People who do not exist, and whom somebody would have invited."""
    rng = np.random.default_rng(0)
    people = pd.DataFrame(
        {
            "sex": rng.integers(0, 2, count),
            "age": np.clip(rng.normal(40, 11, count), 18, 67).round().astype(int),
            "hours": np.clip(rng.normal(38, 8, count), 5, 60).round().astype(int),
            "income": np.clip(rng.lognormal(5.7, 0.5, count), 50, 2_000).astype(int) * 100,
        }
    )
    worth = people["income"] / 1_000 + people["hours"] / 2 + 12 * people["sex"]
    return people, (worth + rng.normal(0, 4, count) > 56).to_numpy()


if __name__ == "__main__":
    torch.manual_seed(0)
    people, invited = applicants()
    people.assign(invited=invited).to_csv("people.csv", index=False)
    inputs = torch.tensor(people[COLUMNS].to_numpy(), dtype=torch.float32)
    wanted = torch.tensor(invited[:, None], dtype=torch.float32)
    module = Screen()
    optimiser = torch.optim.Adam(module.parameters(), lr=0.01)
    for _ in range(400):
        optimiser.zero_grad()
        torch.nn.functional.binary_cross_entropy(module(inputs), wanted).backward()
        optimiser.step()
    torch.save(module.state_dict(), "screen.pt")
