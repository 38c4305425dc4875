"""The ten datasets of the paper: found on this machine, or downloaded once and checked."""

from __future__ import annotations

import hashlib
import os
import sys
from bisect import bisect_right
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import partial
from http.client import HTTPException
from importlib import import_module
from io import BytesIO
from pathlib import Path, PurePosixPath
from secrets import token_hex
from threading import Timer
from time import monotonic
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen
from zipfile import BadZipFile, ZipFile

import numpy as np
import numpy.typing as npt
from sklearn import datasets as bundled
from sklearn.preprocessing import StandardScaler

from voicecf.errors import OptionError, VoiceError, listed

__all__ = ["Dataset", "DatasetError", "cache_folder", "load", "names"]

Floats = npt.NDArray[np.float64]

# Where the archives publish their files: the base of every address that is tried.
ARCHIVES = {
    "uci": "https://archive.ics.uci.edu/static/public",
    "palmerpenguins": (
        "https://raw.githubusercontent.com/allisonhorst/palmerpenguins/main/inst/extdata"
    ),
}
# Seconds: until a silent server is given up, until a whole download is, until it is announced.
SILENCE = 30.0
DEADLINE = 300.0
PATIENCE = 2.0
# Bytes: the largest download is 0.1 MB, so that more than this is not one of our files.
LARGEST = 1 << 26
# How a zip begins.
ZIP = b"PK\x03\x04"


class DatasetError(VoiceError):
    """A dataset's file is missing, damaged, or could not be fetched or stored."""


@dataclass(frozen=True, eq=False)
class Dataset:
    """A dataset as its user sees it, and as the paper encodes it.

    Attributes
    ----------
    name : str
        What `load` calls it.
    title : str
        What the paper's tables call it.
    frame : pandas.DataFrame of n rows
        The original columns, without the label and what the paper leaves out. Row i is row i of X.
    label : int array of shape (n,)
        The known classes, which clusterings are compared with. They are no part of `frame` or `X`.
    label_names : tuple of str
        What the codes in `label` stand for.
    X : array of shape (n, d)
        The paper's encoding, not standardised: numbers first, then one column for each level of a
        category but the first.
    feature_names : tuple of str
        The columns of `X`.
    blocks : dict of str to list of int
        For each category in `frame`, its positions in `X`.
    """

    name: str
    title: str
    frame: Any = field(repr=False)
    label: npt.NDArray[np.int64] = field(repr=False)
    label_names: tuple[str, ...]
    X: Floats = field(repr=False)
    feature_names: tuple[str, ...] = field(repr=False)
    blocks: dict[str, list[int]] = field(repr=False)

    @property
    def k(self) -> int:
        """Number of classes, and of the paper's clusters."""
        return len(self.label_names)

    def standardised(self) -> Floats:
        """Return X with mean 0 and variance 1 in every column, as all of the paper's tables use it.

        Returns
        -------
        array of shape (n, d)
        """
        scaled: Floats = StandardScaler().fit_transform(self.X)
        return scaled


def names() -> list[str]:
    """Name the datasets, in the order of the paper.

    Returns
    -------
    list of str
    """
    return list(CATALOGUE)


