"""Named tuples without `typing`, for modules on the way to the first answers.

`typing.NamedTuple` costs what imports typing, re and collections, and a compiler run for each class: 10 ms before the
first list. Type checkers see the original; what it can do that nobody here needs is missing.

Rule: the annotations are the fields, in their order, so a module that uses it begins with `from __future__ import
annotations`, and a record has no base but this.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any
    from typing import NamedTuple as NamedTuple
else:
    try:
        from _collections import _tuplegetter as field_at
    except ImportError:  # not CPython

        def field_at(index: int, doc: str) -> property:
            return property(lambda record: tuple.__getitem__(record, index), doc=doc)

    class Fields(type):
        """What makes a class of its annotations."""

        def __new__(cls, name: str, bases: tuple[type, ...], members: dict[str, Any]) -> Fields:
            fields = tuple(members.get("__annotations__", ()))
            defaults = {field: members[field] for field in fields if field in members}
            getters = {field: field_at(index, "") for index, field in enumerate(fields)}
            own = {"__slots__": (), "_fields": fields, "_field_defaults": defaults}
            return type.__new__(cls, name, bases, {**members, **getters, **own})

    class NamedTuple(tuple, metaclass=Fields):
        def __new__(cls, *values: Any, **named: Any) -> NamedTuple:
            fields = cls._fields
            if named or len(values) != len(fields):
                defaults = cls._field_defaults
                missing = fields[len(values) :]
                try:
                    values += tuple([named.pop(each) if each in named else defaults[each] for each in missing])
                except KeyError as error:
                    raise TypeError(f"{cls.__name__} lacks {error}") from None
                if named or len(values) != len(fields):
                    raise TypeError(f"{cls.__name__} has the fields {', '.join(fields)}, each once")
            return tuple.__new__(cls, values)

        def __repr__(self) -> str:
            shown = ", ".join(f"{name}={value!r}" for name, value in zip(self._fields, self, strict=True))
            return f"{type(self).__name__}({shown})"

        def __getnewargs__(self) -> tuple[Any, ...]:
            return tuple(self)

        def _replace(self, **named: Any) -> NamedTuple:
            return type(self)(*[named.pop(n, v) for n, v in zip(self._fields, self, strict=True)], **named)

        def _asdict(self) -> dict[str, Any]:
            return dict(zip(self._fields, self, strict=True))
