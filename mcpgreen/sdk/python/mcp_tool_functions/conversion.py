"""Convert a call's arguments to the types in the function's annotations, and its return value to a result.

`typing` and `inspect` are not used, because importing them takes longer than most tools run. pydantic converts what is
annotated with its types, if the tool has imported it. A value with an unknown annotation is passed on unchanged.

Rule: the server reads the same annotations from the source and makes the schemas of them (`catalog/functions`), so both
must understand them in the same way.
"""

from __future__ import annotations

import json
import sys
from functools import cache

import mcp_tool

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from mcp_tool import Json

    Function = Callable[..., Any]
    Scope = dict[str, object]  # the globals of a function or a module

_NUMBERS = (int, float)
_TEXTS = ("datetime", "uuid", "decimal", "pathlib")
_MAPPINGS = ("Mapping", "MutableMapping")
POSITIONAL, KEYWORDS = 0x04, 0x08  # flags of code objects for *rest and **others
IMAGES = ("png", "jpg", "jpeg", "gif", "webp", "svg")
SOUNDS = ("wav", "mp3", "ogg", "flac")


def shown(value: object) -> str:
    text = json.dumps(value, default=str)
    return text if len(text) <= 80 else text[:77] + "..."


class Unfit(Exception):
    """A value does not fit an annotation. Without what is `wanted`, `where` is the whole text."""

    def __init__(self, where: str, wanted: str = "", value: object = None) -> None:
        super().__init__(f"{where} must be {wanted}, got {shown(value)}" if wanted else where)


class Signature:
    """The parameters of a function, by its code object. `rest` and `others` name *rest and **others."""

    def __init__(self, function: Function) -> None:
        inner: Any = function
        while hasattr(inner, "__wrapped__"):
            inner = inner.__wrapped__
        code = inner.__code__
        names, count = code.co_varnames, code.co_argcount
        last = count + code.co_kwonlyargcount
        self.kinds: Json = inner.__annotations__
        self.scope: Scope = inner.__globals__
        self.names = names[:last]
        self.rest = names[last] if code.co_flags & POSITIONAL else ""
        self.others = names[last + bool(self.rest)] if code.co_flags & KEYWORDS else ""
        # Parameters before *rest have to be passed by position.
        self.by_place = names[: count if self.rest else code.co_posonlyargcount]
        defaults = inner.__defaults__ or ()
        self.defaults = dict(zip(names[count - len(defaults) : count], defaults, strict=True))
        optional: Json = {**self.defaults, **(inner.__kwdefaults__ or {})}
        self.fields = {name: value for name, value in optional.items() if type(value).__name__ == "FieldInfo"}
        optional = {
            name: value for name, value in optional.items() if not (name in self.fields and value.is_required())
        }
        self.required = [name for name in self.names if name not in optional]


signature_of = cache(Signature)  # a resident process needs it for each call


def result_kind(function: Function) -> Any:
    return resolved(signature_of(function).kinds.get("return", object), function.__globals__)


def call_arguments(function: Function, given: Json) -> tuple[list[Any], Json]:
    """Return the converted arguments of a call, by position and by name. Raises Unfit."""
    signature = signature_of(function)
    for name in signature.required:
        if name not in given:
            raise Unfit("the call", f"one with {name}", given)
    values: Json = {}
    for name, value in given.items():
        is_known = name in signature.names
        kind = signature.kinds.get(name if is_known or name == signature.rest else signature.others, object)
        if name == signature.rest:
            values[name] = [converted(each, kind, signature.scope, name) for each in value]
        elif is_known or signature.others:
            values[name] = converted(value, kind, signature.scope, name)
        else:
            raise Unfit("the call", f"one without {name}", given)
    for name, field in signature.fields.items():
        values.setdefault(name, field.get_default(call_default_factory=True))
    placed: list[Any] = []
    for name in signature.by_place:
        if name not in values and name not in signature.defaults:
            break
        placed.append(values.pop(name, signature.defaults.get(name)))
    if signature.rest:
        placed += values.pop(signature.rest, [])
    return placed, values


