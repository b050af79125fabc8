"""Programs that look at themselves: `__main__`, `sys`, what they import, and how their file is written."""

from __future__ import annotations

import io
import zipfile

from tests.running.warm.programs.program import FIRST_LINE, Program, Table


def zipped(source: str) -> bytes:
    """An application in a zip file, with a first line."""
    file = io.BytesIO(FIRST_LINE.encode())
    file.seek(0, io.SEEK_END)
    with zipfile.ZipFile(file, "a") as archive:
        archive.writestr(zipfile.ZipInfo("__main__.py"), source)
    return file.getvalue()


SHADOWED = "import {0}\nprint({0}.__file__, getattr({0}, 'own', None))"

PROGRAMS: Table = {
    "looks at its names": """
        print(__name__, __file__, __doc__, __spec__, __builtins__.__name__, type(__builtins__).__name__)
        print([name for name in globals() if name[:2] != '__'], list(vars()) == list(locals()))
        name: str = 'Ada'
        age: int
        print(__annotations__)
    """,
    "imports itself": """
        import __main__, sys
        print(__main__ is sys.modules['__main__'], __main__.__dict__ is globals(), __main__)
        __main__.given = 1
        print(given)
    """,
    "replaces itself": """
        import sys, types
        sys.modules['__main__'] = types.ModuleType('another')
        class Kept:
            def __del__(self):
                print('deleted')
        kept = Kept()
        print('replaced')
    """,
    "removes itself": "import sys\ndel sys.modules['__main__']\nprint('removed')",
    "imports itself by its name": Program(
        "import tool\nprint(__name__, tool.__name__, tool is __import__('__main__'))"
    ),
    "shows its source": """
        import inspect, sys
        def documented():
            '''What it does.'''
            return 1
        class Shown:
            pass
        print(inspect.getsource(documented), inspect.getsource(sys.modules['__main__'])[:30])
        print(inspect.getfile(documented), inspect.getmodule(documented).__name__, inspect.getsourcefile(documented))
        print(inspect.getsource(Shown), inspect.getdoc(documented), documented.__code__.co_filename)
    """,
    "pickles its own classes": """
        import copy, pickle
        class Kept:
            def __init__(self, n):
                self.n = n
        data = pickle.dumps(Kept(3))
        print(data, pickle.loads(data).n, copy.deepcopy(Kept(4)).n, Kept)
    """,
    "looks at sys": """
        import sys
        print(sys.argv, getattr(sys, 'orig_argv', None))
        print(sys.path)
        print(sys.flags, sys.executable, sys.prefix, sys.base_prefix, sys.exec_prefix, sys.version)
        print(sys.warnoptions, sys._xoptions, sys.dont_write_bytecode, sys.pycache_prefix)
        print(sys.getrecursionlimit(), sys.getswitchinterval(), sys.gettrace(), sys.getprofile(), sys.byteorder)
        print(len(sys.path_hooks), sys.excepthook, sys.displayhook, sys.unraisablehook, sys.breakpointhook)
        print(sys.stdin is sys.__stdin__, sys.stdout is sys.__stdout__, sys.stderr is sys.__stderr__, sys.exc_info())
        print(sys.api_version, sys.implementation.cache_tag, sys.hash_info.algorithm, sys.float_repr_style)
        print(getattr(sys, 'last_value', 'none'), getattr(sys, 'ps1', 'none'), hasattr(sys, 'tracebacklimit'))
        print(sys.getallocatedblocks() > 0, sys.is_finalizing(), sys.get_asyncgen_hooks(), sys.intern('x'))
    """,
    "looks at what is built in": """
        import builtins
        print([name for name in dir(builtins) if name not in ('_', '__build_class__')])
        print(builtins.open.__module__, help, exit, credits is not None)
    """,
    "breaks into a debugger": Program("breakpoint()\nprint('after')", env={"MCP_X": "1"}),
    "imports what lies beside it": Program(
        "import beside, package.inner\nprint(beside.NAME, package.inner.name, beside.__file__, beside.__spec__)",
        files={
            "beside.py": "NAME = 'beside'",
            "package/__init__.py": "",
            "package/inner.py": "from . import other\nname = other.__name__",
            "package/other.py": "",
        },
    ),
    "fails in the import of what lies beside it": Program(
        "import beside", files={"beside.py": "import json\njson.loads('{')"}
    ),
    "imports what cleans up at its end": Program(
        "import beside\nprint('main')",
        files={
            "beside.py": """
import atexit
class Kept:
    def __del__(self):
        print('deleted', self.name)
kept = Kept()
kept.name = 'beside'
atexit.register(print, 'beside at exit')
file = open('kept.txt', 'w')
file.write('written')
"""
        },
    ),
    "shadows json": Program(SHADOWED.format("json"), files={"json.py": "own = 1"}),
    "shadows threading": Program(SHADOWED.format("threading"), files={"threading.py": "own = 1"}),
    "shadows os, in vain": Program(SHADOWED.format("os"), files={"os.py": "own = 1"}),
    "shadows a package": Program(SHADOWED.format("email"), files={"email/__init__.py": "own = 1"}),
    "shadows with a compiled module": Program(
        "import _heapq\nprint('not reached')", files={"_heapq.cpython-31.so": b"", "_heapq.so": b"no library"}
    ),
    "shadows what the helper needs": Program(SHADOWED.format("ctypes"), files={"ctypes.py": "own = 1"}),
    "shadows what another module imports": Program(
        "import argparse\nprint(argparse._.__module__ if hasattr(argparse._, '__module__') else '')",
        files={"gettext.py": "def gettext(text):\n    return text\nngettext = gettext"},
    ),
    "shadows the SDK": Program(SHADOWED.format("mcp_tool"), files={"mcp_tool.py": "own = 1"}),
    "has the name of a module": Program("import random\nprint(random.__name__, random.__file__)", name="random.py"),
    "has the name of a module without an ending": Program("import json\nprint(json.dumps(1))", name="json"),
    "uses the SDK": """
        import os, subprocess, sys
        import mcp_tool
        print(mcp_tool.arg('name'), os.environ.get('PYTHONPATH'), mcp_tool.__file__)
        print(subprocess.check_output(['sh', '-c', 'echo "${PYTHONPATH-unset}"']), sys.path)
    """,
    "uses the SDK late": """
        import os
        print(os.environ.get('PYTHONPATH'))
        import mcp_tool
        print(os.environ.get('PYTHONPATH'), mcp_tool.require('name'))
    """,
    "fails by the SDK": "import mcp_tool\nmcp_tool.fail('no such city')",
    "has a path of its own": Program(
        "import mcp_tool, os, sys\nprint(os.environ.get('PYTHONPATH'), sys.path)", env={"PYTHONPATH": "/tmp/none"}
    ),
    "has an error of syntax": "print('never')\nif True\n    pass",
    "returns at module level": "return 3",
    "has a NUL": Program(content=FIRST_LINE.encode() + b"print(1)\0\nprint(2)\n"),
    "has letters that are no UTF-8": Program(content=FIRST_LINE.encode() + b"print('\xe4')\n"),
    "is in latin-1": Program(content=FIRST_LINE.encode() + b"# coding: latin-1\nprint('\xe4', ascii('\xe4'))\n"),
    "has a comment that is not in UTF-8": Program(content=FIRST_LINE.encode() + b"print('a')\n# gr\xfc\n"),
    "has a comment in UTF-8": Program(content=FIRST_LINE.encode() + "print('a')\n# grün\n".encode()),
    "begins with a mark": Program(content=b"\xef\xbb\xbfprint('marked')\n"),
    "has a mark after its first line": Program(content=FIRST_LINE.encode() + b"\xef\xbb\xbfprint('marked')\n"),
    "has line ends of Windows": Program(content=FIRST_LINE.encode() + b"print('''a\r\nb''')\r\nprint(2)\r\n"),
    "is huge": Program(content=FIRST_LINE.encode() + b"# " + b"x" * (1 << 20) + b"\nprint('huge', __file__)\n"),
    "nests too deeply": Program("print(" + "(" * 250 + "1" + ")" * 250 + ")", since=(3, 9)),
    "is an application in a zip file": Program(
        content=zipped("import sys\nprint('zipped', __file__, sys.path[0], __name__, sys.argv)")
    ),
    "is a link": Program(
        "import sys\nprint(__file__, sys.path[0], sys.argv)\nimport beside\nprint(beside.__file__)",
        link_to="real/tool.py",
        files={"real/beside.py": ""},
    ),
    "is a link to another name": Program("import sys\nprint(__file__, sys.path[0])", link_to="real/json.py"),
    "has a name with spaces and letters": Program(
        "import sys\nprint(__file__, sys.argv)\nraise ValueError('Grüße')", name="müder tool 世.py"
    ),
    "has a name that is no UTF-8": Program("print(ascii(__file__))", name="tool\udcff.py"),
    "warns": """
        import warnings
        warnings.warn('a text')
        warnings.warn('deprecated', DeprecationWarning)
        warnings.warn('pending', PendingDeprecationWarning)
        warnings.warn('resource', ResourceWarning)
        for _ in range(2):
            warnings.warn('only once')
        def old():
            warnings.warn('old', DeprecationWarning, stacklevel=2)
        old()
    """,
    "warns as it is told": Program(
        "import warnings\nwarnings.warn('x', DeprecationWarning)\nprint(warnings.filters[:2])\nwarnings.warn('y')",
        env={"PYTHONWARNINGS": "default::DeprecationWarning,error::UserWarning"},
    ),
    "has an invalid escape": "print('\\d')\ntext = 'a\\.b'",
    "imports a deprecated module": Program("import imp\nprint(imp.__name__)", env={"PYTHONWARNINGS": "default"}),
    "optimizes away docstrings": Program("'''doc'''\nprint(__doc__)", env={"PYTHONOPTIMIZE": "2"}),
    "is told a seed": Program("print(hash('x'), {'a', 'b', 'c'})", env={"PYTHONHASHSEED": "3"}),
}
