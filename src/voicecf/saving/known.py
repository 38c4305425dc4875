"""Classes and functions that a saved file may name. Nothing else is ever imported for a file."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from voicecf.errors import SavingError

CLASSES = {
    "voicecf.voice": "VoICE",
    "voicecf.cfclust": "CFCLUST",
    "voicecf.shark": "SHARK",
    "voicecf.geometry.clustering": "Clustering",
    "voicecf.geometry.cell": "Arithmetic",
    "voicecf.geometry.pullback": "Mixing",
    "voicecf.geometry.region": "Region",
    "voicecf.status": "Status",
    "voicecf.learned.learned": "Learned",
    "voicecf.learned.members": "Members",
    "voicecf.rules.allowed": "DefaultBounds",
    "voicecf.table.space": "Space",
    "voicecf.table.column": "Column",
    "voicecf.table.rows": "Rows",
    "voicecf.table.sample_row": "SampleRow SampleCell",
    "voicecf.table.pipeline": "Steps Wire Link Coding",
    "voicecf.table.affine": "Scale",
    "voicecf.table.branches": "Branches Branch",
    "voicecf.rules.rules": "Rules",
    "sklearn.pipeline": "Pipeline FeatureUnion",
    "sklearn.compose": "ColumnTransformer make_column_selector",
    "sklearn.preprocessing": (
        "StandardScaler MinMaxScaler RobustScaler MaxAbsScaler Normalizer PowerTransformer "
        "QuantileTransformer FunctionTransformer OrdinalEncoder OneHotEncoder TargetEncoder "
        "KBinsDiscretizer PolynomialFeatures Binarizer"
    ),
    "sklearn.impute": "SimpleImputer MissingIndicator KNNImputer",
    "sklearn.decomposition": "PCA IncrementalPCA TruncatedSVD FactorAnalysis FastICA NMF",
    "sklearn.feature_selection": (
        "SelectKBest SelectPercentile SelectFpr SelectFdr SelectFwe VarianceThreshold"
    ),
    "sklearn.cluster": "KMeans MiniBatchKMeans",
}
FUNCTIONS = {
    "numpy": (
        "absolute arccosh arcsinh arctan arctanh cbrt ceil clip cos cosh deg2rad degrees exp exp2 "
        "expm1 fabs floor log log10 log1p log2 nan_to_num negative positive rad2deg "
        "radians reciprocal rint round sign sin sinh sqrt square tan tanh trunc"
    ),
    "scipy.special": "boxcox boxcox1p cbrt exp10 exp2 expit expm1 inv_boxcox log1p logit",
    "sklearn.feature_selection": (
        "chi2 f_classif f_regression mutual_info_classif mutual_info_regression r_regression"
    ),
}
BUILTINS = {t.__name__: t for t in (bool, int, float, complex, str, bytes, object)}


def _full_names(table: dict[str, str]) -> dict[str, list[str]]:
    """Return where each short name stands, such as log1p in numpy and in scipy.special."""
    found: dict[str, list[str]] = {}
    for module, names in table.items():
        for name in names.split():
            found.setdefault(name, []).append(f"{module}.{name}")
    return found


_CLASSES, _FUNCTIONS = _full_names(CLASSES), _full_names(FUNCTIONS)


def class_name(cls: type) -> str | None:
    """Return the name that a file may call a class by; None where it may not."""
    return _name_of(cls, _CLASSES.get(cls.__name__, []), named_class)


def function_name(function: Any) -> str | None:
    """Return the name that a file may call a function by; None where it may not."""
    name = getattr(function, "__name__", None)
    return _name_of(function, _FUNCTIONS.get(str(name), []), named_function)


def type_name(cls: type) -> str | None:
    """Return the name of a type of numbers or text: ``numpy.float64``, ``builtins.object``."""
    if BUILTINS.get(cls.__name__) is cls:
        return f"builtins.{cls.__name__}"
    known = issubclass(cls, np.generic) and getattr(np, cls.__name__, None) is cls
    return f"numpy.{cls.__name__}" if known else None


def _name_of(thing: Any, names: list[str], named: Any) -> str | None:
    for name in names:
        try:
            if named(name) is thing:
                return name
        except SavingError:  # not in the installed version
            continue
    return None


def named_class(name: str) -> type:
    """Return the class that a file names, or raise."""
    module, _, short = name.rpartition(".")
    if name not in _CLASSES.get(short, []):
        raise SavingError(f"it names the class {name!r:.80}, which voicecf does not load.")
    return _imported(module, short)  # type: ignore[no-any-return]


def named_function(name: str) -> Any:
    """Return the function that a file names, or raise."""
    module, _, short = name.rpartition(".")
    if name not in _FUNCTIONS.get(short, []):
        raise SavingError(f"it names the function {name!r:.80}, which voicecf does not load.")
    return _imported(module, short)


def named_type(name: str) -> type:
    """Return the type of numbers or text that a file names, or raise."""
    module, _, short = name.partition(".")
    found = BUILTINS.get(short) if module == "builtins" else getattr(np, short, None)
    if not isinstance(found, type) or type_name(found) != name:
        raise SavingError(f"it names the type {name!r:.80}, which voicecf does not load.")
    return found


def _imported(module: str, name: str) -> Any:
    try:
        return getattr(import_module(module), name)
    except (ImportError, AttributeError):
        raise SavingError(
            f"it needs {module}.{name}, which is not installed here; install the versions that "
            "the file was written with."
        ) from None
