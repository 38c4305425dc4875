"""Number columns that are computed from two others in the data: formulas for the rule `derived`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from voicecf.geometry.arrays import Array
from voicecf.rules.constraints import quoted
from voicecf.rules.formulas import Formula, half_unit, read_formulas
from voicecf.table.rows import Rows
from voicecf.table.space import Space

# Fewer rows show no formula, and tables of more number columns are not looked through.
LEAST_ROWS, MOST_COLUMNS = 20, 60
# A few rows are looked at first, of which some may contradict; then more rows, then all.
FEW_ROWS, MOST_WRONG, MORE_ROWS = 30, 3, 2_000
# The least share of rows that a formula holds in, and the most in which it holds without a column.
LEAST_SHARE, MOST_WITHOUT = 0.99, 0.9
# The squared cosine from which columns count as multiples of one another.
MULTIPLES = 1.0 - 1e-8
# Rounding of floats, as a share of the terms, in the first look.
ROUNDING = 1e-9
SIGNS = {"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide}

Values = Mapping[int, Array]


@np.errstate(all="ignore")
def formulas_of(space: Space, blocks: Iterable[Rows]) -> dict[str, str]:
    """Return what `derived` takes: number columns that are computed from two others.

    Each is a sum, difference, product or ratio, to the digits of the column, in 99 % of the rows
    that have values of all three. No column is computed from itself through others. Columns of
    fewer than three values, and multiples of columns before them, are left out.

    Examples
    --------
    >>> import numpy as np
    >>> from voicecf.learned.offers import formulas_of
    >>> from voicecf.table.learning import learn_rows
    >>> X = np.random.default_rng(0).gamma(3.0, 10.0, (50, 2))
    >>> formulas_of(*learn_rows(None, np.column_stack([X, X[:, 0] / X[:, 1]]), float))
    {'x2': 'x0 / x1'}
    """
    columns = [
        c
        for c, column in enumerate(space.columns)
        if column.kind == "number" and isinstance(column.name, str) and "`" not in column.name
    ]
    blocks = list(blocks)
    n = sum(len(rows.points) for rows in blocks)
    if n < LEAST_ROWS or not 3 <= len(columns) <= MOST_COLUMNS:
        return {}
    table = _Table(space, blocks)
    some = np.unique(np.linspace(0, n - 1, MORE_ROWS).astype(np.int64))
    sampled = {c: table[c][some] for c in columns}
    found = []
    for one in _candidates(space, _telling(sampled)):
        formula = one.formula(space, table)
        if _share(formula, sampled) >= LEAST_SHARE and _needs_all(formula, sampled):
            share = _share(formula, table)
            if share >= LEAST_SHARE:
                found.append((not _is_exact(formula, table), -share, -one.made, one))
    chosen = _together([one for *_, one in sorted(found, key=lambda entry: entry[:3])])
    return {space.columns[c].name: chosen[c].text(space, table) for c in sorted(chosen)}


class _Table(dict[int, Array]):
    """The user's numbers of each column that is asked for."""

    def __init__(self, space: Space, blocks: list[Rows]) -> None:
        self._space, self._blocks = space, blocks

    def __missing__(self, c: int) -> Array:
        column = self._space.columns[c]
        parts = [self._space.numbers_of(rows, column) for rows in self._blocks]
        self[c] = parts[0] if len(parts) == 1 else np.concatenate(parts)
        return self[c]


@dataclass(frozen=True)
class _Candidate:
    """A column that may be computed from two others."""

    made: int
    left: int
    sign: str
    right: int

    def text(self, space: Space, table: Values) -> str:
        """Write the formula as the user would; a ratio is 0 where it would divide by zero."""
        left, right = (quoted(space.columns[c].name) for c in (self.left, self.right))
        text = f"{left} {self.sign} {right}"
        divisor = table[self.right]
        if self.sign != "/" or not (divisor == 0).any():
            return text
        low, high = np.nanmin(divisor), np.nanmax(divisor)
        return f"{text} if {right} {'>' if low >= 0 else '<' if high <= 0 else '!='} 0 else 0"

    def formula(self, space: Space, table: Values) -> Formula:
        """Return the formula as the rule reads it."""
        name = space.columns[self.made].name
        (formula,) = read_formulas({name: self.text(space, table)}, {name: self.made}, space)
        return formula


