"""Functions of numpy and scipy whose inverse is known, for a FunctionTransformer without one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special
from sklearn.preprocessing import FunctionTransformer


def _cube(values: Any) -> NDArray[Any]:
    return np.asarray(np.power(values, 3))


# Where a function has an inverse for a part of the numbers only (square, reciprocal), the data
# decides: see `learning._learn_curves`.
PAIRS: tuple[tuple[Callable[..., Any], Callable[..., Any]], ...] = (
    (np.log, np.exp),
    (np.log2, np.exp2),
    (np.log10, special.exp10),
    (np.log1p, np.expm1),
    (special.log1p, special.expm1),
    (np.sqrt, np.square),
    (np.cbrt, _cube),
    (special.cbrt, _cube),
    (np.reciprocal, np.reciprocal),
    (np.negative, np.negative),
    (np.positive, np.positive),
    (np.arcsinh, np.sinh),
    (np.arctan, np.tan),
    (np.arctanh, np.tanh),
    (np.deg2rad, np.rad2deg),
    (np.radians, np.degrees),
    (special.logit, special.expit),
)
INVERSES: dict[Any, Callable[..., Any]] = {
    **{inverse: function for function, inverse in PAIRS},
    **dict(PAIRS),
    special.exp2: np.log2,
}


def inverse_of(transformer: Any) -> Callable[..., Any] | None:
    """Return the inverse of a transformer: its own, or that of a known function; None if neither.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.preprocessing import FunctionTransformer
    >>> from voicecf.table.inverses import inverse_of
    >>> inverse_of(FunctionTransformer(np.log1p))
    <ufunc 'expm1'>
    """
    if not isinstance(transformer, FunctionTransformer) or transformer.inverse_func is not None:
        return transformer.inverse_transform  # type: ignore[no-any-return]
    try:
        return None if transformer.kw_args else INVERSES.get(transformer.func)
    except TypeError:  # a callable that cannot be hashed
        return None
