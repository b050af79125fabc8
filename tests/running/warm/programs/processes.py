"""Programs with signals, threads and processes."""

from __future__ import annotations

from tests.running.warm.programs.program import Table

PROGRAMS: Table = {
    "terminates itself": "import os, signal\nprint('lost')\nos.kill(os.getpid(), signal.SIGTERM)",
    "interrupts itself": "import os, signal\nprint('kept')\nos.kill(os.getpid(), signal.SIGINT)\nprint('not reached')",
    "interrupts itself and goes on": """
        import os, signal
        try:
            os.kill(os.getpid(), signal.SIGINT)
            print('not reached')
        except KeyboardInterrupt:
            print('caught')
    """,
    "kills itself": "import os, signal\nprint('lost')\nos.kill(os.getpid(), signal.SIGKILL)",
    "aborts": "import os, resource\nresource.setrlimit(resource.RLIMIT_CORE, (0, 0))\nprint('lost')\nos.abort()",
    "crashes": """
        import ctypes, resource
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        print('kept', flush=True)
        ctypes.string_at(0)
    """,
    "handles a signal": """
        import os, signal
        signal.signal(signal.SIGTERM, lambda number, frame: print('got', number, frame.f_code.co_name))
        os.kill(os.getpid(), signal.SIGTERM)
        print('after')
    """,
    "exits in a handler": """
        import os, signal, sys
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(4))
        os.kill(os.getpid(), signal.SIGTERM)
        print('not reached')
    """,
    "has an alarm": """
        import signal, time
        def handler(*_):
            raise TimeoutError('late')
        signal.signal(signal.SIGALRM, handler)
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.01)
            time.sleep(60)
        except TimeoutError as error:
            print(error)
    """,
    "dies of an alarm": "import signal, time\nsignal.setitimer(signal.ITIMER_REAL, 0.01)\ntime.sleep(60)",
    "handles a signal at exit": """
        import atexit, os, signal
        signal.signal(signal.SIGUSR1, lambda *_: print('got it'))
        @atexit.register
        def last():
            os.kill(os.getpid(), signal.SIGUSR1)
            print('after')
    """,
    "dies at exit": """
        import atexit, os, signal
        atexit.register(os.kill, os.getpid(), signal.SIGTERM)
        print('lost?')
    """,
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
    "blocks signals": """
        import os, signal
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
        os.kill(os.getpid(), signal.SIGTERM)
        print(signal.sigpending(), signal.sigwait([signal.SIGTERM]))
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
    "leaves a daemon": """
        import threading, time
        threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
        print('main ends')
    """,
    "fails in a thread": """
        import threading
        def work():
            raise ValueError('in thread')
        thread = threading.Thread(target=work, name='worker')
        thread.start()
        thread.join()
        print('unharmed')
    """,
    "fails in a thread that is left": """
        import threading
        def work():
            threading.main_thread().join()
            raise ValueError('in thread')
        threading.Thread(target=work, name='worker').start()
    """,
    "has a hook for threads": """
        import threading
        threading.excepthook = lambda args: print('hook', args.exc_type.__name__, args.thread.name)
        thread = threading.Thread(target=lambda: 1 / 0, name='worker')
        thread.start()
        thread.join()
    """,
    "tells of its thread": """
        import threading
        thread = threading.main_thread()
        print(thread.name, thread.daemon, thread.is_alive())
        print(thread.ident == threading.get_ident(), threading.enumerate() == [thread], threading.active_count())
        print(threading.current_thread() is thread, type(thread).__name__, threading.stack_size())
    """,
    "interrupts main from a thread": """
        import _thread, threading, time
        ready = threading.Event()
        threading.Thread(target=lambda: (ready.wait(), _thread.interrupt_main())).start()
        try:
            ready.set()
            while True:
                time.sleep(0.01)
        except KeyboardInterrupt:
            print('interrupted')
    """,
    "has local data of threads": """
        import contextvars, threading
        local = threading.local()
        local.value = 1
        variable = contextvars.ContextVar('v', default=0)
        variable.set(5)
        thread = threading.Thread(target=lambda: print(hasattr(local, 'value'), variable.get()))
        thread.start()
        thread.join()
        print(local.value, variable.get(), len(contextvars.copy_context()))
    """,
    "runs a command": """
        import subprocess
        done = subprocess.run(['sh', '-c', 'echo out; echo err >&2; exit 3'], capture_output=True, text=True)
        print(done)
        print(subprocess.check_output('echo $((1 + 1))', shell=True))
        print(subprocess.getoutput('echo x'), subprocess.call(['false']))
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
    "runs a command for too long": """
        import subprocess
        try:
            subprocess.run(['sleep', '60'], timeout=0.01)
        except subprocess.TimeoutExpired as error:
            print(error.cmd)
    """,
    "leaves a command running": """
        import subprocess
        kept = subprocess.Popen(['sleep', '0.05'])
        print('ends')
    """,
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
    "becomes itself by its file": """
        import os, sys
        print('run', os.environ.get('AGAIN'), os.environ['MCP_TOOL_ARGS_JSON'], flush=True)
        if 'AGAIN' not in os.environ:
            os.environ['AGAIN'] = '1'
            os.execl(__file__, __file__)
    """,
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
    "forks with hooks": """
        import os, sys
        os.register_at_fork(before=lambda: print('before', flush=True))
        os.register_at_fork(after_in_child=lambda: print('child', flush=True))
        pid = os.fork()
        if pid == 0:
            os._exit(0)
        os.waitpid(pid, 0)
        print('parent')
    """,
    "becomes a daemon": """
        import os, sys
        ours, theirs = os.pipe()
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                print('daemon', os.getpid() == os.getsid(0))
                sys.stdout.flush()
                os._exit(0)
            os._exit(0)
        os.wait()
        os.close(theirs)
        print('ends', os.read(ours, 1))
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
    "multiprocesses by forkserver": """
        import multiprocessing
        def work(connection):
            connection.send(__name__)
        if __name__ == '__main__':
            context = multiprocessing.get_context('forkserver')
            ours, theirs = context.Pipe()
            process = context.Process(target=work, args=(theirs,))
            process.start()
            print(ours.recv())
            process.join()
            print(process.exitcode, context.get_start_method())
    """,
    "leaves a process to multiprocessing": """
        import multiprocessing, time
        if __name__ == '__main__':
            context = multiprocessing.get_context('fork')
            print('main ends', flush=True)
            context.Process(target=print, args=('joined at exit',)).start()
            context.Process(target=time.sleep, args=(60,), daemon=True).start()
    """,
    "shares memory": """
        from multiprocessing import shared_memory
        memory = shared_memory.SharedMemory(create=True, size=16)
        memory.buf[:2] = b'hi'
        print(bytes(memory.buf[:2]))
        memory.close()
        memory.unlink()
    """,
    "has a pool of threads": """
        from concurrent.futures import ThreadPoolExecutor
        with ThreadPoolExecutor(2) as pool:
            print(list(pool.map(lambda n: n + 1, range(5))))
        kept = ThreadPoolExecutor(1)
        kept.submit(print, 'by a pool that nobody closes')
    """,
    "has a pool of processes": """
        import multiprocessing
        from concurrent.futures import ProcessPoolExecutor
        if __name__ == '__main__':
            with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context('fork')) as pool:
                print(list(pool.map(abs, [-1, -2])))
    """,
    "is asynchronous": """
        import asyncio
        async def later(n):
            await asyncio.sleep(0)
            return n
        async def main():
            print(await asyncio.gather(*map(later, range(3))))
        asyncio.run(main())
    """,
    "runs a command asynchronously": """
        import asyncio
        async def main():
            process = await asyncio.create_subprocess_exec('echo', 'x', stdout=asyncio.subprocess.PIPE)
            print(await process.communicate(), process.returncode)
        asyncio.run(main())
    """,
    "forgets an asynchronous failure": """
        import asyncio
        async def fail():
            raise ValueError('never retrieved')
        async def main():
            asyncio.ensure_future(fail())
            await asyncio.sleep(0)
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
    "uses up its descriptors": """
        import os, resource
        resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))
        kept = []
        try:
            while True:
                kept.append(open('/dev/null'))
        except OSError as error:
            print(error)
        last = open(kept.pop().fileno(), 'w', closefd=False)
    """,
}
