"""What a campaign asks of many rows, and the record of what was answered: plain frozen values."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime

from voicecf.app.effort import SPREADS, Prices
from voicecf.app.row.question import Objective, Words, within


@dataclass(frozen=True)
class Price:
    """What a change of a column costs.

    Attributes
    ----------
    column : str
    rise : float
        For each unit that a number rises, or for a switch of a category.
    fall : float or None
        For each unit that it falls; None if that costs the same.
    """

    column: str
    rise: float
    fall: float | None = None


@dataclass(frozen=True)
class Campaign:
    """Whom to move where, by what, at what price.

    Attributes
    ----------
    sources : tuple of int
        Segments whose rows are asked about; none for all of them.
    target : int or None
        A segment; None for whichever other one is nearest.
    each : bool
        Whether every other segment is asked for, instead of the target.
    objective : Objective
    margin : int
        How firmly inside the target the answers are to lie: per cent of the way to its centre.
    allowed : dict
        What may change: words of `voicecf.Rules`.
    prices : tuple of Price
    currency : str
        What prices are in: money, hours.
    free : bool
        Whether columns without a price may change at no cost, if others have one.
    budget : float or None
        What there is to spend.

    Examples
    --------
    >>> from voicecf.app.campaign.plan import Campaign, Price
    >>> Campaign().unit, Campaign(prices=(Price("visits", 12.0),), currency="hours").unit
    ('spreads', 'hours')
    """

    sources: tuple[int, ...] = ()
    target: int | None = None
    each: bool = False
    objective: Objective = Objective.FEWEST
    margin: int = 0
    allowed: Words = field(default_factory=dict)
    prices: tuple[Price, ...] = ()
    currency: str = "€"
    free: bool = False
    budget: float | None = None

    @property
    def unit(self) -> str:
        """What efforts are counted in."""
        return (self.currency or "€") if self.prices else SPREADS

    def rates(self, usual: Prices) -> Prices:
        """Return what each column costs: its price, or else what is usual.

        Examples
        --------
        >>> from voicecf.app.campaign.plan import Campaign, Price
        >>> usual = {"visits": (0.25, 0.25), "channel": (1.0, 1.0)}
        >>> Campaign().rates(usual) == usual
        True
        >>> Campaign(prices=(Price("visits", 12.0),)).rates(usual)
        {'visits': (12.0, 12.0)}
        """
        if not self.prices:
            return usual
        free = {name: (0.0, 0.0) for name in usual if self.free}
        return free | {
            p.column: (p.rise, p.rise if p.fall is None else p.fall) for p in self.prices
        }

    def within(self, names: list[str], k: int) -> Campaign:
        """Leave out what is said of columns that are no longer in use, and of segments."""
        return replace(
            self,
            sources=tuple(t for t in self.sources if t < k),
            target=self.target if self.target is not None and self.target < k else None,
            allowed=within(self.allowed, names),
            prices=tuple(price for price in self.prices if price.column in names),
        )


@dataclass(frozen=True)
class CampaignCounts:
    """How many rows were asked about, and what came of it.

    Attributes
    ----------
    asked, movable, already, impossible, waiting : int
        Rows asked about; those that can move, that are in the target already, that cannot move,
        and that have no answer yet.
    """

    asked: int = 0
    movable: int = 0
    already: int = 0
    impossible: int = 0
    waiting: int = 0


@dataclass(frozen=True)
class Run:
    """The record of a run; its answers are in a file of their own.

    Attributes
    ----------
    id : str
    name : str
        What the visitor calls it.
    when : datetime
        When it began.
    campaign : Campaign
        What was asked.
    segments_key : str
        Tells whether the segments are still the same.
    names : tuple of str
        What the segments were called.
    columns : tuple of str
        Columns in use.
    usual : dict of str to (float, float)
        What a unit of each column costs without prices.
    whole : tuple of str
        Those with whole numbers.
    identity : str or None
        The column that names rows.
    sheet : str or None
        The sheet of the workbook that the rows were read from, if it was chosen.
    counts : CampaignCounts
    """

    id: str
    name: str
    when: datetime
    campaign: Campaign
    segments_key: str
    names: tuple[str, ...]
    columns: tuple[str, ...]
    usual: Prices = field(default_factory=dict)
    whole: tuple[str, ...] = ()
    identity: str | None = None
    sheet: str | None = None
    counts: CampaignCounts = CampaignCounts()

    def rates(self, campaign: Campaign | None = None) -> Prices:
        """Return what counts: prices, its own or those of another campaign, or else spreads."""
        return (campaign or self.campaign).rates(self.usual)

    @property
    def finished(self) -> bool:
        """Whether all rows were answered."""
        return not self.counts.waiting
