"""The types and functions that a saved file may name. Nothing else is imported for a file."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib import import_module
from typing import Any

CLASSES = {
    "voicecf.shark": "SHARK",
    "sklearn.pipeline": "Pipeline FeatureUnion",
    "sklearn.compose": "ColumnTransformer make_column_selector",
    "sklearn.preprocessing": (
        "StandardScaler MinMaxScaler RobustScaler MaxAbsScaler Normalizer PowerTransformer "
        "QuantileTransformer FunctionTransformer OrdinalEncoder OneHotEncoder TargetEncoder "
        "LabelEncoder LabelBinarizer KBinsDiscretizer PolynomialFeatures Binarizer"
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
NUMBERS = {
    "numpy": (
        "bool bool_ int8 int16 int32 int64 uint8 uint16 uint32 uint64 intc longlong ulonglong "
        "float16 float32 float64 str_ datetime64 timedelta64"
    )
}
# Types that dates and the like are made of again, from the arguments that stand in the file.
MADE = {"datetime": "date datetime time timedelta", "decimal": "Decimal"}
# Types by name: of the keys of a dict, and of options such as dtype=float.
NAMED = {"builtins": "int float str object", "numpy": f"{NUMBERS['numpy']} number"}
# Where the explainers are, which are made again by their own classes.
EXPLAINERS = {"VoICE": "voicecf.voice", "CFCLUST": "voicecf.cfclust"}


@cache
def trusted() -> dict[str, set[str]]:
    """Return the full names that each kind of node in a file of skops may have.

    Examples
    --------
    >>> from voicecf.saving.trusted import trusted
    >>> "numpy.log1p" in trusted()["FunctionNode"], "os.system" in trusted()["FunctionNode"]
    (True, False)
    """
    return {
        "DictNode": {"builtins.dict"},
        "ListNode": {"builtins.list"},
        "TupleNode": {"builtins.tuple"},
        "SliceNode": {"builtins.slice"},
        "BytesNode": {"builtins.bytes"},
        "JsonNode": {"builtins.str"},
        "DTypeNode": {"numpy.dtype"},
        "NdArrayNode": {"numpy.ndarray", *_full_names(NUMBERS)},
        "TypeNode": _full_names(NAMED),
        "ObjectNode": _full_names(CLASSES),
        "FunctionNode": {f"{module}.{name}" for module, name, _ in _listed(FUNCTIONS)},
        "ConstructorFromReduceNode": _full_names(MADE),
    }


def public_module(thing: Any) -> str | None:
    """Return the module that a file calls a function by; None if it may not name it.

    Examples
    --------
    >>> import numpy as np
    >>> from voicecf.saving.trusted import public_module
    >>> public_module(np.log1p), public_module(print)
    ('numpy', None)
    """
    return next((module for module, _, known in _listed(FUNCTIONS) if known is thing), None)


def _full_names(table: dict[str, str]) -> set[str]:
    """Return the names of classes by the modules that define them."""
    return {f"{cls.__module__}.{cls.__name__}" for _, _, cls in _listed(table)}


def _listed(table: dict[str, str]) -> Iterator[tuple[str, str, Any]]:
    """Yield module, name and object of every entry that the installed versions have."""
    for module, names in table.items():
        for name in names.split():
            found = getattr(import_module(module), name, None)
            if found is not None:
                yield module, name, found