def load(name: str) -> Dataset:
    """Load one of the paper's ten datasets.

    Iris, Wine and Breast Cancer come with scikit-learn. The file of another is looked for in the
    folder that the environment variable VOICECF_DATA names, then in the cache folder
    (`cache_folder`), under our name or its archive's; then it is downloaded into the cache. Either
    way its sha256 is checked. Diabetes cannot be downloaded: its error says where to get it.

    Parameters
    ----------
    name : str
        One of `names()`.

    Returns
    -------
    Dataset

    Examples
    --------
    >>> from voicecf.datasets import load
    >>> iris = load("iris")
    >>> iris.X.shape, iris.k, iris.label_names
    ((150, 4), 3, ('setosa', 'versicolor', 'virginica'))
    """
    if not isinstance(name, str) or name not in CATALOGUE:
        raise OptionError(f"unknown dataset {name!r}; {_likely(name)}")
    recipe = CATALOGUE[name]
    frame = recipe.table()
    classes = _pandas().Categorical(frame[recipe.label])
    frame = frame.drop(columns=[recipe.label, *recipe.excluded])
    whole = frame.notna().all(axis=1).to_numpy()
    frame = frame[whole].reset_index(drop=True)
    X, features, blocks = _encoded(frame)
    return Dataset(
        name=name,
        title=recipe.title,
        frame=frame,
        label=classes.codes[whole].astype(np.int64),
        label_names=tuple(str(level) for level in classes.categories),
        X=X,
        feature_names=tuple(features),
        blocks=blocks,
    )


def cache_folder() -> Path:
    """Return the folder that downloads are kept in; it need not exist yet.

    VOICECF_CACHE if set, else `voicecf` in the user's cache folder on this platform.

    Returns
    -------
    pathlib.Path
    """
    if given := os.environ.get("VOICECF_CACHE"):
        return Path(given).expanduser()
    try:
        home = Path.home()
    except RuntimeError as error:
        raise DatasetError("this user has no home folder: set VOICECF_CACHE to one.") from error
    if sys.platform == "darwin":
        return home / "Library" / "Caches" / "voicecf"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or home / "AppData/Local") / "voicecf" / "Cache"
    given = os.environ.get("XDG_CACHE_HOME", "")
    # The XDG rules say to ignore a relative path.
    return (Path(given) if os.path.isabs(given) else home / ".cache") / "voicecf"


@dataclass(frozen=True)
class File:
    """A file of ours, and what its archive publishes it as.

    `derive` makes our bytes of the archive's. `part` is the address below the archive's; without
    an archive there is no download. `page` is where a person finds it. `derived_sha256` is
    that of what `derive` returns, where this is not our file to the byte.
    """

    name: str
    sha256: str
    published: str
    page: str
    archive: str | None = None
    part: str = ""
    derive: Callable[[bytes], bytes] = bytes
    derived_sha256: str = ""

    @property
    def address(self) -> str | None:
        """Where the file is downloaded from, if it can be."""
        return f"{ARCHIVES[self.archive]}/{self.part}" if self.archive else None


@dataclass(frozen=True)
class Recipe:
    """How a dataset is made of a table: its label, and the columns that the paper leaves out."""

    title: str
    table: Callable[[], Any]
    label: str = "target"
    excluded: tuple[str, ...] = ()


def _likely(name: Any) -> str:
    spelt = (
        name.strip().lower().replace(" ", "_").replace("-", "_") if isinstance(name, str) else ""
    )
    close = get_close_matches(spelt, list(CATALOGUE), 1, cutoff=0.5)
    return f"did you mean {close[0]!r}?" if close else f"there are {listed(CATALOGUE, 10)}."


