# SPDX-License-Identifier: Apache-2.0
"""Mesh files of a URDF: search, reading and simplification."""

from __future__ import annotations

import xml.parsers.expat as expat
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from urllib.parse import unquote, urlparse

import numpy as np

from robot_dyn_id.arrays import Array, Integers
from robot_dyn_id.errors import InputError
from robot_dyn_id.model.packages import find_package, list_installed_folders
from robot_dyn_id.model.urdf import DEEPEST
from robot_dyn_id.text.files import MIB

MESH_LIMIT = 128 * MIB
"""Largest size of a mesh file [bytes]; the loader needs several times this memory."""

Triangles = Integers

FINEST_GRID_CELLS = 256.0
"""Number of cells of the finest grid along the longest edge of a mesh."""


def find_mesh(name: str, folders: Sequence[str | Path] = ()) -> Path | None:
    """Find the file of a mesh named in a URDF.

    `package://NAME/rest` is searched in the package of this name, see `find_package`, in a folder of this name, and as
    `NAME/rest` in the folders. Other relative names are searched in the folders.

    Args:
        name: file name in the URDF.
        folders: folders to search.

    Returns:
        Path of the file, or None if it is not found.
    """
    searched = list_folders_searched(name, folders)
    if not searched:
        return None
    package, rest = _parsed(name)
    candidates = [folder / package / rest for folder in searched]  # an absolute name is not changed
    if package:
        candidates += [folder / rest for folder in searched if folder.name == package]
        found = find_package(package, folders)
        candidates += [] if found is None else [found / rest]
    return next((path for path in candidates if _is_file(path)), None)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # the name is too long
        return False


def list_folders_searched(name: str, folders: Sequence[str | Path] = ()) -> tuple[Path, ...]:
    """Folders in which `find_mesh` searches a mesh; empty for a name that cannot be a file."""
    given = tuple(Path(folder) for folder in folders)
    try:
        scheme = urlparse(name).scheme
    except ValueError:  # "http://[" is not an address
        return ()
    if scheme == "package":
        return (*given, *list_installed_folders())
    return (*given, Path()) if scheme in ("", "file") else ()


def _parsed(name: str) -> tuple[str, str]:
    """Package and path of `package://NAME/rest`; the package is empty for other names."""
    parts = urlparse(name)
    if parts.scheme == "package":
        return parts.netloc, unquote(parts.path).lstrip("/")
    return "", unquote(parts.path) if parts.scheme == "file" else name


def read_mesh(path: Path, scale: Array) -> tuple[Array, Triangles]:
    """Read a mesh file.

    Args:
        path: path of the file.
        scale: scale factors along the axes, shape (3,).

    Returns:
        Vertices [m], shape (v, 3), and vertex indices of the triangles, shape (t, 3).

    Raises:
        InputError: the file cannot be read, is too large, or is empty.
    """
    import coal

    try:
        size = path.stat().st_size
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
    if size > MESH_LIMIT:
        raise InputError(f"{path}: larger than {MESH_LIMIT / MIB:g} MiB: reduce the mesh")
    if path.suffix.lower() == ".dae":
        _refuse_deep_nesting(path)
    try:
        mesh = coal.MeshLoader().load(str(path), scale)
        vertices = np.array(mesh.vertices(), dtype=np.float64)
        corners = (mesh.tri_indices(i) for i in range(mesh.num_tris))
        triangles = np.array([[t[0], t[1], t[2]] for t in corners], dtype=np.int64)
    except Exception as error:  # the loader raises errors of different libraries
        raise InputError(f"{path}: not a mesh that can be read ({' '.join(str(error).split())[:120]})") from None
    if not len(triangles) or not np.isfinite(vertices).all():
        raise InputError(f"{path}: the mesh has no triangles, or vertices that are not finite")
    return vertices, triangles


def _refuse_deep_nesting(path: Path) -> None:
    """Check that the nesting of an XML file cannot overflow the stack of the loader.

    Raises:
        InputError: elements are nested deeper than the limit, or the file has a document type.
    """
    depth = 0

    def begin(*_: object) -> None:
        nonlocal depth
        depth += 1
        if depth > DEEPEST:
            raise InputError(f"{path}: elements are nested deeper than {DEEPEST}")

    def end(_: object) -> None:
        nonlocal depth
        depth -= 1

    def refuse(*_: object) -> None:
        raise InputError(f"{path}: a document type is not allowed")

    parser = expat.ParserCreate()
    parser.StartElementHandler = begin
    parser.EndElementHandler = end
    parser.StartDoctypeDeclHandler = refuse
    with path.open("rb") as file, suppress(expat.ExpatError):  # broken files are reported by the loader
        parser.ParseFile(file)


def simplify(vertices: Array, triangles: Triangles, limit: int) -> tuple[Array, Triangles]:
    """Simplify a mesh to at most `limit` triangles by vertex clustering (Rossignac and Borrel 1993).

    Vertices in the same cell of a cubic grid are replaced by their mean; collapsed triangles are left out. The cell
    size is close to the smallest that satisfies the limit.
    """
    if len(triangles) <= limit:
        return vertices, triangles
    low, extent = vertices.min(axis=0), float(np.ptp(vertices, axis=0).max()) or 1.0
    coarse, fine = 1.0, FINEST_GRID_CELLS
    best = _cluster(vertices, triangles, low, 2.0 * extent)
    while fine > 1.05 * coarse:
        middle = (coarse * fine) ** 0.5
        found = _cluster(vertices, triangles, low, extent / middle)
        if len(found[1]) <= limit:
            coarse, best = middle, found
        else:
            fine = middle
    return best


def _cluster(vertices: Array, triangles: Triangles, low: Array, size: float) -> tuple[Array, Triangles]:
    cells = np.floor((vertices - low) / size).astype(np.int64)
    _, number = np.unique(cells @ np.array([1, 1 << 20, 1 << 40]), return_inverse=True)
    count = np.bincount(number)
    means = np.stack([np.bincount(number, vertices[:, axis]) / count for axis in range(3)], axis=1)
    corners = number[triangles]
    a, b, c = corners.T
    corners = corners[(a != b) & (b != c) & (c != a)]
    # rotate the corners so that the smallest index is first, to find duplicate triangles
    first = np.argmin(corners, axis=1) if len(corners) else np.zeros(0, dtype=np.int64)
    turned = np.take_along_axis(corners, (first[:, None] + np.arange(3)) % 3, axis=1)
    _, kept = np.unique(turned @ np.array([1, 1 << 20, 1 << 40]), return_index=True)
    return means, turned[kept]
