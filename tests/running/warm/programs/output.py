"""Programs by what they write, and where."""

from __future__ import annotations

from tests.running.warm.programs.program import Program, Table

PROGRAMS: Table = {
    "prints": "print('Hello Ada')",
    "prints a megabyte": "print('x' * (1 << 20))",
    "prints many lines": "for n in range(20000): print(n)",
    "prints to stderr without a newline": "import sys\nsys.stderr.write('half')\nraise SystemExit(1)",
    "interleaves": Program(
        """
        import os, sys
        os.dup2(1, 2)
        for n in range(5):
            print('out', n)
            print('err', n, file=sys.stderr)
            os.write(1, b'raw\\n')
            sys.stdout.buffer.write(b'buffer\\n')
        """,
    ),
    "writes bytes": "import sys\nsys.stdout.buffer.write(bytes(range(256)) * 100)",
    "writes bytes and text": """
        import sys
        print('text')
        sys.stdout.flush()
        sys.stdout.buffer.write(b'bytes\\n')
        print('text')
    """,
    "writes by C": """
        import ctypes
        libc = ctypes.CDLL(None)
        libc.printf(b'by C %d\\n', 3)
        print('by Python')
        libc.puts(b'at the end')
    """,
    "writes letters": "print('Grüße, 世界, \\N{SNOWMAN} \\U0001f600')",
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
    "is told an encoding": Program(
        "import sys\nprint('Grüße', sys.stdout.encoding, sys.stdout.errors)\nprint('\\u4e16')",
        env={"PYTHONIOENCODING": "latin-1:xmlcharrefreplace"},
    ),
    "is told a locale": Program(
        "import locale, sys\nprint(sys.stdout.encoding, sys.flags.utf8_mode, locale.setlocale(locale.LC_CTYPE))\n"
        "import os\nprint({k: v for k, v in os.environ.items() if k.startswith('L')})",
        env={"LANG": "C"},
    ),
    "is told a locale that is not there": Program(
        "import locale, sys\nprint(sys.stdout.encoding)\n"
        "try: print(locale.setlocale(locale.LC_ALL, ''))\nexcept locale.Error as e: print(e)",
        env={"LANG": "xx_YY.UTF-8", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"},
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
    "reconfigures stdout": """
        import sys
        sys.stdout.reconfigure(encoding='utf-16', errors='replace', newline='\\r\\n')
        print('Grüße')
    """,
    "wraps stdout": """
        import io, sys
        sys.stdout = io.TextIOWrapper(sys.stdout.buffer, encoding='latin-1')
        print('Grüße')
    """,
    "detaches stdout": "import sys\nraw = sys.stdout.detach()\nraw.write(b'detached\\n')",
    "replaces stdout for a while": """
        import contextlib, io
        with contextlib.redirect_stdout(io.StringIO()) as taken:
            print('taken')
        print('said', repr(taken.getvalue()))
    """,
    "has stdout replaced by what has no flush": """
        import sys
        class Odd:
            def write(self, text):
                sys.__stdout__.write(text.upper())
        sys.stdout = Odd()
        print('odd')
    """,
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
    "replaces the descriptor of stdout": """
        import os
        print('to the pipe', flush=True)
        fd = os.open('out.txt', os.O_WRONLY | os.O_CREAT)
        os.dup2(fd, 1)
        print('to the file')
    """,
    "opens stdout anew": "with open('/dev/stdout', 'w') as out: out.write('anew\\n')",
    "prints to nobody": Program("print('x')", reads_stdout=False),
    "prints much to nobody": Program("for n in range(100000): print(n)", reads_stdout=False),
    "catches that nobody listens": Program(
        """
        import os, sys
        try:
            print('x', flush=True)
        except BrokenPipeError as error:
            print(error, file=sys.stderr)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        """,
        reads_stdout=False,
    ),
    "dies if nobody listens": Program(
        "import signal\nsignal.signal(signal.SIGPIPE, signal.SIG_DFL)\nprint('x', flush=True)", reads_stdout=False
    ),
    "writes to a full device": "import sys\nsys.stdout = open('/dev/full', 'w')\nprint('lost')",
    "writes to the control pipe": """
        import os
        fd = max(int(name) for name in os.listdir('/proc/self/fd') if int(name) < 200)
        os.write(fd, b'{"type":"progress"}\\n')
        print(fd, os.get_inheritable(fd), os.get_blocking(fd))
    """,
    "reads nothing": "import sys\nprint(repr(sys.stdin.read()), repr(sys.stdin.buffer.read()))",
    "asks and gets no answer": "input('Name? ')",
    "logs": """
        import logging
        logging.warning('not set up: %s', 'x')
        logging.basicConfig(level=logging.INFO, format='%(name)s %(levelname)s %(message)s %(module)s %(lineno)d')
        logging.info('known')
        logging.getLogger('a.b').error('failed', exc_info=ValueError('x'))
        try:
            1 / 0
        except ZeroDivisionError:
            logging.exception('divided')
        print(logging.getLogger().handlers, logging.root.level)
    """,
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
    "leaves a file open in a closure": """
        def make():
            kept = open('kept.txt', 'w')
            return lambda: kept.write('written')
        write = make()
        write()
    """,
    "leaves a file open in a module of the library": """
        import json
        json.kept = open('kept.txt', 'w')
        json.kept.write('x')
    """,
    "leaves a file open in a builtin": "import builtins\nbuiltins.kept = open('kept.txt', 'w')\nkept.write('x')",
    "leaves a file open in a generator": """
        def lines():
            with open('kept.txt', 'w') as file:
                while True:
                    file.write((yield))
        kept = lines()
        next(kept)
        kept.send('written')
    """,
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
    "leaves a database open": """
        import sqlite3
        kept = sqlite3.connect('kept.db')
        kept.execute('create table t (n)')
        kept.execute('insert into t values (1)')
        kept.commit()
        kept.execute('insert into t values (2)')
        print(kept.execute('select count(*) from t').fetchall())
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
