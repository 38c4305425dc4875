"""The Python that gives a run's numbers again."""

from __future__ import annotations

from voicecf.app.campaign import runs
from voicecf.app.campaign.plan import Campaign
from voicecf.app.effort import usual_prices
from voicecf.app.segments.segments import Segments
from voicecf.app.takeaway.code import OPENING, call, literal

ASKED = """answers = {call}.rounded()
already = answers.source == answers.target
moves = answers.feasible & ~already
# What it takes: for each column its price times its change.
before = asked.iloc[answers.row].reset_index(drop=True)
after = answers.to_frame().reset_index(drop=True)
effort = np.zeros(len(answers))
for name, (rise, fall) in {prices}.items():
    if pd.api.types.is_numeric_dtype(rows[name].dtype):
        change = (after[name] - before[name].fillna(rows[name].median())).astype(float).fillna(0.0)
        effort += np.where(change > 0, change * rise, -change * fall)
    else:
        effort += (before[name].fillna("") != after[name].fillna("")).to_numpy() * rise
# Each row by its easiest answer.
easiest = pd.Series(effort[moves]).groupby(answers.row[moves]).min().sort_values()
print(f"{{len(asked)}} rows asked")
print(f"{{len(easiest)}} can move")
there = np.setdiff1d(answers.row[already], easiest.index)
print(f"{{len(there)}} are there already")
print(f"median effort {{easiest.median():.6g}}", {unit})
"""
BUDGET = """budget = {budget!r}
enough = int((easiest.cumsum() <= budget * (1 + 1e-9)).sum())
print(f"{{enough}} for the budget")
"""


def script(segments: Segments, campaign: Campaign, by: Campaign) -> str:
    """Write the script; efforts are counted by the prices of the campaign `by`."""
    chosen = "rows"
    if campaign.sources:
        chosen = f"rows[np.isin(voice.predict(rows), {list(campaign.sources)})]"
    made = ASKED.format(
        call=call("asked", runs.asked(campaign, segments)), unit=literal(by.unit, 0),
        prices=literal(by.rates(usual_prices(segments)), 27),
    )  # fmt: skip
    made += "" if campaign.budget is None else BUDGET.format(budget=campaign.budget)
    return f'"""Who can be moved, and at what effort?"""\n\n{OPENING}\n\nasked = {chosen}\n{made}'
