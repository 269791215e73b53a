"""The evaluation of the 2017 fairness-testing paper, done again: `python -m studies.fse2017`."""
