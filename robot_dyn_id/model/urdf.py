# SPDX-License-Identifier: Apache-2.0
"""Robot descriptions: text of a plain URDF, its origin, and its XML."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from robot_dyn_id.errors import InputError, ModelError, make_legible
from robot_dyn_id.model import mjcf, screw_file
from robot_dyn_id.model.xacro_process import expand
from robot_dyn_id.text.files import MIB, read_text

URDF_LIMIT = 16 * MIB
"""Largest URDF or xacro file, and largest text of a robot description [bytes or characters]."""

DEEPEST = 200
"""Deepest nesting of XML elements; URDF itself needs 6."""

MOST_ELEMENTS = 50_000
"""Largest number of XML elements of a robot description."""

MOST_MATERIALS = 1_000
"""Largest number of names of materials; the time of the URDF parser below grows with its square."""

MOST_ATTRIBUTES = 100
"""Largest number of attributes of an element; the time of the URDF parser below grows with its square."""

MOST_LINKS = 1_000
"""Largest number of links, and of joints, of a robot."""

LONGEST_NAME = 200
"""Longest name of a link or joint [characters]."""

ANY_TEXT = "robot description"
"""Origin, for messages, of a description that is not a file's."""

_EXPRESSION = re.compile(r"\$[({]")


@dataclass(frozen=True)
class RobotDescription:
    """Text of a plain URDF; it is never taken for the name of a file, and nothing in it is evaluated.

    Attributes:
        text: the URDF, without a byte order mark.
        source: name for messages: the file that it was read from.
        parts: further files that it was read from, if it was a xacro file.
    """

    text: str = field(repr=False)
    source: str = ANY_TEXT
    parts: tuple[Path, ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        """Remove the byte order mark.

        Raises:
            ModelError: not a text, or too long.
        """
        if not isinstance(self.text, str):
            raise ModelError(f"{self.source}: expected the text of a URDF; read files with from_file")
        if len(self.text) > URDF_LIMIT:
            raise ModelError(f"{self.source}: longer than {URDF_LIMIT / MIB:g} million characters")
        object.__setattr__(self, "text", self.text.removeprefix("\ufeff"))

    @classmethod
    def from_file(
        cls, path: str | Path, packages: Sequence[str | Path] = (), xacro: Mapping[str, str] | None = None
    ) -> RobotDescription:
        """Read a URDF file, convert one of MJCF or screws, or expand a xacro file in a process with limits of its own.

        Args:
            path: the file.
            packages: folders of ROS packages that a xacro file needs, or that contain some, see `find_package`.
            xacro: values of the arguments of a xacro file.

        Raises:
            MissingPackageError: a xacro file needs a ROS package that is not found.
            MissingArgumentError: a xacro file needs an argument that is not given.
            ModelError: the file cannot be read, is too large, cannot be expanded by xacro, or is a file of MJCF or
                screws that cannot be converted.
        """
        source = str(path)
        text = read_text(path, ANY_TEXT, URDF_LIMIT, ModelError)
        if screw_file.is_screw_file(text, path):
            if xacro:
                raise ModelError(f"{source}: a file of screws: it has no argument {next(iter(xacro))}")
            return cls(screw_file.convert_screws(text, source), source)
        if f"<{mjcf.ROOT}" in text and _parsed(text, source, ModelError)[0].tag == mjcf.ROOT:
            if xacro:
                raise ModelError(f"{source}: an MJCF file: it has no argument {next(iter(xacro))}")
            return cls(mjcf.convert_mjcf(Path(path).expanduser()), source)
        if ("xacro" in text or "$" in text) and _xacro_in(*_parsed(text, source, ModelError)):
            expansion = expand(Path(path).expanduser(), URDF_LIMIT, packages, xacro)
            return cls(expansion.text, source, expansion.parts)
        if xacro:
            raise ModelError(f"{source}: not a xacro file: it has no argument {next(iter(xacro))}")
        return cls(text, source)

    def root(self) -> ElementTree.Element:
        """Parse the XML, and refuse what Pinocchio would silently accept or report on several lines.

        Raises:
            ModelError: broken XML, xacro, no URDF, too many links, floating or planar joint, closed loop, missing
                link, negative mass.
        """
        root, namespaces = _parsed(self.text, self.source, ModelError)
        if root.tag != "robot":
            found = make_legible(root.tag, 40)
            raise ModelError(f"{self.source}: not a URDF: its root element is <{found}>, expected <robot>")
        xacro = _xacro_in(root, namespaces)
        if xacro:
            raise ModelError(
                f"{self.source}: holds xacro ({xacro}), which is expanded only in files: publish or pass the output of "
                "`xacro FILE`"
            )
        _check_structure(root, self.source)
        return root


def parse_xml(text: str, source: str, error: type[InputError] = InputError) -> ElementTree.Element:
    """Parse XML from files or messages: no document type, limited depth and size.

    Args:
        text: the XML.
        source: name for messages.
        error: class of the error that is raised.

    Raises:
        InputError: broken XML, a document type (which could define entities), or more than the limits.
    """
    return _parsed(text, source, error)[0]


def _parsed(text: str, source: str, error: type[InputError]) -> tuple[ElementTree.Element, Mapping[str, str]]:
    """Root element, and prefix of each namespace."""
    if "<!DOCTYPE" in text:  # before any parser expands an entity
        raise error(f"{source}: broken XML (a document type is not allowed: remove <!DOCTYPE ...>)")
    builder = _Builder()
    parser = ElementTree.XMLParser(target=builder)
    try:
        parser.feed(text)
        return parser.close(), builder.namespaces
    except (ElementTree.ParseError, UnicodeEncodeError, _TooMuch) as problem:
        raise error(f"{source}: broken XML ({problem}); correct the file, or copy it again") from None


class _TooMuch(Exception):
    """More than the limits of XML."""


class _Builder(ElementTree.TreeBuilder):
    """Builds the tree within the limits, and notes the prefixes of namespaces."""

    def __init__(self) -> None:
        super().__init__()
        self.namespaces: dict[str, str] = {}
        self._depth = self._count = self._declared = 0

    def start(self, tag: str, attributes: dict[str, str], /) -> ElementTree.Element:
        """Begin an element."""
        self._depth += 1
        self._count += 1
        if self._depth > DEEPEST:
            raise _TooMuch(f"elements are nested deeper than {DEEPEST}")
        if self._count > MOST_ELEMENTS:
            raise _TooMuch(f"more than {MOST_ELEMENTS} elements")
        if len(attributes) > MOST_ATTRIBUTES:
            raise _TooMuch(f"an element with more than {MOST_ATTRIBUTES} attributes")
        return super().start(tag, attributes)

    def end(self, tag: str, /) -> ElementTree.Element:
        """End an element."""
        self._depth -= 1
        return super().end(tag)

    def start_ns(self, prefix: str, uri: str) -> None:
        """Take note of a namespace."""
        self._declared += 1
        if self._declared > MOST_ATTRIBUTES:
            raise _TooMuch(f"more than {MOST_ATTRIBUTES} namespaces are declared")
        self.namespaces[uri] = prefix


def _xacro_in(root: ElementTree.Element, namespaces: Mapping[str, str]) -> str:
    """An element, attribute or expression that only xacro understands; empty if there is none.

    The declaration of the namespace alone is left over in many files that xacro has expanded, and expressions in
    elements of simulators are theirs.
    """
    spaces = tuple(f"{{{uri}}}" for uri, prefix in namespaces.items() if prefix == "xacro")
    for element in root.iter() if spaces else ():
        for name in (element.tag, *element.attrib):
            if name.startswith(spaces):
                return f"xacro:{name.partition('}')[2][:40]}"
    for part in root:
        for element in part.iter() if part.tag in ("link", "joint") else ():
            for value in element.attrib.values():
                if _EXPRESSION.search(value):
                    return value[:40]
    return ""


def _check_structure(root: ElementTree.Element, label: str) -> None:
    joints = root.findall("joint")
    links = {link.get("name") for link in root.findall("link")}
    materials = len({material.get("name") for material in root.iter("material")})
    if materials > MOST_MATERIALS:
        raise ModelError(f"{label}: {materials} materials; at most {MOST_MATERIALS} are supported")
    for what, elements in (("robot", [root]), ("link", root.findall("link")), ("joint", joints)):
        names = [element.get("name", "") for element in elements]
        if len(names) > MOST_LINKS:
            raise ModelError(f"{label}: {len(names)} {what}s; at most {MOST_LINKS} are supported")
        for given in names:
            if len(given) > LONGEST_NAME or not given.isprintable():
                raise ModelError(
                    f"{label}: the name {given[:40]!r} of a {what} must have at most {LONGEST_NAME} characters, all of "
                    "them printable"
                )
    _refuse_negative_masses(root, label)
    _refuse_impossible_limits(root, label)
    parents: dict[str, tuple[str, str]] = {}  # of each link: its joint and the link above
    for joint in joints:
        name, kind = joint.get("name", "?"), joint.get("type")
        ends = [joint.find(end) for end in ("parent", "child")]
        for end in ends:
            if end is None or end.get("link") not in links:
                raise ModelError(f"{label}: joint {name} refers to a link that does not exist")
        if kind in ("floating", "planar"):
            raise ModelError(f"{label}: joint {name} is {kind}: only arms with a fixed base can be identified")
        child = ends[1].get("link", "?")  # type: ignore[union-attr]
        if child in parents:
            raise ModelError(f"{label}: closed loop: link {child} is the child of {parents[child][0]} and of {name}")
        parents[child] = name, ends[0].get("link", "?")  # type: ignore[union-attr]
    for top in parents:
        for _ in parents:
            top = parents[top][1] if top in parents else top
        if top in parents:
            raise ModelError(f"{label}: closed loop: link {top} is its own ancestor")


def _refuse_negative_masses(root: ElementTree.Element, label: str) -> None:
    """Check all masses, including links on fixed joints, which are lumped into other bodies."""
    for link in root.findall("link"):
        for mass in link.findall("inertial/mass"):
            try:
                value = float(mass.get("value", ""))
            except ValueError:
                continue  # Pinocchio says so
            if value < 0.0:
                raise ModelError(f"{label}: link {link.get('name')} has a negative mass ({value:g} kg); correct it")


def _refuse_impossible_limits(root: ElementTree.Element, label: str) -> None:
    """Check the limits of all joints: a lower one above the upper one, and negative speeds and efforts."""
    for joint in root.findall("joint"):
        limit = joint.find("limit")
        if limit is None:
            continue
        try:
            lower, upper, *largest = (float(limit.get(name, "0")) for name in ("lower", "upper", "velocity", "effort"))
        except ValueError:
            continue  # Pinocchio says so
        where = f"{label}: the limits of joint {joint.get('name')}"
        if lower > upper:
            raise ModelError(f"{where} are exchanged: lower {lower:g}, upper {upper:g}; correct them")
        for name, value in zip(("velocity", "effort"), largest, strict=True):
            if value < 0.0:
                raise ModelError(f"{where} are negative: {name} {value:g}; a limit is a magnitude")


def find_root_link(root: ElementTree.Element) -> str:
    """Name of the link that no joint moves, the base frame.

    Args:
        root: parsed URDF, see `RobotDescription.root`.
    """
    children = {child.get("link") for child in root.findall("joint/child")}
    return next(str(link.get("name")) for link in root.findall("link") if link.get("name") not in children)


def resolve_mimics(root: ElementTree.Element, label: str) -> dict[str, tuple[str, float, float]]:
    """Leader, multiplier and offset of every mimic joint, chains of mimics resolved to their first leader.

    Raises:
        ModelError: a leader that does not exist, or a joint that mimics itself.
    """
    direct: dict[str, tuple[str, float, float]] = {}
    names = {joint.get("name") for joint in root.findall("joint")}
    for joint in root.findall("joint"):
        mimic = joint.find("mimic")
        if mimic is None or joint.get("type") == "fixed":
            continue
        leader = mimic.get("joint", "")
        if leader not in names:
            raise ModelError(f"{label}: joint {joint.get('name')} mimics {leader!r}, which does not exist")
        direct[joint.get("name", "")] = (
            leader,
            float(mimic.get("multiplier", 1)),
            float(mimic.get("offset", 0)),
        )
    resolved = {}
    for name, (leader, multiplier, offset) in direct.items():
        for _ in direct:
            if leader not in direct:
                break
            upper, factor, shift = direct[leader]
            leader, multiplier, offset = upper, multiplier * factor, multiplier * shift + offset
        else:
            raise ModelError(f"{label}: joint {name} mimics itself")
        resolved[name] = (leader, multiplier, offset)
    return resolved


def read_joint_friction(root: ElementTree.Element) -> dict[str, tuple[float, float]]:
    """Viscous [N m s/rad or N s/m] and dry friction [N m or N] of every joint with an element `dynamics`.

    Numbers that are negative or not finite count as 0.
    """
    found = {}
    for joint in root.findall("joint"):
        dynamics = joint.find("dynamics")
        if dynamics is not None:
            viscous, dry = (float(dynamics.get(key, "0")) for key in ("damping", "friction"))
            found[joint.get("name", "")] = (_positive(viscous), _positive(dry))
    return found


def _positive(value: float) -> float:
    return value if 0.0 < value < math.inf else 0.0
