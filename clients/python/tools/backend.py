"""Builds the package by PEP 517 with the standard library alone. It writes nothing into the tree of the sources, which
may be read-only, and needs no other package."""

from __future__ import annotations

import ast
import base64
import csv
import hashlib
import io
import tarfile
import zipfile
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

ROOT = Path(__file__).resolve().parent.parent
NAME = "hero_client"
SOURCES = "https://example.org/hero/blob/main/"
# The time of all members, so that two builds are equal: the first that a ZIP file can have.
TIME = (1980, 1, 1, 0, 0, 0)


def build_wheel(wheel_directory: str, config_settings: Any = None, metadata_directory: Optional[str] = None) -> str:
    """Writes the wheel into a folder. Returns its name."""
    return _wheel(wheel_directory, {f"{NAME}/{one.name}": one.read_bytes() for one in _modules()})


def build_editable(wheel_directory: str, config_settings: Any = None, metadata_directory: Optional[str] = None) -> str:
    """Writes a wheel that names the folder of the sources. Returns its name."""
    return _wheel(wheel_directory, {f"{NAME}.pth": f"{ROOT / 'src'}\n".encode()})


def build_sdist(sdist_directory: str, config_settings: Any = None) -> str:
    """Writes the archive of the sources into a folder. Returns its name."""
    base = f"{NAME}-{_project()['version']}"
    members = {"PKG-INFO": _metadata().encode()}
    for one in [*_modules(), *sorted((ROOT / "tests").glob("*.py")), *sorted((ROOT / "tools").glob("*.py"))]:
        members[one.relative_to(ROOT).as_posix()] = one.read_bytes()
    for name in ("README.md", "pyproject.toml"):
        members[name] = (ROOT / name).read_bytes()
    with tarfile.open(Path(sdist_directory) / f"{base}.tar.gz", "w:gz", format=tarfile.PAX_FORMAT) as archive:
        for name, content in members.items():
            member = tarfile.TarInfo(f"{base}/{name}")
            member.size, member.mode = len(content), 0o644
            archive.addfile(member, io.BytesIO(content))
    return f"{base}.tar.gz"


def _modules() -> List[Path]:
    folder = ROOT / "src" / NAME
    return sorted(one for one in folder.iterdir() if one.suffix == ".py" or one.name == "py.typed")


def _wheel(folder: str, members: Dict[str, bytes]) -> str:
    base = f"{NAME}-{_project()['version']}"
    info = f"{base}.dist-info"
    members[f"{info}/METADATA"] = _metadata().encode()
    members[f"{info}/WHEEL"] = b"Wheel-Version: 1.0\nGenerator: hero\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    record = io.StringIO()
    rows = csv.writer(record, lineterminator="\n")
    for name, content in members.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        rows.writerow([name, f"sha256={digest}", len(content)])
    rows.writerow([f"{info}/RECORD", "", ""])
    members[f"{info}/RECORD"] = record.getvalue().encode()
    wheel = f"{base}-py3-none-any.whl"
    with zipfile.ZipFile(Path(folder) / wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            member = zipfile.ZipInfo(name, TIME)
            member.external_attr = 0o644 << 16
            member.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(member, content)
    return wheel


def _metadata() -> str:
    project = _project()
    lines = [
        "Metadata-Version: 2.1",
        f"Name: {project['name']}",
        f"Version: {project['version']}",
        f"Summary: {project['description']}",
        f"License: {project['license']['text']}",
        f"Requires-Python: {project['requires-python']}",
        *(f"Classifier: {one}" for one in project["classifiers"]),
    ]
    for extra, needs in project["optional-dependencies"].items():
        lines += [f"Provides-Extra: {extra}", *(f'Requires-Dist: {one}; extra == "{extra}"' for one in needs)]
    # Links that lead out of the package lead to the sources.
    readme = (ROOT / "README.md").read_text(encoding="utf-8").replace("](../../", f"]({SOURCES}")
    return "\n".join([*lines, "Description-Content-Type: text/markdown", "", readme])


def _project() -> Dict[str, Any]:
    """Returns the tables of pyproject.toml that name the package. Python 3.9 has no reader of TOML: each value of these
    is on one line, or a list of texts, and reads as Python."""
    project: Dict[str, Any] = {}
    table: Optional[Dict[str, Any]] = None
    for key, value in _pairs((ROOT / "pyproject.toml").read_text(encoding="utf-8")):
        if value is None:
            own, _, inner = key.partition(".")
            table = None if own != "project" else project.setdefault(inner, {}) if inner else project
        elif table is not None:
            text = value.replace("{ ", "{'").replace(" = ", "': ") if value.startswith("{") else value
            table[key] = ast.literal_eval(text)
    return project


def _pairs(text: str) -> List[Tuple[str, Optional[str]]]:
    """Returns the names of tables, and the keys with their values."""
    pairs: List[Tuple[str, Optional[str]]] = []
    for line in text.splitlines():
        key, is_pair, value = line.partition(" = ")
        if line.startswith("[") and not is_pair:
            pairs.append((line.strip("[]"), None))
        elif is_pair and not line.startswith((" ", "#")):
            pairs.append((key, value))
        elif pairs and pairs[-1][1] is not None and line and not line.startswith("#"):
            pairs[-1] = (pairs[-1][0], f"{pairs[-1][1]} {line.strip()}")
    return pairs
