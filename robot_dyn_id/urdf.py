"""URDF and xacro as text and as XML."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path

from robot_dyn_id.errors import ModelError


def is_text(source: str) -> bool:
    """Whether this is the text of a URDF or xacro file, and not the name of one."""
    return source.lstrip("\ufeff \t\r\n").startswith("<")


def urdf_text(source: str | Path) -> tuple[str, str]:
    """The URDF text of a URDF or xacro file or text, and what to call it in messages.

    Raises:
        ModelError: the file cannot be read or xacro refuses it.
    """
    if isinstance(source, str) and is_text(source):
        text, label = source.lstrip("\ufeff"), "robot description"
    else:
        label = str(source)
        if not label.strip() or "\n" in label or "\0" in label:
            raise ModelError("robot description: neither the name of a file nor the text of a URDF")
        try:
            text = Path(source).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "not a text file"
            raise ModelError(f"{label}: cannot read the robot description ({reason})") from None
    if "www.ros.org/wiki/xacro" in text or "ros.org/xacro" in text:
        text = _expand_xacro(text, None if label == "robot description" else Path(label), label)
    return text, label


def _expand_xacro(text: str, path: Path | None, label: str) -> str:
    import xacro

    try:
        if path is not None:
            return str(xacro.process_file(str(path)).toxml())
        document = xacro.parse(text)
        xacro.process_doc(document)
        return str(document.toxml())
    except Exception as error:  # xacro raises whatever its expressions raise
        raise ModelError(f"{label}: xacro cannot expand it ({' '.join(str(error).split())})") from None


def checked_tree(text: str, label: str) -> ElementTree.Element:
    """Parse the XML and refuse what Pinocchio would silently accept or report on several lines.

    Raises:
        ModelError: broken XML, no URDF, floating or planar joint, closed loop, missing link, negative mass.
    """
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        raise ModelError(f"{label}: broken XML ({error})") from None
    if root.tag != "robot":
        raise ModelError(f"{label}: not a URDF: its root element is <{root.tag}>, expected <robot>")
    parents: dict[str, tuple[str, str]] = {}  # of each link: its joint and the link above
    links = {link.get("name") for link in root.findall("link")}
    _refuse_negative_masses(root, label)
    for joint in root.findall("joint"):
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
            raise ModelError(f"{label}: closed loop: link {top} is carried by itself")
    return root


def _refuse_negative_masses(root: ElementTree.Element, label: str) -> None:
    """Of links behind fixed joints too: lumped into another body they would not show."""
    for link in root.findall("link"):
        for mass in link.findall("inertial/mass"):
            try:
                value = float(mass.get("value", ""))
            except ValueError:
                continue  # Pinocchio says so
            if value < 0.0:
                raise ModelError(f"{label}: link {link.get('name')} has a negative mass ({value:g} kg)")


def mimics(root: ElementTree.Element, label: str) -> dict[str, tuple[str, float, float]]:
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
