"""Programs by how they end."""

from __future__ import annotations

from tests.running.warm.programs.program import Program, Table

PROGRAMS: Table = {
    "falls off the end": "name = 'Ada'",
    "is an empty file": Program(content=b""),
    "exits with None": "import sys; print('said'); sys.exit(None)",
    "exits with 3": "import sys; sys.exit(3)",
    "exits with -1": "import sys; sys.exit(-1)",
    "exits with more than an int": "import sys; sys.exit(2**31 + 5)",
    # Python 3.12 and 3.13 forget this exception, and tell of it in the next function that they happen to call.
    "exits with more than a long": Program("import sys; sys.exit(2**70)", scrubbed="(?s).+"),
    "exits with a text": "import sys; print('out'); sys.exit('No such city: Köln')",
    "exits with two values": "raise SystemExit(1, 2)",
    "exits with a text that stderr cannot encode": "import sys; sys.exit('\\ud800 x')",
    "exits without stderr": "import sys; sys.stderr = None; sys.exit('nobody hears')",
    "exits by the function of site, with a text": "quit('bye')",
    "exits at once": "import os; print('lost', end=''); os._exit(6)",
    "exits at once after a flush": "import os; print('kept', flush=True); os._exit(6)",
    "raises in a function": """
        def outer(n):
            return inner(n)

        def inner(n):
            return 1 / n

        print('before')
        outer(0)
    """,
    "raises what stderr cannot encode": "raise RuntimeError('\\udc80 Grüße')",
    "misses a module": "import there_is_no_such_module",
    "raises from another": """
        import json
        try:
            json.loads('{')
        except ValueError as error:
            raise SystemError('cannot go on') from error
    """,
    "raises a group": Program(
        """
        def fail(n):
            raise TypeError(n)
        errors = []
        for n in range(3):
            try:
                fail(n)
            except TypeError as error:
                errors.append(error)
        raise ExceptionGroup('three', [*errors, ExceptionGroup('inner', [OSError(2, 'x')])])
        """,
        since=(3, 11),
    ),
    "raises with a traceback of its own": "raise ValueError('x').with_traceback(None)",
    "raises in code without a file": "exec(compile('def f():\\n    raise ValueError\\n', '<made>', 'exec'))\nf()",
    "raises a SyntaxError at run time": "compile('a b', 'made.py', 'exec')",
    "recurses without end": Program(
        """
        def again():
            return again()
        again()
        """,
        scrubbed=r"repeated \d+ more times",
    ),
    "asks for too much memory": "kept = 'x' * (1 << 60)",
    "limits its traceback": """
        import sys
        sys.tracebacklimit = 1
        def f():
            raise ValueError
        def g():
            f()
        g()
    """,
    "has no traceback": "import sys\nsys.tracebacklimit = 0\nraise ValueError('only this')",
    "has a hook for exceptions": """
        import sys
        def hook(kind, error, trace):
            print('hook', kind.__name__, error, trace.tb_lineno, trace.tb_next, sys.exc_info())
        sys.excepthook = hook
        raise ValueError('x')
    """,
    "has a hook that exits with a text": """
        import sys
        sys.excepthook = lambda *_: sys.exit('by hook')
        raise ValueError('x')
    """,
    "has a hook of the library": "import cgitb\ncgitb.enable(format='text', context=1)\n",
    "fails without stderr": "import sys\nsys.stderr = None\nraise ValueError('x')",
    "fails with stderr closed": Program(
        "import sys\nsys.stderr.close()\nraise ValueError('x')", scrubbed=r"object refcount : \d+"
    ),
    "is interrupted": "print('before')\nraise KeyboardInterrupt",
    "is interrupted, with a file open": """
        import atexit
        atexit.register(print, 'at exit')
        kept = open('kept.txt', 'w')
        kept.write('written')
        raise KeyboardInterrupt
    """,
    "looks at its last exception at exit": """
        import atexit, sys
        @atexit.register
        def look():
            print(sys.last_type, sys.last_value, sys.last_traceback.tb_lineno, sys.last_traceback.tb_next)
            print(getattr(sys, 'last_exc', None))
        raise ValueError('x')
    """,
    "does things at exit": """
        import atexit
        atexit.register(print, 'first registered')
        atexit.register(print, 'last registered', flush=True)
        @atexit.register
        def more():
            print('in between')
        atexit.unregister(more)
        print('before')
    """,
    "looks for its names at exit": """
        import atexit
        atexit.register(lambda: print(atexit.__name__))
    """,
    "looks for its file at exit, after an exit": """
        import atexit, sys
        atexit.register(lambda: print(__file__))
        sys.exit(2)
    """,
    "fails at exit": """
        import atexit
        @atexit.register
        def fail():
            raise ValueError('at exit')
        atexit.register(print, 'still done')
        raise KeyError('before')
    """,
    "exits at exit": """
        import atexit, sys
        atexit.register(print, 'still done')
        atexit.register(sys.exit, 7)
    """,
    "ends with a finalizer": """
        import weakref
        class Kept:
            pass
        kept = Kept()
        weakref.finalize(kept, print, 'finalized')
    """,
    "ends with a __del__": """
        class Kept:
            def __init__(self, name):
                self.name = name
            def __del__(self):
                print('deleted', self.name)
        one = Kept('one')
        _two = Kept('two')
        three = [Kept('three')]
    """,
    "ends with a __del__ that looks at globals": """
        name = 'Ada'
        class Kept:
            def __del__(self):
                print('globals', name, _private, print.__name__)
        _private = 'p'
        kept = Kept()
    """,
    "ends with a __del__ of a class attribute": """
        class Kept:
            def __del__(self):
                print('deleted')
        class Holder:
            kept = Kept()
    """,
    "ends with a __del__ in the traceback": """
        class Kept:
            def __del__(self):
                print('deleted')
        def f():
            kept = Kept()
            raise ValueError
        f()
    """,
    "ends within a generator": """
        def numbers():
            try:
                yield 1
                yield 2
            finally:
                print('closed')
        kept = numbers()
        next(kept)
    """,
}
