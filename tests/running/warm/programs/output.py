"""Programs by what they write, and where."""

from __future__ import annotations

from tests.running.warm.programs.program import Program, Table

PROGRAMS: Table = {
    "prints a megabyte": "print('x' * (1 << 20))",
    "prints to stderr without a newline": "import sys\nsys.stderr.write('half')\nraise SystemExit(1)",
    "writes bytes": "import sys\nsys.stdout.buffer.write(bytes(range(256)) * 100)",
    "writes by C": """
        import ctypes
        libc = ctypes.CDLL(None)
        libc.printf(b'by C %d\\n', 3)
        print('by Python')
        libc.puts(b'at the end')
    """,
    "writes a surrogate": "print('\\ud800')",
    "writes letters to stderr": "import sys\nprint('Grüße \\ud800', file=sys.stderr)",
    "tells its encodings": """
        import locale, sys
        for stream in (sys.stdin, sys.stdout, sys.stderr):
            print(stream.encoding, stream.errors, stream.newlines, stream.line_buffering, stream.name, stream.mode)
            print(stream.isatty(), stream.fileno(), stream.closed, stream.write_through, type(stream.buffer).__name__)
        print(sys.getdefaultencoding(), sys.getfilesystemencoding(), sys.getfilesystemencodeerrors())
        print(locale.getpreferredencoding(), locale.setlocale(locale.LC_CTYPE), locale.setlocale(locale.LC_ALL))
        print(locale.getlocale(), locale.localeconv()['decimal_point'])
    """,
    "is told a locale": Program(
        "import locale, sys\nprint(sys.stdout.encoding, sys.flags.utf8_mode, locale.setlocale(locale.LC_CTYPE))\n"
        "import os\nprint({k: v for k, v in os.environ.items() if k.startswith('L')})",
        env={"LANG": "C"},
    ),
    "is told not to buffer": Program(
        """
        import os, sys
        print('early')
        os.write(1, b'late\\n')
        print(sys.stdout.write_through, sys.flags.unbuffered, type(sys.stdout.buffer).__name__)
        """,
        env={"PYTHONUNBUFFERED": "1"},
    ),
    "wraps stdout": """
        import io, sys
        sys.stdout = io.TextIOWrapper(sys.stdout.buffer, encoding='latin-1')
        print('Grüße')
    """,
    "detaches stdout": "import sys\nraw = sys.stdout.detach()\nraw.write(b'detached\\n')",
    "has stdout replaced by what fails to flush": """
        import sys
        class Odd:
            def write(self, text):
                sys.__stdout__.write(text.upper())
            def flush(self):
                raise ValueError('no flush')
        sys.stdout = Odd()
        print('odd')
    """,
    "has no stdout": "import sys\nsys.stdout = None\nprint('lost')",
    "deletes stdout": "import sys\ndel sys.stdout\nprint('lost')",
    "closes stdout": "import sys\nprint('kept')\nsys.stdout.close()",
    "prints after it closed stdout": "import sys\nsys.stdout.close()\nprint('lost')",
    "closes the descriptor of stdout": "import os\nprint('lost')\nos.close(1)",
    "closes the descriptor of stderr": "import os\nos.close(2)\nraise ValueError('lost')",
    "closes all descriptors": "import os\nprint('kept', flush=True)\nos.closerange(0, 256)",
    "prints to nobody": Program("print('x')", reads_stdout=False),
    "prints much to nobody": Program("for n in range(100000): print(n)", reads_stdout=False),
    "writes to a full device": "import sys\nsys.stdout = open('/dev/full', 'w')\nprint('lost')",
    "writes to the control pipe": """
        import os
        fd = max(int(name) for name in os.listdir('/proc/self/fd') if int(name) < 200)
        os.write(fd, b'{"type":"progress"}\\n')
        print(fd, os.get_inheritable(fd), os.get_blocking(fd))
    """,
    "reads nothing": "import sys\nprint(repr(sys.stdin.read()), repr(sys.stdin.buffer.read()))",
    "asks and gets no answer": "input('Name? ')",
    "logs to a file": """
        import logging, logging.handlers
        logging.basicConfig(filename='run.log', level='DEBUG', format='%(funcName)s %(message)s %(filename)s')
        def work():
            logging.debug('working')
        work()
        memory = logging.handlers.MemoryHandler(100, target=logging.FileHandler('late.log'))
        logging.getLogger('late').addHandler(memory)
        logging.getLogger('late').warning('kept in memory')
    """,
    "leaves a file open": "kept = open('kept.txt', 'w')\nkept.write('written')",
    "leaves a file open in a class": "class Holder:\n    kept = open('kept.txt', 'w')\nHolder.kept.write('written')",
    "leaves a file open in a module of the library": """
        import json
        json.kept = open('kept.txt', 'w')
        json.kept.write('x')
    """,
    "leaves a file open in a builtin": "import builtins\nbuiltins.kept = open('kept.txt', 'w')\nkept.write('x')",
    "leaves a file open in a daemon thread": """
        import threading
        ready = threading.Event()
        def work():
            file = open('kept.txt', 'w')
            file.write('perhaps')
            ready.set()
            threading.Event().wait()
        threading.Thread(target=work, daemon=True).start()
        ready.wait()
    """,
    "leaves a file open in a traceback": """
        def work():
            kept = open('kept.txt', 'w')
            kept.write('x')
            raise ValueError('x')
        work()
    """,
    "leaves a compressed file open": """
        import bz2, gzip
        kept = bz2.open('kept.bz2', 'wt')
        kept.write('written')
    """,
    "leaves a zip file open": """
        import zipfile
        kept = zipfile.ZipFile('kept.zip', 'w')
        kept.writestr(zipfile.ZipInfo('a.txt'), 'written')
    """,
    "leaves a buffered writer on a descriptor": """
        import io, os
        kept = io.BufferedWriter(io.FileIO(os.open('kept.txt', os.O_WRONLY | os.O_CREAT), 'w'))
        kept.write(b'written')
    """,
    "leaves temporary files": """
        import os, tempfile
        kept = tempfile.NamedTemporaryFile('w', suffix='.txt')
        kept.write('x')
        directory = tempfile.TemporaryDirectory()
        open(os.path.join(directory.name, 'inner'), 'w').close()
        print(os.path.dirname(kept.name), os.path.exists(kept.name), oct(os.stat(kept.name).st_mode))
    """,
    "writes files with modes": """
        import os
        print(oct(os.umask(0o027)))
        open('a.txt', 'w').close()
        os.mkdir('directory')
        os.symlink('a.txt', 'link')
    """,
}
