#!/usr/bin/env python3
"""Writes src/hero_client/api.py, the types and methods of the API, from docs/openrpc.json.

clients/python/tools/api_types.py            writes the file
clients/python/tools/api_types.py --check    fails if the file is another
"""

from __future__ import annotations

import json
import keyword
import sys
import textwrap
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).resolve().parent.parent
DOCUMENT = PACKAGE.parent.parent / "docs" / "openrpc.json"
FILE = PACKAGE / "src" / "hero_client" / "api.py"

HEAD = '''"""The types and methods of Hero's API. Written by tools/api_types.py from docs/openrpc.json: do not edit.

Client.api is a Methods, AsyncClient.api an AsyncMethods: one method for each of the API, `job.get` as `job_get`.
"""

# ruff: noqa: A002, E501
from __future__ import annotations

from typing import Any, Awaitable, Callable, Dict, List, Literal, Mapping, Optional, TypedDict, Union

'''

GIVEN = """

def _given(params: Dict[str, Any]) -> Dict[str, Any]:
    return {name: value for name, value in params.items() if value is not None}
"""

PLAIN = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}


def main() -> int:
    """Writes or checks the file. Returns the exit code."""
    text = module(json.loads(DOCUMENT.read_text(encoding="utf-8")))
    if sys.argv[1:] != ["--check"]:
        FILE.write_text(text, encoding="utf-8")
        return 0
    if FILE.read_text(encoding="utf-8") == text:
        return 0
    print(f"{FILE} is stale: run clients/python/tools/api_types.py", file=sys.stderr)
    return 1


def module(document: dict[str, Any]) -> str:
    """Returns the text of the module for an OpenRPC document."""
    schemas = document["components"]["schemas"]
    # Methods of the older names have no noun; subscriptions need a WebSocket, which `follow` has.
    methods = [method for method in document["methods"] if "." in method["name"] and "x-notification" not in method]
    used = names_used(methods, schemas)
    chosen = {name: schema for name, schema in sorted(schemas.items()) if name in used}
    records = [record(name, schema) for name, schema in chosen.items() if "properties" in schema]
    aliases = [alias(name, schema) for name, schema in chosen.items() if "properties" not in schema]
    classes = [
        methods_class("Methods", methods, is_async=False),
        methods_class("AsyncMethods", methods, is_async=True),
    ]
    return HEAD + "\n\n".join(records + ["\n".join(aliases)] + classes) + GIVEN


def names_used(value: Any, schemas: dict[str, Any]) -> set[str]:
    """Returns the names of all schemas to which a value refers, directly or not."""
    found: set[str] = set()
    left = [value]
    while left:
        one = left.pop()
        if isinstance(one, list):
            left += one
        elif isinstance(one, dict):
            left += one.values()
            # Those of errors are no types.
            place, _, name = str(one.get("$ref", "")).rpartition("/")
            if not place.endswith("/schemas"):
                continue
            if name and name not in found:
                found.add(name)
                left.append(schemas[name])
    return found


def type_of(schema: Any) -> str:
    """Returns the type of a value as a Python annotation."""
    if not isinstance(schema, dict):
        return "Any"
    if "$ref" in schema:
        return str(schema["$ref"].rpartition("/")[2])
    for name in ("anyOf", "oneOf"):
        if name in schema:
            return union([type_of(one) for one in schema[name]])
    if len(schema.get("allOf", [])) == 1:
        return type_of(schema["allOf"][0])
    if "const" in schema:
        return f"Literal[{schema['const']!r}]"
    if "enum" in schema:
        return f"Literal[{', '.join(repr(one) for one in schema['enum'])}]"
    kinds = schema.get("type")
    if isinstance(kinds, list):
        return union([type_of({**schema, "type": kind}) for kind in kinds])
    if kinds == "array":
        return f"List[{type_of(schema.get('items'))}]"
    if kinds == "object":
        more = schema.get("additionalProperties")
        return f"Dict[str, {type_of(more)}]"
    return PLAIN.get(str(kinds), "Any")


