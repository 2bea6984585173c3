"""Collect the verdicts of all scripts into README.md."""

import json

from common import HERE, RESULTS

ORDER = [
    "Lemma 1", "Lemma 2", "Error lemma", "Proposition 1", "Proposition 2", "Proposition 3", "Figure 1a", "Figure 1b", "Theorem 1",
    "Theorem 2", "Corollary 1", "Corollary 2", "Theorem 3", "Theorem 3's condition on delta and rho", "Linear-model rate after Theorem 3",
    "Corollary 3", "Comparison with Nesterov-Spokoiny", "ED_2", "Fisher-information remark", "Theorem 4", "Theorem 5", "ASOE lemma",
    "Algorithm 6 ends", "Algorithm 8 ends at a second-order stationary point", "Theorem 4.1 (Monteiro and Svaiter)",
    "Lemma 3.1 (Monteiro and Svaiter)", "Lemma 3.2 (Monteiro and Svaiter)", "Lemma 3.3 (Monteiro and Svaiter)", "Inspired by Lemma 3.4", "Inspired by Lemma 3.4, repaired",
    "Lemma 3.7 (Monteiro and Svaiter)", "Lemma 4.2 (Monteiro and Svaiter)", "Lemma 4.4 (Monteiro and Svaiter)", "Lemma on eps_A",
    "Lemma on eps_B", "Lemma on the potential", "Lemma on the search accuracy", "Lemma on the cubic value", "Theorem on stationarity",
    "Theorem on the number of rounds", "Theorem 1 of Nesterov 2007", "Proposition 1 of Nesterov and Polyak",
    "Lemma 2 of Nesterov and Polyak", "Lemma 3 of Nesterov and Polyak", "Lemma 4 of Nesterov and Polyak",
]  # fmt: skip
HEAD = """# The paper's claims, one by one

Yue, Yang, Fang, Lin. *Zeroth-order optimization with weak dimension dependency.* COLT 2023.

`make reproduce` runs every script here and writes this table (4 minutes on two cores).  A verdict is *holds*, *holds
corrected* (true after the correction named), *false* or *not testable*; the number beside it is what decides, and the page
shows where it comes from.  "Exact" means expectation from the second-moment recursion of `fewdim.theory`, without sampling.

| claim | verdict | the number that decides | page |
|---|---|---|---|
"""


def cell(text: str) -> str:
    return text.replace("|", "\\|")


claims = {c["claim"]: c for path in sorted(RESULTS.glob("*.json")) for c in json.loads(path.read_text())}
missing = [name for name in ORDER if name not in claims]
if missing:
    raise SystemExit(f"no script decided {', '.join(missing)}")
names = [*ORDER, *[name for name in claims if name not in ORDER]]
rows = []
for name in names:
    c = claims[name]
    page = f"[page]({c['page']})" if c["page"] else ""
    rows.append(f"| {cell(c['claim'])} | {c['verdict']} | {cell(c['number'])} | {page} |")
(HERE / "README.md").write_text(HEAD + "\n".join(rows) + "\n")
print(f"README.md: {len(rows)} claims")
