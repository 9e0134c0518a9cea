# SPDX-License-Identifier: Apache-2.0
"""Seeded mutations of valid input: of bytes and text, of YAML as a tree, of XML as a tree, of ROS messages.

Random bytes would be refused by the first line of every parser. Mutations of valid files that know the structure reach
the checks behind it, each case is reproduced by its number alone, and nothing has to be installed; hypothesis cannot
interrupt a C library that hangs, and coverage-guided fuzzing does not see into the C++ parsers either.
"""

from __future__ import annotations

import copy
import math
import random
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Sequence
from typing import Any

import yaml

# Without it ElementTree writes another prefix, and xacro knows its elements by this one.
ElementTree.register_namespace("xacro", "http://www.ros.org/wiki/xacro")

NUMBERS: tuple[Any, ...] = (
    *(0, -0.0, -1, 1, 2**31, 2**63, -(2**63), 10**30, 1e-320, 1e308, -1e308, 1e6, -1e6),
    *(math.nan, math.inf, -math.inf, 0.5, 3.0000001),
)

TEXTS = (
    *(
        "",
        " ",
        "0",
        "nan",
        "inf",
        "true",
        "null",
        "1e400",
        "../../../etc/passwd",
        "/dev/zero",
        "/dev/stdin",
        "/proc/self/mem",
    ),
    *("~", "-", "a\nb", "a\0b", "\ud7ff", "\u202e", "%s%n", "{}", "${x}", "$(eval 1/0)", "x" * 100_000, "\u00e9" * 300),
)

VALUES: tuple[Any, ...] = (*NUMBERS, *TEXTS, None, True, False, [], {}, [[]], [None], {"a": 1}, [0.0] * 1000)

TOKENS = (
    *(
        b"\0",
        b"\xff\xfe",
        b"\xef\xbb\xbf",
        b"\t",
        b"\r\n",
        b"---\n",
        b"...\n",
        b"- ",
        b"? ",
        b": ",
        b"&a ",
        b"*a ",
        b"<<: *a\n",
    ),
    *(
        b"!!python/object/apply:os.system ['exit 9']\n",
        b"!!binary aGVsbG8=",
        b"!!set {a, b}",
        b"!!timestamp 2020-01-01",
    ),
    *(
        b"0x7fffffffffffffffffff",
        b"1:60:61",
        b"nan",
        b".nan",
        b".inf",
        b"-.inf",
        b"1e999",
        b"<",
        b"</",
        b"/>",
        b"<![CDATA[",
    ),
    *(
        b"&amp;",
        b"&#0;",
        b"&lol;",
        b"<!DOCTYPE a [<!ENTITY lol 'lol'>]>",
        b"[" * 2000,
        b"{a: " * 2000,
        b"${",
        b"$(",
        b"]]>",
    ),
)


def mutate_bytes(data: bytes, rng: random.Random) -> bytes:
    """Flip, cut, insert, repeat or swap pieces of a byte string, one to eight times."""
    result = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 8))):
        place = rng.randrange(len(result) + 1)
        length = min(rng.choice((1, 1, 2, 4, 8, 64, 1000)), len(result) - place)
        match rng.randrange(8):
            case 0 if length:
                result[place] ^= 1 << rng.randrange(8)
            case 1:
                del result[place : place + length]
            case 2:
                result[place:place] = rng.choice(TOKENS)
            case 3:
                result[place:place] = result[place : place + length] * rng.choice((1, 2, 50))
            case 4:
                result[place : place + length] = rng.randbytes(length)
            case 5:
                del result[place:]
            case 6:
                field = rng.choice((b"\xff" * 4, b"\x00" * 8, b"\xff\xff\xff\x7f", b"\xff" * 8, b"\x00\x00\x00\x40"))
                result[place : place + len(field)] = field
            case _:
                other = rng.randrange(len(result) + 1)
                result[place : place + length] = result[other : other + length]
    return bytes(result)


def mutate_yaml(data: bytes, rng: random.Random) -> bytes:
    """Change the tree of a YAML file, or its text in one of three cases."""
    if rng.random() < 0.3:
        return mutate_bytes(data, rng)
    if rng.random() < 0.05:
        return _hostile_yaml(rng)
    tree = mutate_tree(yaml.safe_load(data), rng)
    return yaml.safe_dump(tree, sort_keys=False, allow_unicode=True).encode("utf-8", "surrogatepass")


