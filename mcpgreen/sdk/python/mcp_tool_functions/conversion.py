"""Values of a call as a function wants them, by its annotations.

Annotations are looked at as they are, without `typing` and `inspect`, which would take longer to import than most tools
to run. What is not known here is passed on unchanged.

Rule: the server reads the same annotations from the source, and writes the schemas by them. What is converted here in
another way than it is described there would surprise everybody.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    Scope = dict[str, Any]

_NUMBERS = (int, float)
_TEXTS = ("datetime", "uuid", "decimal", "pathlib")


class Unfit(Exception):
    """A value that is not what an annotation asks for."""

    def __init__(self, where: str, wanted: str, value: Any) -> None:
        super().__init__(f"{where} must be {wanted}, got {_shown(value)}")


def converted(value: Any, kind: Any, scope: Scope, where: str) -> Any:
    """The value as the annotation wants it. Raises Unfit."""
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
    """What an annotation stands for, without quotes, aliases and remarks. What cannot be found out stands for all."""
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
    """Of a Union, an Optional or `X | Y`; None for any other annotation."""
    if type(kind).__name__ in ("UnionType", "Union") or _is_typing(getattr(kind, "__origin__", None), "Union"):
        members: tuple[Any, ...] = kind.__args__
        return members
    return None


def is_record(kind: Any) -> bool:
    """Whether values of this class are objects with named members."""
    return isinstance(kind, type) and (
        hasattr(kind, "__dataclass_fields__")
        or (issubclass(kind, tuple) and hasattr(kind, "_fields"))
        or (issubclass(kind, dict))
        or kind.__name__ in ("Mapping", "MutableMapping")
    )


def _one_of(value: Any, members: tuple[Any, ...], scope: Scope, where: str) -> Any:
    problems = []
    for member in members:
        try:
            return converted(value, member, scope, where)
        except Unfit as problem:
            problems.append(problem)
    if len(members) == 2 and type(None) in members:
        raise problems[0 if members[1] is type(None) else 1]
    raise Unfit(where, " or ".join(_name_of(member) for member in members), value)


def _of_class(value: Any, kind: type, inner: tuple[Any, ...], scope: Scope, where: str) -> Any:
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


def _number(value: Any, kind: type, where: str) -> Any:
    if isinstance(value, bool) or not isinstance(value, _NUMBERS) or (kind is int and value != int(value)):
        raise Unfit(where, "an integer" if kind is int else "a number", value)
    return kind(value)  # JSON does not tell 5 from 5.0


def _enum(value: Any, kind: Any, where: str) -> Any:
    try:
        return kind(value)
    except (ValueError, TypeError):
        pass
    if isinstance(value, str) and value in kind.__members__:
        return kind.__members__[value]
    raise Unfit(where, "one of " + ", ".join(repr(member_of_enum(member)) for member in kind), value)


def _record(value: Any, kind: Any, where: str) -> Any:
    if not isinstance(value, dict):
        raise Unfit(where, "an object", value)
    scope = _scope_of(kind)
    if hasattr(kind, "__dataclass_fields__"):
        kinds = {name: field.type for name, field in kind.__dataclass_fields__.items() if field.init}
        for name, each in _annotations(kind).items():  # those that are only for making one
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


def _typed_dict(value: Any, kind: Any, where: str) -> Any:
    if not isinstance(value, dict):
        raise Unfit(where, "an object", value)
    kinds: dict[str, Any] = {}
    for each in reversed(kind.__mro__):
        kinds.update(_annotations(each))
    kinds.update(_annotations(kind))
    for name in kind.__required_keys__:
        if name not in value:
            raise Unfit(where, f"an object with {name}", value)
    scope = _scope_of(kind)
    return {name: converted(each, kinds.get(name, object), scope, f"{where}.{name}") for name, each in value.items()}


def _mapping(value: Any, inner: tuple[Any, ...], scope: Scope, where: str) -> Any:
    if not isinstance(value, dict):
        raise Unfit(where, "an object", value)
    if len(inner) != 2:
        return value
    key_kind = resolved(inner[0], scope)
    return {
        _key_as(key, key_kind, where): converted(each, inner[1], scope, f"{where}.{key}") for key, each in value.items()
    }


def _key_as(key: str, kind: Any, where: str) -> Any:
    if kind is int:
        try:
            return int(key)
        except ValueError:
            raise Unfit(where, "an object whose names are integers", key) from None
    return _enum(key, kind, where) if is_enum(kind) else key


def _collection(value: Any, kind: type, inner: tuple[Any, ...], scope: Scope, where: str) -> Any:
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


def _from_text(value: Any, kind: Any, where: str) -> Any:
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
    """By the values if these are all texts or all integers, else by the name; as the server describes it."""
    values = {type(each.value) for each in type(member)}
    return member.value if values in ({str}, {int}) else member.name


def _plain_choice(value: Any) -> Any:
    return member_of_enum(value) if is_enum(type(value)) else value


def _is_typing(value: Any, name: str) -> bool:
    if value is None:
        return False
    modules = (sys.modules.get("typing"), sys.modules.get("typing_extensions"))
    return any(module is not None and getattr(module, name, None) is value for module in modules)


def _annotations(kind: Any) -> dict[str, Any]:
    found: dict[str, Any] = getattr(kind, "__annotations__", {})
    return found if kind is not object else {}


def _scope_of(kind: Any) -> Scope:
    return getattr(sys.modules.get(kind.__module__), "__dict__", {})


def _name_of(kind: Any) -> str:
    return "null" if kind is type(None) else str(getattr(kind, "__name__", kind))


def _shown(value: Any) -> str:
    import json

    text = json.dumps(value, default=str)
    return text if len(text) <= 80 else text[:77] + "..."