def converted(value: object, kind: Any, scope: Scope, where: str) -> Any:
    """Convert a value to the type of an annotation. Raises Unfit."""
    kind = resolved(kind, scope, keeps_annotated=True)
    if hasattr(sys.modules.get("pydantic"), "TypeAdapter"):
        from mcp_tool_functions import pydantic_values

        if pydantic_values.is_of_pydantic(kind, scope):
            return pydantic_values.converted(value, kind, scope, where)
    kind = resolved(kind, scope)
    members = union_members(kind)
    if members is not None:
        return _one_of(value, members, scope, where)
    origin = getattr(kind, "__origin__", None)
    if _is_typing(origin, "Literal"):
        for choice in kind.__args__:
            if type(value) is type(_plain_choice(choice)) and value == _plain_choice(choice):
                return choice
        raise Unfit(where, "one of " + ", ".join(repr(_plain_choice(each)) for each in kind.__args__), value)
    if kind is None or kind is type(None):
        if value is not None:
            raise Unfit(where, "null", value)
        return None
    main = origin if isinstance(origin, type) else kind
    if not isinstance(main, type):
        return value
    return _of_class(value, main, getattr(kind, "__args__", ()) if origin is not None else (), scope, where)


def resolved(kind: Any, scope: Scope, *, keeps_annotated: bool = False) -> Any:
    """Return the type of an annotation, without quotes, aliases and Annotated; `object` if it cannot be found."""
    for _ in range(32):
        if hasattr(kind, "__forward_arg__"):
            kind = kind.__forward_arg__
        if isinstance(kind, str):
            try:
                kind = eval(kind, scope)
            except Exception:
                return object
        elif hasattr(kind, "__metadata__") and not keeps_annotated:  # Annotated
            kind = kind.__origin__
        elif hasattr(kind, "__supertype__"):  # NewType
            kind = kind.__supertype__
        elif type(kind).__name__ == "TypeAliasType":
            kind = kind.__value__
        elif type(kind).__name__ == "InitVar":
            kind = kind.type
        elif _is_typing(getattr(kind, "__origin__", None), "Required", "NotRequired", "ReadOnly", "Final"):
            kind = kind.__args__[0]
        else:
            return kind
    return object


def union_members(kind: Any) -> tuple[Any, ...] | None:
    """Return the members of a Union, an Optional or `X | Y`; None for any other annotation."""
    if type(kind).__name__ in ("UnionType", "Union") or _is_typing(getattr(kind, "__origin__", None), "Union"):
        members: tuple[Any, ...] = kind.__args__
        return members
    return None


def is_record(kind: object) -> bool:
    """Tell whether values of this class are objects with named members."""
    return isinstance(kind, type) and (
        hasattr(kind, "__dataclass_fields__")
        or (issubclass(kind, tuple) and hasattr(kind, "_fields"))
        or issubclass(kind, dict)
        or kind.__name__ in _MAPPINGS
        or hasattr(kind, "model_fields")
    )


def _one_of(value: object, members: tuple[Any, ...], scope: Scope, where: str) -> object:
    problems = []
    for member in members:
        try:
            return converted(value, member, scope, where)
        except Unfit as problem:
            problems.append(problem)
    if len(members) == 2 and type(None) in members:
        raise problems[0 if members[1] is type(None) else 1]
    names = ("null" if each is type(None) else str(getattr(each, "__name__", each)) for each in members)
    raise Unfit(where, " or ".join(names), value)


