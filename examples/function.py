"""A function of one input: how much does its decision depend on race and on sex?"""

import themis


def hire(applicant):
    points = applicant["years"] + 3 * applicant["degrees"]
    if applicant["sex"] == "female" and applicant["age"] < 35:
        points -= 4  # "she might have children"
    return "invite" if points >= 8 else "reject"


schema = themis.Schema(
    sex=["female", "male"],
    race=["green", "purple"],
    age=themis.Integers(18, 65, bins=[35, 50]),
    years=themis.Integers(0, 20),
    degrees=[0, 1, 2],
)

if __name__ == "__main__":
    audit = themis.Audit(hire, schema, favourable=["invite"], error=0.02, seed=1)
    for name in ("sex", "race", "age"):
        causal, group = audit.causal(name), audit.group(name)
        print(f"{name}: causal between {causal.low:.3f} and {causal.high:.3f}, ", end="")
        print(f"group between {group.low:.3f} and {group.high:.3f}")
    favoured, other = audit.causal("sex").witnesses[0].inputs
    print(f"invited:  {favoured}\nrejected: {other}")
