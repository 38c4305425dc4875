"""Print the oldest versions that pyproject.toml allows, as constraints for pip: ``numpy==1.26``."""

import re
import tomllib
from pathlib import Path

PROJECT = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text())["project"]
# A name, perhaps with extras in brackets, and the least version.
LEAST = re.compile(r"(?P<name>[\w-]+)(\[.*\])?>=(?P<version>[\w.]+)")


def oldest() -> dict[str, str]:
    """Return the least version of each requirement, those of the tests included.

    Examples
    --------
    >>> oldest()["tqdm"]
    '4.66'
    """
    required = [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["test"]]
    found = (LEAST.match(requirement) for requirement in required)
    return {match["name"]: match["version"] for match in found if match}


if __name__ == "__main__":
    print("\n".join(f"{name}=={version}" for name, version in oldest().items()))