def _of_class(value: object, kind: type, inner: tuple[Any, ...], scope: Scope, where: str) -> object:
    if kind is bool or kind is str:
        if not isinstance(value, kind):
            raise Unfit(where, "true or false" if kind is bool else "a string", value)
    elif kind is int or kind is float:
        if isinstance(value, bool) or not isinstance(value, _NUMBERS) or (kind is int and value != int(value)):
            raise Unfit(where, "an integer" if kind is int else "a number", value)
        return kind(value)  # JSON does not tell 5 from 5.0
    elif is_enum(kind):
        return _enum(value, kind, where)
    elif is_record(kind):
        if not isinstance(value, dict):
            raise Unfit(where, "an object", value)
        has_members = not issubclass(kind, dict) and kind.__name__ not in _MAPPINGS
        if has_members or hasattr(kind, "__required_keys__"):
            return _record(value, kind, where)
        return _mapping(value, inner, scope, where)
    elif kind is bytes or kind.__module__ in _TEXTS or kind.__module__.startswith("pathlib."):
        return _from_text(value, kind, where)
    elif issubclass(kind, (list, tuple, set, frozenset)) or kind.__module__ in ("collections", "collections.abc"):
        return _collection(value, kind, inner, scope, where)
    return value


def _enum(value: object, kind: Any, where: str) -> object:
    try:
        return kind(value)
    except (ValueError, TypeError):
        pass
    if isinstance(value, str) and value in kind.__members__:
        return kind.__members__[value]
    raise Unfit(where, "one of " + ", ".join(repr(member_of_enum(member)) for member in kind), value)


def _record(value: Json, kind: Any, where: str) -> object:
    """Make a dataclass, a named tuple or a typed dictionary of an object."""
    is_dict = hasattr(kind, "__required_keys__")
    kinds: Json = {}
    if is_dict:
        for each in (*reversed(kind.__mro__), kind):
            kinds.update(_annotations(each))
    elif hasattr(kind, "__dataclass_fields__"):
        kinds = {name: field.type for name, field in kind.__dataclass_fields__.items() if field.init}
        for name, each in _annotations(kind).items():  # fields that only the constructor has
            if type(each).__name__ == "InitVar" or "InitVar" in str(each):
                kinds[name] = each
    else:
        kinds = {name: _annotations(kind).get(name, object) for name in kind._fields}
    for name in kind.__required_keys__ if is_dict else ():
        if name not in value:
            raise Unfit(where, f"an object with {name}", value)
    for name in () if is_dict else value:
        if name not in kinds:
            raise Unfit(where, f"an object without {name}", value)
    scope: Scope = getattr(sys.modules.get(kind.__module__), "__dict__", {})
    members = {name: converted(each, kinds.get(name, object), scope, f"{where}.{name}") for name, each in value.items()}
    try:
        return members if is_dict else kind(**members)
    except TypeError as error:
        raise Unfit(where, f"a whole {kind.__name__} ({error})", value) from None


def _mapping(value: Json, inner: tuple[Any, ...], scope: Scope, where: str) -> object:
    if len(inner) != 2:
        return value
    kind = resolved(inner[0], scope)
    found: dict[Any, Any] = {}
    for name, each in value.items():
        key: object = _enum(name, kind, where) if is_enum(kind) else name
        if kind is int:
            try:
                key = int(name)
            except ValueError:
                raise Unfit(where, "an object with integers as keys", name) from None
        found[key] = converted(each, inner[1], scope, f"{where}.{name}")
    return found


def _collection(value: object, kind: type, inner: tuple[Any, ...], scope: Scope, where: str) -> object:
    if not isinstance(value, list):
        raise Unfit(where, "an array", value)
    if issubclass(kind, tuple) and inner and inner[-1] is not ...:
        if inner == ((),):
            inner = ()
        if len(value) != len(inner):
            raise Unfit(where, f"an array of length {len(inner)}", value)
        kinds: Any = inner
    else:
        kinds = (inner[0] if inner else object,) * len(value)
    pairs = zip(value, kinds, strict=True)
    members = [converted(each, one, scope, f"{where}[{at}]") for at, (each, one) in enumerate(pairs)]
    if kind.__name__ in ("Set", "MutableSet"):
        return set(members)
    return kind(members) if kind.__module__ in ("builtins", "collections") else members


