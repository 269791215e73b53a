"""Decides on loans; asks more of one race when the loan is large."""


def decide(applicant):
    needed = applicant["amount"] * (1.0 if applicant["job"] == "permanent" else 1.5)
    if applicant["race"] == "purple" and applicant["amount"] > 20_000:
        needed *= 1.3
    return "approved" if applicant["income"] >= needed else "refused"
