"""A loan service: it asks more of women under 40, and says so to nobody."""

from enum import StrEnum

from fastapi import FastAPI
from pydantic import BaseModel, Field

app = FastAPI(title="Loans")


class Sex(StrEnum):
    """As the form has it."""

    FEMALE = "female"
    MALE = "male"


class Applicant(BaseModel):
    """Who asks for a loan."""

    name: str = Field(min_length=1)
    sex: Sex
    age: int = Field(ge=18, le=75)
    income: int = Field(ge=0, le=120_000)
    employed: bool


class Answer(BaseModel):
    """What becomes of it."""

    approved: bool
    needed: int


@app.post("/loans")
def decide(applicant: Applicant) -> Answer:
    """Approve those who earn enough."""
    needed = 30_000 if applicant.employed else 45_000
    if applicant.sex is Sex.FEMALE and applicant.age < 40:
        needed += 15_000
    return Answer(approved=applicant.income >= needed, needed=needed)
