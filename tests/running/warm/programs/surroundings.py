"""Programs that look at what surrounds them: environment, directory, limits, memory, time, chance."""

from __future__ import annotations

from tests.running.warm.programs.program import Program, Table

PROGRAMS: Table = {
    "tells its environment": "import os\nfor name in sorted(os.environ): print(name, os.environ[name])",
    "tells the environment of C": """
        import ctypes, os
        libc = ctypes.CDLL(None)
        libc.getenv.restype = ctypes.c_char_p
        print(libc.getenv(b'MCP_TOOL_ARGS_JSON'), libc.getenv(b'PATH'), libc.getenv(b'MCP_0'), libc.getenv(b'LC_CTYPE'))
        block = ctypes.POINTER(ctypes.c_char_p).in_dll(libc, 'environ')
        entries = []
        while block[len(entries)] is not None:
            entries.append(block[len(entries)])
        print(sorted(entries))
    """,
    "has odd variables": Program(
        "import os\nprint({k: v for k, v in os.environb.items() if k.startswith(b'MCP_')})",
        env={"MCP_EMPTY": "", "MCP_BYTES": "\udcff\udcfe", "MCP_LINES": "a\nb\n", "MCP_EQUAL": "a=b=c", "MCP_ÄÖ": "ü"},
    ),
    "tells its directory": "import os, pathlib\nprint(os.getcwd(), pathlib.Path.cwd(), pathlib.Path.home())",
    "writes by a relative path": "import os\nos.makedirs('made/here')\nopen('made/here/file.txt', 'w').write('x')",
    "tells its limits": """
        import resource
        for name in sorted(dir(resource)):
            if name.startswith('RLIMIT_'):
                print(name, resource.getrlimit(getattr(resource, name)))
        print(resource.getpagesize())
    """,
    "tells its scheduling": """
        import os
        print(os.getpriority(os.PRIO_PROCESS, 0), os.sched_getscheduler(0), sorted(os.sched_getaffinity(0)))
        print(os.cpu_count(), os.getuid(), os.getgid(), os.getgroups(), os.getresuid())
        names = ('Uid', 'Gid', 'Groups', 'Threads', 'NoNewPrivs', 'Seccomp', 'CapEff', 'CapBnd', 'TracerPid')
        print([line for line in open('/proc/self/status') if line.split(':')[0] in names])
        print(open('/proc/self/oom_score_adj').read())
        print(open('/proc/self/comm').read(), os.readlink('/proc/self/exe'), os.readlink('/proc/self/cwd'))
        print(open('/proc/self/coredump_filter').read(), os.stat('/proc/self').st_uid)
    """,
    "may be looked at by others": """
        import ctypes
        print(ctypes.CDLL(None).prctl(3, 0, 0, 0, 0), ctypes.CDLL(None).prctl(37, 0, 0, 0, 0))
        print([ctypes.CDLL(None).prctl(n, 0, 0, 0, 0) for n in (7, 27, 39)])
    """,
    "limits the size of files": """
        import resource
        resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10))
        with open('kept.txt', 'wb', buffering=0) as file:
            print(file.write(b'x' * 20))
            file.write(b'y')
    """,
    "has a collector": """
        import gc
        print(gc.isenabled(), gc.get_threshold(), gc.get_debug(), gc.garbage, gc.callbacks)
        class Node:
            pass
        node = Node()
        node.me = node
        del node
        print(gc.collect() > 0)
    """,
    "uses the terminal": "import os, shutil\nprint(shutil.get_terminal_size())\nos.get_terminal_size()",
    "clears what it imported": """
        import sys
        for name in [name for name in sys.modules if name.startswith('json')]:
            del sys.modules[name]
        import json
        print(json.dumps({'a': 1}))
    """,
    "clears everything": "import sys\nsys.modules.clear()\nprint('cleared')",
    "spoils the end": """
        import atexit, gc, os, sys, threading
        os._exit = gc.collect = atexit._run_exitfuncs = None
        print('kept')
    """,
    "spoils what is built in": "import builtins\nprint('kept')\ndel builtins.set, builtins.map, builtins.any",
    "spoils its modules": "import sys\nprint('kept')\nsys.modules['odd'] = None\nsys.modules[4] = 5",
}