def _package(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise DatasetError(f"datasets need {name}: pip install {name}") from error


def _pandas() -> Any:
    return _package("pandas")


def _encoded(frame: Any) -> tuple[Floats, list[str], dict[str, list[int]]]:
    """Return X, its column names, and the positions of each category's columns."""
    pandas = _pandas()
    numbers = [c for c in frame.columns if pandas.api.types.is_numeric_dtype(frame[c])]
    features: list[str] = list(numbers)
    columns = [frame[numbers].to_numpy(float)]
    blocks = {}
    for name in [c for c in frame.columns if c not in numbers]:
        block = pandas.get_dummies(frame[name], prefix=name, drop_first=True, dtype=float)
        blocks[name] = list(range(len(features), len(features) + block.shape[1]))
        features.extend(block.columns)
        columns.append(block.to_numpy())
    return np.ascontiguousarray(np.hstack(columns)), features, blocks


def _shipped(bunch: Callable[[], Any]) -> Any:
    """Return a dataset of scikit-learn's as a table, its classes in the column `target`."""
    pandas = _pandas()
    data = bunch()
    frame = pandas.DataFrame(data.data, columns=list(data.feature_names))
    target = pandas.Categorical.from_codes(data.target, categories=list(data.target_names))
    return frame.assign(target=target)


def _iris() -> Any:
    frame = _shipped(bundled.load_iris)
    # The paper's Iris is UCI's, which differs from Fisher's in three cells.
    for row, column, value in [(34, 3, 0.1), (37, 1, 3.1), (37, 2, 1.5)]:
        frame.iloc[row, column] = value
    return frame


def _table(file: File) -> Any:
    pandas = _pandas()
    content = _content(file)
    if content.startswith(b"PAR1"):
        _package("pyarrow")
        frame = pandas.read_parquet(BytesIO(content), engine="pyarrow")
    else:
        # Only NA is missing: Obesity's "no" is a level, and so would be "None".
        frame = pandas.read_csv(BytesIO(content), keep_default_na=False, na_values=["NA"])
    frame.columns = frame.columns.str.strip()
    return frame


def _small_integers(file: File) -> Any:
    return _table(file).astype("int8")


# German Credit's attributes in the order of the archive, with the codes of their levels. The file's
# one-hot form leaves out the first level named here and has columns for the others, in this order.
GERMAN: dict[str, dict[str, str]] = {
    "checking_status": {"A12": "0<=X<200", "A11": "<0", "A13": ">=200", "A14": "no checking"},
    "duration": {},
    "credit_history": {
        "A31": "all paid",
        "A34": "critical/other existing credit",
        "A33": "delayed previously",
        "A32": "existing paid",
        "A30": "no credits/all paid",
    },
    "purpose": {
        "A44": "domestic appliance",
        "A40": "new car",
        "A41": "used car",
        "A49": "business",
        "A46": "education",
        "A42": "furniture/equipment",
        "A410": "other",
        "A43": "radio/tv",
        "A45": "repairs",
        "A48": "retraining",
    },
    "credit_amount": {},
    "savings_status": {
        "A62": "100<=X<500",
        "A63": "500<=X<1000",
        "A61": "<100",
        "A64": ">=1000",
        "A65": "no known savings",
    },
    "employment": {
        "A73": "1<=X<4",
        "A74": "4<=X<7",
        "A72": "<1",
        "A75": ">=7",
        "A71": "unemployed",
    },
    "installment_commitment": {},
    "personal_status": {
        "A92": "female div/dep/mar",
        "A91": "male div/sep",
        "A94": "male mar/wid",
        "A93": "male single",
    },
    "other_parties": {"A102": "co applicant", "A103": "guarantor", "A101": "none"},
    "residence_since": {},
    "property_magnitude": {
        "A122": "life insurance",
        "A124": "no known property",
        "A121": "real estate",
        "A123": "car",
    },
    "age": {},
    "other_payment_plans": {"A141": "bank", "A143": "none", "A142": "stores"},
    "housing": {"A153": "for free", "A152": "own", "A151": "rent"},
    "existing_credits": {},
    "job": {
        "A174": "high qualif/self emp/mgmt",
        "A171": "unemp/unskilled non res",
        "A172": "unskilled resident",
        "A173": "skilled",
    },
    "num_dependents": {},
    "own_telephone": {"A191": "none", "A192": "yes"},
    "foreign_worker": {"A202": "no", "A201": "yes"},
}


def _german(file: File) -> Any:
    """Return the 20 attributes instead of the file's one-hot columns, as a lender knows them.

    The levels are in the order of `GERMAN`, so that encoding them gives the file's columns back.
    """
    pandas = _pandas()
    coded = _table(file)
    columns = {"default": coded["default"]}
    for name, levels in GERMAN.items():
        if not levels:
            columns[name] = coded[name]
            continue
        block = coded[[f"{name}_{level}" for level in list(levels.values())[1:]]].to_numpy()
        codes = block @ np.arange(1, len(levels))
        columns[name] = pandas.Categorical.from_codes(codes, categories=list(levels.values()))
    return pandas.DataFrame(columns)


def _unix_lines(content: bytes) -> bytes:
    return content.replace(b"\r\n", b"\n")


def _student(content: bytes) -> bytes:
    """Return the archive's semicolons and quotes as commas, with the final grade's class added."""
    plain = content.decode().replace('"', "").replace(";", ",")
    header, *rows = plain.splitlines()
    classes = [4 - bisect_right([8, 10, 13, 16], int(row.rsplit(",", 1)[1])) for row in rows]
    lines = [f"{header},derived_pseudo_classifier"]
    lines += [f"{row},{grade}" for row, grade in zip(rows, classes, strict=True)]
    return "".join(f"{line}\n" for line in lines).encode()


def _one_hot_german(content: bytes) -> bytes:
    """Return the archive's coded attributes as numbers and zeros and ones, under a header."""
    numbers = [name for name, levels in GERMAN.items() if not levels]
    kept = {name: list(levels)[1:] for name, levels in GERMAN.items() if levels}
    header = ["default", *numbers]
    header += [f"{name}_{GERMAN[name][code]}" for name, codes in kept.items() for code in codes]
    lines = [header]
    for line in content.decode().splitlines():
        *attributes, risk = line.split()
        row = dict(zip(GERMAN, attributes, strict=True))
        hot = [str(int(row[name] == code)) for name, codes in kept.items() for code in codes]
        lines.append([str(int(risk) - 1), *(row[name] for name in numbers), *hot])
    return "".join(",".join(line) + "\n" for line in lines).encode()


def _content(file: File) -> bytes:
    """Return the checked bytes of a file: found locally, else downloaded and kept."""
    for folder in _folders():
        if (found := _found(file, folder)) is not None:
            return found
    return _fetched(file)


def _folders() -> Iterator[Path]:
    if given := os.environ.get("VOICECF_DATA"):
        folder = Path(given).expanduser()
        if not folder.is_dir():
            raise DatasetError(f"VOICECF_DATA={given} is no folder; correct it, or unset it.")
        yield folder
    yield cache_folder()


def _found(file: File, folder: Path) -> bytes | None:
    """Return the file if the folder has it, under our name or the archive's."""
    for name in dict.fromkeys([file.name, file.published]):
        path = folder / name
        try:
            content = path.read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            raise _error(file, f"{path} could not be read: {error.strerror}.") from error
        if name == file.name and _sha256(content) == file.sha256:
            return content
        if name == file.published and (derived := _derived(file, content)) is not None:
            return derived
        what = f"{path} is not the file that the paper used: its sha256 is {_sha256(content)}."
        raise _error(file, f"{what} Replace it or take it away.")
    return None


def _fetched(file: File) -> bytes:
    """Download a file, check it, keep it in the cache folder."""
    address = file.address
    if address is None:
        raise _error(file, f"{file.name} is not on this machine, and voicecf cannot download it.")
    try:
        content = _unpacked(_downloaded(address, file), file.published)
    except (OSError, HTTPException, BadZipFile, KeyError) as error:
        raise _error(file, f"{file.name} could not be downloaded: {_reason(error)}.") from error
    derived = _derived(file, content)
    if derived is None:
        what = f"what was downloaded as {file.published} is not what the paper used: its sha256 is"
        raise _error(file, f"{what} {_sha256(content)}. It was not kept.")
    path = cache_folder() / file.name
    try:
        _store(path, derived)
    except OSError as error:
        what = f"{file.name} was downloaded, but could not be stored in {path.parent}:"
        remedy = "Set VOICECF_CACHE to a folder with room that you may write to."
        raise _error(file, f"{what} {error.strerror or error}. {remedy}") from error
    return derived


def _downloaded(address: str, file: File) -> bytes:
    request = Request(address, headers={"User-Agent": "voicecf"})
    with _announced(f"voicecf: downloading {file.name} from {address}"):
        started = monotonic()
        with urlopen(request, timeout=SILENCE) as answer:
            length = answer.headers.get("Content-Length", "")
            promised = int(length) if length.isdigit() else 0
            body = bytearray()
            # read1 returns what is there, so that a trickle cannot put off the deadline.
            while len(body) < (promised or LARGEST) and (chunk := answer.read1(1 << 16)):
                body += chunk
                if monotonic() - started > DEADLINE:
                    raise TimeoutError
    if len(body) < promised:
        raise ConnectionError(f"{len(body)} of {promised} bytes came")
    return bytes(body)


@contextmanager
def _announced(line: str) -> Iterator[None]:
    """Print a line on stderr if what is inside takes long."""
    timer = Timer(PATIENCE, print, [line], {"file": sys.stderr, "flush": True})
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _unpacked(content: bytes, name: str) -> bytes:
    """Return the named file of a zip; what is no zip is the file itself."""
    if not content.startswith(ZIP):
        return content
    try:
        return _member(content, name)
    except KeyError:
        raise
    except Exception as error:  # each decompressor has its own way to fail
        raise BadZipFile(str(error)) from error


def _member(content: bytes, name: str) -> bytes:
    """Return the named file of a zip, or of a zip in it."""
    with ZipFile(BytesIO(content)) as archive:
        for entry in archive.namelist():
            if PurePosixPath(entry).name == name:
                return archive.read(entry)
        # By name, not content: Student's zip also holds `.student.zip_old`.
        inner = [archive.read(entry) for entry in archive.namelist() if entry.endswith(".zip")]
    for content in inner:
        with suppress(KeyError):
            if content.startswith(ZIP):
                return _member(content, name)
    raise KeyError(name)


def _derived(file: File, content: bytes) -> bytes | None:
    """Return our form of the archive's bytes; None if they are not the ones we know."""
    try:
        derived = file.derive(content)
    except (ValueError, KeyError, IndexError):
        return None
    return derived if _sha256(derived) == (file.derived_sha256 or file.sha256) else None


def _store(path: Path, content: bytes) -> None:
    """Write a file so that under its name there is all of it or nothing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{token_hex(8)}.part")
    try:
        with part.open("xb") as handle:
            handle.write(content)
            handle.flush()
            os.fsync(handle.fileno())
        os.replace(part, path)
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _reason(error: Exception) -> str:
    """Say in a few words why a download failed."""
    cause = error.reason if isinstance(error, URLError) else error
    if isinstance(error, HTTPError):
        error.close()
        return f"the server answered {error.code} {error.reason}"
    if isinstance(cause, TimeoutError):
        return "the server took too long"
    if isinstance(error, URLError):
        return f"no connection ({getattr(cause, 'strerror', None) or cause})"
    if isinstance(error, BadZipFile):
        return "the zip that came is damaged"
    if isinstance(error, KeyError):
        return f"the zip that came has no {error.args[0]!r}"
    return f"the transfer broke off ({error})"


def _error(file: File, what: str) -> DatasetError:
    """Return an error that says what happened, what was tried, and how to do it by hand."""
    lines = [what]
    if file.address:
        lines.append(f"  address: {file.address}")
    lines.append(f"  sha256 of {file.name}: {file.sha256}")
    if file.derived_sha256:
        lines.append(f"  sha256 of {file.published}: {file.derived_sha256}")
    lines.append(f"  by hand: get {file.published!r} from {file.page}")
    either = "it" if file.name == file.published else f"it, or {file.name},"
    lines.append(
        f"  and put {either} into {cache_folder()} or into the folder that VOICECF_DATA names."
    )
    return DatasetError("\n".join(lines))


CATALOGUE = {
    "iris": Recipe("Iris", _iris),
    "wine": Recipe("Wine", partial(_shipped, bundled.load_wine)),
    "penguins": Recipe(
        "Palmer Penguins",
        partial(
            _table,
            File(
                "penguins.csv",
                "f204db2c753b0937caac3cb35258562c14f073e4bbc76be24b4c51ce22767a93",
                published="penguins.csv",
                page="https://github.com/allisonhorst/palmerpenguins (inst/extdata)",
                archive="palmerpenguins",
                part="penguins.csv",
            ),
        ),
        label="species",
        excluded=("island", "sex", "year"),
    ),
    "breast_cancer": Recipe("Breast Cancer", partial(_shipped, bundled.load_breast_cancer)),
    "wholesale": Recipe(
        "Wholesale Customers",
        partial(
            _table,
            File(
                "wholesale_customers.csv",
                "d0213b7d856bc7f98f2f52a86bedb5cb57d5b8e19959605e75bd4532d4ee0896",
                published="Wholesale customers data.csv",
                page="https://doi.org/10.24432/C5030X",
                archive="uci",
                part="292/wholesale+customers.zip",
                derive=_unix_lines,
            ),
        ),
        label="Region",
        excluded=("Channel",),
    ),
    "diabetes": Recipe(
        "Diabetes",
        partial(
            _small_integers,
            # UCI 891 has two classes only, so that there is nothing to download there.
            File(
                "diabetes_012.parquet",
                "28de0b191482f63f456926bed9752a2032162efe16090e24c7245c3636102e8c",
                published="diabetes_012_health_indicators_BRFSS2015.csv",
                page="https://www.kaggle.com/datasets/alexteboul/diabetes-health-indicators-dataset",
                derived_sha256="a971809d0786d2d7d7f6070f83dfe8af9d860ea33a79e0e2701c8a49f78f9861",
            ),
        ),
        label="Diabetes_012",
        excluded=("BMI",),
    ),
    "obesity": Recipe(
        "Obesity",
        partial(
            _table,
            File(
                "obesity.csv",
                "b62e1eb1c8c981379bee23e39e35683f5455683bd772dc722827158dde929a1f",
                published="ObesityDataSet_raw_and_data_sinthetic.csv",
                page="https://doi.org/10.24432/C5H31Z",
                archive="uci",
                part="544/estimation+of+obesity+levels+based+on+eating+habits"
                "+and+physical+condition.zip",
                derive=_unix_lines,
            ),
        ),
        label="NObeyesdad",
        excluded=("Weight",),
    ),
    "german_credit": Recipe(
        "German Credit",
        partial(
            _german,
            File(
                "german_credit.csv",
                "2c39697c82de45ea2341445df98b7e8a4bcf39a793e7d2020b02aa5a00f1b237",
                published="german.data",
                page="https://doi.org/10.24432/C5NC77",
                archive="uci",
                part="144/statlog+german+credit+data.zip",
                derive=_one_hot_german,
            ),
        ),
        label="default",
    ),
    "heart_failure": Recipe(
        "Heart Failure",
        partial(
            _table,
            File(
                "heart_failure.csv",
                "9c73cea7468ff5d517801ec050fe9993da5912fce4b56f296f8df3b38dd75912",
                published="heart_failure_clinical_records_dataset.csv",
                page="https://doi.org/10.24432/C5Z89R",
                archive="uci",
                part="519/heart+failure+clinical+records.zip",
            ),
        ),
        label="DEATH_EVENT",
    ),
    "student": Recipe(
        "Student Performance",
        partial(
            _table,
            File(
                "student_por.csv",
                "1eab55b9768a07b3fa8b55b9a47227246b4877705d5ce2089a48589a08828b71",
                published="student-por.csv",
                page="https://doi.org/10.24432/C5TG7T",
                archive="uci",
                part="320/student+performance.zip",
                derive=_student,
            ),
        ),
        label="derived_pseudo_classifier",
        excluded=("G1", "G2", "G3"),
    ),
}
