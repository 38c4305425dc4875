"""The types and functions that a saved file may name. Nothing else is imported for a file."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib import import_module
from typing import Any

NUMBERS = (
    "bool bool_ int8 int16 int32 int64 uint8 uint16 uint32 uint64 intc longlong ulonglong float16 "
    "float32 float64 str_ datetime64 timedelta64"
)
# For each kind of node in a file of skops, the modules and names that it may have.
TRUSTED = {
    "DictNode": {"builtins": "dict"},
    "ListNode": {"builtins": "list"},
    "TupleNode": {"builtins": "tuple"},
    "SliceNode": {"builtins": "slice"},
    "BytesNode": {"builtins": "bytes"},
    "JsonNode": {"builtins": "str"},
    "DTypeNode": {"numpy": "dtype"},
    "NdArrayNode": {"numpy": f"ndarray {NUMBERS}"},
    "TypeNode": {"builtins": "int float str object", "numpy": f"number {NUMBERS}"},
    "ConstructorFromReduceNode": {"datetime": "date datetime time timedelta", "decimal": "Decimal"},
    "ObjectNode": {
        "voicecf.shark": "SHARK",
        "sklearn.pipeline": "Pipeline FeatureUnion",
        "sklearn.compose": "ColumnTransformer make_column_selector",
        "sklearn.preprocessing": (
            "StandardScaler MinMaxScaler RobustScaler MaxAbsScaler Normalizer PowerTransformer "
            "QuantileTransformer FunctionTransformer OrdinalEncoder OneHotEncoder TargetEncoder "
            "KBinsDiscretizer PolynomialFeatures Binarizer LabelBinarizer"
        ),
        "sklearn.impute": "SimpleImputer MissingIndicator KNNImputer",
        "sklearn.decomposition": "PCA IncrementalPCA TruncatedSVD FactorAnalysis FastICA NMF",
        "sklearn.feature_selection": (
            "SelectKBest SelectPercentile SelectFpr SelectFdr SelectFwe VarianceThreshold"
        ),
        "sklearn.cluster": "KMeans MiniBatchKMeans MeanShift AffinityPropagation",
        "sklearn.mixture": "GaussianMixture BayesianGaussianMixture",
        "sklearn.linear_model": (
            "LogisticRegression LogisticRegressionCV RidgeClassifier RidgeClassifierCV "
            "SGDClassifier Perceptron"
        ),
        "sklearn.svm": "LinearSVC",
        "sklearn.discriminant_analysis": "LinearDiscriminantAnalysis",
        "sklearn.naive_bayes": "MultinomialNB ComplementNB BernoulliNB",
        "sklearn.neighbors": "NearestCentroid",
        "sklearn.multiclass": "OneVsRestClassifier",
    },
    "FunctionNode": {
        "numpy": (
            "absolute arccosh arcsinh arctan arctanh cbrt ceil clip cos cosh deg2rad degrees exp "
            "exp2 expm1 fabs floor log log10 log1p log2 nan_to_num negative positive rad2deg "
            "radians reciprocal rint round sign sin sinh sqrt square tan tanh trunc"
        ),
        "scipy.special": "boxcox boxcox1p cbrt exp10 exp2 expit expm1 inv_boxcox log1p logit",
        "sklearn.feature_selection": (
            "chi2 f_classif f_regression mutual_info_classif mutual_info_regression r_regression"
        ),
    },
}
# Explainers are no nodes: their own classes make them of what was saved.
EXPLAINERS = {"VoICE": "voicecf.voice", "CFCLUST": "voicecf.cfclust"}


@cache
def trusted(kind: str) -> set[str]:
    """Return the full names that a kind of node may have: of a class, where it is defined.

    pandas.NA, which files call by its name as they do functions, is there without a need of pandas.

    Examples
    --------
    >>> from voicecf.saving.trusted import trusted
    >>> "numpy.log1p" in trusted("FunctionNode"), "os.system" in trusted("FunctionNode")
    (True, False)
    """
    if kind == "FunctionNode":
        return {"pandas.NA", *(f"{module}.{name}" for module, name, _ in _listed(kind))}
    return {f"{found.__module__}.{found.__name__}" for _, _, found in _listed(kind)}


def public_module(function: Any) -> str | None:
    """Return the module that a file calls a function by; None if it may not name it."""
    return next((module for module, _, found in _listed("FunctionNode") if found is function), None)


def _listed(kind: str) -> Iterator[tuple[str, str, Any]]:
    """Yield module, name and object of every entry that the installed versions have."""
    for module, names in TRUSTED.get(kind, {}).items():
        for name in names.split():
            found = vars(import_module(module)).get(name)  # no __getattr__: numpy 1 warns of bool
            if found is not None:
                yield module, name, found