def mutate_tree(tree: Any, rng: random.Random) -> Any:
    """Replace, remove, rename, repeat or swap values of nested mappings and lists."""
    tree = copy.deepcopy(tree)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 6))):
        places = _places(tree)
        if not places:
            return rng.choice(VALUES)
        holder, key = rng.choice(places)
        match rng.randrange(8):
            case 0 | 1 | 2:
                holder[key] = copy.deepcopy(rng.choice(VALUES))
            case 3:
                del holder[key]
            case 4:
                other, name = rng.choice(places)
                if name in other if isinstance(other, dict) else name < len(other):
                    holder[key] = copy.deepcopy(other[name])
            case 5 if isinstance(holder, dict):
                holder[rng.choice(("x", f"{key}x", 1, None, True, "", str(key).upper()))] = holder.pop(key)
            case 6 if isinstance(holder[key], list):
                holder[key] = holder[key] * rng.choice((0, 2, 100))
            case _:
                holder[key] = [copy.deepcopy(holder[key])] * rng.choice((1, 2))
    return tree


def _places(tree: Any) -> list[tuple[Any, Any]]:
    """Every container below a node with each of its keys; deep rows are sampled as often as short ones."""
    found, waiting = [], [tree]
    while waiting:
        node = waiting.pop()
        keys = list(node) if isinstance(node, dict) else range(min(len(node), 4)) if isinstance(node, list) else ()
        for key in keys:
            found.append((node, key))
            waiting.append(node[key])
    return found


def _hostile_yaml(rng: random.Random) -> bytes:
    bomb = "a0: &a0 [x]\n" + "".join(f"a{k}: &a{k} [{', '.join([f'*a{k - 1}'] * 10)}]\n" for k in range(1, 12))
    return rng.choice(
        (
            bomb.encode(),
            b"[" * 100_000,
            b"{a: " * 20_000,
            b"- " * 50_000,
            b"a: &a [*a]\n",
            b"&a {b: *a}\n",
            b"? " * 20_000,
            b"x" * 20_000_000,
            b"a: " + b"9" * 5_000_000,
            b"\n" * 5_000_000,
            b"a: !!int " + b"1:" * 20_000 + b"1",
            b"<<: &a {<<: *a}\n",
        )
    )


def mutate_xml(data: bytes, rng: random.Random) -> bytes:
    """Change elements and attributes of an XML file, or its text in one of four cases."""
    if rng.random() < 0.25:
        return mutate_bytes(data, rng)
    if rng.random() < 0.03:
        return _hostile_xml(data, rng)
    root = ElementTree.fromstring(data)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 6))):
        elements = list(root.iter())
        parents = {child: parent for parent in elements for child in parent}
        element = rng.choice(elements)
        parent = parents.get(element)
        match rng.randrange(8):
            case 0 | 1 | 2 if element.attrib:
                name = rng.choice(list(element.attrib))
                element.set(name, _attribute(element.get(name, ""), elements, rng))
            case 3 if element.attrib:
                del element.attrib[rng.choice(list(element.attrib))]
            case 4 if parent is not None:
                parent.remove(element)
            case 5 if parent is not None:
                parent.extend([copy.deepcopy(element)] * rng.choice((1, 1, 50)))
            case 6:
                element.tag = rng.choice(("robot", "link", "joint", "inertial", "mimic", "limit", "x"))
            case _:
                element.text = rng.choice(("", "text", "1 2 3", " " * 1000))
    return ElementTree.tostring(root).replace(b"\0", b"")


def _attribute(value: str, elements: Sequence[ElementTree.Element], rng: random.Random) -> str:
    others = [text for element in elements for text in element.attrib.values()]
    words = value.split()
    if words and rng.random() < 0.4:
        words[rng.randrange(len(words))] = str(rng.choice(NUMBERS))
        return " ".join(words[: rng.choice((len(words), 1))])
    return rng.choice((rng.choice(others), str(rng.choice(VALUES)).replace("\0", ""), "fixed", "planar", "floating"))


def _hostile_xml(data: bytes, rng: random.Random) -> bytes:
    entities = "".join(f"<!ENTITY e{k} '{f'&e{k - 1};' * 10}'>" for k in range(1, 12))
    bomb = f"<!DOCTYPE robot [<!ENTITY e0 'lol'>{entities}]><robot name='&e11;'/>"
    chain = "".join(
        f'<link name="l{k}"/><joint name="j{k}" type="revolute"><parent link="l{k - 1}"/><child link="l{k}"/>'
        '<axis xyz="0 0 1"/></joint>'
        for k in range(1, 3000)
    )
    return rng.choice(
        (
            bomb.encode(),
            b'<!DOCTYPE robot [<!ENTITY x SYSTEM "file:///etc/passwd">]><robot name="a">&x;</robot>',
            b"<robot>" * 100_000,
            b"<robot name='a'>" + b"<link name='b'/>" * 200_000 + b"</robot>",
            f'<robot name="r"><link name="l0"/>{chain}</robot>'.encode(),
            b'<?xml version="1.0" encoding="utf-16"?>' + data,
            b"<robot " + b"".join(b'a%d="" ' % k for k in range(100_000)) + b"/>",
            b"<robot name='" + b"x" * 10_000_000 + b"'/>",
        )
    )