def union(types: list[str]) -> str:
    """Returns one annotation for a value of several types."""
    types = list(dict.fromkeys(types))
    if "Any" in types:
        return "Any"
    if all(one.startswith("Literal[") for one in types):
        return f"Literal[{', '.join(one[len('Literal[') : -1] for one in types)}]"
    rest = [one for one in types if one != "None"]
    joined = rest[0] if len(rest) == 1 else f"Union[{', '.join(rest)}]"
    return f"Optional[{joined}]" if len(rest) < len(types) else joined


def record(name: str, schema: dict[str, Any]) -> str:
    """Returns the TypedDict of an object, in two parts if it has optional members."""
    required = set(schema.get("required", []))
    members = {
        member: text for member, text in schema["properties"].items() if member.isidentifier()
    }  # fmt: skip
    if any(keyword.iskeyword(member) for member in members):
        pairs = ", ".join(f"{member!r}: {type_of(one)!r}" for member, one in members.items())
        return f'{name} = TypedDict("{name}", {{{pairs}}}, total=False)\n'
    needed = {member: one for member, one in members.items() if member in required}
    others = {member: one for member, one in members.items() if member not in required}
    doc = documented(schema, "    ")
    if not others:
        return f"class {name}(TypedDict):\n{doc}" + fields(needed)
    if not needed:
        return f"class {name}(TypedDict, total=False):\n{doc}" + fields(others)
    base = f"_{name}Required"
    return (
        f"class {base}(TypedDict):\n{fields(needed)}\n\n"
        f"class {name}({base}, total=False):\n{doc}{fields(others)}"
    )  # fmt: skip


def fields(members: dict[str, Any]) -> str:
    """Returns the lines of the members of an object."""
    return "".join(
        f"    {member}: {type_of(schema)}\n{documented(schema, '    ')}" for member, schema in members.items()
    )


def alias(name: str, schema: dict[str, Any]) -> str:
    """Returns the name of a type that is no object with known members."""
    kind = type_of(schema)
    return f"{name} = {kind}\n{documented(schema, '')}"


def documented(schema: Any, indent: str) -> str:
    """Returns the docstring of a schema, or nothing."""
    text = schema.get("description") if isinstance(schema, dict) else None
    if not text:
        return ""
    sentence = " ".join(text.split()).replace("\\", "\\\\").replace('"""', "'''")
    sentence = sentence if sentence.endswith(".") else sentence + "."
    lines = textwrap.wrap(f'"""{sentence}"""', 116 - len(indent), break_long_words=False)
    return "".join(f"{indent}{line}\n" for line in lines)


def methods_class(name: str, methods: list[dict[str, Any]], is_async: bool) -> str:
    """Returns the class with a method for each of the API."""
    result = "Awaitable[Any]" if is_async else "Any"
    lines = [
        f"class {name}:\n",
        f'    """The methods of the API{" for asyncio" if is_async else ""}."""\n\n',
        f"    def __init__(self, call: Callable[[str, Mapping[str, Any]], {result}]) -> None:\n",
        "        self._call = call\n",
    ]
    return "".join(lines + [method_text(method, is_async) for method in methods])


def method_text(method: dict[str, Any], is_async: bool) -> str:
    """Returns a method."""
    params = sorted(method["params"], key=lambda param: not param["required"])
    arguments = ["self"] + (["*"] if params else [])
    for param in params:
        kind = type_of(param["schema"])
        if param["required"]:
            arguments.append(f"{argument(param['name'])}: {kind}")
        else:
            kind = kind if kind == "Any" or kind.startswith("Optional[") else f"Optional[{kind}]"
            arguments.append(f"{argument(param['name'])}: {kind} = None")
    pairs = ", ".join(f'"{param["name"]}": {argument(param["name"])}' for param in params)
    result = type_of(method["result"]["schema"])
    call = f'self._call("{method["name"]}", _given({{{pairs}}}))'
    summary = documented({"description": method.get("summary")}, "        ")
    name = method["name"].replace(".", "_")
    return (
        f"\n    {'async ' if is_async else ''}def {name}({', '.join(arguments)}) -> {result}:\n{summary}"
        f"        answer: {result} = {'await ' if is_async else ''}{call}\n"
        f"        return answer\n"
    )


def argument(name: str) -> str:
    """Returns the name of a parameter as Python may have it."""
    return f"{name}_" if keyword.iskeyword(name) else name


if __name__ == "__main__":
    sys.exit(main())
