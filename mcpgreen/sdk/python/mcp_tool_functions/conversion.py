"""Convert the arguments of a call to the types that a function is annotated with.

`typing` and `inspect` are not used, because importing them takes longer than most tools run. A value with an unknown
annotation is passed on unchanged.

Rule: the server reads the same annotations from the source and makes the schemas of them (`catalog/functions`), so both
must understand them in the same way.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from mcp_tool import Json

    Function = Callable[..., Any]
    Scope = dict[str, object]  # the globals of a function or a module

_NUMBERS = (int, float)
_TEXTS = ("datetime", "uuid", "decimal", "pathlib")
POSITIONAL, KEYWORDS = 0x04, 0x08  # flags of code objects for *rest and **others


class Unfit(Exception):
    """A value does not fit an annotation."""

    def __init__(self, where: str, wanted: str, value: object) -> None:
        super().__init__(f"{where} must be {wanted}, got {_shown(value)}")


class Signature:
    """The parameters of a function, by its code object. `rest` and `others` name *rest and **others."""

    def __init__(self, function: Function) -> None:
        inner: Any = function
        while hasattr(inner, "__wrapped__"):
            inner = inner.__wrapped__
        code = inner.__code__
        by_place = code.co_argcount
        last = by_place + code.co_kwonlyargcount
        names = code.co_varnames
        self.kinds: Json = inner.__annotations__
        self.scope: Scope = inner.__globals__
        self.by_place = names[: code.co_posonlyargcount]
        self.by_name = names[code.co_posonlyargcount : last]
        self.rest = names[last] if code.co_flags & POSITIONAL else ""
        self.others = names[last + bool(self.rest)] if code.co_flags & KEYWORDS else ""
        defaults = inner.__defaults__ or ()
        optional = {*names[by_place - len(defaults) : by_place], *(inner.__kwdefaults__ or {})}
        self.defaults = dict(zip(names[by_place - len(defaults) : by_place], defaults, strict=True))
        self.names = [*self.by_place, *self.by_name]
        self.required = [name for name in self.names if name not in optional]
        # Parameters before *rest have to be passed by position.
        if self.rest:
            self.by_place, self.by_name = names[:by_place], names[by_place:last]


def call_arguments(function: Function, given: Json) -> tuple[list[Any], Json]:
    """The converted arguments of a call, by position and by name. Raises Unfit."""
    signature = Signature(function)
    for name in signature.required:
        if name not in given:
            raise Unfit("the call", f"one with {name}", given)
    values: Json = {}
    for name, value in given.items():
        if name not in signature.names and name != signature.rest and not signature.others:
            raise Unfit("the call", f"one without {name}", given)
        known = name in signature.names
        kind = signature.kinds.get(name if known else signature.others, object)
        if name == signature.rest:
            item = signature.kinds.get(name, object)
            values[name] = [converted(each, item, signature.scope, name) for each in value]
        else:
            values[name] = converted(value, kind, signature.scope, name)
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
    kind = resolved(kind, scope)
    members = union_members(kind)
    if members is not None:
        return _one_of(value, members, scope, where)
    origin = getattr(kind, "__origin__", None)
    if origin is not None and _is_typing(origin, "Literal"):
        if not any(type(value) is type(_plain_choice(each)) and value == _plain_choice(each) for each in kind.__args__):
            raise Unfit(where, "one of " + ", ".join(repr(_plain_choice(each)) for each in kind.__args__), value)
        return next(each for each in kind.__args__ if value == _plain_choice(each))
    if kind is None or kind is type(None):
        if value is not None:
            raise Unfit(where, "null", value)
        return None
    main = origin if isinstance(origin, type) else kind
    if not isinstance(main, type):
        return value
    return _of_class(value, main, getattr(kind, "__args__", ()) if origin is not None else (), scope, where)


def resolved(kind: Any, scope: Scope) -> Any:
    """The type of an annotation, without quotes, aliases and Annotated; `object` if it cannot be found."""
    for _ in range(32):
        if hasattr(kind, "__forward_arg__"):
            kind = kind.__forward_arg__
        if isinstance(kind, str):
            try:
                kind = eval(kind, scope)
            except Exception:
                return object
        elif hasattr(kind, "__metadata__"):  # Annotated
            kind = kind.__origin__
        elif hasattr(kind, "__supertype__"):  # NewType
            kind = kind.__supertype__
        elif type(kind).__name__ == "TypeAliasType":
            kind = kind.__value__
        elif type(kind).__name__ == "InitVar":
            kind = kind.type
        elif any(
            _is_typing(getattr(kind, "__origin__", None), name)
            for name in ("Required", "NotRequired", "ReadOnly", "Final")
        ):
            kind = kind.__args__[0]
        else:
            return kind
    return object


def union_members(kind: Any) -> tuple[Any, ...] | None:
    """The members of a Union, an Optional or `X | Y`; None for any other annotation."""
    if type(kind).__name__ in ("UnionType", "Union") or _is_typing(getattr(kind, "__origin__", None), "Union"):
        members: tuple[Any, ...] = kind.__args__
        return members
    return None


def is_record(kind: object) -> bool:
    """Whether values of this class are objects with named members."""
    return isinstance(kind, type) and (
        hasattr(kind, "__dataclass_fields__")
        or (issubclass(kind, tuple) and hasattr(kind, "_fields"))
        or (issubclass(kind, dict))
        or kind.__name__ in ("Mapping", "MutableMapping")
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
    raise Unfit(where, " or ".join(_name_of(member) for member in members), value)


def _of_class(value: object, kind: type, inner: tuple[Any, ...], scope: Scope, where: str) -> object:
    if kind is bool or kind is str:
        if not isinstance(value, kind):
            raise Unfit(where, "true or false" if kind is bool else "a string", value)
    elif kind is int or kind is float:
        return _number(value, kind, where)
    elif is_enum(kind):
        return _enum(value, kind, where)
    elif hasattr(kind, "__dataclass_fields__") or (issubclass(kind, tuple) and hasattr(kind, "_fields")):
        return _record(value, kind, where)
    elif hasattr(kind, "__required_keys__"):
        return _typed_dict(value, kind, where)
    elif kind.__module__ in _TEXTS or kind.__module__.startswith("pathlib."):
        return _from_text(value, kind, where)
    elif kind.__name__ in ("Mapping", "MutableMapping") or issubclass(kind, dict):
        return _mapping(value, inner, scope, where)
    elif issubclass(kind, (list, tuple, set, frozenset)) or kind.__module__ in ("collections", "collections.abc"):
        return _collection(value, kind, inner, scope, where)
    return value


def _number(value: object, kind: type, where: str) -> object:
    if isinstance(value, bool) or not isinstance(value, _NUMBERS) or (kind is int and value != int(value)):
        raise Unfit(where, "an integer" if kind is int else "a number", value)
    return kind(value)  # JSON does not tell 5 from 5.0


def _enum(value: object, kind: Any, where: str) -> object:
    try:
        return kind(value)
    except (ValueError, TypeError):
        pass
    if isinstance(value, str) and value in kind.__members__:
        return kind.__members__[value]
    raise Unfit(where, "one of " + ", ".join(repr(member_of_enum(member)) for member in kind), value)


def _record(value: object, kind: Any, where: str) -> object:
    if not isinstance(value, dict):
        raise Unfit(where, "an object", value)
    scope = _scope_of(kind)
    if hasattr(kind, "__dataclass_fields__"):
        kinds = {name: field.type for name, field in kind.__dataclass_fields__.items() if field.init}
        for name, each in _annotations(kind).items():  # fields that only the constructor has
            if type(each).__name__ == "InitVar" or "InitVar" in str(each):
                kinds[name] = each
    else:
        kinds = {name: _annotations(kind).get(name, object) for name in kind._fields}
    for name in value:
        if name not in kinds:
            raise Unfit(where, f"an object without {name}", value)
    members = {name: converted(each, kinds[name], scope, f"{where}.{name}") for name, each in value.items()}
    try:
        return kind(**members)
    except TypeError as error:
        raise Unfit(where, f"a whole {kind.__name__} ({error})", value) from None


def _typed_dict(value: object, kind: Any, where: str) -> object:
    if not isinstance(value, dict):
        raise Unfit(where, "an object", value)
    kinds: Json = {}
    for each in reversed(kind.__mro__):
        kinds.update(_annotations(each))
    kinds.update(_annotations(kind))
    for name in kind.__required_keys__:
        if name not in value:
            raise Unfit(where, f"an object with {name}", value)
    scope = _scope_of(kind)
    return {name: converted(each, kinds.get(name, object), scope, f"{where}.{name}") for name, each in value.items()}


def _mapping(value: object, inner: tuple[Any, ...], scope: Scope, where: str) -> object:
    if not isinstance(value, dict):
        raise Unfit(where, "an object", value)
    if len(inner) != 2:
        return value
    key_kind = resolved(inner[0], scope)
    return {
        _key_as(key, key_kind, where): converted(each, inner[1], scope, f"{where}.{key}") for key, each in value.items()
    }


def _key_as(key: str, kind: object, where: str) -> object:
    if kind is int:
        try:
            return int(key)
        except ValueError:
            raise Unfit(where, "an object with integers as names", key) from None
    return _enum(key, kind, where) if is_enum(kind) else key


def _collection(value: object, kind: type, inner: tuple[Any, ...], scope: Scope, where: str) -> object:
    if not isinstance(value, list):
        raise Unfit(where, "an array", value)
    if issubclass(kind, tuple) and inner and inner[-1] is not ...:
        if inner == ((),):
            inner = ()
        if len(value) != len(inner):
            raise Unfit(where, f"an array of {len(inner)}", value)
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
    try:
        if kind.__module__ == "datetime" and hasattr(kind, "fromisoformat"):
            return kind.fromisoformat(text[:-1] + "+00:00" if text.endswith("Z") else text)
        return kind(text)
    except (ValueError, ArithmeticError):
        raise Unfit(where, f"a {kind.__name__.lower()}", value) from None


def is_enum(kind: Any) -> bool:
    enum = sys.modules.get("enum")
    return enum is not None and isinstance(kind, enum.EnumMeta)


def member_of_enum(member: Any) -> Any:
    """The value of an enum member in JSON, as in the schema: its value if all are strings or all integers, else its
    name."""
    values = {type(each.value) for each in type(member)}
    return member.value if values in ({str}, {int}) else member.name


def _plain_choice(value: object) -> object:
    return member_of_enum(value) if is_enum(type(value)) else value


def _is_typing(value: object, name: str) -> bool:
    if value is None:
        return False
    modules = (sys.modules.get("typing"), sys.modules.get("typing_extensions"))
    return any(module is not None and getattr(module, name, None) is value for module in modules)


def _annotations(kind: object) -> Json:
    found: Json = getattr(kind, "__annotations__", {})
    return found if kind is not object else {}


def _scope_of(kind: object) -> Scope:
    return getattr(sys.modules.get(kind.__module__), "__dict__", {})


def _name_of(kind: object) -> str:
    return "null" if kind is type(None) else str(getattr(kind, "__name__", kind))


def _shown(value: object) -> str:
    import json

    text = json.dumps(value, default=str)
    return text if len(text) <= 80 else text[:77] + "..."
