"""Programs with signals, threads and processes."""

from __future__ import annotations

from tests.running.warm.programs.program import Table

PROGRAMS: Table = {
    "terminates itself": "import os, signal\nprint('lost')\nos.kill(os.getpid(), signal.SIGTERM)",
    "interrupts itself": "import os, signal\nprint('kept')\nos.kill(os.getpid(), signal.SIGINT)\nprint('not reached')",
    "kills itself": "import os, signal\nprint('lost')\nos.kill(os.getpid(), signal.SIGKILL)",
    "aborts": "import os, resource\nresource.setrlimit(resource.RLIMIT_CORE, (0, 0))\nprint('lost')\nos.abort()",
    "handles a signal": """
        import os, signal
        signal.signal(signal.SIGTERM, lambda number, frame: print('got', number, frame.f_code.co_name))
        os.kill(os.getpid(), signal.SIGTERM)
        print('after')
    """,
    "dies of an alarm": "import signal, time\nsignal.setitimer(signal.ITIMER_REAL, 0.01)\ntime.sleep(60)",
    "tells its handlers": """
        import signal
        for number in sorted(signal.valid_signals()):
            handler = signal.getsignal(number)
            if handler != signal.SIG_DFL:
                print(int(number), handler)
        print(signal.pthread_sigmask(signal.SIG_BLOCK, []), signal.sigpending(), signal.getitimer(signal.ITIMER_REAL))
        print(signal.set_wakeup_fd(-1))
        for line in open('/proc/self/status'):
            if line[:3] == 'Sig' and line[:4] != 'SigQ' or line[:3] == 'Shd':
                print(line, end='')
    """,
    "leaves a thread running": """
        import threading
        ended = threading.Event()
        def work():
            ended.wait()
            print('thread ends')
        threading.Thread(target=work).start()
        print('main ends', flush=True)
        import atexit
        atexit.register(print, 'at exit')
        threading.Timer(0.01, ended.set).start()
    """,
    "waits for a thread after a failure": """
        import threading
        main = threading.main_thread()
        def work():
            main.join()
            print('thread ends')
        threading.Thread(target=work).start()
        raise ValueError('in main')
    """,
    "fails in a thread that is left": """
        import threading
        def work():
            threading.main_thread().join()
            raise ValueError('in thread')
        threading.Thread(target=work, name='worker').start()
    """,
    "tells of its thread": """
        import threading
        thread = threading.main_thread()
        print(thread.name, thread.daemon, thread.is_alive())
        print(thread.ident == threading.get_ident(), threading.enumerate() == [thread], threading.active_count())
        print(threading.current_thread() is thread, type(thread).__name__, threading.stack_size())
    """,
    "runs a command that inherits stdout": """
        import os, subprocess, sys
        print('before', flush=True)
        subprocess.run(['echo', 'by echo'])
        subprocess.run('echo by shell >&2', shell=True)
        os.system('echo by system')
        print('after')
    """,
    "runs a command that fails": "import subprocess\nsubprocess.run(['sh', '-c', 'exit 3'], check=True)",
    "gives its environment to commands": """
        import os, subprocess
        os.environ['ADDED'] = 'by Python'
        os.environ.pop('LANG')
        os.putenv('PUT', 'at C level')
        print(subprocess.check_output('env | grep -v ^_= | grep -v ^SHLVL= | sort', shell=True, text=True))
    """,
    "gives the environment of C to a command": "import os\nos.system('env | grep -v ^_= | sort')",
    "gives descriptors to commands": """
        import os, subprocess
        subprocess.run(['sh', '-c', 'ls /proc/self/fd'], close_fds=False)
        subprocess.run(['ls', '/proc/self/fd'])
        os.system('ls /proc/self/fd')
    """,
    "gives signals to commands": """
        import os, subprocess
        subprocess.run(['grep', '^Sig[BIC]', '/proc/self/status'])
        os.system('grep ^Sig[BIC] /proc/self/status')
    """,
    "runs Python": """
        import subprocess, sys
        print(subprocess.check_output([sys.executable, '-c', 'import sys; print(sys.argv, sys.path[0], sys.flags)']))
    """,
    "runs itself": """
        import os, subprocess, sys
        if len(sys.argv) > 1:
            print('inner', sys.argv[1:], os.environ['MCP_TOOL_ARGS_JSON'])
        else:
            print('outer', flush=True)
            subprocess.run([__file__, 'x'])
            subprocess.run([sys.executable, *sys.argv, 'y'])
    """,
    "becomes another program": "import os\nprint('lost')\nos.execvp('echo', ['echo', 'another'])",
    "becomes another with its signals": "import os\nos.execvp('grep', ['grep', '^Sig[BIC]', '/proc/self/status'])",
    "forks": """
        import os
        print('both')
        pid = os.fork()
        if pid == 0:
            print('child')
        else:
            print('parent', os.waitpid(pid, 0)[1])
    """,
    "forks and the child fails": """
        import os
        pid = os.fork()
        if pid == 0:
            raise ValueError('in child')
        print(os.waitpid(pid, 0)[1])
    """,
    "forks and the child does things at exit": """
        import atexit, os
        main = os.getpid()
        atexit.register(lambda: print('at exit', os.getpid() == main))
        pid = os.fork()
        if pid:
            os.waitpid(pid, 0)
    """,
    "is the child of its parent": """
        import os
        ppid = os.getppid()
        print(os.path.exists('/proc/%d' % ppid), open('/proc/%d/comm' % ppid).read())
        print(os.getpid() == os.getsid(0) == os.getpgid(0) == os.getpgrp())
        stat = open('/proc/self/stat').read().rpartition(')')[2].split()
        print(stat[0], stat[4:6], int(stat[1]) == ppid, int(stat[2]) == os.getpid(), len(os.listdir('/proc/self/task')))
        try:
            os.open('/dev/tty', os.O_RDWR)
        except OSError as error:
            print(error)
    """,
    "has no children": """
        import os
        try:
            os.wait()
        except ChildProcessError as error:
            print(error)
    """,
    "multiprocesses by fork": """
        import multiprocessing
        def double(n):
            return n * 2
        if __name__ == '__main__':
            context = multiprocessing.get_context('fork')
            with context.Pool(2) as pool:
                print(pool.map(double, range(5)))
            queue = context.SimpleQueue()
            process = context.Process(target=queue.put, args=('from child',), name='child')
            process.start()
            print(queue.get(), process.name, multiprocessing.current_process().name, multiprocessing.parent_process())
            process.join()
            print(process.exitcode)
    """,
    "multiprocesses by spawn": """
        import multiprocessing, sys
        NAME = __name__
        def work(queue):
            queue.put((NAME, sys.argv[0] == __file__, multiprocessing.current_process().name))
        if __name__ == '__main__':
            context = multiprocessing.get_context('spawn')
            queue = context.SimpleQueue()
            process = context.Process(target=work, args=(queue,))
            process.start()
            print(queue.get())
            process.join()
            print(process.exitcode)
    """,
    "leaves a process to multiprocessing": """
        import multiprocessing, time
        if __name__ == '__main__':
            context = multiprocessing.get_context('fork')
            print('main ends', flush=True)
            context.Process(target=print, args=('joined at exit',)).start()
            context.Process(target=time.sleep, args=(60,), daemon=True).start()
    """,
    "has a pool of threads": """
        from concurrent.futures import ThreadPoolExecutor
        with ThreadPoolExecutor(2) as pool:
            print(list(pool.map(lambda n: n + 1, range(5))))
        kept = ThreadPoolExecutor(1)
        kept.submit(print, 'by a pool that nobody closes')
    """,
    "runs a command asynchronously": """
        import asyncio
        async def main():
            process = await asyncio.create_subprocess_exec('echo', 'x', stdout=asyncio.subprocess.PIPE)
            print(await process.communicate(), process.returncode)
        asyncio.run(main())
    """,
    "is interrupted asynchronously": """
        import asyncio, os, signal
        async def main():
            try:
                os.kill(os.getpid(), signal.SIGINT)
                await asyncio.sleep(60)
            finally:
                print('left')
        asyncio.run(main())
    """,
    "opens descriptors": """
        import os
        print(sorted(map(int, os.listdir('/proc/self/fd'))), os.open('/dev/null', os.O_RDONLY))
        for fd in (0, 1, 2):
            print(fd, os.get_inheritable(fd), os.get_blocking(fd), os.fstat(fd).st_mode)
        print(os.readlink('/proc/self/fd/0'))
    """,
}