def _from_text(value: object, kind: Any, where: str) -> object:
    is_number = kind.__name__ == "Decimal"
    if not isinstance(value, (str, *_NUMBERS) if is_number else str):
        raise Unfit(where, "a string", value)
    text = str(value)
    if kind is bytes:
        return text.encode()
    try:
        if kind.__name__ == "timedelta":
            return _duration(text, kind)
        if kind.__module__ == "datetime" and hasattr(kind, "fromisoformat"):
            return kind.fromisoformat(text[:-1] + "+00:00" if text.endswith("Z") else text)
        return kind(text)
    except (ValueError, ArithmeticError):
        raise Unfit(where, f"a {kind.__name__.lower()}", value) from None


def _duration(text: str, kind: Any) -> object:
    """Return the time that a text such as P1DT2H30M names. Raises ValueError."""
    import re

    parts = [rf"(?:(\d+(?:\.\d+)?){letter})?" for letter in "WDHMS"]
    found = re.fullmatch(rf"([-+]?)P{parts[0]}{parts[1]}(?:T(?=.){''.join(parts[2:])})?", text)
    if found is None or not any(found.groups()[1:]):
        raise ValueError(text)
    weeks, days, hours, minutes, seconds = (float(each or 0) for each in found.groups()[1:])
    time = kind(weeks * 7 + days, seconds, 0, 0, minutes, hours)
    return -time if found[1] == "-" else time


def _duration_text(value: Any) -> str:
    sign, value = ("-", -value) if value.days < 0 else ("", value)
    minutes, seconds = divmod(value.seconds, 60)
    fraction = f".{value.microseconds:06}".rstrip("0") if value.microseconds else ""
    time = f"{minutes // 60}H" * (minutes > 59) + f"{minutes % 60}M" * (minutes % 60 > 0)
    time += f"{seconds}{fraction}S" * bool(seconds or fraction)
    return f"{sign}P" + f"{value.days}D" * bool(value.days) + f"T{time}" * bool(time) if value else "PT0S"


def is_enum(kind: Any) -> bool:
    enum = sys.modules.get("enum")
    return enum is not None and isinstance(kind, enum.EnumMeta)


def member_of_enum(member: Any) -> Any:
    """Return an enum member as the schema has it: by value if all are strings or all integers, else by name."""
    values = {type(each.value) for each in type(member)}
    return member.value if values in ({str}, {int}) else member.name


def _plain_choice(value: object) -> object:
    return member_of_enum(value) if is_enum(type(value)) else value


def _is_typing(value: object, *names: str) -> bool:
    modules = [sys.modules.get(each) for each in ("typing", "typing_extensions")]
    return value is not None and any(getattr(module, name, None) is value for module in modules for name in names)


def _annotations(kind: object) -> Json:
    return getattr(kind, "__annotations__", {})


def promises_null(kind: object) -> bool:
    """Tell whether the output schema of the tool has null, as for `int | None`."""
    return _has_output_schema() and type(None) in (union_members(kind) or ())


def _has_output_schema() -> bool:
    return "outputSchema" in mcp_tool._document("MCP_TOOL_METADATA")


def result_of(value: object, kind: object, scope: Scope) -> Json:
    """Return a complete result. Raises TypeError or ValueError for a value that cannot be sent."""
    is_described = _has_output_schema()
    blocks = None if is_described else content_of(value)
    if blocks is not None:
        return {"content": blocks, "isError": False}
    structured = plain(value)
    text = structured if isinstance(structured, str) else json.dumps(structured, ensure_ascii=False, allow_nan=False)
    if not (_is_object(kind, scope) if is_described else isinstance(structured, dict)):
        structured = {"result": structured}
    return {"content": [{"type": "text", "text": text}], "structuredContent": structured, "isError": False}