def _telling(sampled: Values) -> dict[int, Array]:
    """Return the columns of three values or more that are no multiples of columns before them."""
    kept: dict[int, Array] = {}
    units: list[Array] = []
    for c, values in sampled.items():
        if len(np.unique(values[~np.isnan(values)])) < 3:
            continue
        unit = np.nan_to_num(values) / np.nanmax(np.abs(values))
        unit /= np.sqrt(unit @ unit)
        if all((unit @ other) ** 2 < MULTIPLES for other in units):
            units.append(unit)
            kept[c] = values
    return kept


def _candidates(space: Space, sampled: Values) -> Iterator[_Candidate]:
    """Yield what few rows do not rule out."""
    if len(sampled) < 3:
        return
    columns = np.array(list(sampled))
    values = np.column_stack(list(sampled.values()))
    values = values[np.unique(np.linspace(0, len(values) - 1, FEW_ROWS).astype(np.int64))]
    upper = np.triu_indices(len(columns), 1)
    for sign, operation in SIGNS.items():
        pairs = np.array(upper if sign in "+*" else np.hstack([upper, upper[::-1]]))
        left, right = values[:, pairs[0]], values[:, pairs[1]]
        made = operation(left, right)
        if sign == "/":
            made = np.where(right == 0, 0.0, made)
        size = np.abs(made) if sign in "*/" else np.abs(left) + np.abs(right)
        for at, c in enumerate(columns.tolist()):
            apart = np.abs(made - values[:, [at]]) - ROUNDING * size
            wrong = (apart > half_unit(space.columns[c]) * (1.0 + ROUNDING)).sum(axis=0)
            for one in np.flatnonzero((wrong <= MOST_WRONG) & (pairs != at).all(axis=0)):
                x, y = columns[pairs[:, one]].tolist()
                yield _Candidate(c, x, sign, y)


def _known(formula: Formula, table: Values) -> dict[int, Array]:
    """Return the values of a formula's columns in the rows that have all of them."""
    missing = np.any([np.isnan(table[c]) for c in formula.columns], axis=0)
    return {c: table[c][~missing] for c in formula.columns}


def _share(formula: Formula, table: Values) -> float:
    """Return in what share of the rows a formula holds; 0 if too few rows tell."""
    holds = formula.agrees(_known(formula, table))
    return float(holds.mean()) if len(holds) >= LEAST_ROWS else 0.0


def _needs_all(formula: Formula, table: Values) -> bool:
    """Tell whether a formula fails if any of its columns is replaced by its median."""
    known = _known(formula, table)
    return all(
        formula.agrees({**known, c: np.full_like(values, np.median(values))}).mean() < MOST_WITHOUT
        for c, values in known.items()
    )


def _is_exact(formula: Formula, table: Values) -> bool:
    """Tell whether a column is what its formula gives before that is rounded."""
    known = _known(formula, table)
    value = formula.value(known)
    return bool(np.median(np.abs(value - known[formula.made]) - ROUNDING * np.abs(value)) <= 0)


def _together(candidates: Iterable[_Candidate]) -> dict[int, _Candidate]:
    """Return the first candidate for each column, without circles."""
    chosen: dict[int, _Candidate] = {}
    for one in candidates:
        needed, waiting = set[int](), [one.left, one.right]
        while waiting:
            c = waiting.pop()
            needed.add(c)
            if c in chosen:
                waiting += [chosen[c].left, chosen[c].right]
        if one.made not in chosen and one.made not in needed:
            chosen[one.made] = one
    return chosen