EXPRESSIONS = (
    *(
        "${1/0}",
        "${10**10**10}",
        "${'a'*10**10}",
        "${[0]*10**10}",
        "${undefined}",
        "${x",
        "${}",
        "${sum(range(10**12))}",
    ),
    *(
        "$(find nowhere)",
        "$(env HOME)",
        "$(optenv X y)",
        "$(cwd)",
        "$(eval 1/0)",
        "$(arg x)",
        "$(dirname)",
        "$(anon a)",
    ),
    *(
        "${__import__('os').system('exit 9')}",
        "${().__class__.__bases__[0].__subclasses__()}",
        "${open('/dev/zero').read()}",
    ),
    *(
        "${xacro.load_yaml('/dev/zero')}",
        "${load_yaml('/etc/passwd')}",
        "${lambda: 1}",
        "${(lambda f: f(f))(lambda f: f(f))}",
    ),
)

ELEMENTS = (
    '<xacro:include filename="/dev/zero"/>',
    '<xacro:include filename="nowhere.xacro"/>',
    '<xacro:include filename="$(find nowhere)/a.xacro"/>',
    '<xacro:macro name="again"><xacro:again/></xacro:macro><xacro:again/>',
    '<xacro:property name="a" value="${b}"/><xacro:property name="b" value="${a}"/><x y="${a}"/>',
    '<xacro:if value="maybe"><x/></xacro:if>',
    '<xacro:insert_block name="none"/>',
    "<xacro:unknown/>",
    '<xacro:element xacro:name="${1}"/>',
    '<xacro:property name="x" value="${10**9}"/>',
)


def mutate_xacro(data: bytes, rng: random.Random) -> bytes:
    """Change a xacro file: hostile expressions and elements at places where they are evaluated, or as `mutate_xml`."""
    text = data.decode("utf-8")
    match rng.randrange(4):
        case 0:
            places = [place for place, letter in enumerate(text) if letter == '"']
            opening = rng.choice(places[::2])
            closing = text.index('"', opening + 1)
            return f"{text[: opening + 1]}{rng.choice(EXPRESSIONS)}{text[closing:]}".encode()
        case 1:
            end = text.rindex("</robot>")
            return f"{text[:end]}{rng.choice(ELEMENTS)}{text[end:]}".encode()
        case 2:
            return mutate_xml(data, rng)
        case _:
            return mutate_bytes(data, rng)


def mutate_message(message: Any, rng: random.Random) -> Any:
    """Change fields of a copy of a ROS message, kept to the types that the message can hold."""
    message = copy.deepcopy(message)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 6))):
        holder, name, kind = rng.choice(_fields(message))
        try:
            setattr(holder, name, _field_value(getattr(holder, name), kind, rng))
        except (AssertionError, TypeError, ValueError, OverflowError):
            continue  # the message itself refuses the value: it cannot arrive
    return message


def _fields(message: Any) -> list[tuple[Any, str, str]]:
    found = []
    for name, kind in message.get_fields_and_field_types().items():
        value = getattr(message, name)
        if hasattr(value, "get_fields_and_field_types"):
            found += _fields(value)
            continue
        found.append((message, name, kind))
        if isinstance(value, list):
            for item in value[:3]:
                if hasattr(item, "get_fields_and_field_types"):
                    found += _fields(item)
    return found


def _field_value(value: Any, kind: str, rng: random.Random) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, str):
        return rng.choice(TEXTS)
    if isinstance(value, (int, float)):
        return type(value)(rng.choice(NUMBERS))
    items = list(value)
    if "[" in kind:  # of fixed size
        items[rng.randrange(len(items))] = float(rng.choice(NUMBERS))
        return items
    if not items:
        return [rng.choice(NUMBERS)] if "double" in kind else [rng.choice(TEXTS)]
    change: Callable[[], list[Any]] = rng.choice(
        (
            lambda: items[:-1],
            lambda: [*items, items[0]],
            lambda: [],
            lambda: items[::-1],
            lambda: [items[0]] * len(items),
            lambda: items * 100,
            lambda: [_item(items[0], rng), *items[1:]],
            lambda: [_item(item, rng) for item in items],
            lambda: [item * rng.choice((100, -1, 1e9)) if isinstance(item, float) else item for item in items],
        )
    )
    return change()


def _item(item: Any, rng: random.Random) -> Any:
    if isinstance(item, str):
        return rng.choice(TEXTS)
    if isinstance(item, (int, float)):
        return type(item)(rng.choice(NUMBERS))
    return item