def _is_object(kind: object, scope: Scope) -> bool:
    """Tell whether the output schema has this type itself, and not as a member `result`."""
    kind = resolved(kind, scope)
    members = union_members(kind)
    if members is not None:
        return all(_is_object(each, scope) for each in members)
    return is_record(getattr(kind, "__origin__", None) or kind)


def content_of(value: Any) -> list[Any] | None:
    """Return the content blocks of a value, or None if it is something else."""
    if isinstance(value, (str, bytes)) and not hasattr(value, "value"):
        return [{"type": "text", "text": plain(value)}]
    values = value if isinstance(value, (list, tuple)) and not hasattr(value, "_fields") else [value]
    is_content = [is_block(each) or hasattr(each, "__fspath__") for each in values]
    if any(is_content) and all(is_it or isinstance(each, str) for is_it, each in zip(is_content, values, strict=True)):
        return [_block(each) for each in values]
    return None


def _block(value: Any) -> Any:
    if isinstance(value, dict):
        return value
    suffix = str(value).rpartition(".")[2].lower() if hasattr(value, "__fspath__") else ""
    if suffix in IMAGES:
        return mcp_tool.image_block(value)
    if suffix in SOUNDS:
        return mcp_tool.audio_block(value)
    return {"type": "text", "text": str(value)}


def plain(value: Any) -> Any:
    """Return a value as JSON. Raises TypeError for what JSON cannot express."""
    if is_enum(type(value)):
        return member_of_enum(value)
    if value is None or isinstance(value, (bool, str)) or type(value) in _NUMBERS:
        return value
    if hasattr(value, "__dataclass_fields__") and not isinstance(value, type):
        return {name: plain(getattr(value, name)) for name in value.__dataclass_fields__}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return {name: plain(getattr(value, name)) for name in value._fields}
    if hasattr(value, "model_dump") and hasattr(value, "__pydantic_serializer__"):
        return value.model_dump(mode="json")
    if isinstance(value, dict) or hasattr(value, "keys"):
        return {_key(key): plain(value[key]) for key in value.keys()}  # noqa: SIM118  # it may be another mapping
    if isinstance(value, (list, tuple)) or type(value).__name__ == "deque":
        return [plain(each) for each in value]
    if isinstance(value, (set, frozenset)):
        members = [plain(each) for each in value]
        try:
            return sorted(members)
        except TypeError:
            return members
    return _plain_text(value)


def is_block(value: Any) -> bool:
    if not isinstance(value, dict) or not isinstance(value.get("type"), str):
        return False
    from mcp_tool_content import REQUIRED_MEMBERS

    needed = REQUIRED_MEMBERS.get(value["type"])
    return needed is not None and all(name in value for name in needed)


def _plain_text(value: Any) -> Any:
    module = type(value).__module__
    if module == "datetime" and hasattr(value, "isoformat"):
        return value.isoformat().replace("+00:00", "Z")
    if type(value).__name__ == "timedelta":
        return _duration_text(value)
    if module in ("decimal", "uuid") or module.startswith("pydantic") or hasattr(value, "__fspath__"):
        return str(value)
    if isinstance(value, _NUMBERS):  # of a subclass
        return value
    if isinstance(value, (bytes, bytearray)):
        try:
            return value.decode("utf-8")
        except ValueError:
            remedy = "use mcp_tool.image_block for an image, or encode the bytes as base64"
            raise TypeError(f"bytes that are not UTF-8 cannot be sent as JSON; {remedy}") from None
    raise TypeError(f"a value of the type {type(value).__name__} cannot be sent as JSON")


def _key(key: object) -> str:
    key = _plain_choice(key)
    if isinstance(key, (str, *_NUMBERS)) and not isinstance(key, bool):
        return str(key)
    raise TypeError(f"JSON keys cannot be of the type {type(key).__name__}")
